#pragma once

/// What an all-reduce of a row moves, and in which time.

#include <optional>

#include "analysis/check/study.h"

namespace paceline::analysis::rules {

/// Bytes of one reduction, X: the message, or parameters x bytes of an element (4 where nobody says).
[[nodiscard]] std::optional<Interval> message_bytes(const Row& row);
/// Seconds that the row's reductions took; of a row about messages alone its time.
[[nodiscard]] std::optional<table::Number> communication_time(const Row& row);
/// Reductions in that time.
[[nodiscard]] std::optional<Interval> reductions(const Row& row);
/// 2(N-1)/N.
[[nodiscard]] double ring_factor(double n);
/// The claimed bandwidth in bytes/s; nothing where its unit is not known.
[[nodiscard]] std::optional<table::Number> claimed_bytes_per_s(const Row& row);

}  // namespace paceline::analysis::rules
