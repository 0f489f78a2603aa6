/// The naive predictions beside ours.

#include <algorithm>

#include "analysis/predict/score.h"

#include "base/error.h"

namespace paceline::analysis {

Rivals rivals(std::span<const TimedStep> measured, std::span<const std::int64_t> workers, Mode mode) {
  base::expects(!measured.empty(), "something was measured");
  const auto &first = measured.front(), &last = measured.back();
  const auto share = [&](double n) { return mode == Mode::weak ? 1 : first.workers / n; };
  const double overhead = last.seconds - share(last.workers) * first.seconds;
  // N / throughput - 1 = a (n - 1) + b n (n - 1) with n = N / N0; both sums of squares are of these two
  // terms.
  double xx = 0, xy = 0, yy = 0, xr = 0, yr = 0;
  std::size_t beyond_first = 0;
  for (const auto& one : measured) {
    const double n = one.workers / first.workers;
    if (n <= 1) continue;
    ++beyond_first;
    const double x = n - 1, y = n * (n - 1);
    const double rest = one.seconds / (share(one.workers) * first.seconds) - 1;
    xx += x * x;
    xy += x * y;
    yy += y * y;
    xr += x * rest;
    yr += y * rest;
  }
  double a = xx > 0 ? std::max(0.0, xr / xx) : 0, b = 0;
  const double determinant = xx * yy - xy * xy;
  if (beyond_first > 1 && determinant > 0) {
    const double both_a = (xr * yy - yr * xy) / determinant, both_b = (xx * yr - xy * xr) / determinant;
    if (both_b > 0 && both_a >= 0) {
      a = both_a;
      b = both_b;
    } else if (both_b > 0) {
      a = 0;
      b = std::max(0.0, yr / yy);
    }
  }
  Rivals result;
  for (const auto number : workers) {
    const auto count = static_cast<double>(number);
    const double n = count / first.workers, ideal = share(count) * first.seconds;
    result.constant_overhead.push_back(n > 1 ? ideal + overhead : first.seconds);
    result.scalability_law.push_back(ideal * (1 + a * (n - 1) + b * n * (n - 1)));
  }
  return result;
}

}  // namespace paceline::analysis
