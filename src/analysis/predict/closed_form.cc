#include "analysis/predict/closed_form.h"

#include <algorithm>
#include <cstddef>

#include "analysis/steps/step_lines.h"

namespace paceline::analysis {
namespace {

/// How long a step waits after the backward pass of a worker that takes `factor` times the typical own work.
double exposed_of(const ClosedForm& form, const ClosedForm::Own& own, const ClosedForm::Workers& workers,
                  double factor, double bandwidth) {
  const double backward = form.backward_part * (own.compute_s + (factor - 1) * own.work_s);
  std::vector<ReplayedBucket> buckets(workers.latency_s.size());
  for (std::size_t i = 0; i < buckets.size(); ++i)
    buckets[i] = {.ready_s = backward * form.ready[i],
                  .transfer_s = workers.latency_s[i] + workers.moving_s[i] / bandwidth};
  return exposed_seconds(buckets, backward);
}

}  // namespace

double step_seconds(const ClosedForm& form, std::size_t batch, std::size_t workers, double bandwidth) {
  const auto& of_batch = form.batches[batch];
  const auto& of_workers = form.workers[workers];
  const auto& own = of_batch.own[workers];
  double seconds = own.work_s;
  for (const double factor : of_workers.largest)
    seconds += ((factor - 1) * own.work_s + exposed_of(form, own, of_workers, factor, bandwidth)) /
               static_cast<double>(of_workers.largest.size());
  const double rest = seconds - own.data_wait_s, late = std::max(0.0, of_batch.loader_s - rest);
  return rest + own.queue_s + late + (of_workers.workers > 1 ? of_batch.missed_s : 0);
}

}  // namespace paceline::analysis
