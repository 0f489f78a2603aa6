#pragma once

/// Parses how often a checkpoint is written ("500steps", "60s", "1epochs"; a bare number is epochs), and
/// decides when one is due.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace paceline::train {

struct CheckpointInterval {
  enum class Unit : std::uint8_t { steps, seconds, epochs };
  Unit unit = Unit::epochs;
  double count = 1;  ///< > 0; an integer unless in seconds

  friend bool operator==(const CheckpointInterval&, const CheckpointInterval&) = default;
};

/// Parses an interval; nullopt if `text` is not one.
[[nodiscard]] std::optional<CheckpointInterval> checkpoint_interval(std::string_view text);
/// The text of an interval, as checkpoint_interval() reads it.
[[nodiscard]] std::string text_of(const CheckpointInterval& interval);

/// Whether a checkpoint of an interval in steps is due after `updates` updates. The answer is the same on
/// every rank, and in a resumed run.
[[nodiscard]] bool is_due_by_steps(const CheckpointInterval& interval, std::int64_t updates);
/// Whether one of an interval in epochs is due at the end of epoch `number` (from 1); the same on every rank.
[[nodiscard]] bool is_due_by_epochs(const CheckpointInterval& interval, std::int64_t number);

}  // namespace paceline::train
