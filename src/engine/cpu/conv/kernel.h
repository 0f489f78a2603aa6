#pragma once

/// A kernel computes one direction of a convolution or dense layer for a fixed number of samples. Forward and
/// backward data read the weights (WeightReader); backward weights writes their gradient (WgradKernel).
///
/// Activations are channels last. Each kernel keeps the weights, or their gradient, in the order that is
/// fastest for it. The op cuts its batch into chunks (by the shape, never by the number of threads) and runs
/// a kernel on each. A kernel that can share one chunk among threads has several parts.
///
/// Requires  a OneThread (parallel.h) exists on each thread that calls run()
/// Threads   any number of threads may call run() at once, each with its own scratchpad and part

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/thread_pool.h"
#include "engine/cpu/conv/problem.h"
#include "engine/cpu/kernels/kernels.h"
#include "engine/cpu/parallel.h"

namespace paceline::engine::cpu {

/// The arrays of one call. Each direction uses its own ones.
struct Operands {
  const void* src = nullptr;
  void* dst = nullptr;
  void* d_src = nullptr;
  const void* d_dst = nullptr;
  const void* packed = nullptr;  ///< weights, as pack() wrote them
  const float* bias = nullptr;
  float* d_weight = nullptr;  ///< packed_bytes() bytes; overwritten
  float* d_bias = nullptr;
  void* scratchpad = nullptr;
  const Epilogue* epilogue = nullptr;  ///< or null; only for a WeightReader with has_epilogue()

  /// The scratchpad from `bytes` on.
  template <typename T>
  [[nodiscard]] T* scratch_at(std::int64_t bytes) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(scratchpad) + bytes);
  }
};

/// A rectangle of the weights: a range of output channels (rows of PyTorch's order) and a range of input
/// channels. Each range begins at a multiple of kWeightTileChannels and ends at one, or at the last channel.
constexpr int kWeightTileChannels = 32;
struct WeightTile {
  Range outs, ins;
};

/// The interface that all directions share.
class ConvKernel {
 public:
  virtual ~ConvKernel() = default;

  /// Size of the packed weights that it reads, or of the gradient that it writes.
  [[nodiscard]] virtual std::int64_t packed_bytes() const = 0;
  [[nodiscard]] virtual std::int64_t scratchpad_bytes() const = 0;
  /// Number of parts into which one call is divided. Parts do not depend on each other.
  [[nodiscard]] virtual int parts() const { return 1; }
  virtual void run(const Operands& operands, int part) const = 0;
  /// The implementation, as `doctor --kernels` shows it: "own Winograd 4x4 avx512".
  [[nodiscard]] virtual std::string name() const = 0;
};

/// A kernel of forward or backward data.
class WeightReader : public ConvKernel {
 public:
  /// Writes flat weights (float, PyTorch's order) to `packed` in this kernel's order.
  virtual void pack(const float* weights, void* packed) const = 0;
  /// Whether pack_tile() works: tiles of the weights can be packed separately.
  [[nodiscard]] virtual bool packs_tiles() const { return false; }
  /// Packs one tile. Meanwhile it prefetches the elements of `next` that have the same offsets as the tile's
  /// in `weights`; null: none.
  virtual void pack_tile(const float* /*weights*/, const WeightTile& /*tile*/, const float* /*next*/,
                         void* /*packed*/) const {}
  /// Whether `packed` holds the weights themselves in another order: the caller can then round them to bf16
  /// in place. Otherwise pack() rounds them if the shape is `in_blocks`.
  [[nodiscard]] virtual bool packs_plainly() const { return true; }
  /// Whether pack() writes the same bytes as that of `other`: one copy then serves both.
  [[nodiscard]] virtual bool packs_like(const WeightReader& /*other*/) const { return false; }
  /// Whether run() computes the sums of an epilogue itself. Otherwise the op computes them from the rows just
  /// written, while these are in the cache (norm_epilogue.h).
  [[nodiscard]] virtual bool has_epilogue() const { return false; }
};

/// A kernel of backward weights.
class WgradKernel : public ConvKernel {
 public:
  /// Converts the result of run() to PyTorch's order.
  virtual void unpack(base::ThreadPool& pool, const float* packed, float* d_weights) const = 0;
  /// The name of the order of run()'s result; equal names mean equal orders. Empty unless the result has as
  /// many elements as the weights and unpack_tile() works.
  [[nodiscard]] virtual std::string tile_order() const { return ""; }
  /// Converts one tile of the result to rows [out][in][tap] of that tile alone, which the caller reads next.
  virtual void unpack_tile(const float* /*packed*/, const WeightTile& /*tile*/, float* /*d_rows*/) const {}
};

}  // namespace paceline::engine::cpu
