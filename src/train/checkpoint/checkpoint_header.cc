#include "train/checkpoint/checkpoint_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace paceline::train {
namespace {

using base::ErrorKind;
using base::fail;

constexpr const char* kGuardKey = "loss_guard";
constexpr const char* kLossKey = "loss_checked";
constexpr const char* kGoodLoss = "good";

/// The whole text as a number; "12x" is not one.
template <typename T>
T whole_text_in(const SafetensorsFile& checkpoint, const std::string& key) {
  const std::string text = text_in(checkpoint, key);
  const char* const end = text.data() + text.size();
  T value{};
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc{} || read.ptr != end)
    fail(ErrorKind::data,
         "{}: the checkpoint's '{}' is missing or not a number; it is damaged or was not written by this "
         "program: take an earlier one",
         checkpoint.path().string(), key);
  return value;
}

void require_own_format(const SafetensorsFile& file) {
  const auto format = text_in(file, "format");
  if (format == kCheckpointFormat || format == kFormatWithoutSum) return;
  fail(ErrorKind::data,
       "{}: its format is '{}', but '{}' or '{}' is expected; it was not written by this program's train",
       file.path().string(), format.empty() ? "none" : format, kCheckpointFormat, kFormatWithoutSum);
}

}  // namespace

SafetensorsFile open_header(const std::filesystem::path& path) {
  SafetensorsFile file(path);
  require_own_format(file);
  return file;
}

SafetensorsFile open_checkpoint(const std::filesystem::path& path) {
  // Before the file is mapped, so that a failing disk is reported as an error.
  const auto sum = check_checksum(path);
  auto file = open_header(path);  // its errors say more: cut short, no JSON
  if (sum == Checksum::right || (sum == Checksum::absent && !is_summed(file))) return file;
  fail(ErrorKind::data,
       "{}: it is damaged: {}; take an earlier checkpoint (if another program changed it on purpose, remove "
       "'{}' from its metadata and write '{}' as its format)",
       path.string(),
       sum == Checksum::wrong ? "the SHA-256 of its bytes is not the one in its header"
                              : "its format requires a SHA-256 in its header, but there is none",
       kChecksumKey, kFormatWithoutSum);
}

bool is_summed(const SafetensorsFile& checkpoint) {
  return text_in(checkpoint, "format") == kCheckpointFormat ||
         checkpoint.metadata().contains(std::string(kChecksumKey));
}

std::string text_in(const SafetensorsFile& checkpoint, const std::string& key) {
  const auto found = checkpoint.metadata().find(key);
  return found == checkpoint.metadata().end() ? "" : found->second;
}

std::int64_t number_in(const SafetensorsFile& checkpoint, const std::string& key) {
  return whole_text_in<std::int64_t>(checkpoint, key);
}

ValidationState validation_in(const SafetensorsFile& checkpoint) {
  ValidationState state;
  if (text_in(checkpoint, "best_update").empty()) return state;
  state.best_update = number_in(checkpoint, "best_update");
  state.best_epoch = number_in(checkpoint, "best_epoch");
  state.best_accuracy = whole_text_in<double>(checkpoint, "best_accuracy");
  state.best_loss = whole_text_in<double>(checkpoint, "best_loss");
  state.last_epoch = number_in(checkpoint, "validated_epoch");
  state.reduced_epoch = number_in(checkpoint, "reduced_epoch");
  state.reductions = number_in(checkpoint, "reductions");
  return state;
}

GuardState guard_in(const SafetensorsFile& checkpoint) {
  const std::string text = text_in(checkpoint, kGuardKey);
  GuardState state;
  if (text.empty()) return state;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto take = [&](auto& value) {
    if (at != end && *at == ' ') ++at;
    const auto read = std::from_chars(at, end, value);
    if (read.ec != std::errc{})
      fail(ErrorKind::data,
           "{}: the checkpoint's '{}' is not a list of numbers; it is damaged: take an earlier one",
           checkpoint.path().string(), kGuardKey);
    at = read.ptr;
  };
  for (auto* value : {&state.seen, &state.above, &state.skipped, &state.skipped_in_row, &state.rollbacks})
    take(*value);
  take(state.lowest);
  // The ring buffer is read from the oldest entry on.
  const std::int64_t kept = std::min<std::int64_t>(state.seen, GuardState::kWindow);
  for (std::int64_t step = state.seen - kept; step < state.seen; ++step)
    take(state.losses[static_cast<std::size_t>(step) % GuardState::kWindow]);
  if (at == end && state.seen >= 0 && state.rollbacks >= 0) return state;
  fail(ErrorKind::data,
       "{}: the checkpoint's '{}' does not have the numbers that it announces; it is damaged: take an "
       "earlier one",
       checkpoint.path().string(), kGuardKey);
}

bool says_it_is_good(const SafetensorsFile& checkpoint) { return text_in(checkpoint, kLossKey) == kGoodLoss; }

Metadata texts_of(const GuardState& guard) {
  auto text = fmt::format("{} {} {} {} {} {}", guard.seen, guard.above, guard.skipped, guard.skipped_in_row,
                          guard.rollbacks, guard.lowest);
  const std::int64_t kept = std::min<std::int64_t>(guard.seen, GuardState::kWindow);
  for (std::int64_t step = guard.seen - kept; step < guard.seen; ++step)
    text += fmt::format(" {}", guard.losses[static_cast<std::size_t>(step) % GuardState::kWindow]);
  return {{kLossKey, is_good(guard) ? kGoodLoss : "suspect"}, {kGuardKey, text}};
}

Metadata texts_of(const ValidationState& validation) {
  if (validation.best_update == 0) return {};
  return {{"best_update", std::to_string(validation.best_update)},
          {"best_epoch", std::to_string(validation.best_epoch)},
          {"best_accuracy", fmt::format("{}", validation.best_accuracy)},
          {"best_loss", fmt::format("{}", validation.best_loss)},
          {"validated_epoch", std::to_string(validation.last_epoch)},
          {"reduced_epoch", std::to_string(validation.reduced_epoch)},
          {"reductions", std::to_string(validation.reductions)}};
}

}  // namespace paceline::train
