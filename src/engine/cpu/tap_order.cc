#include "engine/cpu/tap_order.h"

#include <algorithm>

namespace paceline::engine::cpu {
namespace {

constexpr int kTile = 16;  ///< channels: a tile of both orders stays in the first-level cache

/// Calls work(element of [out][in][tap], element of [tap][in][out]) for the outputs [out, out + kTile).
template <typename Work>
void for_elements(const ProductShape& s, int out, const Work& work) {
  const std::int64_t taps = std::int64_t{1} * s.kernel * s.kernel, ins = s.src.channels,
                     outs = s.dst.channels;
  const std::int64_t last = std::min<std::int64_t>(out + kTile, outs);
  for (std::int64_t in = 0; in < ins; in += kTile)
    for (std::int64_t tap = 0; tap < taps; ++tap)
      for (std::int64_t c = in; c < std::min(in + kTile, ins); ++c)
        for (std::int64_t k = out; k < last; ++k)
          work((k * ins + c) * taps + tap, (tap * ins + c) * outs + k);
}

}  // namespace

void to_tap_order(const ProductShape& shape, const float* weights, float* packed) {
  for (int out = 0; out < shape.dst.channels; out += kTile)
    for_elements(shape, out, [&](std::int64_t from, std::int64_t to) { packed[to] = weights[from]; });
}

void from_tap_order(const ProductShape& shape, base::ThreadPool& pool, const float* packed, float* weights) {
  pool.run((shape.dst.channels + kTile - 1) / kTile, [&](int tile, int) {
    for_elements(shape, tile * kTile,
                 [&](std::int64_t to, std::int64_t from) { weights[to] = packed[from]; });
  });
}

}  // namespace paceline::engine::cpu
