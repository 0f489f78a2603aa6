#pragma once

/// Logs of nccl-tests whose bandwidths follow from their times.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace paceline::table::fixtures {

struct NcclRun {
  int ranks = 2;
  std::string host = "node-a";
  std::string redop = "sum";
  double us = 100;
};

/// The lines of a run: sizes of 1 and 4 MiB, with the right bandwidths.
inline std::vector<std::string> lines_of(const NcclRun& run) {
  std::vector<std::string> lines{
      "# nThread 1 nGpus 8 minBytes 1048576 maxBytes 4194304 step: 4(factor) warmup iters: 5 iters: 20",
      "# Using devices"};
  for (int rank = 0; rank < run.ranks; ++rank)
    lines.push_back(fmt::format("#  Rank {:2} Group  0 Pid  {} on  {} device {:2} [0x10] Example GPU", rank,
                                4000 + rank, run.host, rank));
  lines.emplace_back("#                                         out-of-place                in-place");
  lines.emplace_back(
      "#       size     count   type  redop  root   time  algbw  busbw #wrong   time  algbw  busbw #wrong");
  lines.emplace_back("#        (B)  (elements)                   (us) (GB/s) (GB/s)");
  double sum = 0;
  for (const double bytes : {1048576.0, 4194304.0}) {
    const double us = run.us * bytes / 1048576, algbw = bytes / us * 1e-3;
    const double busbw = algbw * 2 * (run.ranks - 1) / run.ranks;
    const auto figures = fmt::format("{:.1f} {:.2f} {:.2f} 0", us, algbw, busbw);
    lines.push_back(fmt::format("  {:10.0f}  {:8.0f}  float  {}  -1  {}  {}", bytes, bytes / 4, run.redop,
                                figures, figures));
    sum += busbw / 2;
  }
  lines.emplace_back("# Out of bounds values : 0 OK");
  lines.push_back(fmt::format("# Avg bus bandwidth    : {:.4f}", sum));
  return lines;
}

inline std::string text_of(const std::vector<std::string>& lines, const std::string& prefix = "") {
  std::string text;
  for (const auto& line : lines) text += prefix + line + "\n";
  return text;
}

/// The lines of both by turns, as a launcher mixes those of two programs.
inline std::string mixed(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::string text;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i < a.size()) text += a[i] + "\n";
    if (i < b.size()) text += b[i] + "\n";
  }
  return text;
}

}  // namespace paceline::table::fixtures
