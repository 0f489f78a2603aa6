#pragma once

/// How long the rest of a list of cells takes, from those that were run so far.
///
/// Cells differ by a factor of a hundred, so each has a cost of its own:
///   - a set-up that was run before takes as long as it did then;
///   - another one takes what its images cost: the core-seconds of an image, by the local batch (between two
///     batches that were measured on a line over the logarithm), times what its way (workers, threads) took
///     more than others where that is known; plus what a cell takes beside its steps (the median so far);
///   - the all-reduce alone takes the time that was planned for it;
///   - a training takes what trainings took for an image, and before the first what cells took.
/// Cells that are run only where they are chosen count with their chance until then.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "measure/record.h"
#include "study/study.h"

namespace paceline::cli {

/// Threads  one
class TimeLeft {
 public:
  /// `cells` must outlive it. `cores`: that this machine's workers share.
  TimeLeft(const std::vector<study::PlannedCell>& cells, int cores);

  void begin(std::size_t cell, study::Begin how);
  /// The cell that was begun is done.
  void end(const measure::Record& record) { note(current_, record, base::seconds_since(began_)); }
  /// The cell took so long; one that was not run from its beginning tells nothing.
  void note(std::size_t cell, const measure::Record& record, double seconds);
  /// These are run, and others of their kind and stage are not.
  void choose(const std::vector<std::size_t>& places);

  /// What the cell is expected to take, seconds; none before the first that was run.
  [[nodiscard]] std::optional<double> cost(std::size_t cell) const;
  /// All that is not done, less what was spent on the present cell; none before the first that was run.
  [[nodiscard]] std::optional<double> seconds() const;
  /// The same once it is worth showing: when a tenth of the whole is done.
  [[nodiscard]] std::optional<double> shown() const;

 private:
  using Way = std::pair<int, int>;  ///< workers, threads of each
  struct Mean {
    double sum = 0;
    int n = 0;
    void add(double value) { sum += value, ++n; }
    [[nodiscard]] double value() const { return sum / n; }
  };

  [[nodiscard]] Way way_of(const study::PlannedCell& cell) const;
  [[nodiscard]] double cores_of(const Way& way) const;
  [[nodiscard]] double of_batch(double local_batch) const;
  [[nodiscard]] double of_image(const study::PlannedCell& cell) const;
  [[nodiscard]] double timed_seconds(const study::PlannedCell& cell) const;
  [[nodiscard]] double work_of_training(const study::PlannedCell& cell, double samples) const;
  [[nodiscard]] double training_work(std::size_t cell) const;
  void learn(const study::PlannedCell& cell, double core_seconds_of_image, bool is_training);

  const std::vector<study::PlannedCell>& cells_;
  const int cores_;
  std::vector<std::string> keys_;  ///< of each cell: repeats share it
  std::vector<double> chance_;     ///< of each cell that is not done; 0 of those that are
  std::size_t current_ = 0;
  study::Begin how_ = study::Begin::anew;
  base::TimePoint began_{};

  std::map<std::string, Mean> seconds_;  ///< of a set-up's cells
  std::map<double, Mean> by_batch_;      ///< core-seconds of an image, by local batch
  std::map<Way, Mean> by_way_;           ///< against by_batch_
  Mean trainings_;                       ///< likewise, of a training's image
  std::vector<double> beside_;           ///< seconds of cells beside their steps
  double epoch_samples_ = 0, test_samples_ = 0;
  std::map<std::string, double> trained_;  ///< samples that lie behind a training
  double spent_ = 0;                       ///< seconds on cells that were run
};

}  // namespace paceline::cli
