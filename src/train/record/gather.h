#pragma once

/// Gathers every rank's figures when ranks are processes, and checks that ranks agree.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "engine/engine.h"
#include "measure/record.h"

namespace paceline::train {

/// The records of all ranks, in their order. Collective; the same result on every rank.
///
/// Requires  the same number of steps on every rank
///
/// Cost     8 bytes a rank and step, on every rank
[[nodiscard]] std::vector<measure::RankRecord> gather_ranks(comm::Communicator& communicator,
                                                            const measure::RankRecord& mine);

/// The first rank whose `weights` differ from rank 0's in any bit. Collective; the same answer on every rank.
///
/// Cost     one pass over the weights, 8 bytes per rank
[[nodiscard]] std::optional<int> rank_that_differs(comm::Communicator& communicator,
                                                   std::span<const float> weights);

/// A sentence for the record on whether the weights of all ranks are equal. Collective. For processes, which
/// may run on different kinds of processors.
[[nodiscard]] std::string compare_weights(comm::Communicator& communicator, engine::Engine& engine);

/// Whether every rank has this text. Collective; the same answer on every rank.
[[nodiscard]] bool is_same_everywhere(comm::Communicator& communicator, std::string_view text);

/// The texts of all ranks, in the order of ranks. Collective; the same on every rank.
///
/// Cost     sends and stores ranks * the longest text, on every rank
[[nodiscard]] std::vector<std::string> gather_texts(comm::Communicator& communicator,
                                                    const std::string& mine);

/// The sum of `count` over all ranks. Collective.
///
/// Requires  the sum is below 2^53
[[nodiscard]] std::int64_t sum_of(comm::Communicator& communicator, std::int64_t count);

}  // namespace paceline::train
