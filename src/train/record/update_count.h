#pragma once

/// UpdateCount keeps the number of updates done in a small file in --out that survives a kill. The run that
/// continues from the checkpoint reads in it how much work was lost.

#include <cstdint>
#include <filesystem>
#include <optional>

namespace paceline::train {

/// The file's name in --out: one line, a number.
inline constexpr const char* kUpdatesDone = "updates-done";

/// Threads  one at a time
class UpdateCount {
 public:
  /// An existing file is not changed before the first set(). There is no file if `out` is empty. A file that
  /// cannot be written is ignored: the figure is not worth failing a run.
  explicit UpdateCount(const std::filesystem::path& out);
  ~UpdateCount();
  UpdateCount(const UpdateCount&) = delete;
  UpdateCount& operator=(const UpdateCount&) = delete;

  /// Cost     a write of 20 bytes into the page cache: a microsecond
  void set(std::int64_t updates);
  /// Removes the file, once the record has the number.
  void forget();

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

/// The count that a lost run has left in `out`.
[[nodiscard]] std::optional<std::int64_t> counted_updates(const std::filesystem::path& out);

}  // namespace paceline::train
