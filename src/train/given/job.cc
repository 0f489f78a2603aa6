#include "train/given/job.h"

#include <memory>
#include <span>

namespace paceline::train {

engine::CompileOptions compile_options(const Options& options, const Resolved& resolved,
                                       const Backend& backend, int local_rank) {
  return {
      .batch = static_cast<int>(resolved.engine_batch),
      .precision = resolved.precision,
      .threads = resolved.threads,
      .training = true,
      .rule = options.rule,
      .batch_norm = options.batch_norm,
      .ghost_size = options.ghost_size,
      .shard = resolved.engine_shard,
      .seed = options.seed,
      .algorithms = resolved.algorithms,
      .world_size = resolved.workers,
      .stored_images = resolved.stored.total(),
      .has_two_labels = mixes_images(options),
      .worker_on_host =
          backend.machine->device_numbers(resolved.local_workers).at(static_cast<std::size_t>(local_rank)),
      .emulated_compute = options.emulate_compute};
}

engine::CompileOptions planning_options(const Options& options, const Resolved& resolved,
                                        const Backend& backend, int local_rank) {
  auto planned = compile_options(options, resolved, backend, local_rank);
  planned.reduce_statistics = [](std::span<double>) {};
  return planned;
}

engine::CompileOptions evaluation_compile_options(const Options& options, const Resolved& resolved,
                                                  const Backend& backend, int local_rank) {
  auto compiled = planning_options(options, resolved, backend, local_rank);
  compiled.training = false;
  compiled.has_two_labels = false;
  compiled.rule = {.momentum = 0, .weight_decay = 0};
  compiled.stored_images = 0;
  return compiled;
}

data::Sampler sampler_of(const Options& options, const Resolved& resolved, const data::Source& source) {
  const auto order = options.same_order ? data::Order::shuffled_once : data::Order::shuffled;
  const auto& train = *source.train;
  if (options.balanced_sampler)
    return {train.size(),
            std::make_shared<data::BalancedOrder>(train, source.classes(), options.seed,
                                                  resolved.steps_per_epoch * resolved.global_batch),
            order};
  if (options.shuffle_window > 0)
    return {train.size(),
            std::make_shared<data::WindowOrder>(train.shard_sizes(), options.shuffle_window, options.seed),
            order};
  return {train.size(), options.seed, order};
}

data::LoaderOptions loader_options(const Options& options, const Resolved& resolved, int rank) {
  // With --parallel data-parallel worker 0 prepares the whole batch, using the loader threads of all workers;
  // the other workers have no loader.
  const bool prepares_all = options.data_parallel && rank == 0;
  const bool draws = resolved.stored.total() > 0;
  const bool mixes = mixes_images(options);
  constexpr int kBatchesAhead = 2;
  return {
      .global_batch = resolved.global_batch,
      .local_batch = prepares_all ? resolved.global_batch : resolved.local_batch,
      .first = rank * resolved.local_batch,
      .threads = draws ? 0 : options.loader_threads * (prepares_all ? resolved.workers : 1),
      .prefetch = !draws && options.loader_threads > 0 ? kBatchesAhead : 0,
      .draws = draws,
      .mix = {
          .mixup = mixes ? options.mixup : 0, .cutmix = mixes ? options.cutmix : 0, .seed = options.seed}};
}

data::AugmentOptions augment_options(const Options& options, const data::Source& source) {
  const int channels = source.train->format().channels;
  if (options.augment && options.trivial_augment && channels != 1 && channels != 3)
    refuse_options(
        "--trivial-augment changes colours of grey images and of RGB, and those of data '{}' have {} channels; "
        "leave it out",
        source.spec, channels);
  return {.crop_padding = options.augment ? options.crop_padding.value_or(source.crop_padding) : 0,
          .flip = options.augment ? options.flip.value_or(source.flip) : data::Flip::none,
          .mean = source.mean,
          .stddev = source.stddev,
          .seed = options.seed,
          .crop_area = options.augment ? source.crop_area : 0,
          .jitter = options.augment ? source.jitter : 0,
          .crop_fill = options.crop_fill,
          .warp = options.augment ? options.warp : data::WarpOptions{},
          .trivial = options.augment && options.trivial_augment,
          .erase = options.augment ? options.random_erasing : 0};
}

bool keeps_steps(const Job& job) {
  constexpr std::int64_t kShort = 1000;
  return job.options.window_steps == 0 && (job.options.log_steps || job.resolved.length.updates <= kShort);
}

}  // namespace paceline::train
