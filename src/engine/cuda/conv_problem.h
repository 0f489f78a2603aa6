#pragma once

/// ConvProblem describes one convolution or dense layer in one direction on the GPU; Convolution is the
/// interface of an implementation that is ready to compute it.
///
/// Layouts  activations [N][H][W][C] and weights [K][R][S][C / groups], both stored in `precision`; input and
///          output channels are padded with zeros to multiples of 8. A dense layer that flattens is a 1x1
///          convolution of one pixel whose channels are the flattened input.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/cuda/runtime/stream.h"
#include "engine/engine.h"
#include "graph/ops.h"

namespace paceline::engine::cuda {

/// The number of channels in memory: rounded up to a multiple of 8.
[[nodiscard]] constexpr int padded_channels(int channels) { return (channels + 7) / 8 * 8; }

using engine::ConvDirection;

struct ConvProblem {
  ConvDirection direction = ConvDirection::forward;
  Precision precision = Precision::f32;
  int samples = 0;
  int channels_in = 0, height_in = 0, width_in = 0;     ///< channels padded
  int channels_out = 0, height_out = 0, width_out = 0;  ///< channels padded
  int kernel_height = 1, kernel_width = 1;
  graph::Pair stride = 1, padding = 0, dilation = 1;
  int groups = 1;  ///< of the padded channels: a depthwise layer has one for each, padding included
  bool operator==(const ConvProblem&) const = default;

  [[nodiscard]] std::int64_t src_elements() const {
    return std::int64_t{samples} * height_in * width_in * channels_in;
  }
  [[nodiscard]] std::int64_t dst_elements() const {
    return std::int64_t{samples} * height_out * width_out * channels_out;
  }
  [[nodiscard]] std::int64_t weight_elements() const {
    return std::int64_t{channels_out} * kernel_height * kernel_width * (channels_in / groups);
  }
};

/// The arrays of a convolution. Each direction reads two and overwrites the third: forward src, weight ->
/// dst; backward data d_dst, weight -> d_src; backward weights src, d_dst -> d_weight.
struct ConvOperands {
  void* src = nullptr;     ///< src or d_src [N][H][W][C]
  void* dst = nullptr;     ///< dst or d_dst [N][H][W][K]
  void* weight = nullptr;  ///< weight or d_weight [K][R][S][C]
  void* workspace = nullptr;
  bool operator==(const ConvOperands&) const = default;
};

/// A convolution that is ready to run: a plan of cuDNN, or loops on the host.
class Convolution {
 public:
  virtual ~Convolution() = default;
  [[nodiscard]] virtual std::size_t workspace_bytes() const = 0;
  /// The algorithm's name, without spaces: "cudnn-9.19.0-engine-47(2=5,14=1)", "host-loops". Records and
  /// checkpoints hold it; Runtime::make_convolution() makes the same convolution from it.
  [[nodiscard]] virtual std::string algorithm() const = 0;
  /// What was passed over before this algorithm was chosen, because it cannot be compiled.
  [[nodiscard]] virtual std::span<const PassedOver> passed_over() const { return {}; }
  /// Whether only its first run will tell if the device can start it.
  [[nodiscard]] virtual bool is_untried() const { return false; }
  /// Enqueues the work on `stream` and returns before it is done. Deterministic: same operands, same bits.
  ///
  /// Errors   Error(device) naming the call and the layer; AlgorithmRefused if it is untried, cannot be
  ///          started, and the device goes on working
  virtual void run(Stream stream, const ConvOperands& operands) = 0;
};

/// The algorithms of a convolution that are worth measuring.
struct ConvCandidates {
  std::vector<std::string> algorithms;  ///< the default first
  /// Those that need more workspace than workspace_limit(): "NAME (300 MB)".
  std::vector<std::string> left_out;
};

/// The requested algorithm cannot compute the problem on this device.
class AlgorithmRefused : public base::Error {
 public:
  /// `why`: the end of a sentence that begins with the algorithm's name: "is no algorithm of this version".
  AlgorithmRefused(const ConvProblem& problem, const std::string& algorithm, const std::string& why);
  AlgorithmRefused(const std::string& text, const std::string& why)
      : Error(base::ErrorKind::device, text), why_(why) {}
  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  std::string why_;
};

// Converts a graph's Conv2d and Dense layers to the padded ConvProblems that a device computes, and checks
// and names ConvProblems.

/// The convolution that computes `node` for `batch` samples. A Dense layer that flattens reads its input as
/// one pixel of height * width * padded channels; another one is a 1x1 convolution.
///
/// Errors    Error(usage) for groups that padding would cut: of more than one channel, where input or output
///           channels are no multiple of 8
/// Requires  batch >= 1; `node` is a Conv2d or Dense of `graph`
[[nodiscard]] ConvProblem conv_problem(const graph::Graph& graph, const graph::Node& node, int batch,
                                       Precision precision, ConvDirection direction);

/// The problem's name, which records and caches hold: "backward data, bf16, 128x32x32x64 to 128x16x16x128,
/// kernel 3x3, stride 2, padding 1". Shapes are [N]x[H]x[W]x[C] of the forward pass.
[[nodiscard]] std::string describe(const ConvProblem& problem);

/// Throws Error(device) with the problem and `rule` unless `holds`.
template <typename... Args>
void require_of(const ConvProblem& problem, bool holds, fmt::format_string<Args...> rule, Args&&... args) {
  if (!holds)
    base::fail(base::ErrorKind::device, "convolution ({}): {}", describe(problem),
               fmt::format(rule, std::forward<Args>(args)...));
}

/// Refuses a problem that no layer can have: sizes that are not positive, channels that are not padded, an
/// output size that does not follow from input, kernel, stride and padding.
///
/// Errors   Error(device) with problem, rule and value
void check(const ConvProblem& problem);

/// Refuses a problem whose operands differ in size from the engine's arrays. Without this check cuDNN would
/// compute a grouped convolution from a weight with too few channels.
///
/// Errors   Error(device) with problem, operand and both sizes
void check_operands(const ConvProblem& problem, std::int64_t src_elements, std::int64_t weight_elements,
                    std::int64_t dst_elements);

}  // namespace paceline::engine::cuda
