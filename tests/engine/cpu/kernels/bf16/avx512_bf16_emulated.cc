// AVX512-BF16 in plain C++, see emulated.inc.

#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu::tiles::emulated {
namespace {

#include "engine/cpu/kernels/bf16/emulated.inc"

/// vdpbf16ps: the second half's product is added first.
PACELINE_INLINE V dot(V sums, U a, U b) {
  const V half = flushed(flushed(sums) + second_of(a) * second_of(b));
  return flushed(half + first_of(a) * first_of(b));
}

#include "engine/cpu/kernels/bf16/tile_vectors.inc"
#include "engine/cpu/kernels/bf16/tiles.inc"

PACELINE_EVERY_WIDTH void multiply_as_avx512(const TileMultiply& m) { multiply<Vectors>(m); }

}  // namespace

extern const TileKernels kAvx512;
constinit const TileKernels kAvx512 = table<Vectors>("emulated-avx512-bf16", multiply_as_avx512);

}  // namespace paceline::engine::cpu::tiles::emulated
