#pragma once

/// One executable op of a graph that is compiled for a device: an op of the graph, or several fused into one.
///
/// It is made while the graph is compiled (it asks for its memory and makes its convolutions), then run. To
/// run is to put work on the compute stream; nothing here waits for the device but synchronised batch norm.
/// Values lie channels last, [batch][height][width][padded channels]; padded channels hold zeros always.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/cuda/kernels/softmax_cross_entropy.h"
#include "engine/cuda/kernels/step_numbers.h"
#include "engine/cuda/kernels/weights.h"
#include "engine/cuda/runtime.h"
#include "engine/engine.h"
#include "engine/memory_requests.h"

namespace paceline::engine::cuda {

/// How an element is stored: as float, or as bf16.
[[nodiscard]] constexpr std::int64_t bytes_of(Precision storage) { return storage == Precision::f32 ? 4 : 2; }

/// A value of the graph as it lies on the device: the output of a compiled op.
struct Value {
  graph::Shape shape;  ///< of one sample, without padding
  BufferId buffer;
  /// The gradient is the sum of these, one for each use of the value; the first use in backward order first.
  /// Empty where no gradient is needed.
  std::vector<BufferId> gradient;
  /// Of a convolution's output: its sums [2][channels], float, which the convolution takes in training form
  /// for the batch norm behind it. None: that takes them itself.
  BufferId sums;
  /// Of a batch norm's output: its whole gradient, masked, and the sums [2][channels], float, of that and of
  /// its products with the batch norm's input, `norm_src`. The last convolution to write a term leaves both.
  /// None: the batch norm computes them itself.
  BufferId masked_gradient, gradient_sums, norm_src;

  [[nodiscard]] int channels() const { return padded_channels(shape.channels); }
  [[nodiscard]] int pixels() const { return shape.height * shape.width; }
  /// Of one sample, with padding.
  [[nodiscard]] std::int64_t elements() const { return std::int64_t{1} * pixels() * channels(); }
};

/// What every compiled op sees while it runs.
struct ExecContext {
  const CompileOptions& options;
  Runtime& runtime;
  Stream compute;
  Arena memory;                          ///< on the device
  const float* weights = nullptr;        ///< flat, by graph::Layout, on the device
  float* gradients = nullptr;            ///< likewise; null without training
  const std::uint8_t* stored = nullptr;  ///< stored_images.h; null where the device keeps none
  const float* byte_values = nullptr;    ///< likewise
  double* pinned = nullptr;              ///< of the host, as much as an op asked for

  // Of the pass that goes on (forward's stay for backward).
  bool training = false;
  const float* images = nullptr;            ///< [samples][H][W][C], on the device; null where there are draws
  const base::SampleDraw* draws = nullptr;  ///< [samples], on the device, of `stored`
  const std::int32_t* labels = nullptr;     ///< [samples / views], on the device
  const StepNumbers* numbers = nullptr;     ///< on the device
  LossResult* loss = nullptr;               ///< what the loss leaves, on the device
  double gradient_scale = 1;                ///< as in `numbers`
  int samples = 0;  ///< < batch in a short evaluation: what lies behind is computed and ignored
  int views = 1;    ///< so many of them are forms of one sample of the labels

  template <typename Kernel>
  void launch(const Kernel& kernel) const {
    runtime.launch(compute, kernel);
  }
};

/// Calls work(T{}) with the type that elements are stored as: float or Bf16.
template <typename Work>
void with_storage(Precision storage, const Work& work) {
  if (storage == Precision::f32)
    work(float{});
  else
    work(Bf16{});
}

/// `samples` samples of the batch in front, where an array of `elements` a sample begins.
[[nodiscard]] inline std::byte* after_samples(void* first, std::int64_t samples, std::int64_t elements,
                                              Precision storage) {
  return static_cast<std::byte*>(first) + samples * elements * bytes_of(storage);
}

/// Where a convolution's or dense layer's weight lies in the flat arrays, and the copy that it reads.
struct LayerWeight {
  std::int64_t offset = 0;
  BufferId packed;
  WeightShape shape;
};

/// A convolution and the name of its algorithm.
struct ConvChoice {
  ConvProblem problem;
  std::string algorithm;
};

class CompiledOp {
 public:
  virtual ~CompiledOp() = default;

  /// The copy of its weight that it reads; the engine fills it after each update. None: it has no weight.
  [[nodiscard]] virtual std::optional<LayerWeight> weight() const { return {}; }
  /// In training form or, with exec.training off, in evaluation form.
  virtual void forward(ExecContext& exec) = 0;
  /// Writes its sources' gradient terms and its parameters' gradients.
  virtual void backward(ExecContext& exec) = 0;
  /// Why a step with this op cannot be captured: a sentence without its full stop; empty: it can.
  [[nodiscard]] virtual std::string needs_host() const { return {}; }
  /// Adds its convolutions, as they were made.
  virtual void list(std::vector<ConvChoice>& /*choices*/) const {}
  /// Adds what `doctor --kernels` says of it.
  virtual void describe(std::vector<KernelChoice>& choices) const = 0;
};

/// Sums all terms of a value's gradient into the first one, in their order, and returns that.
void* merged_gradient(const ExecContext& exec, const Value& value);

/// The row of kernels() that says how an op of our own runs.
[[nodiscard]] KernelChoice own_kernel(const std::string& what);

}  // namespace paceline::engine::cuda
