#pragma once

/// A convolution or dense layer to be computed in one direction: what algorithms are chosen by.

#include <cstdint>
#include <string>

#include "engine/cpu/storage.h"
#include "graph/graph.h"

namespace paceline::engine::cpu {

enum class Direction { forward, backward_data, backward_weights };
[[nodiscard]] const char* name_of(Direction direction);  ///< "forward", "backward data", "backward weights"

struct ConvShape {
  bool is_dense = false;
  int samples = 0;
  graph::Shape src, dst;
  int kernel = 1, stride = 1, padding = 0;  ///< convolution only
  bool bias = false;
  bool training = true;
  bool is_alone = false;            ///< the batch is one chunk, which threads can share by its parts only
  int threads = 1;                  ///< ... so many; for parts that change no bits
  bool in_blocks = false;           ///< on float copies of bf16: the weights are rounded to bf16 as well
  Storage type = Storage::f32;      ///< of src, weight, d_src, d_dst
  Storage dst_type = Storage::f32;  ///< of dst
  [[nodiscard]] std::int64_t dst_pixels() const { return std::int64_t{1} * dst.height * dst.width; }
  /// Elements of the weight, and multiply-adds of one sample.
  [[nodiscard]] std::int64_t weights() const;
  [[nodiscard]] std::int64_t products() const;
};

/// `shape.samples` is what its algorithm is chosen for.
struct ConvProblem {
  ConvShape shape;
  Direction direction = Direction::forward;
};

/// A line of text that says all that a kernel's speed depends on: the key of what is measured, kept and
/// chosen.
[[nodiscard]] std::string key_of(const ConvProblem& problem);

}  // namespace paceline::engine::cpu
