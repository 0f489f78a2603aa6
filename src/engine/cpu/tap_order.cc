#include "engine/cpu/tap_order.h"

#include <algorithm>

#include "engine/cpu/kernels/multiply.h"
#include "engine/cpu/kernels/transpose.h"
#include "engine/cpu/parallel.h"

namespace paceline::engine::cpu {
namespace {

constexpr int kTile = 16;  ///< outputs, and elements of one output: a tile of both orders

/// One output's elements [in][tap] are a row here, of `row()` floats.
struct Order {
  std::int64_t taps, ins, outs;
  explicit Order(const ProductShape& s)
      : taps(std::int64_t{1} * s.kernel * s.kernel), ins(s.src.channels), outs(s.dst.channels) {}
  [[nodiscard]] std::int64_t row() const { return ins * taps; }
  /// Where element `at` of the outputs' rows lies among the taps, for output 0.
  [[nodiscard]] std::int64_t tapped(std::int64_t at) const { return (at % taps * ins + at / taps) * outs; }
};

bool is_whole_lines(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 64 == 0; }

/// Whether tiles can be turned in registers, to whole lines at `to`.
bool can_turn(const Order& order, const float* to) {
  return has_avx512_products() && order.outs % kTile == 0 && order.row() % kTile == 0 && is_whole_lines(to);
}

/// Calls work(element of [out][in][tap], element of [tap][in][out]) for the outputs [out, out + kTile).
template <typename Work>
void for_elements(const Order& order, std::int64_t out, const Work& work) {
  const std::int64_t last = std::min(out + kTile, order.outs);
  for (std::int64_t in = 0; in < order.ins; in += kTile)
    for (std::int64_t tap = 0; tap < order.taps; ++tap)
      for (std::int64_t c = in; c < std::min(in + kTile, order.ins); ++c)
        for (std::int64_t k = out; k < last; ++k)
          work((k * order.ins + c) * order.taps + tap, (tap * order.ins + c) * order.outs + k);
}

}  // namespace

void to_tap_order(const ProductShape& shape, const float* weights, float* packed) {
  const Order order(shape);
  const bool turns = can_turn(order, packed);
  for (std::int64_t out = 0; out < order.outs; out += kTile) {
    if (!turns) {
      for_elements(order, out, [&](std::int64_t from, std::int64_t to) { packed[to] = weights[from]; });
      continue;
    }
    for (std::int64_t at = 0; at < order.row(); at += kTile) {
      const float* from[kTile];
      float* to[kTile];
      for (int i = 0; i < kTile; ++i) {
        from[i] = weights + (out + i) * order.row() + at;
        to[i] = packed + order.tapped(at + i) + out;
      }
      transpose_tile(from, to);
    }
  }
  if (turns) end_streams();
}

void from_tap_order(const ProductShape& shape, base::ThreadPool& pool, const float* packed, float* weights) {
  const Order order(shape);
  if (!can_turn(order, weights)) {
    pool.run(static_cast<int>((order.outs + kTile - 1) / kTile), [&](int tile, int) {
      for_elements(order, std::int64_t{1} * tile * kTile,
                   [&](std::int64_t to, std::int64_t from) { weights[to] = packed[from]; });
    });
    return;
  }
  const std::int64_t least = std::max<std::int64_t>(1, kPartElements / (kTile * order.outs));
  parallel_parts(pool, order.row() / kTile, least, [&](int, Part part) {
    for (std::int64_t at = part.begin * kTile; at < part.end * kTile; at += kTile) {
      const float* from[kTile];
      float* to[kTile];
      for (int i = 0; i < kTile; ++i) {
        from[i] = packed + order.tapped(at + i);
        to[i] = weights + at + i * order.row();
      }
      // Along the outputs, which lie side by side where it reads.
      for (std::int64_t out = 0; out < order.outs; out += kTile) {
        transpose_tile(from, to);
        for (int i = 0; i < kTile; ++i) {
          from[i] += kTile;
          to[i] += kTile * order.row();
        }
      }
    }
    end_streams();
  });
}

}  // namespace paceline::engine::cpu
