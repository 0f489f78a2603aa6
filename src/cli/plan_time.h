#pragma once

/// Estimates how long a training or a cell takes, from older records. Nothing is measured.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "measure/record.h"
#include "train/given/options.h"
#include "train/run.h"

namespace paceline::cli {

/// The fewest steps, with its warm-up, of a cell whose window ends by time; nullopt for other cells and
/// trainings, whose steps are known.
[[nodiscard]] std::optional<std::int64_t> fewest_steps(const train::Options& options);

/// A time, and its source.
struct KnownTime {
  double seconds = 0;
  std::string from;  ///< the record's path
};

/// Older records, newest first.
class KnownTimes {
 public:
  /// Reads the records below `directories`: record.json, and those in records/; at most the 200 newest.
  /// Unreadable ones are skipped.
  explicit KnownTimes(const std::vector<std::filesystem::path>& directories);

  /// The time for `options`, from the time per update in the newest record made on this kind of processor,
  /// with the same settings that affect times, and as many workers and images; none if there is no such
  /// record. For a training it includes evaluation, checkpoints and the time before the first step. A window
  /// ends by its time (--window-seconds) where that comes first.
  [[nodiscard]] std::optional<KnownTime> of(const train::Options& options, const train::Setup& setup) const;

 private:
  struct Known {
    std::filesystem::path path;
    measure::Record record;
  };
  std::vector<Known> records_;
};

}  // namespace paceline::cli
