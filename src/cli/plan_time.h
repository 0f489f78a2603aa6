#pragma once

/// Estimates how long a training or a cell takes: from older records or, where there is none, from a few
/// steps that are timed now. Nothing is written.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "measure/record.h"
#include "study/study.h"
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

/// Six commands of 6 to 42 s on two busy cores took 0.77 to 1.13 times the estimate, waits and repeats aside
/// (2026-11-27); other programs come and go, and longer commands have more set-ups that were not timed.
inline constexpr double kCalibrationLow = 0.6, kCalibrationHigh = 1.6;

struct Calibration {
  /// [cells] Expected seconds; none where nothing could be timed. A cell that runs only if chosen is not
  /// weighted.
  std::vector<std::optional<double>> seconds;
  std::string text;  ///< "3 steps each of batch 8 and 512 in 2.1 s"; empty if nothing was timed
};

/// Times three steps of one worker with the smallest batch of each model, with the largest that ends in time,
/// and with the most workers, each in this process. The others follow by their images
/// (screen/remaining_time.h).
///
/// `cores`: that the workers of a cell share, over all hosts
/// Cost     a few seconds for each of at most three models
[[nodiscard]] Calibration calibrate(const std::vector<study::PlannedCell>& cells, int cores);

}  // namespace paceline::cli
