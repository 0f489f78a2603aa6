#pragma once

/// One direction of a convolution or dense layer, ready to run on a fixed number of samples: forward and
/// backward data read the weights (WeightReader), backward weights writes their gradient (WgradKernel).
///
/// Values lie channels last; weights and their gradient in whatever order the kernel reads or writes fastest.
/// The op cuts its batch into chunks (by rules of the shape, never of the threads) and runs a kernel on each;
/// kernels that can share a chunk among threads offer parts of it.
///
/// Threads  run() from any number of threads at a time, each with its own scratchpad and part, in an
///          OneThread

#include <cstdint>
#include <string>

#include "base/thread_pool.h"
#include "engine/cpu/conv/problem.h"
#include "engine/cpu/kernels/kernels.h"
#include "engine/cpu/parallel.h"

namespace paceline::engine::cpu {

/// What one call works on; a direction looks at its own.
struct Operands {
  const void* src = nullptr;
  void* dst = nullptr;
  void* d_src = nullptr;
  const void* d_dst = nullptr;
  const void* packed = nullptr;  ///< weights, as pack() left them
  const float* bias = nullptr;
  float* d_weight = nullptr;  ///< packed_bytes(): overwritten
  float* d_bias = nullptr;
  void* scratchpad = nullptr;
  const Epilogue* epilogue = nullptr;  ///< only for a WeightReader that has_epilogue()
};

/// A rectangle of the weights: some outputs (rows of PyTorch's order) and some input channels, from a
/// multiple of kWeightTileChannels each to another one or to their end.
constexpr int kWeightTileChannels = 32;
struct WeightTile {
  Range outs, ins;
};

/// What all directions have.
class ConvKernel {
 public:
  virtual ~ConvKernel() = default;

  /// Of the weights that it reads, or of their gradient that it writes.
  [[nodiscard]] virtual std::int64_t packed_bytes() const = 0;
  [[nodiscard]] virtual std::int64_t scratchpad_bytes() const = 0;
  /// Independent shares of one call, each complete on its own.
  [[nodiscard]] virtual int parts() const { return 1; }
  virtual void run(const Operands& operands, int part) const = 0;
  [[nodiscard]] virtual std::string name() const = 0;
};

/// Forward or backward data.
class WeightReader : public ConvKernel {
 public:
  /// Flat weights (PyTorch's order, float) into `packed`.
  virtual void pack(const float* weights, void* packed) const = 0;
  /// Whether tiles of the weights can be packed apart from each other: pack_tile().
  [[nodiscard]] virtual bool packs_tiles() const { return false; }
  /// Meanwhile what lies at the same places of the array `next` is fetched into a near cache; null: nothing.
  virtual void pack_tile(const float* weights, const WeightTile& tile, const float* next,
                         void* packed) const {
    (void)weights, (void)tile, (void)next, (void)packed;
  }
  /// Whether `packed` holds the same numbers in another order, to be rounded where they lie; else pack()
  /// rounds them itself for a shape `in_blocks`.
  [[nodiscard]] virtual bool packs_plainly() const { return true; }
  /// Whether pack() would write what `other`'s writes: then one copy serves both.
  [[nodiscard]] virtual bool packs_like(const WeightReader& other) const {
    (void)other;
    return false;
  }
  /// Whether run() takes an epilogue's sums out of its registers; where it does not they are taken from what
  /// was written, while it is in the cache (norm_epilogue.h).
  [[nodiscard]] virtual bool has_epilogue() const { return false; }
};

/// Backward weights.
class WgradKernel : public ConvKernel {
 public:
  /// run()'s result into PyTorch's order.
  virtual void unpack(base::ThreadPool& pool, const float* packed, float* d_weights) const = 0;
  /// The name of the order of run()'s result where that has as many elements as the weights, and
  /// unpack_tile() takes a tile of weights of it; else empty. Same names, same orders.
  [[nodiscard]] virtual std::string tile_order() const { return ""; }
  /// Into rows [out][in][tap] of the tile of weights alone, for whoever reads them next.
  virtual void unpack_tile(const float* packed, const WeightTile& tile, float* d_rows) const {
    (void)packed, (void)tile, (void)d_rows;
  }
};

}  // namespace paceline::engine::cpu
