#include "measure/tensorboard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/protobuf.h"
#include "base/text.h"
#include "measure/environment.h"

namespace paceline::measure {
namespace {

using base::protobuf::add_bytes;
using base::protobuf::add_double;
using base::protobuf::add_float;
using base::protobuf::add_little_endian;
using base::protobuf::add_whole_number;

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // Castagnoli's, reflected

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

// Field numbers of TensorBoard's messages.
constexpr std::uint64_t kEventWallTime = 1, kEventStep = 2, kEventFileVersion = 3, kEventSummary = 5;
constexpr std::uint64_t kSummaryValue = 1, kValueTag = 1, kValueSimple = 2;

struct Scalar {
  const char* key;  ///< of the event's field
  const char* tag;
};
constexpr std::array kScalars{
    Scalar{"loss", "train/loss"},
    Scalar{"train_loss", "train/loss"},
    Scalar{"train_accuracy", "train/accuracy"},
    Scalar{"test_loss", "test/loss"},
    Scalar{"test_accuracy", "test/accuracy"},
    Scalar{"test_top_5", "test/top-5"},
    Scalar{"validation_loss", "validation/loss"},
    Scalar{"validation_accuracy", "validation/accuracy"},
    Scalar{"validation_top_5", "validation/top-5"},
    Scalar{"lr", "learning_rate"},
    Scalar{"images_per_s", "images_per_s"},
};

/// Rotated and shifted, so that a checksum over data that contain checksums differs from them.
std::uint32_t masked_crc32c(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8u; }

/// `wall_time`: UTC, seconds since 1970.
std::string scalar_message(double wall_time, std::int64_t step, std::string_view tag, float value) {
  std::string one, summary, event;
  add_bytes(one, kValueTag, tag);
  add_float(one, kValueSimple, value);
  add_bytes(summary, kSummaryValue, one);
  add_double(event, kEventWallTime, wall_time);
  add_whole_number(event, kEventStep, step);
  add_bytes(event, kEventSummary, summary);
  return event;
}

/// The first message of every file.
std::string version_message(double wall_time) {
  std::string event;
  add_double(event, kEventWallTime, wall_time);
  add_bytes(event, kEventFileVersion, "brain.Event:2");
  return event;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kTable = crc_table();
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

std::string tfrecord(std::string_view message) {
  std::string record;
  add_little_endian(record, static_cast<std::uint64_t>(message.size()));
  add_little_endian(record, masked_crc32c(record));
  record += message;
  add_little_endian(record, masked_crc32c(message));
  return record;
}

TensorBoardFile::TensorBoardFile(std::filesystem::path directory, std::function<void(const std::string&)> say)
    : directory_(std::move(directory)), say_(std::move(say)) {}

void TensorBoardFile::take(const Event& event) {
  const auto& name = event.name();
  if (name != "step" && name != "epoch" && name != "evaluation") return;
  const auto update = event.whole("update").value_or(0), epoch = event.whole("epoch").value_or(0);
  std::string records;
  for (const auto& [key, tag] : kScalars) {
    const auto value = event.number(key);
    if (!value) continue;
    const auto scalar = static_cast<float>(*value);
    records += tfrecord(scalar_message(event.at(), update, tag, scalar));
    if (name != "step")
      records += tfrecord(scalar_message(event.at(), epoch, fmt::format("by_epoch/{}", tag), scalar));
  }
  if (!records.empty()) write(records);
}

void TensorBoardFile::write(const std::string& records) {
  if (given_up_) return;
  std::string text = records;
  if (!file_.is_open()) {
    const double now = unix_now();
    // TensorBoard recognises its files by this name.
    const auto path = directory_ / fmt::format("events.out.tfevents.{:010}.{}.{}",
                                               static_cast<std::int64_t>(now), base::host_name(), ::getpid());
    std::error_code ignored;  // then it cannot be opened either
    std::filesystem::create_directories(directory_, ignored);
    file_ =
        base::Descriptor(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    text = tfrecord(version_message(now)) + text;
  }
  ssize_t written = -1;
  if (file_.is_open()) do
      written = ::write(file_.get(), text.data(), text.size());
    while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(text.size())) return;
  given_up_ = true;
  if (say_)
    say_(fmt::format("--tensorboard: {}: {}; the run goes on without it", directory_.string(),
                     base::reason_of_write(written < 0 ? errno : ENOSPC)));
}

}  // namespace paceline::measure
