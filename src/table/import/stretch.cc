#include "table/import/stretch.h"

#include <algorithm>

namespace paceline::table {

Stretches united(std::vector<Stretch> any) {
  std::erase_if(any, [](const Stretch& one) { return !(one.end > one.begin); });
  std::ranges::sort(any, {}, &Stretch::begin);
  Stretches all;
  for (const auto& one : any) {
    if (!all.empty() && one.begin <= all.back().end)
      all.back().end = std::max(all.back().end, one.end);
    else
      all.push_back(one);
  }
  return all;
}

Stretches common(const Stretches& a, const Stretches& b) {
  Stretches all;
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    const double begin = std::max(a[i].begin, b[k].begin), end = std::min(a[i].end, b[k].end);
    if (begin < end) all.push_back({begin, end});
    a[i].end < b[k].end ? ++i : ++k;
  }
  return all;
}

Stretches without(const Stretches& from, const Stretches& what) {
  Stretches all;
  std::size_t k = 0;
  for (auto one : from) {
    while (k < what.size() && what[k].end <= one.begin) ++k;
    for (std::size_t at = k; at < what.size() && what[at].begin < one.end; ++at) {
      if (what[at].begin > one.begin) all.push_back({one.begin, what[at].begin});
      one.begin = std::max(one.begin, what[at].end);
    }
    if (one.begin < one.end) all.push_back(one);
  }
  return all;
}

Stretches clipped(const Stretches& from, double begin, double end) {
  Stretches all;
  auto at = std::ranges::lower_bound(from, begin, {}, &Stretch::end);
  for (; at != from.end() && at->begin < end; ++at)
    if (std::max(at->begin, begin) < std::min(at->end, end))
      all.push_back({std::max(at->begin, begin), std::min(at->end, end)});
  return all;
}

double length(const Stretches& all) {
  double sum = 0;
  for (const auto& one : all) sum += one.end - one.begin;
  return sum;
}

}  // namespace paceline::table
