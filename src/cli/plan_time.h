#pragma once

/// How long a training or a cell takes, as records of before know it. Nothing is measured.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "measure/record.h"
#include "train/options.h"
#include "train/run.h"

namespace paceline::cli {

/// A time, and how it is known.
struct KnownTime {
  double seconds = 0;
  std::string from;  ///< the record's path
};

/// Records of before, newest first.
class KnownTimes {
 public:
  /// Reads the records below `directories`: record.json, and what is in records/; at most the 200 newest.
  /// What cannot be read is left out.
  explicit KnownTimes(const std::vector<std::filesystem::path>& directories);

  /// What `options` take: the time for an update of the newest record that was made on this kind of processor
  /// with the same settings, as far as these touch times, and as many workers and images; none: there is no
  /// such record. Of a training evaluation and checkpoints count too, and so does the time before the first
  /// step; a window ends by its time (--window-seconds) where that comes first.
  [[nodiscard]] std::optional<KnownTime> of(const train::Options& options, const train::Setup& setup) const;

 private:
  struct Known {
    std::filesystem::path path;
    measure::Record record;
  };
  std::vector<Known> records_;
};

}  // namespace paceline::cli
