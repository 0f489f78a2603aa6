#include "train/checkpoint/disk_space.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/layout.h"

namespace paceline::train {

namespace fs = std::filesystem;

std::int64_t checkpoint_bytes(const graph::Graph& graph, const engine::UpdateRule& rule,
                              bool has_slow_weights) {
  const std::int64_t arrays = 1 + engine::state_slots(rule) + (has_slow_weights ? 1 : 0);
  return static_cast<std::int64_t>(sizeof(float)) * arrays * graph::flat_layout(graph).elements;
}

std::optional<std::string> lack_of_space(const fs::path& out, std::int64_t bytes, int files) {
  std::error_code unknown;
  fs::path there = fs::absolute(out, unknown);
  while (!there.empty() && there != there.root_path() && !fs::exists(there, unknown))
    there = there.parent_path();
  const auto space = fs::space(there, unknown);
  if (unknown) return std::nullopt;
  const auto room = static_cast<std::int64_t>(std::min<std::uintmax_t>(space.available, INT64_MAX));
  if (room / std::max(files, 1) >= bytes) return std::nullopt;
  const auto megabytes = [](std::int64_t count) { return 1e-6 * static_cast<double>(count); };
  return fmt::format(
      "--out {}: {:.1f} MB are free, but {} checkpoint{} of {:.1f} MB need{} {:.1f} MB; make room, or the "
      "next ones will not be kept",
      out.string(), megabytes(room), files, files == 1 ? "" : "s", megabytes(bytes), files == 1 ? "s" : "",
      megabytes(bytes * files));
}

}  // namespace paceline::train
