#pragma once

/// The closed form of steps as plain figures, so that a page computes them again for another bandwidth, batch
/// and number of workers (web/src/data/closed-form.ts; its twin in tests/analysis/predict/closed_form_test.cc
/// is held to the forecast, and both to the cases of closed_form_cases.json there).
///
///     transfer_j  latency_j + moving_j / bandwidth
///     rest(f)     (f - 1) work + max(0, end of the last transfer - backward),
///                 backward = backward_part (compute + (f - 1) work), ready_j = ready_j backward
///     step        work + mean of rest over the largest factors f, + data, + missed if N > 1
///     data        queue + what the loader takes beyond the rest of the step

#include <cstdint>
#include <vector>

namespace paceline::analysis {

struct ClosedForm {
  struct Workers {
    std::int64_t workers = 1;
    std::vector<double> largest;    ///< equally likely factors on own work of the slowest of them
    std::vector<double> latency_s;  ///< [ready] what each reduction takes whatever the bandwidth
    std::vector<double> moving_s;   ///< [ready] what it takes at the measured bandwidth beside that
  };
  struct Own {
    double compute_s = 0, work_s = 0, data_wait_s = 0;  ///< of the typical worker; work_s is all of it
    double queue_s = 0;  ///< of the data wait: what no faster loader would save
  };
  struct Batch {
    double batch = 0;      ///< local
    double missed_s = 0;   ///< what the model misses of the most measured workers
    double loader_s = 0;   ///< of the loader for such a batch
    std::vector<Own> own;  ///< [workers]
  };
  double backward_part = 2.0 / 3;
  std::vector<double> ready;  ///< of each reduction, as a part of backward: the votes, then the buckets
  std::vector<Workers> workers;
  std::vector<Batch> batches;
};

}  // namespace paceline::analysis
