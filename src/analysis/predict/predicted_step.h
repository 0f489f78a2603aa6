#pragma once

/// Computes one step of N workers from a StepModel and a cluster: the closed form.
///
///     own       lines of the fewest workers at this batch, with the node's sharing and the worker's speed
///     largest   of N workers' own work: 8 equally likely values f, each a factor on own work
///     start_j   = max(ready_j, end_{j-1}), end_j = start_j + T(N, X_j)       buckets, in order
///     step      = own + (f - 1) own + max(0, end_last - end of backward), then the mean over f
///     data      the step is no shorter than the loader's, the disk's and the shared storage's time for it
///
/// What the same model misses at the most measured workers is carried along as "other waiting". All parts are
/// those of the waterfall (steps/waterfall.h), so that the ideal and the parts are the step.

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/predict/closed_form.h"
#include "analysis/predict/cluster.h"
#include "analysis/predict/collective_cost.h"
#include "analysis/predict/step_model.h"
#include "analysis/predict/waiting.h"
#include "analysis/steps/scaling.h"
#include "analysis/steps/waterfall.h"

namespace paceline::analysis {

/// What is tried: factors on what was measured or is in the cluster.
struct WhatIf {
  double bandwidth = 1, latency = 1, loader = 1, compute = 1;
  bool operator==(const WhatIf&) const = default;
};

/// Which step: of N workers, in weak scaling with this local batch, in strong scaling with this global one.
struct StepRequest {
  Mode mode = Mode::weak;
  double batch = 0;
  [[nodiscard]] double local_batch(double workers) const {
    return mode == Mode::weak ? batch : batch / workers;
  }
  /// From the batch of a measured step, in logarithms.
  [[nodiscard]] double distance(const MeasuredStep& step) const {
    return std::abs(std::log(step.batch / local_batch(step.workers)));
  }
};

/// Which resource sets the time in which data come.
enum class DataSource : std::uint8_t { none, loader, node_disk, shared_storage, opens };
[[nodiscard]] std::string_view name(DataSource source);

struct PredictedStep {
  double seconds = 0;
  double ideal_s = 0;
  std::array<double, kLossParts> parts{};      ///< seconds; ideal_s + their sum = seconds
  Algorithm algorithm = Algorithm::automatic;  ///< of the largest bucket
  DataSource waits_for = DataSource::none;
  double own_s = 0;      ///< own work of the typical worker, without waiting for data
  double exposed_s = 0;  ///< of the reductions, if the slowest worker is as fast as the typical one
  double missed_s = 0;   ///< what the model misses at the most measured workers
  double reduce_s = 0;   ///< all reductions of a step, hidden or not
  [[nodiscard]] double part(LossPart part) const { return parts[static_cast<std::size_t>(part)]; }
};

/// One draw of what is uncertain: which lines, which cluster, which workers.
struct DrawnInputs {
  std::optional<std::size_t> lines;        ///< index of drawn lines; none: means
  Cluster cluster;                         ///< fixed
  std::span<const LargestFactor> largest;  ///< for each N of `workers`
  std::span<const std::int64_t> workers;   ///< ascending; those that `largest` is about
  /// For each of `workers`, a factor on the formula of each bucket's reduction; empty: 1.
  std::span<const std::vector<double>> reductions = {};
};

/// What the model misses of the step of most workers.
struct MissedSeconds {
  double seconds = 0;
  std::array<double, kLossParts> parts{};
};

/// What the closed form of a step is computed from.
struct StepFigures {
  ClosedForm::Own own;
  ClosedForm::Workers of_workers;
  double loader_s = 0;
};

class StepPredictor {
 public:
  /// `model` must live as long. `width`: workers on a node. `links`: the cluster whose links are known; what
  /// the records measured is known besides if `is_as_measured`.
  StepPredictor(const StepModel& model, const StepRequest& request, const WhatIf& what_if, int width,
                const Cluster& links, bool is_as_measured);

  /// Taken to be the same for all N.
  ///
  /// Requires  the most measured workers are among `inputs.workers`
  [[nodiscard]] MissedSeconds missed(const DrawnInputs& inputs, bool with_parts) const;
  /// `missed`: by missed().
  ///
  /// Requires  `workers` is one of `inputs.workers`; for parts the fewest measured ones are too
  /// Cost      microseconds; `with_parts` three times as many
  [[nodiscard]] PredictedStep step(std::int64_t workers, const DrawnInputs& inputs,
                                   const MissedSeconds& missed, bool with_parts) const;

  /// Without the cluster's storage.
  [[nodiscard]] StepFigures figures(std::int64_t workers, const DrawnInputs& inputs) const;

  /// Whether reductions among so many workers are known at all.
  [[nodiscard]] bool knows_link(std::int64_t workers) const;
  [[nodiscard]] int width() const { return width_; }

 private:
  struct Own {
    StepLines lines;             ///< of the typical worker among N
    double alone_compute_s = 0;  ///< of the fewest workers at this batch
    double queue_s = 0;          ///< of the data wait: what no faster loader would save
  };
  struct Reductions {
    std::vector<double> whole_s, moving_s, latency_s;  ///< of each bucket
    double votes_s = 0, votes_latency_s = 0, added_latency_s = 0;
    Algorithm algorithm = Algorithm::automatic;  ///< of the largest bucket
  };
  [[nodiscard]] Reductions reductions_of(std::int64_t workers, const DrawnInputs& inputs) const;
  [[nodiscard]] Own own_of(double workers, double batch, const DrawnInputs& inputs) const;
  [[nodiscard]] PredictedStep bare(std::int64_t workers, double batch, const DrawnInputs& inputs,
                                   bool with_parts) const;
  [[nodiscard]] double wait_for_data(const PredictedStep& step, const Own& own, double workers, double batch,
                                     const DrawnInputs& inputs, DataSource& source) const;

  const StepModel& model_;
  StepRequest request_;
  WhatIf what_if_;
  int width_ = 1;
  Cluster links_;
  bool is_as_measured_ = false;
  const MeasuredStep* most_ = nullptr;  ///< the step of most workers; null: one worker alone
};

}  // namespace paceline::analysis
