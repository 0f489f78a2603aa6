#pragma once

/// oneDNN's part: the three products of a convolution or a dense layer (forward, d_src, d_weight), for a
/// fixed number of samples, all channels last, weights in whatever order oneDNN likes best.
///
/// Threads  describing and binding from any thread; running from one, with the OpenMP threads that were
/// allowed
///          (ThreadCount) when it was described

#include <cstdint>
#include <memory>
#include <string>

#include "engine/cpu/step.h"

namespace paceline::engine::cpu {

/// How oneDNN multiplies bf16 on this machine (and within ONEDNN_MAX_CPU_ISA).
enum class Bf16Products {
  none,         ///< below AVX-512: not at all
  in_software,  ///< converted in registers, slower than fp32
  in_hardware,  ///< AVX512-BF16, AMX
};
[[nodiscard]] Bf16Products bf16_products_here();

struct ProductShape {
  bool is_dense = false;
  int samples = 0;
  graph::Shape src, dst;
  int kernel = 1, stride = 1, padding = 0;  ///< convolution only
  bool bias = false;
  Storage type = Storage::f32;      ///< of src, weight, d_src, d_dst
  Storage dst_type = Storage::f32;  ///< of dst
};

/// Which of the three are wanted.
struct ProductParts {
  bool d_src = false;
  bool d_weight = false;
};

/// Addresses that the primitives work on, fixed for the product's life.
struct ProductMemory {
  void* src = nullptr;
  void* dst = nullptr;
  void* d_src = nullptr;
  void* d_dst = nullptr;
  void* packed_forward = nullptr;   ///< weights as forward wants them
  void* packed_backward = nullptr;  ///< as d_src wants them; the same as packed_forward when shared
  float* bias = nullptr;            ///< flat, not repacked
  float* d_weight = nullptr;        ///< packed_gradient_bytes()
  float* d_bias = nullptr;
  void* scratchpad = nullptr;
};

class Product {
 public:
  virtual ~Product() = default;

  [[nodiscard]] virtual std::int64_t packed_forward_bytes() const = 0;
  [[nodiscard]] virtual std::int64_t packed_backward_bytes() const = 0;  ///< 0 when forward's serve
  [[nodiscard]] virtual std::int64_t packed_gradient_bytes() const = 0;
  [[nodiscard]] virtual std::int64_t scratchpad_bytes() const = 0;

  virtual void bind(const ProductMemory& memory) = 0;

  /// Reorders flat weights (PyTorch's order, float) into the packed copies.
  virtual void pack(const float* weights) = 0;
  /// Reorders `packed` (as d_weight) into PyTorch's order.
  virtual void unpack_gradient(const float* packed, float* d_weights) = 0;

  virtual void forward() = 0;
  virtual void backward_d_src() = 0;
  virtual void backward_d_weight() = 0;  ///< and d_bias

  [[nodiscard]] virtual bool is_by_taps() const { return false; }
  [[nodiscard]] virtual std::string forward_name() const = 0;
  [[nodiscard]] virtual std::string d_src_name() const = 0;
  [[nodiscard]] virtual std::string d_weight_name() const = 0;
};

/// oneDNN's primitives, for any shape.
///
/// Errors   Error(device) when oneDNN has no kernel for it
[[nodiscard]] std::unique_ptr<Product> make_onednn_product(const ProductShape& shape,
                                                           const ProductParts& parts);

/// One matrix product for each output pixel and tap; see tap_product.cc.
[[nodiscard]] std::unique_ptr<Product> make_tap_product(const ProductShape& shape, const ProductParts& parts,
                                                        int threads);
/// Whether tap products can compute the shape, and whether they are faster than oneDNN's.
[[nodiscard]] bool can_use_taps(const ProductShape& shape);
[[nodiscard]] bool should_use_taps(const ProductShape& shape);

}  // namespace paceline::engine::cpu
