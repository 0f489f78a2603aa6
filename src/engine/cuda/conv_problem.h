#pragma once

/// One convolution or dense layer as the CUDA engine computes it, and the interface of what computes it.
///
/// Layouts   activations [N][H][W][C] and weights [K][R][S][C], both of `precision`; channels in and out are
///           padded to multiples of 8, and padding holds zeros. A dense layer is a 1x1 convolution of one
///           pixel whose channels are the flattened input.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/cuda/stream.h"
#include "engine/engine.h"

namespace paceline::engine::cuda {

/// Channels as they lie in memory.
[[nodiscard]] constexpr int padded_channels(int channels) { return (channels + 7) / 8 * 8; }

enum class ConvDirection { forward, backward_data, backward_weights };

struct ConvProblem {
  ConvDirection direction = ConvDirection::forward;
  Precision precision = Precision::f32;
  int samples = 0;
  int channels_in = 0, height_in = 0, width_in = 0;     ///< channels padded
  int channels_out = 0, height_out = 0, width_out = 0;  ///< channels padded
  int kernel_height = 1, kernel_width = 1;
  int stride = 1, padding = 0;
  /// Forward: sums of the output over samples and pixels are taken in the same kernel. A candidate beside a
  /// convolution and a kernel of sums (kSeparate), and taken where measuring found it faster alone.
  bool has_statistics = false;
  /// Backward data: with what the backward pass of the batch norm before it begins is computed in the same
  /// kernel. The gradient, to which a second term is added (has_addend), is kept where the batch norm's
  /// output is positive; sums of that and of its products with the batch norm's input are taken. A candidate
  /// as above.
  bool has_masked_sums = false, has_addend = false;
  bool operator==(const ConvProblem&) const = default;
  /// Whether it computes more than a convolution.
  [[nodiscard]] bool is_fused() const { return has_statistics || has_masked_sums; }

  [[nodiscard]] std::int64_t src_elements() const {
    return std::int64_t{samples} * height_in * width_in * channels_in;
  }
  [[nodiscard]] std::int64_t dst_elements() const {
    return std::int64_t{samples} * height_out * width_out * channels_out;
  }
  [[nodiscard]] std::int64_t weight_elements() const {
    return std::int64_t{channels_out} * kernel_height * kernel_width * channels_in;
  }
};

/// The arrays of a convolution; each direction reads two and overwrites the third: forward src, weight ->
/// dst; backward data d_dst, weight -> d_src; backward weights src, d_dst -> d_weight.
struct ConvOperands {
  void* src = nullptr;     ///< src or d_src
  void* dst = nullptr;     ///< dst or d_dst
  void* weight = nullptr;  ///< weight or d_weight
  void* workspace = nullptr;
  /// With ConvProblem::has_statistics: [2][channels out], the sums of dst and of its square; with
  /// has_masked_sums: [2][channels in], of d_src and of d_src * values. 16-byte aligned.
  float* sums = nullptr;
  const void* addend = nullptr;  ///< with has_addend, as d_src
  const void* mask = nullptr;    ///< with has_masked_sums, as d_src: the batch norm's output,
  const void* values = nullptr;  ///< and its input
  bool operator==(const ConvOperands&) const = default;
};

/// A convolution that is ready to run: a chosen engine of cuDNN's, or the host's loops.
class Convolution {
 public:
  virtual ~Convolution() = default;
  [[nodiscard]] virtual std::size_t workspace_bytes() const = 0;
  /// Its name among the algorithms for the problem, without spaces: records and checkpoints keep it, and
  /// Runtime::make_convolution makes the same again by it. "cudnn-9.19.0-engine-47(2=5,14=1)", "host-loops".
  [[nodiscard]] virtual std::string algorithm() const = 0;
  /// Puts the work on `stream`; returns before it is done. Deterministic: same operands, same bits.
  /// Errors   Error(device) naming the call and the layer
  virtual void run(Stream stream, const ConvOperands& operands) = 0;
};

/// With ConvProblem::is_fused() the choice that there is no such kernel: the default, which
/// Runtime::make_convolution() does not make.
inline constexpr const char* kSeparate = "separate";

/// The algorithms of a convolution that are worth being measured.
struct ConvCandidates {
  std::vector<std::string> algorithms;  ///< the one by default first
  /// Those that want more than kWorkspaceLimit: "NAME (300 MB)".
  std::vector<std::string> left_out;
};

/// The algorithm asked for cannot compute the problem here.
class AlgorithmRefused : public base::Error {
 public:
  /// `why`: to be read behind the algorithm's name: "is no algorithm of this version".
  AlgorithmRefused(const ConvProblem& problem, const std::string& algorithm, const std::string& why);
  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  std::string why_;
};

}  // namespace paceline::engine::cuda
