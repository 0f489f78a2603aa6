// Computes d_src of a convolution with stride 1 as a forward convolution of d_dst, with input and output
// channels of the weights exchanged and the taps rotated by 180 degrees. oneDNN has different kernels for
// forward and for d_src, and either may be faster.
//
// The packed weights are oneDNN's, followed by space in which the flat ones are rotated.

#include <algorithm>
#include <utility>

#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/conv/batch_split.h"
#include "engine/cpu/conv/onednn.h"
#include "engine/program.h"

namespace paceline::engine::cpu {
namespace {

ConvShape turned(const ConvShape& shape) {
  ConvShape forward = shape;
  std::swap(forward.src, forward.dst);
  forward.padding = shape.kernel - 1 - shape.padding;
  forward.bias = false;
  forward.dst_type = shape.type;
  return forward;
}

class DgradAsForwardKernel final : public WeightReader {
 public:
  DgradAsForwardKernel(const ConvShape& shape, const DgradAsForwardKernel* like)
      : s_(shape),
        forward_(
            make_onednn_reader(turned(shape), Direction::forward, like ? like->forward_.get() : nullptr)) {}

  [[nodiscard]] std::int64_t packed_bytes() const override { return room_at() + 4 * s_.weights(); }
  [[nodiscard]] std::int64_t scratchpad_bytes() const override { return forward_->scratchpad_bytes(); }
  [[nodiscard]] std::string name() const override { return forward_->name() + ", turned"; }

  void pack(const float* weights, void* packed) const override {
    auto* const room = reinterpret_cast<float*>(static_cast<std::byte*>(packed) + room_at());
    const int out = s_.dst.channels, in = s_.src.channels, taps = s_.kernel * s_.kernel;
    for (int k = 0; k < out; ++k)
      for (int c = 0; c < in; ++c, weights += taps)
        std::reverse_copy(weights, weights + taps, room + (std::int64_t{1} * c * out + k) * taps);
    forward_->pack(room, packed);
  }

  void run(const Operands& o, int part) const override {
    Operands forward = o;
    forward.src = o.d_dst;
    forward.dst = o.d_src;
    forward_->run(forward, part);
  }

 private:
  [[nodiscard]] std::int64_t room_at() const { return whole_lines(forward_->packed_bytes()); }

  const ConvShape s_;
  const std::unique_ptr<WeightReader> forward_;
};

std::optional<std::string> refusal(const ConvProblem& problem) {
  const ConvShape& s = problem.shape;
  if (problem.direction != Direction::backward_data) return "is for backward data";
  if (s.is_dense || s.stride != 1) return "is for convolutions with stride 1";
  if (s.padding >= s.kernel) return "needs padding that is smaller than the kernel";
  return refusal_of_onednn(s);
}

}  // namespace

ConvAlgorithm dgrad_as_forward_algorithm() {
  return {.name = "dgrad-as-forward",
          .refusal = refusal,
          .prefers = [](const ConvProblem&) { return false; },
          .preference = [](const ConvProblem&) { return "is chosen only by measuring"; },
          .chunk = samples_of_chunk,
          .make_reader =
              [](const ConvShape& chunk, Direction, const WeightReader* like) {
                return std::make_unique<DgradAsForwardKernel>(
                    chunk, dynamic_cast<const DgradAsForwardKernel*>(like));
              }};
}

}  // namespace paceline::engine::cpu
