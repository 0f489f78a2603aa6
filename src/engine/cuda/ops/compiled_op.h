#pragma once

/// CompiledOp is one executable op of a graph compiled for a device: an op of the graph, or several fused
/// into one.
///
/// While the graph is compiled, an op requests its memory and makes its convolutions. To run it is to enqueue
/// work on the compute stream; only synchronised batch norm waits for the device.
///
/// Layouts  values are [batch][height][width][padded channels]; padding always holds zeros

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/cuda/kernels/kernel.h"
#include "engine/cuda/kernels/softmax_cross_entropy.h"
#include "engine/cuda/kernels/update_tables.h"
#include "engine/cuda/runtime/runtime.h"
#include "engine/cuda/storage.h"
#include "engine/engine.h"
#include "engine/program.h"

namespace paceline::engine::cuda {

/// A value of the graph on the device: the output of a compiled op.
struct Value {
  graph::Shape shape;  ///< of one sample, without padding
  BufferId buffer;
  /// The terms of the gradient, one for each use of the value, the first use in backward order first. The
  /// gradient is their sum. Empty if no gradient is needed.
  std::vector<BufferId> gradient;

  [[nodiscard]] int channels() const { return padded_channels(shape.channels); }
  [[nodiscard]] int pixels() const { return shape.height * shape.width; }
  /// Elements of one sample, with padding.
  [[nodiscard]] std::int64_t elements() const { return std::int64_t{1} * pixels() * channels(); }
};

/// What compiled ops get when they run: memory, streams, and the current batch.
struct ExecContext {
  const CompileOptions& options;
  Runtime& runtime;
  Stream compute;
  Arena memory;                           ///< on the device
  const float* weights = nullptr;         ///< flat array (graph::Layout), on the device
  float* gradients = nullptr;             ///< flat array, on the device; null without training
  const std::uint8_t* stored = nullptr;   ///< input_buffers.h; null if the device keeps none
  const float* byte_values = nullptr;     ///< likewise
  const LossScale* loss_scale = nullptr;  ///< on the device; null: gradients are not scaled
  double* pinned = nullptr;               ///< pinned host memory, as much as any op asked for

  // The current pass; values of forward stay valid for backward.
  bool training = false;
  const float* images = nullptr;            ///< [samples][H][W][C], on the device; null if there are draws
  const base::SampleDraw* draws = nullptr;  ///< [samples], on the device; they refer to `stored`
  const std::int32_t* labels = nullptr;     ///< [samples / views], on the device
  /// [samples], on the device; null without CompileOptions::has_two_labels
  const base::SecondLabel* second_labels = nullptr;
  const StepNumbers* numbers = nullptr;  ///< on the device
  LossResult* loss = nullptr;            ///< the result of the loss, on the device
  int samples = 0;                       ///< may be < batch in evaluation; the rest is computed and ignored
  int views = 1;                         ///< consecutive images of the same labelled sample

  template <typename Kernel>
  void launch(const Kernel& kernel) const {
    runtime.launch(compute, kernel);
  }
  /// Of a batch of `value`: vectors of kVector elements, and bytes.
  [[nodiscard]] std::int64_t vectors(const Value& value) const {
    return options.batch * value.elements() / kVector;
  }
  [[nodiscard]] std::size_t bytes(const Value& value) const {
    return static_cast<std::size_t>(options.batch * value.elements() * bytes_of(options.precision));
  }
  /// Enqueues a copy of a batch of `value`. Does nothing if `to` is `from` or null.
  void copy(const Value& value, const void* from, void* to) const {
    if (to != nullptr && to != from) runtime.copy_on_device(compute, to, from, bytes(value));
  }
  /// Enqueues zeros for the gradient of `count` elements at offset `at` of the flat arrays; -1: there is
  /// none.
  void clear_gradient(std::int64_t at, std::int64_t count) const {
    if (at >= 0) runtime.fill_bytes(compute, gradients + at, 0, static_cast<std::size_t>(4 * count));
  }
};

/// The address of sample number `samples` in an array at `first` with `elements` elements for each sample.
[[nodiscard]] inline std::byte* after_samples(void* first, std::int64_t samples, std::int64_t elements,
                                              Precision storage) {
  return static_cast<std::byte*>(first) + samples * elements * bytes_of(storage);
}

/// A convolution and the name of its algorithm.
struct ConvChoice {
  ConvProblem problem;
  std::string algorithm;
  std::vector<PassedOver> passed_over = {};  ///< Convolution::passed_over()
};

class CompiledOp {
 public:
  virtual ~CompiledOp() = default;

  /// The op's packed copy of its weight, which the engine rewrites after each update. Empty if it has no
  /// weight.
  [[nodiscard]] virtual std::optional<LayerWeight> weight() const { return {}; }
  /// Enqueues copies of what no pass changes, once, before the first pass. The host then waits, so that the
  /// next use of exec.pinned need not.
  virtual void start(ExecContext& /*exec*/) {}
  /// Enqueues the forward pass; exec.training says whether for training or evaluation.
  virtual void forward(ExecContext& exec) = 0;
  /// Enqueues the backward pass: writes gradient terms of its inputs and gradients of its parameters.
  virtual void backward(ExecContext& exec) = 0;
  /// Why a step with this op cannot be captured: a sentence without full stop. Empty if it can.
  [[nodiscard]] virtual std::string needs_host() const { return {}; }
  /// Appends its convolutions and their algorithms to `choices`.
  virtual void list(std::vector<ConvChoice>& /*choices*/) const {}
  /// Appends its rows of `doctor --kernels` to `choices`.
  virtual void describe(std::vector<KernelChoice>& choices) const = 0;
};

/// Enqueues the sum of all terms of a value's gradient into the first term, in order. Returns the first term.
void* merged_gradient(const ExecContext& exec, const Value& value);

/// Enqueues the mask of the ReLU that wrote `value`: its gradient `d_dst` becomes 0 where the value is not
/// positive.
void mask_by_relu(const ExecContext& exec, const Value& value, void* d_dst);

/// The row of kernels() for an op that this project's own kernels compute.
[[nodiscard]] KernelChoice own_kernel(const std::string& what);

}  // namespace paceline::engine::cuda
