#pragma once

/// What an emulated worker does instead of computing: how long each phase of its steps takes.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::engine::ghost {

/// That the first `bytes` of the gradient are final `seconds` after the backward pass began.
struct ReadyAt {
  std::int64_t bytes = 0;
  double seconds = 0;
  bool operator==(const ReadyAt&) const = default;
};

struct Phases {
  double forward_s = 0, backward_s = 0, update_s = 0;
  /// Standard deviation of a step's own work, as a part of it.
  double spread = 0;
  int batch = 0;                    ///< samples a step of the phases; 0: of any
  std::vector<ReadyAt> ready = {};  ///< both ascend; empty: by the multiply-adds of the layers
  bool operator==(const Phases&) const = default;
};

/// Parses "forward=80ms,backward=160ms", with update=5ms, spread=3%, batch=32 and
/// ready=BYTES:TIME/BYTES:TIME where they are given.
///
/// Errors   Error(usage): the end of a sentence that begins with the option's name
[[nodiscard]] Phases parse_phases(std::string_view text);
/// The text that parse_phases() reads; times have six digits.
[[nodiscard]] std::string text_of(const Phases& phases);

/// The own work of a step relative to its mean: log-normal with mean 1 and standard deviation `spread`, a
/// function of (seed, step, position). `position`: of the worker's first sample, so that each worker draws
/// its own.
[[nodiscard]] double work_factor(double spread, std::uint64_t seed, std::uint64_t step,
                                 std::int64_t position);

}  // namespace paceline::engine::ghost
