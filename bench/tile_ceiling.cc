#include "tile_ceiling.h"

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "engine/cpu/conv/bf16/support.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace {

using namespace paceline;

constexpr int kTurns = 5;
constexpr int kProducts = 4000;  ///< of a call
constexpr double kFlops = 2.0 * 16 * 16 * 32;

/// Four sums hide the latency of a product.
void multiply_registers(const std::uint16_t* tile) {
  asm volatile(
      "tileloadd (%0,%1,1), %%tmm4\n\t"
      "tileloadd (%0,%1,1), %%tmm5\n\t"
      "tileloadd (%0,%1,1), %%tmm6\n\t"
      "tileloadd (%0,%1,1), %%tmm7\n\t"
      :
      : "r"(tile), "r"(std::int64_t{64})
      : "memory");
  for (int i = 0; i < kProducts / 4; ++i)
    asm volatile(
        "tdpbf16ps %%tmm6, %%tmm4, %%tmm0\n\t"
        "tdpbf16ps %%tmm7, %%tmm4, %%tmm1\n\t"
        "tdpbf16ps %%tmm6, %%tmm5, %%tmm2\n\t"
        "tdpbf16ps %%tmm7, %%tmm5, %%tmm3\n\t"
        :
        :
        :);
}

}  // namespace

double tile_ceiling(double seconds) {
  namespace tiles = engine::cpu::tiles;
  if (tiles::refusal_of(tiles::Unit::amx)) return 0;
  const tiles::UnitSession session(tiles::kernels_of(tiles::Unit::amx));
  alignas(64) std::uint16_t tile[512];
  for (std::uint32_t i = 0; i < 512; ++i)  // of both signs, around 0.01
    tile[i] = static_cast<std::uint16_t>(0x3c00U | ((i * 2654435761U >> 9) & 0x80ffU));
  double best = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    const double begin = base::thread_processor_s();  // as layers are timed
    double products = 0, spent = 0;
    while ((spent = base::thread_processor_s() - begin) < seconds / kTurns) {
      multiply_registers(tile);
      products += kProducts;
    }
    best = std::max(best, products * kFlops / spent / 1e9);
  }
  return best;
}
