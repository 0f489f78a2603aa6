#pragma once

/// How many updates a training has done, in a small file of its --out: a process that is killed says nothing
/// more, and what it has written there stays. The run that goes on from its checkpoint reads in it how much
/// of the work was lost.

#include <cstdint>
#include <filesystem>
#include <optional>

namespace paceline::train {

/// The file's name in --out: one line, a number.
inline constexpr const char* kUpdatesDone = "updates-done";

/// Threads  one at a time
class UpdateCount {
 public:
  /// The file, or what is in it, stays as it is until the first set(); an empty `out` has none. One that
  /// cannot be written is done without: it is worth a figure, not a run.
  explicit UpdateCount(const std::filesystem::path& out);
  ~UpdateCount();
  UpdateCount(const UpdateCount&) = delete;
  UpdateCount& operator=(const UpdateCount&) = delete;

  /// Cost     a write of 20 bytes that the system keeps for itself: a microsecond
  void set(std::int64_t updates);
  /// The record says it now: the file goes.
  void forget();

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

/// What a run that ended without a word has left in `out`.
[[nodiscard]] std::optional<std::int64_t> counted_updates(const std::filesystem::path& out);

}  // namespace paceline::train
