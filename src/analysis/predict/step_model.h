#pragma once

/// StepModel is what records say about one step, in plain figures from which steps of other numbers of
/// workers are computed (forecast.h): lines of the ledger by batch and workers, ready times of buckets, own
/// work of ranks, loader, memory, energy. A table of another program gives the same form, with less in it.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/compare/cell.h"
#include "analysis/predict/cluster.h"
#include "analysis/predict/waiting.h"
#include "analysis/steps/step_lines.h"

namespace paceline::analysis {

/// Draws of everything that is uncertain: intervals come from as many.
inline constexpr std::size_t kForecastDraws = 1000;

/// The step of one number of workers at one local batch: means over the steps of its middle repeat, of the
/// typical rank.
struct MeasuredStep {
  int workers = 1;
  int width = 1;     ///< workers on a node
  double batch = 0;  ///< local
  StepLines middle;
  std::vector<StepLines> draws;      ///< [kForecastDraws]; empty: no spread is known
  Estimate step_s;                   ///< median over the steps of all repeats
  std::string name;                  ///< of its cell
  bool is_without_exchange = false;  ///< workers computed side by side and exchanged nothing
  [[nodiscard]] const StepLines& drawn(std::size_t draw) const {
    return draws.empty() ? middle : draws[draw];
  }
};

/// A bucket by its bytes, and when it is ready as a part of the backward pass.
struct ModelBucket {
  double bytes = 0, ready = 1;
  std::optional<double> transfer_s = {};  ///< measured with the most workers, alone on the link
};

/// Linear in the measured batches: lines(b) = sum of weight x lines of that step.
struct BatchWeights {
  struct Term {
    const MeasuredStep* step = nullptr;
    double weight = 0;
  };
  std::vector<Term> terms;  ///< all, where three batches or more follow t0 + t1 b within 5 %
  bool is_assumed = false;  ///< one batch was measured: all is taken as proportional to the batch
  bool is_far = false;      ///< beyond 1.5 times the measured range
  [[nodiscard]] StepLines at(std::optional<std::size_t> draw) const;
};

/// What a prediction is about, as far as a later record must have the same.
struct Subject {
  std::string model, data, precision, device;
  std::int64_t parameters = 0;   ///< 0: not known
  std::string cpu, host;         ///< of the records; "" not known
  std::string emulated_compute;  ///< of ghosts, as given; "" none
  std::map<std::string, std::string> settings;
  [[nodiscard]] std::string text() const;  ///< "resnet8-cifar on synthetic, fp32, cpu"
};
[[nodiscard]] Subject subject_of(const measure::Record& record);

struct StepModel {
  std::vector<MeasuredStep> steps;  ///< the fewest workers first, then by batch
  Subject subject;
  double backward_part = 2.0 / 3;  ///< of compute
  std::vector<ModelBucket> buckets;
  /// Bytes of the all-reduce of votes that takes the link when the backward pass begins; 0: there is none.
  double vote_bytes = 0;
  OwnWork own;
  int width = 1;  ///< the most workers that were measured on one node
  double train_samples = 0;
  double stored_bytes = 0;       ///< of a sample; 0: not stored, or not known
  double loader_s_a_sample = 0;  ///< time of one worker's loader threads together; 0: not known
  struct Memory {
    double batch = 0, bytes_a_worker = 0;
  };
  std::vector<Memory> memory;  ///< plans, by batch
  std::optional<double> joules_a_sample;
  bool is_ghost = false;  ///< compute was emulated: each worker is as if on a node of its own
  std::string emulated;   ///< what was, in words; "" nothing
  Algorithm algorithm = Algorithm::exchange;  ///< that reduces
  std::vector<std::string> unknown;           ///< what cannot be known from these records: sentences
  std::vector<std::string> not_used;          ///< which cells were left out, and why: sentences

  [[nodiscard]] int fewest() const { return steps.empty() ? 1 : steps.front().workers; }
  [[nodiscard]] int most() const;
  /// The batch with the best throughput of the most workers.
  [[nodiscard]] double usual_batch() const;
  /// Own work of the fewest workers at a local batch.
  [[nodiscard]] BatchWeights alone(double batch) const;
  /// The measured step of `width` workers on a node whose batch is nearest; null: there is none.
  [[nodiscard]] const MeasuredStep* nearest(int width, double batch) const;
};

/// From cells of one model, data and machine.
///
/// Errors   Error(data): nothing was measured; two models, data, devices, machines, precisions or kernels;
///          the CUDA engine ran on the processor
[[nodiscard]] StepModel step_model(std::span<const Cell> cells);

}  // namespace paceline::analysis
