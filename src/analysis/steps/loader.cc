#include "analysis/steps/loader.h"

#include <algorithm>
#include <cmath>

namespace paceline::analysis {
namespace {

using measure::RankRecord;
using measure::Record;

/// Sums over all ranks of all repeats; a figure that one of them lacks is unknown.
struct LoaderSums {
  double prepare_s = 0, processor_s = 0, samples = 0, ready = 0, queue = 0, waits = 0, steps = 0;
  bool known = true;
};

void add_loader(LoaderSums& sums, const RankRecord& rank, double steps) {
  const bool has_none = rank.loader_threads == 0 && !rank.loader_processor_s;  // it is handed its batches
  if (has_none) return;
  if (!rank.loader_processor_s || !rank.loader_ready || !rank.loader_queue || !rank.loader_waits) {
    sums.known = false;
    return;
  }
  sums.prepare_s += rank.loader_prepare_s;
  sums.processor_s += *rank.loader_processor_s;
  sums.ready += steps * *rank.loader_ready;
  sums.queue += steps * static_cast<double>(*rank.loader_queue);
  sums.waits += static_cast<double>(*rank.loader_waits);
  sums.steps += steps;
}

}  // namespace

LoaderUse loader_use(const Breakdown& breakdown) {
  LoaderUse use;
  const auto batch = static_cast<double>(breakdown.cell->global_batch);
  const double step = breakdown.mean.total();
  use.used_images_per_s = batch / step;
  use.wanted_images_per_s = batch / (step - breakdown.mean.data_wait);
  use.ceiling_images_per_s = breakdown.loader_images_per_s;
  LoaderSums sums;
  for (const Record* record : breakdown.cell->records) {
    for (const RankRecord& rank : record->ranks) {
      add_loader(sums, rank, static_cast<double>(record->window.steps));
      use.threads_per_worker = breakdown.prepares_in_steps ? 0 : std::max(1, rank.loader_threads);
    }
    sums.samples += static_cast<double>(record->window.samples);
  }
  if (use.ceiling_images_per_s > 0) {
    constexpr double kMost = 9999;  // for steps that do nothing but wait
    const double of_one_thread_each = use.ceiling_images_per_s / std::max(1, use.threads_per_worker);
    const double wanted = std::ceil(kLoaderFastEnough * use.wanted_images_per_s / of_one_thread_each);
    use.threads_wanted = static_cast<int>(std::min(wanted, kMost));
  }
  if (!sums.known || sums.steps <= 0) return use;
  if (sums.processor_s > 0) use.images_per_s_a_core = sums.samples / sums.processor_s;
  if (sums.prepare_s > 0) use.computing_share = sums.processor_s / sums.prepare_s;
  use.ready = sums.ready / sums.steps;
  use.queue = sums.queue / sums.steps;
  use.waited_share = sums.waits / sums.steps;
  return use;
}

}  // namespace paceline::analysis
