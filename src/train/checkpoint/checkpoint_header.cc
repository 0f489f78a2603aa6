#include "train/checkpoint/checkpoint_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "base/error.h"
#include "base/text.h"

namespace paceline::train {
namespace {

using base::ErrorKind;
using base::fail;

constexpr const char* kGuardKey = "loss_guard";
constexpr const char* kLossKey = "loss_checked";
constexpr const char* kGoodLoss = "good";
// Of the loss scale; only in fp16.
constexpr const char* kScaleKey = "loss_scale";
constexpr const char* kCleanKey = "loss_scale_clean_updates";
constexpr const char* kLeftOutKey = "loss_scale_left_out";

/// The whole text as a number; "12x" is not one.
template <typename T>
T whole_text_in(const SafetensorsFile& checkpoint, const std::string& key) {
  const auto value = base::to_number<T>(text_in(checkpoint, key));
  if (!value)
    fail(ErrorKind::data,
         "{}: the checkpoint's '{}' is missing or not a number; it is damaged or was not written by this "
         "program: take an earlier one",
         checkpoint.path().string(), key);
  return *value;
}

void require_own_format(const SafetensorsFile& file) {
  const auto format = text_in(file, "format");
  if (is_checkpoint_format(format)) return;
  fail(
      ErrorKind::data,
      "{}: its format is '{}', but '{}', '{}' or '{}' is expected; it was not written by this program's train",
      file.path().string(), format.empty() ? "none" : format, kCheckpointFormat, kFormatWithoutData,
      kFormatWithoutSum);
}

constexpr const char* kClassesKey = "classes";
constexpr const char* kImageKey = "image";
constexpr const char* kEvaluatedKey = "eval_image";  ///< only where evaluation has a size of its own
constexpr const char* kResizeKey = "eval_resize";    ///< only where evaluation resizes
constexpr const char* kRangeKey = "range";           ///< only where values of 16 bits are scaled
constexpr std::int64_t kMostResized = 1 << 16;

std::string sides_of(const data::ImageFormat& format) {
  return fmt::format("{}x{}x{}", format.height, format.width, format.channels);
}

[[noreturn]] void fail_damaged(const SafetensorsFile& checkpoint, const char* key) {
  fail(ErrorKind::data, "{}: the checkpoint's '{}' cannot be read; it is damaged: take an earlier one",
       checkpoint.path().string(), key);
}

/// The numbers of a text that joins them by `between`: "32x32x3".
template <typename T>
std::vector<T> numbers_in(const SafetensorsFile& checkpoint, const char* key, char between) {
  const std::string text = text_in(checkpoint, key);
  std::vector<T> numbers;
  for (std::size_t begin = 0; begin <= text.size() && !text.empty();) {
    const auto end = std::min(text.find(between, begin), text.size());
    const auto number = base::to_number<T>(std::string_view(text).substr(begin, end - begin));
    if (!number) fail_damaged(checkpoint, key);
    numbers.push_back(*number);
    begin = end + 1;
  }
  return numbers;
}

data::ImageFormat format_in(const SafetensorsFile& checkpoint, const char* key) {
  const auto sides = numbers_in<int>(checkpoint, key, 'x');
  if (sides.size() != 3) fail_damaged(checkpoint, key);
  return {.height = sides[0], .width = sides[1], .channels = sides[2]};
}

/// The keys of the list of images of `part`: "test_list_sha256" and "test_samples".
std::string key_of_list(std::string_view part) { return fmt::format("{}_list_sha256", part); }
std::string key_of_samples(std::string_view part) { return fmt::format("{}_samples", part); }

data::DataIdentity::List list_in(const SafetensorsFile& checkpoint, std::string_view part) {
  data::DataIdentity::List list{.images = 0, .sha256 = text_in(checkpoint, key_of_list(part))};
  if (!list.sha256.empty()) list.images = number_in(checkpoint, key_of_samples(part));
  return list;
}

}  // namespace

bool is_checkpoint_format(const std::string& format) {
  return format == kCheckpointFormat || format == kFormatWithoutData || format == kFormatWithoutSum;
}

SafetensorsFile open_header(const std::filesystem::path& path) {
  SafetensorsFile file(path);
  require_own_format(file);
  return file;
}

bool has_arrays(const SafetensorsFile& file, std::string_view prefix) {
  return std::ranges::any_of(file.tensors(),
                             [&](const Tensor& tensor) { return tensor.name.starts_with(prefix); });
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
  return text_in(checkpoint, "format") != kFormatWithoutSum ||
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
  const auto numbers = numbers_in<double>(checkpoint, kGuardKey, ' ');
  GuardState state;
  if (numbers.empty()) return state;
  const std::array counts{&state.seen, &state.above, &state.skipped, &state.skipped_in_row, &state.rollbacks};
  const auto is_count = [](double number) {
    return number >= 0 && number < 0x1p53 && number == std::floor(number);
  };
  if (numbers.size() <= counts.size() ||
      !std::ranges::all_of(std::span(numbers).first(counts.size()), is_count))
    fail_damaged(checkpoint, kGuardKey);
  for (std::size_t i = 0; i < counts.size(); ++i) *counts[i] = static_cast<std::int64_t>(numbers[i]);
  state.lowest = numbers[counts.size()];
  const auto losses = std::span(numbers).subspan(counts.size() + 1);  // the oldest entry of the ring first
  if (std::ssize(losses) != std::min<std::int64_t>(state.seen, GuardState::kWindow))
    fail_damaged(checkpoint, kGuardKey);
  const std::size_t first = static_cast<std::size_t>(state.seen) - losses.size();
  for (std::size_t i = 0; i < losses.size(); ++i) state.losses[(first + i) % GuardState::kWindow] = losses[i];
  return state;
}

engine::LossScale loss_scale_in(const SafetensorsFile& checkpoint) {
  engine::LossScale scale;
  if (text_in(checkpoint, kScaleKey).empty()) return scale;
  scale.scale = whole_text_in<float>(checkpoint, kScaleKey);
  scale.clean = whole_text_in<std::int32_t>(checkpoint, kCleanKey);
  scale.left_out = number_in(checkpoint, kLeftOutKey);
  const bool is_possible = scale.scale >= engine::kLeastLossScale && scale.scale <= engine::kMostLossScale &&
                           scale.clean >= 0 && scale.clean < engine::kCleanUpdates && scale.left_out >= 0;
  if (!is_possible) fail_damaged(checkpoint, kScaleKey);
  return scale;
}

Metadata texts_of(const engine::LossScale& scale) {
  return {{kScaleKey, fmt::format("{}", scale.scale)},
          {kCleanKey, std::to_string(scale.clean)},
          {kLeftOutKey, std::to_string(scale.left_out)}};
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

data::DataIdentity data_in(const SafetensorsFile& checkpoint) {
  data::DataIdentity data;
  const std::string classes = text_in(checkpoint, kClassesKey);
  if (classes.empty()) return data;
  try {
    data.classes = nlohmann::json::parse(classes).get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception&) {
    fail_damaged(checkpoint, kClassesKey);
  }
  if (data.classes.empty()) fail_damaged(checkpoint, kClassesKey);
  data.format = data.evaluated = format_in(checkpoint, kImageKey);
  if (!text_in(checkpoint, kEvaluatedKey).empty()) {
    data.evaluated = format_in(checkpoint, kEvaluatedKey);
    if (data.evaluated.height < 1 || data.evaluated.width < 1 ||
        data.evaluated.channels != data.format.channels)
      fail_damaged(checkpoint, kEvaluatedKey);
  }
  data.mean = numbers_in<float>(checkpoint, "mean", ':');
  data.stddev = numbers_in<float>(checkpoint, "std", ':');
  if (!text_in(checkpoint, kResizeKey).empty()) {
    const auto resize = number_in(checkpoint, kResizeKey);
    if (resize < std::max(data.evaluated.height, data.evaluated.width) || resize > kMostResized)
      fail_damaged(checkpoint, kResizeKey);
    data.eval_resize = static_cast<int>(resize);
  }
  if (const std::string range = text_in(checkpoint, kRangeKey); !range.empty()) {
    data.range = data::range_named(range);
    if (!data.range) fail_damaged(checkpoint, kRangeKey);
  }
  data.train = list_in(checkpoint, "train");
  data.validation = list_in(checkpoint, "validation");
  data.test = list_in(checkpoint, "test");
  return data;
}

Metadata texts_of(const data::DataIdentity& data) {
  if (data.classes.empty()) return {};
  Metadata texts{{kClassesKey, nlohmann::json(data.classes).dump()},
                 {kImageKey, sides_of(data.format)},
                 {"mean", fmt::format("{}", fmt::join(data.mean, ":"))},
                 {"std", fmt::format("{}", fmt::join(data.stddev, ":"))}};
  if (data.evaluated != data.format) texts[kEvaluatedKey] = sides_of(data.evaluated);
  if (data.eval_resize > 0) texts[kResizeKey] = std::to_string(data.eval_resize);
  if (data.range) texts[kRangeKey] = data::text_of(*data.range);
  for (const auto& [part, list] :
       {std::pair{"train", &data.train}, {"validation", &data.validation}, {"test", &data.test}}) {
    if (list->sha256.empty()) continue;
    texts[key_of_list(part)] = list->sha256;
    texts[key_of_samples(part)] = std::to_string(list->images);
  }
  return texts;
}

std::string note_of_no_classes(const std::filesystem::path& checkpoint) {
  return fmt::format(
      "{} names no classes: a version wrote it that kept none, so labels are compared by their order alone",
      checkpoint.filename().string());
}

std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 8;
  const auto text = base::joined(std::span(names).first(std::min(kMost, names.size())), ", ",
                                 [](const auto& name) { return fmt::format("'{}'", name); });
  return names.size() <= kMost ? text : text + fmt::format(", and {} more", names.size() - kMost);
}

std::string difference_of_classes(const std::vector<std::string>& then, const std::vector<std::string>& now) {
  if (then == now) return "";
  const auto lacking = [](const std::vector<std::string>& these, const std::vector<std::string>& in) {
    std::vector<std::string> names;
    for (const auto& name : these)
      if (std::find(in.begin(), in.end(), name) == in.end()) names.push_back(name);
    return names;
  };
  const auto gone = lacking(then, now), added = lacking(now, then);
  const auto are = [](const auto& names) { return names.size() == 1 ? "is" : "are"; };
  std::vector<std::string> parts;
  if (!gone.empty()) parts.push_back(fmt::format("{} {} missing", some_of(gone), are(gone)));
  if (!added.empty()) parts.push_back(fmt::format("{} {} new", some_of(added), are(added)));
  return parts.empty() ? "they have another order" : fmt::format("{}", fmt::join(parts, ", "));
}

FormatDifference difference_of_format(const data::DataIdentity& then, const data::DataIdentity& now) {
  const auto text = [&](const data::DataIdentity& data) {
    std::vector<std::string> parts;
    if (then.format != now.format) parts.push_back(sides_of(data.format));
    if (then.evaluated != now.evaluated) parts.push_back(sides_of(data.evaluated) + " to test");
    if (then.mean != now.mean) parts.push_back(fmt::format("of mean {}", fmt::join(data.mean, ":")));
    if (then.eval_resize != now.eval_resize)
      parts.push_back(data.eval_resize == 0
                          ? "to test as much as fits"
                          : fmt::format("to test resized to {} and cropped", data.eval_resize));
    if (then.range != now.range)
      parts.push_back(data.range ? fmt::format("of range {}", data::text_of(*data.range))
                                 : "of the upper 8 of 16 bits");
    if (then.stddev != now.stddev) parts.push_back(fmt::format("of std {}", fmt::join(data.stddev, ":")));
    return fmt::format("{}", fmt::join(parts, ", "));
  };
  return {.now = text(now), .then = text(then)};
}

}  // namespace paceline::train
