#pragma once

/// Estimates how long the rest of a list of cells takes, from the cells that were run so far.
///
/// Cells differ by a factor of a hundred, so each has its own cost:
///   - a set-up that was run before takes as long as it did then;
///   - another one takes what its images cost: the core-seconds per image for its local batch (interpolated
///     over the logarithm between two measured batches), times the known overhead of its number of workers
///     and threads, plus the time of a cell outside its steps (the median so far);
///   - the all-reduce alone takes its planned time;
///   - a training takes per image what earlier trainings took, and before the first one what cells took.
/// A cell that is run only if it is chosen counts with its probability until then.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "measure/record.h"
#include "study/study.h"

namespace paceline::cli {

/// The fewest steps of a window that ends by time (train/record/window.cc).
inline constexpr std::int64_t kLeastWindowSteps = 3;

/// Of a window of `steps` steps, of `step` seconds each, with its warm-up. It may end by time.
[[nodiscard]] double seconds_of_window(const train::Options& options, double step, double steps);

/// Threads  one
class RemainingTime {
 public:
  /// `cells` must outlive it. `cores`: cores of this machine that the workers share.
  RemainingTime(const std::vector<study::PlannedCell>& cells, int cores);

  void begin(std::size_t cell, study::Begin how);
  /// The current cell is done.
  void end(const measure::Record& record) { note(current_, record, base::seconds_since(began_)); }
  /// The cell took `seconds`; a cell that was not run from its beginning is ignored.
  void note(std::size_t cell, const measure::Record& record, double seconds);
  /// These cells will be run, and no others of their kind and stage.
  void choose(const std::vector<std::size_t>& places);

  /// Expected seconds of the cell; none before the first one was run.
  [[nodiscard]] std::optional<double> cost(std::size_t cell) const;
  /// Expected seconds of everything that is not done, minus the time spent on the current cell; none before
  /// the first.
  [[nodiscard]] std::optional<double> seconds() const;
  /// The same, once it is accurate enough to show: when a tenth of the whole is done.
  [[nodiscard]] std::optional<double> shown() const;

 private:
  using CoreLayout = std::pair<int, int>;  ///< workers, threads of each
  struct Mean {
    double sum = 0;
    int n = 0;
    void add(double value) { sum += value, ++n; }
    [[nodiscard]] double value() const { return sum / n; }
  };

  [[nodiscard]] CoreLayout layout_of(const study::PlannedCell& cell) const;
  [[nodiscard]] double cores_of(const CoreLayout& layout) const;
  [[nodiscard]] double of_batch(double local_batch) const;
  [[nodiscard]] double of_image(const study::PlannedCell& cell) const;
  [[nodiscard]] double timed_seconds(const study::PlannedCell& cell) const;
  [[nodiscard]] double work_of_training(const study::PlannedCell& cell, double samples) const;
  [[nodiscard]] double training_work(std::size_t cell) const;
  void learn(const study::PlannedCell& cell, double core_seconds_of_image, bool is_training);

  const std::vector<study::PlannedCell>& cells_;
  const int cores_;
  std::vector<std::string> keys_;  ///< of each cell; repeats share one
  std::vector<double> chance_;     ///< probability of each cell that is not done; 0 for those that are
  std::size_t current_ = 0;
  study::Begin how_ = study::Begin::anew;
  base::TimePoint began_{};

  std::map<std::string, Mean> seconds_;   ///< of a set-up's cells
  std::map<double, Mean> by_batch_;       ///< core-seconds per image, by local batch
  std::map<CoreLayout, Mean> by_layout_;  ///< relative to by_batch_
  Mean trainings_;                        ///< likewise, for an image of a training
  std::vector<double> beside_;            ///< seconds of cells outside their steps
  double epoch_samples_ = 0, test_samples_ = 0;
  std::map<std::string, double> trained_;  ///< samples so far of each training
  double spent_ = 0;                       ///< seconds on cells that were run
};

}  // namespace paceline::cli
