#pragma once

/// Checks whether the files of a training fit on the disk of --out, before the first step and during it.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "engine/engine.h"
#include "graph/graph.h"

namespace paceline::train {

/// Bytes of one checkpoint without its header: float weights, optimizer state and, with Lookahead, slow
/// weights.
[[nodiscard]] std::int64_t checkpoint_bytes(const graph::Graph& graph, const engine::UpdateRule& rule,
                                            bool has_slow_weights);

/// A sentence if fewer than `files` files of `bytes` fit on the disk of `out`; nothing if they fit or the
/// system does not tell. If `out` does not exist, its nearest existing parent is asked.
[[nodiscard]] std::optional<std::string> lack_of_space(const std::filesystem::path& out, std::int64_t bytes,
                                                       int files);

}  // namespace paceline::train
