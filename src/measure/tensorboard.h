#pragma once

/// Writes a run's figures as an event file of TensorBoard: records framed as in TFRecord files, each a
/// protobuf message `Event` with one scalar. Only the few fields that scalars need (docs/formats.md).

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "measure/events.h"

namespace paceline::measure {

/// CRC-32C (Castagnoli) of `bytes`.
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes);
/// `message` with its length and both checksums.
[[nodiscard]] std::string tfrecord(std::string_view message);

/// Threads  one at a time
class TensorBoardFile {
 public:
  /// A new file in `directory`; the first scalar creates both. A resumed run adds another file, as
  /// TensorBoard expects. If it cannot be written, `say` is called once, and the run continues without it.
  TensorBoardFile(std::filesystem::path directory, std::function<void(const std::string&)> say);

  /// Writes the scalars of "step", "epoch" and "evaluation" by update: train/loss, train/accuracy, test/loss,
  /// test/accuracy, validation/loss, validation/accuracy, learning_rate, images_per_s. Those of an epoch are
  /// also written by epoch, prefixed "by_epoch/". Other events are ignored.
  void take(const Event& event);

 private:
  void write(const std::string& records);

  const std::filesystem::path directory_;
  const std::function<void(const std::string&)> say_;
  base::Descriptor file_;
  bool given_up_ = false;
};

}  // namespace paceline::measure
