#include "engine/cpu/conv/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <type_traits>

#include "base/error.h"
#include "engine/cpu/conv/default_table.h"
#include "engine/cpu/conv/onednn.h"
#include "engine/cpu/optimizer/update.h"
#include "engine/cpu/parallel.h"
#include "graph/ops.h"

namespace paceline::engine::cpu {
namespace {

/// Bytes of a tile of weights: small enough that its gradient and optimizer state, and the next tile's, are
/// in the cache too.
constexpr std::int64_t kWeightTileBytes = 40 << 10;

const graph::Parameter& weight_of(const BuildContext& build) {
  return build.graph.parameters[static_cast<std::size_t>(build.op().parameters.front())];
}

bool have_tiles(const ConvPlan& kernels) {
  return kernels.are_direct() && kernels.forward().any().packs_tiles() &&
         (!kernels.backward() || kernels.backward()->any().packs_tiles());
}

ConvShape conv_shape(const BuildContext& build, const Value& src, const Value& dst, bool direct) {
  ConvShape shape{.samples = build.options.shard > 0 ? build.options.shard : build.options.batch,
                  .src = src.shape,
                  .dst = dst.shape,
                  .training = build.options.training,
                  .in_blocks = !direct,
                  .type = direct ? src.storage : Storage::f32,
                  .dst_type = direct ? dst.storage : Storage::f32};
  const auto* dense = build.op().as<graph::Dense>();
  if (dense != nullptr && !dense->flatten && src.pixels() > 1) {
    shape.bias = dense->bias;  // a 1x1 convolution
  } else if (const auto* conv = build.op().as<graph::Conv2d>()) {
    shape.kernel = conv->kernel.height;
    shape.stride = conv->stride.height;
    shape.padding = conv->padding.height;
    if (!conv->kernel.is_square() || !conv->stride.is_square() || !conv->padding.is_square() ||
        conv->dilation != 1)
      shape.uneven = {conv->kernel, conv->stride, conv->padding, conv->dilation};
    shape.groups = conv->groups;
    shape.bias = conv->bias;
  } else {
    shape.is_dense = true;
    shape.bias = dense->bias;
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
    // An algorithm that converts bf16 multiplies stored values too.
    const auto wants = [&](const ConvAlgorithm& row) { return !row.refusal(stored) && row.prefers(stored); };
    return std::ranges::any_of(conv_algorithms(),
                               [&](const ConvAlgorithm& row) { return row.converts_bf16 && wants(row); });
  }
  const ConvAlgorithm* const wanted = first_that_can(build.tuning.algorithms, stored);
  return wanted != nullptr && wanted->converts_bf16;
}

const ConvAlgorithm& choose_algorithm(const BuildContext& build, const ConvProblem& problem) {
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

}  // namespace

ConvWeights::ConvWeights(const BuildContext& build, const ConvPlan& kernels, int ins)
    : kernels_(kernels),
      slot_(build.layout.slot_of_parameter[static_cast<std::size_t>(build.op().parameters.front())]),
      offset_(build.parameter(0)),
      elements_(weight_of(build).elements()),
      outs_(weight_of(build).shape.front()),
      ins_(ins),
      has_tiles_(have_tiles(kernels)),
      packed_forward_(build.memory.kept(kernels.forward().any().packed_bytes())) {
  if (kernels.backward())
    packed_backward_ =
        has_one_copy() ? packed_forward_ : build.memory.kept(kernels.backward()->any().packed_bytes());
  if (!has_tiles_ || !kernels.gradient()) return;
  own_order_ = kernels.gradient()->any().tile_order();
  base::expects(own_order_.empty() || kernels.gradient()->any().packed_bytes() == 4 * elements_,
                "a gradient in its own order fills the place of the weights'");
  build.memory.scratch(build.options.threads * scratch_bytes());
}

std::vector<PackTask> ConvWeights::pack_tasks() const {
  const std::int64_t bytes_forward = kernels_.forward().any().packed_bytes(),
                     bytes_backward = has_one_copy() ? 0 : kernels_.backward()->any().packed_bytes();
  std::vector<PackTask> all;
  if (has_tiles_) {
    for (int number = 0; number < tasks(); ++number)
      all.push_back(
          task(outs_of(number), true, (bytes_forward + bytes_backward) * outs_of(number).size() / outs_));
    return all;
  }
  const Range outs{.begin = 0, .end = outs_};
  all.push_back(task(outs, false, bytes_forward));
  if (!has_one_copy()) all.push_back(task(outs, false, bytes_backward));
  return all;
}

void ConvWeights::pack(const ExecContext& exec, int task) const {
  if (has_tiles_)
    return pack_tile(exec, {.outs = outs_of(task), .ins = {.begin = 0, .end = ins_}}, nullptr, nullptr);
  const WeightReader& kernel = task == 0 ? kernels_.forward().any() : kernels_.backward()->any();
  void* packed = task == 0 ? packed_forward(exec) : packed_backward(exec);
  kernel.pack(exec.weights + offset_, packed);
  if (kernels_.are_direct() || !kernel.packs_plainly()) return;
  auto* values = static_cast<float*>(packed);
  exec.kernels.round_to_bf16(values, values, kernel.packed_bytes() / 4);
}

void ConvWeights::update_and_pack(const ExecContext& exec, const Update& update, int task,
                                  float* scratch) const {
  const Range outs = outs_of(task);
  const std::int64_t step = ins_at_a_time(outs.size()), taps = row_elements() / ins_;
  for (std::int64_t first = 0; first < ins_; first += step) {
    const WeightTile tile{.outs = outs, .ins = {.begin = first, .end = std::min(ins_, first + step)}};
    const std::int64_t row = tile.ins.size() * taps;
    if (leaves_own_order(exec))
      kernels_.gradient()->any().unpack_tile(exec.gradients + offset_, tile, scratch);
    for (std::int64_t out = outs.begin; out < outs.end; ++out) {
      const std::int64_t at = offset_ + out * row_elements() + first * taps;
      update.apply(slot_, {.begin = at, .end = at + row},
                   leaves_own_order(exec) ? scratch + (out - outs.begin) * row : exec.gradients + at);
    }
    // Packing uses streaming stores, which are slow enough to prefetch meanwhile.
    const std::int64_t next = offset_ + step * taps;
    const bool is_last = first + step >= ins_;
    pack_tile(exec, tile, is_last ? nullptr : exec.weights + next,
              is_last || update.state() == nullptr ? nullptr : update.state() + next);
  }
}

void ConvWeights::pack_tile(const ExecContext& exec, const WeightTile& tile, const float* next_weights,
                            const float* next_state) const {
  const float* weights = exec.weights + offset_;
  kernels_.forward().any().pack_tile(weights, tile, next_weights, packed_forward(exec));
  if (!has_one_copy()) kernels_.backward()->any().pack_tile(weights, tile, next_state, packed_backward(exec));
}

std::int64_t ConvWeights::scratch_bytes() const {
  if (own_order_.empty()) return 0;
  std::int64_t most = 0;
  for (int task = 0; task < tasks(); ++task)
    most = std::max(most, outs_of(task).size() * ins_at_a_time(outs_of(task).size()));
  return whole_lines(4 * most * row_elements() / ins_);
}

/// Tasks are whole blocks of outputs, with enough elements to be worthwhile.
int ConvWeights::tasks() const {
  return static_cast<int>(std::max<std::int64_t>(
      1, std::min<std::int64_t>(elements_ / kRangeElements, outs_ / kWeightTileChannels)));
}

std::int64_t ConvWeights::ins_at_a_time(std::int64_t outs) const {
  const std::int64_t fitting = kWeightTileBytes / (4 * outs * row_elements() / ins_);
  return std::min(ins_, std::max<std::int64_t>(1, fitting / kWeightTileChannels) * kWeightTileChannels);
}

PackTask ConvWeights::task(Range outs, bool is_only, std::int64_t packed_bytes) const {
  return {
      .slot = slot_,
      .weights = {.begin = offset_ + outs.begin * row_elements(), .end = offset_ + outs.end * row_elements()},
      .is_only = is_only,
      .packed_bytes = packed_bytes,
      .scratch_bytes = scratch_bytes()};
}

bool ConvWeights::has_one_copy() const {
  return !kernels_.backward() || kernels_.backward()->any().packs_like(kernels_.forward().any());
}

template <typename Kernel>
ChunkKernels<Kernel> ConvPlan::make_kernels(const BuildContext& build, Direction direction) {
  ConvShape batch = shape_;
  batch.samples = batch_;
  batch.threads = build.options.threads;
  const ConvAlgorithm& algorithm = choose_algorithm(build, problem(direction));
  algorithms_[static_cast<std::size_t>(direction)] = &algorithm;
  const int samples =
      !direct_
          ? block_
          : whole_or_shard(build, build.tuning.chunk_samples.value_or(algorithm.chunk(shape_, direction)));
  return {batch, samples, [&](ConvShape chunk, const Kernel* like) {
            // A worker with one shard must compute in the same way as a worker with several.
            chunk.is_alone = chunk.is_alone && build.options.shard == 0;
            if constexpr (std::is_same_v<Kernel, WgradKernel>)
              return algorithm.make_wgrad(chunk, like);
            else
              return algorithm.make_reader(chunk, direction, like);
          }};
}

ConvPlan::ConvPlan(const BuildContext& build, const Value& src, const Value& dst, bool has_d_src)
    : name_(build.op().name),
      batch_(build.options.batch),
      direct_(multiplies_stored(build, src, dst)),
      shape_(conv_shape(build, src, dst, direct_)),
      block_(whole_or_shard(build, samples_of_block(build, src, dst))),
      forward_(make_kernels<WeightReader>(build, Direction::forward)) {
  if (has_d_src) backward_.emplace(make_kernels<WeightReader>(build, Direction::backward_data));
  if (!build.learns()) return;
  gradient_.emplace(make_kernels<WgradKernel>(build, Direction::backward_weights));
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
