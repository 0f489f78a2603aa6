#pragma once

/// The three products of a convolution or a dense layer, each by one of several implementations.
///
/// A ConvKernel is one direction for a fixed number of samples, all channels last, weights in whatever
/// order it likes best. A step cuts its batch into chunks (by rules of the shape, never of the threads) and
/// runs a kernel on each; kernels that see more than one way to share a chunk offer parts of it.
///
/// Threads  run() from any number of threads at a time, each with its own scratchpad and part, in an
/// OneThread

#include <cstdint>
#include <memory>
#include <string>

#include "engine/cpu/ops/compiled_op.h"

namespace paceline::engine::cpu::winograd {
struct WinogradKernels;
}

namespace paceline::engine::cpu {

/// How oneDNN multiplies bf16 on this machine (and within ONEDNN_MAX_CPU_ISA).
enum class Bf16Products {
  none,         ///< below AVX-512: not at all
  in_software,  ///< converted in registers, slower than fp32
  in_hardware,  ///< AVX512-BF16, AMX
};
[[nodiscard]] Bf16Products bf16_products_here();

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

/// One product of a graph: `shape.samples` is what its kernels are chosen for.
struct ConvProblem {
  ConvShape shape;
  Direction direction = Direction::forward;
};

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
  const Epilogue* epilogue = nullptr;  ///< only for a kernel that has_epilogue()
};

/// A rectangle of the weights: some outputs (rows of PyTorch's order) and some input channels, from a
/// multiple of kWeightTileChannels each to another one or to their end.
constexpr int kWeightTileChannels = 32;
struct WeightTile {
  Range outs, ins;
};

class ConvKernel {
 public:
  virtual ~ConvKernel() = default;

  /// Of the weights that forward and d_src read, or of the gradient that d_weight writes.
  [[nodiscard]] virtual std::int64_t packed_bytes() const = 0;
  [[nodiscard]] virtual std::int64_t scratchpad_bytes() const = 0;
  /// Flat weights (PyTorch's order, float) into `packed`.
  virtual void pack(const float* weights, void* packed) const = 0;
  /// Whether tiles of weights of the weights can be packed apart from each other: pack_tile().
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
  [[nodiscard]] virtual bool packs_like(const ConvKernel& other) const {
    (void)other;
    return false;
  }
  /// d_weight's result into PyTorch's order.
  virtual void unpack(base::ThreadPool& pool, const float* packed, float* d_weights) const = 0;
  /// The name of the order of d_weight's result where that has as many elements as the weights, and
  /// unpack_tile() takes a tile of weights of it; else empty. Same names, same orders.
  [[nodiscard]] virtual std::string tile_order() const { return ""; }
  /// Into rows [out][in][tap] of the tile of weights alone, for whoever reads them next.
  virtual void unpack_tile(const float* packed, const WeightTile& tile, float* d_rows) const {
    (void)packed, (void)tile, (void)d_rows;
  }

  /// Independent shares of one call, each complete on its own.
  [[nodiscard]] virtual int parts() const { return 1; }
  virtual void run(const Operands& operands, int part) const = 0;
  /// Whether run() takes an epilogue's sums out of its registers; where it does not they are taken from what
  /// was written, while it is in the cache (norm_epilogue.h).
  [[nodiscard]] virtual bool has_epilogue() const { return false; }

  [[nodiscard]] virtual std::string name() const = 0;
};

/// oneDNN's primitive, for any shape. `like`: another one of the same shape but for the samples, whose packed
/// weights this one is to read (or whose gradient order it is to write).
///
/// Errors   Error(device) when oneDNN has no kernel for it
[[nodiscard]] std::unique_ptr<ConvKernel> make_onednn_kernel(const ConvShape& shape, Direction direction,
                                                             const ConvKernel* like);

/// One matrix product for each output pixel and tap; see gemm_per_tap.cc.
[[nodiscard]] std::unique_ptr<ConvKernel> make_gemm_per_tap_kernel(const ConvShape& shape,
                                                                   Direction direction);

namespace tiles {
struct TileKernels;  // kernels/tiles.h
}
/// Products of bf16 tiles, of any shape, by the unit whose table this is (it outlives the kernel); see
/// batch_rows.cc and wgrad_batch_k.cc.
[[nodiscard]] std::unique_ptr<ConvKernel> make_tile_kernel(const ConvShape& shape, Direction direction,
                                                           const tiles::TileKernels& kernels);

/// d_src alone, of a convolution with stride 1, by oneDNN's forward kernel; see dgrad_as_forward.cc. `like`
/// as above.
[[nodiscard]] std::unique_ptr<ConvKernel> make_dgrad_as_forward_kernel(const ConvShape& shape,
                                                                       const ConvKernel* like);

/// Minimal filtering, for 3x3 convolutions with stride 1 or 2; see winograd.cc.
[[nodiscard]] std::unique_ptr<ConvKernel> make_winograd_kernel(const ConvShape& shape, Direction direction,
                                                               const winograd::WinogradKernels& kernels);

}  // namespace paceline::engine::cpu
