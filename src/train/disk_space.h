#pragma once

/// Whether what a training keeps will fit on the disk of --out: estimated before the first step, watched
/// while it goes on.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "engine/engine.h"
#include "graph/graph.h"

namespace paceline::train {

/// Bytes of one checkpoint: float weights, optimizer state and, with lookahead, slow weights. Its header is
/// left out.
[[nodiscard]] std::int64_t checkpoint_bytes(const graph::Graph& graph, const engine::UpdateRule& rule,
                                            bool has_slow_weights);

/// A sentence where fewer than `files` files of `bytes` fit beside what the disk of `out` holds; none: they
/// fit, or the system does not tell. `out` need not be there yet: its nearest parent is asked.
[[nodiscard]] std::optional<std::string> lack_of_space(const std::filesystem::path& out, std::int64_t bytes,
                                                       int files);

}  // namespace paceline::train
