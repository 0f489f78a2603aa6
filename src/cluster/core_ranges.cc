#include "cluster/core_ranges.h"

#include <fmt/format.h>

namespace paceline::cluster {

std::string core_ranges(const std::vector<int>& cores) {
  std::string text;
  for (std::size_t begin = 0, end = 0; begin < cores.size(); begin = end) {
    for (end = begin + 1; end < cores.size() && cores[end] == cores[end - 1] + 1;) ++end;
    text += text.empty() ? "" : ",";
    text += end - begin == 1 ? fmt::format("{}", cores[begin])
                             : fmt::format("{}-{}", cores[begin], cores[end - 1]);
  }
  return text;
}

}  // namespace paceline::cluster
