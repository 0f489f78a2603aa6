#include "train/images/stored_images.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/evaluation.h"
#include "train/given/test_policy.h"
#include "train/images/evaluate.h"

namespace paceline::train {
namespace {

/// Number of images in the largest part of `samples` that one rank evaluates.
std::int64_t largest_part(std::int64_t samples, const Options& options, const Resolved& resolved) {
  std::int64_t most = 0;
  for (int rank = 0; rank < resolved.workers; ++rank) {
    const auto part = evaluation_options(samples, resolved.engine_batch, options.test_views, rank,
                                         resolved.workers, options.shard > 0);
    most = std::max(most, part.end - part.begin);
  }
  return most;
}

/// Why the host must prepare the images, however much device memory there is; empty if it need not.
std::string why_on_host(const Options& options, const data::Source& source) {
  if (is_data_parallel(options)) return "--parallel data-parallel hands them out from worker 0";
  if (!source.train->reads_from_memory()) return "they are decoded, or come from slow storage, at every read";
  const auto augment = augment_options(options, source);
  if (augment.crop_area > 0) return "crops of any size are cut out of the stored images";
  if (augment.jitter > 0) return "colours are changed";
  if (!augment.warp.is_none()) return "--rotate, --shear and --shift move the pixels themselves";
  return "";
}

std::string on_device_sentence(const StoredImages& stored, const data::ImageFormat& format) {
  return fmt::format(
      "images: {} of them lie on the device ({:.1f} MB for each worker); of each sample the host sends 20 bytes",
      stored.total(), static_cast<double>(stored.total() * format.bytes()) / 1e6);
}

}  // namespace

StoredImages images_to_store(const Options& options, const Resolved& resolved, const data::Source& source) {
  const bool has_validation = source.validation != nullptr;
  StoredImages stored{.train = source.train->size()};
  if (validates(options, has_validation))
    stored.validation = largest_part(source.validation->size(), options, resolved);
  if (options.window_steps == 0 && test_policy(options, has_validation) != TestSet::never)
    stored.test = largest_part(source.test->size(), options, resolved);
  return stored;
}

PlannedImages plan_images(const Options& options, Resolved& resolved, const graph::Graph& graph,
                          const data::Source& source, const Backend& backend, const MemoryLimits& limits) {
  const auto plan = [&] { return plan_run(options, resolved, graph, source, backend, limits); };
  resolved.stored = {};
  if (!backend.keeps_images) return {.plan = plan(), .on_device = {}, .sentence = {}};
  std::string reason = why_on_host(options, source);
  if (reason.empty()) {
    resolved.stored = images_to_store(options, resolved, source);
    auto planned = plan();
    const auto too_much = excess(planned, limits);
    if (too_much.empty())
      return {.plan = std::move(planned),
              .on_device = true,
              .sentence = on_device_sentence(resolved.stored, source.train->format())};
    reason = fmt::format("with {} of them on the device the plan is {}", resolved.stored.total(), too_much);
    resolved.stored = {};
  }
  return {.plan = plan(), .on_device = false, .sentence = "images: the host prepares them, for " + reason};
}

}  // namespace paceline::train
