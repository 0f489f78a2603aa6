#include "engine/cpu/conv/transpose.h"

#include <algorithm>

namespace paceline::engine::cpu {
namespace {

/// The order of elements; the [in][tap] elements of one output form a row of `row()` floats.
struct Order {
  std::int64_t taps, ins, outs;
  explicit Order(const ConvShape& s)
      : taps(std::int64_t{1} * s.kernel * s.kernel), ins(s.src.channels), outs(s.dst.channels) {}
  [[nodiscard]] std::int64_t row() const { return ins * taps; }
  /// For output 0: the position in tap order of element `at` of a row.
  [[nodiscard]] std::int64_t tapped(std::int64_t at) const { return (at % taps * ins + at / taps) * outs; }
};

/// Calls work(element of [out][in][tap], element of [tap][in][out]) for the outputs [out, out +
/// kTransposeTile).
template <typename Work>
void for_elements(const Order& order, std::int64_t out, const Work& work) {
  const std::int64_t last = std::min(out + kTransposeTile, order.outs);
  for (std::int64_t in = 0; in < order.ins; in += kTransposeTile)
    for (std::int64_t tap = 0; tap < order.taps; ++tap)
      for (std::int64_t c = in; c < std::min(in + kTransposeTile, order.ins); ++c)
        for (std::int64_t k = out; k < last; ++k)
          work((k * order.ins + c) * order.taps + tap, (tap * order.ins + c) * order.outs + k);
}

}  // namespace

void to_tap_order(const ConvShape& shape, const float* weights, float* packed) {
  const Order order(shape);
  const bool turns = can_transpose(order.row(), order.outs, packed);
  for (std::int64_t out = 0; out < order.outs; out += kTransposeTile) {
    if (!turns) {
      for_elements(order, out, [&](std::int64_t from, std::int64_t to) { packed[to] = weights[from]; });
      continue;
    }
    for (std::int64_t at = 0; at < order.row(); at += kTransposeTile) {
      const float* from[kTransposeTile];
      float* to[kTransposeTile];
      for (int i = 0; i < kTransposeTile; ++i) {
        from[i] = weights + (out + i) * order.row() + at;
        to[i] = packed + order.tapped(at + i) + out;
      }
      transpose_tile(from, to);
    }
  }
  if (turns) end_streams();
}

void from_tap_order(const ConvShape& shape, base::ThreadPool& pool, const float* packed, float* weights) {
  const Order order(shape);
  if (!can_transpose(order.row(), order.outs, weights)) {
    pool.run(static_cast<int>((order.outs + kTransposeTile - 1) / kTransposeTile), [&](int tile, int) {
      for_elements(order, std::int64_t{1} * tile * kTransposeTile,
                   [&](std::int64_t to, std::int64_t from) { weights[to] = packed[from]; });
    });
    return;
  }
  transpose_rows(
      pool, order.row(), order.outs,
      [&](std::int64_t at, std::int64_t out) { return packed + order.tapped(at) + out; }, weights);
}

}  // namespace paceline::engine::cpu
