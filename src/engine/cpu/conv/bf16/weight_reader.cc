#include "engine/cpu/conv/bf16/weight_reader.h"

#include <algorithm>

#include "base/dtype.h"
#include "engine/cpu/kernels/kernels.h"

namespace paceline::engine::cpu {
namespace {

using namespace tiles;

constexpr int kFloatsAhead = 64;  ///< floats of a row to prefetch if nothing else is requested

void pack_block(const float* weights, std::int64_t of_in, std::int64_t of_out, int ins, int outs,
                std::uint16_t* block) {
  std::fill_n(block, kBlockElements, std::uint16_t{0});
  for (int k = 0; k < outs; ++k)
    for (int c = 0; c < ins; ++c)
      block[((k / kHalf * kHalf + c / 2) * kHalf + k % kHalf) * 2 + c % 2] =
          base::to_bf16(weights[k * of_out + c * of_in]).bits;
}

}  // namespace

void pack_tile_weights(const TileWindow& window, const TileKernels& kernels, const float* weights,
                       const WeightTile& tile, const float* next, void* packed) {
  const int in = window.from.channels, out = window.to.channels, taps = window.taps();
  // The weight of output channel k and input channel c of the forward product at (k * C + c) * taps.
  const std::int64_t of_in = window.is_rotated ? std::int64_t{1} * out * taps : taps;
  const std::int64_t of_out = window.is_rotated ? taps : std::int64_t{1} * in * taps;
  const std::int64_t tap_step = std::int64_t{1} * blocks_of(in) * kBlockElements;
  const auto& [tos, froms] = window.is_rotated ? WeightTile{tile.ins, tile.outs} : tile;
  for (auto first_out = static_cast<int>(tos.begin); first_out < tos.end; first_out += kBlock)
    for (auto first_in = static_cast<int>(froms.begin); first_in < froms.end; first_in += kBlock) {
      const std::int64_t at = first_out * of_out + first_in * of_in;
      const float* from = weights + at;
      auto* to = static_cast<std::uint16_t*>(packed) + first_out / kBlock * taps * tap_step +
                 first_in / kBlock * kBlockElements;
      const int ins = std::min(kBlock, in - first_in), outs = std::min(kBlock, out - first_out);
      if (ins == kBlock && outs == kBlock && taps <= kMostTaps) {
        kernels.pack_weights({.weights = from,
                              .stride = std::max(of_in, of_out),
                              .taps = taps,
                              .outs_are_rows = window.is_rotated,
                              .packed = to,
                              .tap_step = tap_step,
                              .next = next != nullptr ? next + at : from + kFloatsAhead});
      } else {
        for (int tap = 0; tap < taps; ++tap)
          pack_block(from + tap, of_in, of_out, ins, outs, to + tap * tap_step);
      }
    }
}

StripStats strip_stats(const Epilogue& e, const void* product, int channels) {
  StripStats taken{.sums = e.sums, .other = e.sums + channels, .mean = e.shift};
  if (e.what == Epilogue::Sums::moments) return taken;
  const NormBackward& g = e.gradient;
  taken.is_gradient = true;
  taken.mean = g.params.mean;
  taken.product = static_cast<const std::uint16_t*>(product);
  taken.src = static_cast<const std::uint16_t*>(g.src);
  if (g.d_dst2 != nullptr) taken.before = static_cast<const std::uint16_t*>(g.d_dst);
  if (g.mask == Mask::from_dst) taken.dst = static_cast<const std::uint16_t*>(g.dst);
  if (g.mask == Mask::from_src) {
    taken.scale = g.params.scale;
    taken.bias = g.params.bias;
  }
  taken.masked = static_cast<std::uint16_t*>(g.d_masked);
  return taken;
}

void fetch_next(Strip& strip, std::int64_t visits, const NextStrip& next) {
  strip.ahead = {};
  int count = 0;
  const auto add = [&](const std::uint16_t* from, std::int64_t elements, bool is_written) {
    strip.ahead[static_cast<std::size_t>(count++)] = {
        .at = reinterpret_cast<const std::byte*>(from),
        .lines = static_cast<int>((2 * elements + 64 * visits - 1) / (64 * visits)),
        .is_written = is_written};
  };
  add(next.from, next.read, false);
  if (strip.taken == nullptr || !strip.taken->is_gradient)
    return add(next.product + next.at, next.written, true);
  add(strip.taken->masked + next.at, next.written, true);
  add(strip.taken->src + next.at, next.written, false);
  if (strip.taken->dst != nullptr) add(strip.taken->dst + next.at, next.written, false);
}

}  // namespace paceline::engine::cpu
