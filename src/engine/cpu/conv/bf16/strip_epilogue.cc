#include "engine/cpu/conv/bf16/strip_epilogue.h"

#include "engine/cpu/kernels/kernels.h"

namespace paceline::engine::cpu {

using namespace tiles;

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
