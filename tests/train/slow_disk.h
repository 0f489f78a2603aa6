#pragma once

/// A disk that answers late, for this process: the program's calls of fsync() are those of slow_disk.cc.

#include <chrono>

namespace paceline::train {

/// While it lives the next fsync() takes `time`, once.
class SlowDisk {
 public:
  explicit SlowDisk(std::chrono::milliseconds time);
  ~SlowDisk();
  SlowDisk(const SlowDisk&) = delete;
  SlowDisk& operator=(const SlowDisk&) = delete;
  [[nodiscard]] bool was_slow() const;  ///< somebody has waited
};

}  // namespace paceline::train
