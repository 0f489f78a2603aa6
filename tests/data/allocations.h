#pragma once

/// Counts the allocations of this test program, on all threads: operator new is replaced in allocations.cc.

#include <cstdint>

namespace paceline::data {

[[nodiscard]] std::int64_t allocations_so_far();

}  // namespace paceline::data
