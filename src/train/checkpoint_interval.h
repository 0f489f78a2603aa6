#pragma once

/// How often a checkpoint is written: "500steps", "60s", "1epochs"; a bare number is epochs.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace paceline::train {

struct CheckpointInterval {
  enum class Unit : std::uint8_t { steps, seconds, epochs };
  Unit unit = Unit::epochs;
  double count = 1;  ///< > 0; whole but for seconds

  friend bool operator==(const CheckpointInterval&, const CheckpointInterval&) = default;
};

/// The interval that `text` names; nothing where it names none.
[[nodiscard]] std::optional<CheckpointInterval> checkpoint_interval(std::string_view text);
/// The text that reads back as `interval`.
[[nodiscard]] std::string text_of(const CheckpointInterval& interval);

/// Whether a checkpoint of an interval in steps is due after `updates` updates. The same on every rank, and
/// in a resumed run at the same updates as in one that was never stopped.
[[nodiscard]] bool is_due_by_steps(const CheckpointInterval& interval, std::int64_t updates);
/// Whether one of an interval in epochs is due at the end of epoch `number` (from 1). The same on every rank.
[[nodiscard]] bool is_due_by_epochs(const CheckpointInterval& interval, std::int64_t number);

}  // namespace paceline::train
