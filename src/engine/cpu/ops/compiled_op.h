#pragma once

/// One executable op of a compiled graph: an op of the graph, or several fused into one.
///
/// It is made while the graph is compiled (it asks for its memory and makes its kernels), then run.
/// Values flow channels last: [batch][pixel][channel].

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "engine/cpu/kernels/kernels.h"
#include "engine/cpu/parallel.h"
#include "engine/cpu/storage.h"
#include "engine/engine.h"
#include "engine/memory_requests.h"

namespace paceline::engine::cpu {

/// A value of the graph as it is stored: the output of a compiled op.
struct Value {
  graph::Shape shape;
  Storage storage = Storage::f32;
  Storage gradient_storage = Storage::f32;
  BufferId buffer;
  /// The gradient is the sum of these, one for each use of the value; the first use in backward order first.
  /// Empty where no gradient is needed.
  std::vector<BufferId> gradient;
  /// Whoever writes the gradient's one term stores it under the mask of the ReLU that made the value.
  bool gradient_comes_masked = false;
  [[nodiscard]] int pixels() const { return shape.height * shape.width; }
};

/// What every compiled op sees while it runs.
struct ExecContext {
  const CompileOptions& options;
  const Kernels& kernels;
  base::ThreadPool& pool;
  Arena memory;
  float* weights = nullptr;    ///< flat, by graph::Layout
  float* gradients = nullptr;  ///< null without training

  // Of the pass that goes on (forward's stay for backward).
  bool training = false;
  StepInput input = {};
  int samples = 0;  ///< < batch in a short evaluation: what lies behind is computed and ignored
  int views = 1;    ///< so many of them are forms of one sample of the labels
  LossSums sums = {};
  std::span<double> logits = {};    ///< [samples / views][classes]: for who asked for them; empty: nobody
  bool own_gradient_order = false;  ///< gradients stay in the order in which kernels leave them

  [[nodiscard]] const TypedKernels& typed(Storage storage) const {
    return storage == Storage::f32 ? kernels.f32 : kernels.bf16;
  }
};

/// Bytes that an op's passes read and write, in activations and their gradients.
struct OpTraffic {
  std::int64_t forward = 0;
  std::int64_t backward = 0;  ///< of a convolution: of d_src
  std::int64_t d_weight = 0;  ///< convolutions only
  [[nodiscard]] std::int64_t all() const { return forward + backward + d_weight; }
};

/// How an op may store d_src under the mask of the ReLU that made its source (Value::gradient_comes_masked).
enum class Masking {
  none,        ///< it cannot
  by_value,    ///< it reads the source again
  on_the_way,  ///< it knows without
};

/// Seconds of one call: the least of a few after one to warm up.
[[nodiscard]] double seconds_of(const std::function<void()>& call);

/// What every op has. A convolution or dense layer is a ConvOp (conv/conv_op.h) as well, a batch norm
/// FusedBatchNormStats (conv/norm_epilogue.h).
class CompiledOp {
 public:
  virtual ~CompiledOp() = default;

  /// In training form or, with run.training off, in evaluation form.
  virtual void forward(ExecContext& exec) = 0;
  /// Writes its sources' gradient terms and its parameters' gradients.
  virtual void backward(ExecContext& exec) = 0;
  /// How it stores d_src where its source's gradient is to come masked.
  [[nodiscard]] virtual Masking masking() const { return Masking::none; }
  virtual void describe(const ExecContext& exec, std::vector<KernelChoice>& choices) const = 0;
  /// describe(), with rates: by default those of both passes over the bytes that they move. The buffers hold
  /// numbers, nobody minds which.
  virtual void measure(ExecContext& exec, const OpTraffic& traffic, std::vector<KernelChoice>& choices);
};

/// Sums all terms of a gradient into the first one (rounding to its storage), which is returned.
void* merged_gradient(const ExecContext& exec, const Value& value);

/// Sets `count` elements of `gradient` from `first` on to zero where the value is not positive, as the ReLU
/// that made it wants: right after they were written, while they are in the cache. By any thread.
void mask_by_relu(const ExecContext& exec, const Value& value, BufferId gradient, std::int64_t first,
                  std::int64_t count);

/// The row of kernels() that says how an op of our own runs.
[[nodiscard]] KernelChoice own_kernel(const ExecContext& exec, const std::string& what);

}  // namespace paceline::engine::cpu
