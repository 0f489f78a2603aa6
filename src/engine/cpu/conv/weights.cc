#include "engine/cpu/conv/weights.h"

#include <algorithm>

#include "base/error.h"
#include "engine/cpu/optimizer/update.h"
#include "engine/cpu/parallel.h"

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

}  // namespace paceline::engine::cpu
