#pragma once

/// Everything a compiled graph is made of: one factory for each kind of step, with what the program hands it.
///
/// A step gets its values by reference (they outlive it), the buffers for its sources' gradient terms, and
/// asks for more memory while it is made. A gradient term without a buffer is not wanted.

#include <memory>
#include <string>
#include <vector>

#include "engine/cpu/ops/compiled_op.h"
#include "engine/cpu/tuning.h"
#include "graph/layout.h"

namespace paceline::engine::cpu {

/// What making a step needs from the program.
struct BuildContext {
  const graph::Graph& graph;
  const graph::Layout& layout;
  const CompileOptions& options;
  const Tuning& tuning;
  MemoryRequests& memory;
  int node = 0;        ///< the op that gives the step its name and parameters
  int forward_at = 0;  ///< moments on the time axis of live buffers
  int backward_at = 0;

  [[nodiscard]] const graph::Node& op() const { return graph.nodes[static_cast<std::size_t>(node)]; }
  /// Offset of the op's parameter in the flat arrays; -1 when it has not so many.
  [[nodiscard]] std::int64_t parameter(std::size_t index) const {
    const auto& parameters = op().parameters;
    if (index >= parameters.size()) return -1;
    const int slot = layout.slot_of_parameter[static_cast<std::size_t>(parameters[index])];
    return layout.slots[static_cast<std::size_t>(slot)].offset;
  }
};

std::unique_ptr<CompiledOp> make_input_op(const BuildContext& build, const Value& dst);

/// Convolution or dense layer, and the ReLU behind it.
std::unique_ptr<CompiledOp> make_conv2d_op(const BuildContext& build, const Value& src, const Value& dst,
                                           bool relu, BufferId d_src);

/// Batch norm, and what follows: residual sum (`residual` not null) and ReLU. With a residual or several
/// gradient terms the masked gradient is stored: in `d_residual` where that is wanted.
std::unique_ptr<CompiledOp> make_batch_norm_op(const BuildContext& build, const Value& src,
                                               const Value* residual, const Value& dst, bool relu,
                                               BufferId d_src, BufferId d_residual);

/// The kernels of an op that takes each element by itself.
struct MapKernels {
  void (*TypedKernels::*forward)(const void* src, void* dst, std::int64_t count);
  /// `kept` is src or dst: what the op's rule saves.
  void (*TypedKernels::*backward)(const void* kept, const void* d_dst, void* d_src, std::int64_t count);
};
std::unique_ptr<CompiledOp> make_map_op(const BuildContext& build, const Value& src, const Value& dst,
                                        BufferId d_src, const MapKernels& kernels);
/// Sum of two values, and the ReLU behind it.
std::unique_ptr<CompiledOp> make_add_op(const BuildContext& build, const Value& left, const Value& right,
                                        const Value& dst, bool relu, BufferId d_left, BufferId d_right);
std::unique_ptr<CompiledOp> make_dropout_op(const BuildContext& build, const Value& src, const Value& dst,
                                            BufferId d_src);
std::unique_ptr<CompiledOp> make_max_pool_op(const BuildContext& build, const Value& src, const Value& dst,
                                             BufferId d_src);
std::unique_ptr<CompiledOp> make_average_pool_op(const BuildContext& build, const Value& src,
                                                 const Value& dst, BufferId d_src);
std::unique_ptr<CompiledOp> make_global_average_pool_op(const BuildContext& build, const Value& src,
                                                        const Value& dst, BufferId d_src);
/// Softmax cross-entropy over the logits.
std::unique_ptr<CompiledOp> make_softmax_cross_entropy_op(const BuildContext& build, const Value& logits,
                                                          BufferId d_logits);

}  // namespace paceline::engine::cpu
