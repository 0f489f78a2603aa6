#pragma once

/// Computes from a table's row what its all-reduces move, and in what time.

#include <optional>

#include "check/study.h"

namespace paceline::check {

/// Bytes of one reduction, X: the message, or parameters times bytes per element (4 if unknown).
[[nodiscard]] std::optional<Interval> message_bytes(const Row& row);
/// Seconds of the row's reductions; for a row about messages alone its time.
[[nodiscard]] std::optional<table::Number> communication_time(const Row& row);
/// The number of reductions in that time.
[[nodiscard]] std::optional<Interval> reductions(const Row& row);
/// 2(N-1)/N.
[[nodiscard]] double ring_factor(double n);
/// The claimed bandwidth in bytes/s; nothing if its unit is unknown.
[[nodiscard]] std::optional<table::Number> claimed_bytes_per_s(const Row& row);

}  // namespace paceline::check
