#pragma once

/// Predicts steps, throughput, efficiency and cost of N workers, each with an interval, its parts, and what
/// is not known; finds the knee, the limit, and the number of workers that is worth measuring next.
///
/// An interval is the middle 90 % of 1,000 draws: repeats and blocks of steps of the records (bootstrap), a
/// value out of each range of the cluster, own work of workers drawn again, one of two tails where more
/// workers are asked for than samples speak of, and the model's error exp(sigma z), with sigma = 1.5 % per
/// doubling of workers (and of the batch) from what was measured, and 5 % on other hardware.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "analysis/predict/cluster.h"
#include "analysis/predict/predicted_step.h"
#include "analysis/predict/step_model.h"

namespace paceline::analysis {

/// Powers of two from `low` to `high`, and 1.5 times these.
[[nodiscard]] std::set<std::int64_t> half_octaves(std::int64_t low, std::int64_t high);
/// About 30 numbers of workers: half_octaves() and both ends.
[[nodiscard]] std::vector<std::int64_t> worker_grid(std::int64_t low, std::int64_t high);

inline constexpr double kTailPart = 0.05;  ///< of the draws, outside an interval on each side

/// How a step is computed. `workers` draws every worker of every step beside the closed form
/// (simulate_workers.h); `messages` sends every message of a reduction in place of its formula.
enum class Fidelity : std::uint8_t { closed, workers, messages };

struct ForecastRequest {
  std::vector<std::int64_t> workers;  ///< ascending
  StepRequest step;
  double efficiency = 0.8;              ///< of the knee
  std::optional<std::int64_t> at_most;  ///< for the next measurement
  WhatIf what_if;
  std::optional<Cluster> cluster;     ///< none: as measured
  std::optional<AddedLink> emulated;  ///< of the records
  bool is_other_hardware = false;     ///< the cluster's workers are not those of the records
  Fidelity fidelity = Fidelity::closed;
  double widening = 1;  ///< of intervals, from scores (score.h)
};

/// A figure with its 90 % interval.
struct Predicted {
  double value = 0, low = 0, high = 0;
  [[nodiscard]] Predicted scaled(double by) const { return {by * value, by * low, by * high}; }
};

struct ForecastPoint {
  std::int64_t workers = 1;
  int nodes = 1, workers_per_node = 1;
  double local_batch = 0;
  Predicted step_s, images_per_s, efficiency, epoch_s;
  PredictedStep step;                  ///< of the value of step_s
  double sigma = 0;                    ///< of the model's error
  double wait_at_least_s = 0;          ///< mean step that the samples alone give; below step_s beyond them
  std::optional<double> memory_bytes;  ///< of one worker
  bool fits = true;                    ///< in the cluster's memory, as far as both are known
  std::optional<Predicted> epoch_cost;
  std::optional<double> epoch_joules;
  // Marks.
  bool is_measured = false;        ///< this number of workers at this batch is among the records
  bool lacks_link = false;         ///< nothing is known of its reductions: the step is "at least"
  bool is_beyond_samples = false;  ///< waiting is by an assumed tail
  bool is_beyond_batches = false;  ///< more than 1.5 times the measured range of batches
  bool lacks_sharing = false;      ///< nodes are wider than measured ones
  bool is_beyond_data = false;     ///< a step takes more images than there are: no epoch is given
};

/// Where the efficiency falls to a value.
struct Knee {
  double efficiency = 0;
  /// The most workers that keep it; none: not even the fewest do. `is_beyond`: all that were asked for do.
  std::optional<std::int64_t> workers;
  bool is_beyond = false;
  double low = 0, high = 0;  ///< 90 % interval; `high` is the most asked for where it is not reached
};

/// The knee of `efficiencies`, of ascending numbers of `workers`. Where they fall below `least` for good
/// between two of these, `efficiency_at` is asked for whole numbers between them: some log2 of their
/// distance. `drawn`: [draw][workers]; each draw falls on a straight line over log2 of the workers.
[[nodiscard]] Knee knee_of(double least, std::span<const std::int64_t> workers,
                           std::span<const double> efficiencies, std::span<const std::vector<double>> drawn,
                           const std::function<double(std::int64_t)>& efficiency_at);

struct NextMeasurement {
  std::int64_t workers = 0;
  double correlation = 0;  ///< of the logarithms of its step and of the target's, over the draws
  std::int64_t target = 0;
};

struct MeasuredPoint {
  std::int64_t workers = 1;
  double local_batch = 0;
  Estimate step_s;
  std::string name;
};

struct Forecast {
  Subject subject;
  ForecastRequest request;
  Cluster cluster;  ///< that was used
  std::vector<ForecastPoint> points;
  std::vector<MeasuredPoint> measured;
  Knee knee, half;                ///< at the request's efficiency, and at 0.5
  std::int64_t fastest = 1;       ///< workers of the best throughput among the points
  std::optional<LossPart> limit;  ///< the largest loss at the knee; none: nothing is lost
  std::int64_t limit_at = 1;      ///< workers
  DataSource limit_source = DataSource::none;
  double limit_points = 0;  ///< of efficiency
  std::optional<NextMeasurement> next;
  std::vector<std::string> unknown;  ///< what these records cannot tell: sentences
  std::vector<std::string> not_used;
};

/// Cost     30 numbers of workers take about 0.1 s
///
/// Errors   Error(usage): no number of workers is possible (strong scaling), or the cluster has too few slots
[[nodiscard]] Forecast forecast(const StepModel& model, const ForecastRequest& request);

/// At these local batches, in weak scaling, over the links and numbers of workers of `request`.
///
/// Errors   as forecast()
[[nodiscard]] ClosedForm closed_form_of(const StepModel& model, ForecastRequest request,
                                        std::span<const double> batches);

/// The cluster that the records themselves show: their node, their links, as far as the cells exchanged.
[[nodiscard]] Cluster measured_cluster(const StepModel& model, const std::optional<AddedLink>& emulated);

/// With the links' figures multiplied by what is tried.
[[nodiscard]] Cluster changed(Cluster cluster, const WhatIf& what_if);

/// `text` for --what-if: "bandwidth=2x,latency=0.5x,loader=2x,compute=2x,batch=64".
///
/// Errors   Error(usage): the end of a sentence that begins with the option's name
struct ParsedWhatIf {
  WhatIf what_if;
  std::optional<double> batch;
};
[[nodiscard]] ParsedWhatIf parse_what_if(std::string_view text);

}  // namespace paceline::analysis
