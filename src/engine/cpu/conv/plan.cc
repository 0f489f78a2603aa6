#include "engine/cpu/conv/plan.h"

#include <fmt/core.h>

#include <algorithm>

#include "engine/cpu/conv/autotune.h"
#include "engine/cpu/conv/default_table.h"
#include "engine/cpu/conv/onednn.h"
#include "graph/ops/rules.h"

namespace paceline::engine::cpu {
namespace {

ConvShape conv_shape(const BuildContext& build, const Value& src, const Value& dst, bool direct) {
  ConvShape shape{.samples = build.options.shard > 0 ? build.options.shard : build.options.batch,
                  .src = src.shape,
                  .dst = dst.shape,
                  .training = build.options.training,
                  .in_blocks = !direct,
                  .type = direct ? src.storage : Storage::f32,
                  .dst_type = direct ? dst.storage : Storage::f32};
  if (const auto* conv = build.op().as<graph::Conv2d>()) {
    shape.kernel = conv->kernel;
    shape.stride = conv->stride;
    shape.padding = conv->padding;
    shape.bias = conv->bias;
  } else {
    shape.is_dense = true;
    shape.bias = build.op().as<graph::Dense>()->bias;
  }
  return shape;
}

/// Samples of a chunk: those of a shard if the batch has shards, otherwise all `samples`. With one shard per
/// chunk only the tree over the shards is left to be summed.
int whole_or_shard(const BuildContext& build, int samples) {
  return build.options.shard > 0 ? build.options.shard : samples;
}

/// Blocks of nearly equal size, of at most `block_bytes` of float copies.
int samples_of_block(const BuildContext& build, const Value& src, const Value& dst) {
  const std::int64_t batch = build.options.batch;
  const std::int64_t bytes = 4 * (src.shape.elements() + dst.shape.elements());
  const std::int64_t fitting = std::clamp<std::int64_t>(build.tuning.block_bytes / bytes, 1, batch);
  const std::int64_t blocks = (batch + fitting - 1) / fitting;
  return static_cast<int>((batch + blocks - 1) / blocks);
}

/// Whether kernels multiply the stored values and not float copies of them.
bool multiplies_stored(const BuildContext& build, const Value& src, const Value& dst) {
  if (src.storage == Storage::f32) return true;
  if (build.tuning.bf16_products) return *build.tuning.bf16_products;
  if (bf16_products_here() == Bf16Products::in_hardware) return true;
  const ConvProblem stored{.shape = conv_shape(build, src, dst, true)};
  if (build.tuning.algorithms.empty()) {
    // An algorithm that is preferred to Winograd multiplies stored values too.
    const auto wants = [&](const ConvAlgorithm& row) { return !row.refusal(stored) && row.prefers(stored); };
    return std::ranges::any_of(conv_algorithms(),
                               [&](const ConvAlgorithm& row) { return row.converts_bf16 && wants(row); });
  }
  const ConvAlgorithm* const wanted = first_that_can(build.tuning.algorithms, stored);
  return wanted != nullptr && wanted->converts_bf16;
}

}  // namespace

ConvPlan::ConvPlan(const BuildContext& build, const Value& src, const Value& dst, bool has_d_src)
    : name_(build.op().name),
      batch_(build.options.batch),
      direct_(multiplies_stored(build, src, dst)),
      shape_(conv_shape(build, src, dst, direct_)),
      block_(whole_or_shard(build, samples_of_block(build, src, dst))),
      forward_(readers(build, Direction::forward)) {
  if (has_d_src) backward_.emplace(readers(build, Direction::backward_data));
  if (!build.options.training || !graph::learns(build.graph, build.node)) return;
  gradient_.emplace(wgrads(build));
  // With float copies, a section of the batch consists of several blocks.
  const int samples = samples_of_chunk(shape_, Direction::backward_weights);
  partial_gradients_ = direct_ || build.options.shard > 0
                           ? gradient_->count()
                           : std::min(gradient_->count(), (batch_ + samples - 1) / samples);
}

/// The problem for which the algorithm is chosen.
ConvProblem ConvPlan::problem(Direction direction) const {
  ConvProblem problem{.shape = shape_, .direction = direction};
  if (!direct_) problem.shape.samples = block_;
  return problem;
}

const ConvAlgorithm& ConvPlan::choose(const BuildContext& build, const ConvProblem& problem) {
  if (const auto* wanted = first_that_can(build.tuning.algorithms, problem)) return *wanted;
  if (build.options.algorithms != nullptr)
    if (const auto given = build.options.algorithms->find(key_of(problem));
        given != build.options.algorithms->end()) {
      const ConvAlgorithm* const algorithm = find_algorithm(given->second);
      base::expects(algorithm != nullptr && !algorithm->refusal(problem),
                    "prepare() gives algorithms that can compute their products");
      return *algorithm;
    }
  return default_algorithm(problem);
}

ConvPlan::Cut ConvPlan::cut(const BuildContext& build, Direction direction) {
  ConvShape batch = shape_;
  batch.samples = batch_;
  const ConvAlgorithm& algorithm = choose(build, problem(direction));
  algorithms_[static_cast<std::size_t>(direction)] = &algorithm;
  const int samples =
      !direct_
          ? block_
          : whole_or_shard(build, build.tuning.chunk_samples.value_or(algorithm.chunk(shape_, direction)));
  return {.algorithm = algorithm,
          .batch = batch,
          .samples = samples,
          .has_shards = build.options.shard > 0,
          .threads = build.options.threads};
}

ConvShape ConvPlan::Cut::settled(ConvShape chunk) const {
  // A worker with one shard must compute in the same way as a worker with several.
  chunk.is_alone = chunk.is_alone && !has_shards;
  chunk.threads = threads;
  return chunk;
}

ChunkKernels<WeightReader> ConvPlan::readers(const BuildContext& build, Direction direction) {
  const Cut how = cut(build, direction);
  return {how.batch, how.samples, [&](const ConvShape& chunk, const WeightReader* like) {
            return how.algorithm.make_reader(how.settled(chunk), direction, like);
          }};
}

ChunkKernels<WgradKernel> ConvPlan::wgrads(const BuildContext& build) {
  const Cut how = cut(build, Direction::backward_weights);
  return {how.batch, how.samples, [&](const ConvShape& chunk, const WgradKernel* like) {
            return how.algorithm.make_wgrad(how.settled(chunk), like);
          }};
}

void ConvPlan::list(std::vector<ConvProblem>& problems) const {
  problems.push_back(problem(Direction::forward));
  if (backward_) problems.push_back(problem(Direction::backward_data));
  if (gradient_) problems.push_back(problem(Direction::backward_weights));
}

void ConvPlan::describe(std::vector<KernelChoice>& choices) const {
  const auto add = [&](Direction direction, const ConvKernel& kernel) {
    const ConvAlgorithm& chosen = *algorithms_[static_cast<std::size_t>(direction)];
    const ConvProblem stored{.shape = shape_, .direction = direction};
    // An algorithm that the rules would not have chosen was chosen by measured times, on this machine or in
    // the default table.
    std::string reason = why_not_others(chosen, stored, &chosen != &usual_algorithm(problem(direction)));
    if (!direct_)
      reason += "; bf16 is stored, multiplied in float by blocks of " + std::to_string(block_) +
                " samples, because there are no bf16 units";
    choices.push_back({name_ + " " + name_of(direction), kernel.name(), reason});
  };
  add(Direction::forward, forward_.any());
  if (backward_) add(Direction::backward_data, backward_->any());
  if (gradient_) add(Direction::backward_weights, gradient_->any());
}

void ConvPlan::measure(const OpTraffic& traffic, const std::function<void()>& forward_pass,
                       const std::function<void()>& backward_pass, std::vector<KernelChoice>& choices) const {
  const std::size_t first = choices.size();
  describe(choices);
  const auto flops = 2.0 * static_cast<double>(shape_.products() * batch_);
  const auto rate = [&](double seconds) { return fmt::format("{:.0f} GFLOP/s", flops / seconds / 1e9); };
  const auto megabytes = [](std::int64_t bytes) {
    return fmt::format(" ({:.1f} MB)", static_cast<double>(bytes) / 1e6);
  };
  if (!direct_) {  // with float copies there is one way, and its conversions are part of it
    choices[first].rate = rate(seconds_of(forward_pass)) + megabytes(traffic.forward);
    for (std::size_t row = first + 1; row < choices.size(); ++row)
      choices[row].rate = rate(seconds_of(backward_pass) / static_cast<double>(choices.size() - first - 1)) +
                          " (mean of backward's)" +
                          megabytes(row + 1 < choices.size() ? traffic.backward : traffic.d_weight);
    return;
  }
  std::size_t row = first;
  for (const Direction direction :
       {Direction::forward, Direction::backward_data, Direction::backward_weights}) {
    if (direction == Direction::backward_data && !backward_) continue;
    if (direction == Direction::backward_weights && !gradient_) continue;
    KernelChoice& choice = choices[row++];
    const ConvAlgorithm& chosen = *algorithms_[static_cast<std::size_t>(direction)];
    const auto found = [&](const ConvAlgorithm& algorithm) {
      const auto refused = algorithm.refusal({.shape = shape_, .direction = direction});
      return refused ? *refused : rate(seconds_of(problem(direction), algorithm)) + " a thread";
    };
    choice.rate = found(chosen) + megabytes(direction == Direction::forward         ? traffic.forward
                                            : direction == Direction::backward_data ? traffic.backward
                                                                                    : traffic.d_weight);
    choice.reason = list_others(chosen, found);
  }
}

}  // namespace paceline::engine::cpu
