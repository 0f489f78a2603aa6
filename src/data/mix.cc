#include "data/mix.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace paceline::data {
namespace {

/// The logarithm of a draw from Gamma(a): that of Gamma(a + 1) times U^(1/a) (Marsaglia and Tsang 2000, "A
/// simple method for generating gamma variables"). A small `a` gives values that only their logarithm holds.
double draw_log_gamma(double a, base::Rng& rng) {
  const auto uniform = [&] { return 1 - rng.uniform_f64(); };  // in (0, 1]
  const double d = a + 1 - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const auto x = static_cast<double>(rng.normal());
    const double v = (1 + c * x) * (1 + c * x) * (1 + c * x);
    if (v > 0 && std::log(uniform()) < x * x / 2 + d - d * v + d * std::log(v))
      return std::log(d * v) + std::log(uniform()) / a;
  }
}

}  // namespace

double draw_beta(double a, base::Rng& rng) {
  base::expects(a > 0, "Beta(a, a) has a positive parameter");
  const double one = draw_log_gamma(a, rng), other = draw_log_gamma(a, rng);
  return 1 / (1 + std::exp(other - one));
}

PairMix draw_pair(const MixOptions& options, const ImageFormat& format, std::int64_t epoch,
                  std::int64_t pair) {
  base::Rng rng(options.seed, base::Purpose::mix, static_cast<std::uint64_t>(pair),
                static_cast<std::uint64_t>(epoch));
  bool is_cut = options.mixup == 0;
  if (options.mixup > 0 && options.cutmix > 0) is_cut = rng.next_u32() >> 31 != 0;
  const double share = draw_beta(is_cut ? options.cutmix : options.mixup, rng);
  // A multiple of 2^-24, so that 1 - share is a float too.
  if (!is_cut) return {.share = static_cast<float>(std::nearbyint(share * 0x1p24) * 0x1p-24)};
  const double half = 0.5 * std::sqrt(share);
  const int half_height = static_cast<int>(half * format.height);
  const int half_width = static_cast<int>(half * format.width);
  const int y = static_cast<int>(rng.below(static_cast<std::uint32_t>(format.height)));
  const int x = static_cast<int>(rng.below(static_cast<std::uint32_t>(format.width)));
  PairMix cut{.is_cut = true, .top = std::max(y - half_height, 0), .left = std::max(x - half_width, 0)};
  cut.height = std::min(y + half_height, format.height) - cut.top;
  cut.width = std::min(x + half_width, format.width) - cut.left;
  cut.share = static_cast<float>(static_cast<double>(cut.height) * cut.width / format.height / format.width);
  return cut;
}

void mix_into(const ImageFormat& format, const PairMix& pair, std::span<const float> other,
              std::span<float> own) {
  base::expects(static_cast<std::int64_t>(own.size()) == format.bytes() && other.size() == own.size(),
                "own and other hold one image");
  if (!pair.is_cut) {
    const auto share = static_cast<double>(pair.share), rest = 1 - share;
    for (std::size_t i = 0; i < own.size(); ++i)  // both products are exact in double
      own[i] = static_cast<float>(rest * static_cast<double>(own[i]) + share * static_cast<double>(other[i]));
    return;
  }
  for (int y = pair.top; y < pair.top + pair.height; ++y) {
    const auto first = (static_cast<std::size_t>(y) * static_cast<std::size_t>(format.width) +
                        static_cast<std::size_t>(pair.left)) *
                       static_cast<std::size_t>(format.channels);
    const auto count = static_cast<std::size_t>(pair.width) * static_cast<std::size_t>(format.channels);
    std::ranges::copy(other.subspan(first, count), own.begin() + static_cast<std::ptrdiff_t>(first));
  }
}

}  // namespace paceline::data
