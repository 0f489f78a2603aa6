#pragma once

/// A CompiledOp is one executable op of a compiled graph: an op of the graph, or several fused into one.
///
/// While the graph is compiled, the op requests its memory and makes its kernels; after that it only runs.
/// Values are channels last: [batch][pixel][channel].

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "engine/cpu/kernels/kernels.h"
#include "engine/cpu/parallel.h"
#include "engine/cpu/tuning.h"
#include "engine/engine.h"
#include "engine/program.h"

namespace paceline::engine::cpu {

/// A stored value of the graph: the output of a compiled op.
struct Value {
  graph::Shape shape;
  Storage storage = Storage::f32;
  Storage gradient_storage = Storage::f32;
  BufferId buffer;
  /// The terms of the gradient, which is their sum: one for each use of the value, the first use in backward
  /// order first. Empty if no gradient is needed.
  std::vector<BufferId> gradient;
  /// The op that writes the only term of the gradient applies the mask of the ReLU that made the value.
  bool gradient_comes_masked = false;
  [[nodiscard]] int pixels() const { return shape.height * shape.width; }
};

/// What every compiled op can use while it runs.
struct ExecContext {
  const CompileOptions& options;
  const Kernels& kernels;
  base::ThreadPool& pool;
  Arena memory;
  float* weights = nullptr;    ///< flat, by graph::Layout
  float* gradients = nullptr;  ///< flat; null without training

  // The current pass; backward sees the values of the last forward.
  bool training = false;
  StepInput input = {};
  int samples = 0;  ///< below `batch` in a short evaluation; ops may compute the rest, which is ignored
  int views = 1;    ///< images per label: `samples` / `views` labels
  LossSums sums = {};
  std::span<double> logits = {};    ///< output [samples / views][classes]; empty: not wanted
  bool own_gradient_order = false;  ///< weight gradients may stay in the order of their kernels

  [[nodiscard]] const TypedKernels& typed(Storage storage) const {
    return storage == Storage::f32 ? kernels.f32 : kernels.bf16;
  }
};

/// Bytes of activations and their gradients that an op's passes read and write.
struct OpTraffic {
  std::int64_t forward = 0;
  std::int64_t backward = 0;  ///< convolutions: d_src alone
  std::int64_t d_weight = 0;  ///< convolutions only
};

/// How an op can apply the mask of the ReLU that made its source to d_src (Value::gradient_comes_masked).
enum class Masking {
  none,        ///< it cannot
  by_value,    ///< it reads the source again
  on_the_way,  ///< it needs no extra read
};

/// Calls work(elements) on all threads for parts of the elements of `value`.
template <typename Work>
void over_elements(const ExecContext& exec, const Value& value, const Work& work) {
  parallel_ranges(exec.pool, exec.options.batch * value.shape.elements(), kRangeElements,
                  [&](int, Range elements) { work(elements); });
}

/// Calls work(pixels) on all threads for parts of the pixels of `value`, each a row of channels.
template <typename Work>
void over_pixels(const ExecContext& exec, const Value& value, const Work& work) {
  parallel_ranges(exec.pool, std::int64_t{1} * exec.options.batch * value.pixels(),
                  least_of(value.shape.channels), [&](int, Range pixels) { work(pixels); });
}

/// Seconds of one call: the shortest of `runs`, after one to warm up.
[[nodiscard]] double seconds_of(const std::function<void()>& call, int runs = 3);

/// The interface of all ops. Convolutions and dense layers also implement ConvOp (conv/plan.h), batch
/// norms FusedBatchNormStats (conv/norm_epilogue.h).
class CompiledOp {
 public:
  virtual ~CompiledOp() = default;

  /// Computes the output: as in training, or as in evaluation if exec.training is off.
  virtual void forward(ExecContext& exec) = 0;
  /// Writes the gradient terms of its sources and the gradients of its parameters.
  virtual void backward(ExecContext& exec) = 0;
  /// How it can mask d_src.
  [[nodiscard]] virtual Masking masking() const { return Masking::none; }
  /// Appends a row for each kernel that it uses.
  virtual void describe(const ExecContext& exec, std::vector<KernelChoice>& choices) const = 0;
  /// describe() with measured rates; by default the bytes per second of both passes. Runs the passes on
  /// whatever the buffers hold, and overwrites it.
  virtual void measure(ExecContext& exec, const OpTraffic& traffic, std::vector<KernelChoice>& choices);
};

/// Sums all terms of a gradient into the first one, rounding to its storage, and returns it.
void* merged_gradient(const ExecContext& exec, const Value& value);

/// Applies the mask of the ReLU that made `value`: sets elements [first, first + count) of `gradient` to zero
/// where the value is not positive. Call it right after these elements were written, while they are in the
/// cache.
///
/// Threads  any number at once, each with elements of its own
void mask_by_relu(const ExecContext& exec, const Value& value, BufferId gradient, std::int64_t first,
                  std::int64_t count);

/// The row of Engine::kernels() for an op that uses the project's own kernels.
[[nodiscard]] KernelChoice own_kernel(const ExecContext& exec, const std::string& what);

}  // namespace paceline::engine::cpu
