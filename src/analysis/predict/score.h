#pragma once

/// A prediction that was written down, and how a later measurement answers it: measured over predicted,
/// inside the interval or not, beside two naive rivals. Scores calibrate later intervals of their kind.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/compare/cell.h"
#include "analysis/predict/forecast.h"

namespace paceline::analysis {

// Two naive predictions of the same steps, to be better than: a constant overhead, and the universal
// scalability law (Gunther). Both see the measured times of steps and nothing else.

struct TimedStep {
  double workers = 1, seconds = 0;
};

struct Rivals {
  /// The overhead of the most measured workers, whatever their number: weak t(N) = t(M); strong
  /// t(N) = t(1)/N + (t(M) - t(1)/M).
  std::vector<double> constant_overhead;
  /// Throughput N / (1 + a (N - 1) + b N (N - 1)), a and b at least 0 with the least squared error in N /
  /// throughput; b = 0 where fewer than three numbers of workers were measured.
  std::vector<double> scalability_law;
};
inline constexpr std::string_view kConstantOverhead = "constant overhead";
inline constexpr std::string_view kScalabilityLaw = "universal scalability law";

/// Seconds for each of `workers`.
///
/// Shapes    measured: ascending, the fewest first
/// Requires  measured is not empty
[[nodiscard]] Rivals rivals(std::span<const TimedStep> measured, std::span<const std::int64_t> workers,
                            Mode mode);

/// Of which runs scores speak; one kind never calibrates another.
enum class ScoreKind : std::uint8_t { ghosts, this_host, another_host };
[[nodiscard]] std::string_view name(ScoreKind kind);

struct PredictionInput {
  std::string id, sha256;
};

/// The cell that answers a predicted step.
struct ScoredStep {
  std::int64_t workers = 1;
  double local_batch = 0;
  Predicted predicted;
  double measured = 0;  ///< median over the steps of its repeats
  std::string cell;
  ScoreKind kind = ScoreKind::this_host;
  double constant_overhead = 0, scalability_law = 0;  ///< seconds that the rivals say
  [[nodiscard]] bool is_inside() const { return measured >= predicted.low && measured <= predicted.high; }
  [[nodiscard]] double ratio() const { return measured / predicted.value; }
};

struct PredictedPoint {
  std::int64_t workers = 1;
  double local_batch = 0;
  Predicted step_s;
  double constant_overhead = 0, scalability_law = 0;
  bool is_bound = false;  ///< "at least": not scored
};

/// What a file `paceline-prediction-1` says, as far as a score needs it.
struct Prediction {
  static constexpr const char* kSchema = "paceline-prediction-1";
  Subject subject;
  std::vector<PredictionInput> inputs;
  double widening = 1;
  bool is_as_measured = true;  ///< of the measured machine: no other cluster, nothing changed
  std::vector<PredictedPoint> points;
  std::vector<ScoredStep> scores;
};

/// The whole file: what predict --out writes. `version` and `created` as in records.
[[nodiscard]] std::string to_json(const Forecast& forecast, const StepModel& model,
                                  std::span<const PredictionInput> inputs, const std::string& command,
                                  const std::string& version, const std::string& created);
/// Errors   Error(data) naming `where`: no prediction, or a damaged one
[[nodiscard]] Prediction prediction_from_json(const std::string& text, const std::string& where);
/// `text` of a prediction with these scores beside those that it has; a cell measured anew has its new one.
[[nodiscard]] std::string with_scores(const std::string& text, const std::string& where,
                                      std::span<const ScoredStep> scores);

struct Scores {
  std::vector<ScoredStep> steps;
  std::vector<std::string> not_scored;  ///< cells that do not answer it, and why: sentences
};
/// A file of a prediction: the scores that it had, and those of later records.
struct ScoredPrediction {
  std::string name;  ///< of the file
  std::vector<ScoredStep> steps;
  std::vector<std::string> not_scored;
};

/// Repeats of one cell are one score. Cells that the prediction was made from are left out.
[[nodiscard]] Scores score(const Prediction& prediction, std::span<const Cell> cells);

/// The 90 % conformal quantile of how far measurements of `kind` lay from predictions, in half-widths of
/// intervals without a widening: the factor for later ones. None with fewer than 20.
struct Calibration {
  double widening = 1;
  std::size_t scores = 0;
};
[[nodiscard]] std::optional<Calibration> calibration(std::span<const Prediction> predictions, ScoreKind kind);

/// SHA-256 of a record's JSON.
[[nodiscard]] std::string sha256_of_record(const measure::Record& record);

}  // namespace paceline::analysis
