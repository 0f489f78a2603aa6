#pragma once

/// StepNumbers: the numbers that differ between steps. They are in device memory, so that captured kernels
/// read the current ones.

#include <cstdint>

namespace paceline::engine::cuda {

/// The host copies it to the device before each forward pass.
struct StepNumbers {
  double gradient_scale = 1;          ///< StepInput::gradient_scale
  std::uint64_t step = 0;             ///< StepInput::step, for dropout
  std::int64_t first_position = 0;    ///< StepInput::first_position, for dropout
  std::int32_t stop = 0, enough = 0;  ///< StepFlags, for the votes
  std::int32_t is_first_pass = 1;     ///< whether the pass is the first of its step
};

}  // namespace paceline::engine::cuda
