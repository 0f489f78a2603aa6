#include "engine/cpu/conv/problem.h"

#include <fmt/core.h>

namespace paceline::engine::cpu {

std::int64_t ConvShape::weights() const {
  return is_dense ? dst.channels * src.elements()
                  : std::int64_t{1} * dst.channels * (src.channels / groups) * window().kernel.product();
}
std::int64_t ConvShape::products() const { return weights() * dst_pixels(); }

std::string key_of(const ConvProblem& problem) {
  const ConvShape& s = problem.shape;
  const auto storage = [](Storage type) { return type == Storage::f32 ? "fp32" : "bf16"; };
  const auto sizes = [](const graph::Shape& shape) {
    return fmt::format("{}x{}x{}", shape.channels, shape.height, shape.width);
  };
  const graph::SlidingWindow window = s.window();
  return fmt::format("{} {} from {} to {}, kernel {} stride {} padding {}{}{}{}{}{}, {} and {}, {} samples",
                     s.is_dense ? "dense" : "conv2d", name_of(problem.direction), sizes(s.src), sizes(s.dst),
                     text(window.kernel), text(window.stride), text(window.padding),
                     window.dilation != 1 ? " dilation " + text(window.dilation) : "",
                     s.groups > 1 ? fmt::format(" groups {}", s.groups) : "", s.bias ? " bias" : "",
                     s.training ? "" : " evaluation", s.in_blocks ? " blocks" : "", storage(s.type),
                     storage(s.dst_type), s.samples);
}

}  // namespace paceline::engine::cpu
