#pragma once

/// A ConvProblem is a convolution or dense layer in one direction: what an algorithm is chosen for.

#include <cstdint>
#include <optional>
#include <string>

#include "engine/cpu/tuning.h"
#include "engine/engine.h"
#include "graph/ops.h"

namespace paceline::engine::cpu {

using Direction = ConvDirection;

struct ConvShape {
  bool is_dense = false;
  int samples = 0;
  graph::Shape src, dst;
  int kernel = 1, stride = 1, padding = 0, groups = 1;  ///< convolution only
  /// A window that is not square, or dilated; kernel, stride and padding then say nothing.
  std::optional<graph::SlidingWindow> uneven;
  bool bias = false;
  bool training = true;
  bool is_alone = false;        ///< the batch is one chunk: threads can share it only by its parts
  int threads = 1;              ///< how many threads; used only to choose parts that do not change results
  bool in_blocks = false;       ///< float copies of bf16 values; the weights are rounded to bf16 too
  Storage type = Storage::f32;  ///< of src, weight, d_src, d_dst
  Storage dst_type = Storage::f32;  ///< of dst
  [[nodiscard]] std::int64_t dst_pixels() const { return std::int64_t{1} * dst.height * dst.width; }
  [[nodiscard]] graph::SlidingWindow window() const {
    return uneven.value_or(graph::SlidingWindow{.kernel = kernel, .stride = stride, .padding = padding});
  }
  /// Elements of the weight.
  [[nodiscard]] std::int64_t weights() const;
  /// Multiply-adds for one sample.
  [[nodiscard]] std::int64_t products() const;
};

/// `shape.samples`: the number of samples for which the algorithm is chosen.
struct ConvProblem {
  ConvShape shape;
  Direction direction = Direction::forward;
};

/// One line of text with everything that a kernel's speed depends on. It is the key in records and tuning
/// caches.
[[nodiscard]] std::string key_of(const ConvProblem& problem);

}  // namespace paceline::engine::cpu
