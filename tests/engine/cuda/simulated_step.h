#pragma once

/// Simulates training steps of the CUDA engine (simulated_runtime.h) and draws them, to show whether the
/// device ever waits.

#include <string>
#include <vector>

#include "engine/cuda/simulated_runtime.h"
#include "engine/engine.h"
#include "graph/graph.h"

namespace paceline::engine::cuda {

/// Variants of the simulated steps, to see what each costs.
struct SimulatedStepOptions {
  enum class Wait { none, loss, middle, end };
  bool captures = true;  ///< CompileOptions::captures
  /// Whether the device keeps the images (CompileOptions::stored_images); otherwise each batch is copied.
  bool stores_images = true;
  /// Whether to evaluate full batches, one after the other, instead of training; `wait` then has no effect.
  bool evaluates = false;
  /// Where the host waits for the device. loss: for the loss, in Engine::forward(); middle: for all work,
  /// between forward and backward; end: for all work, after the update; none: steps are queued and collected
  /// later (StepQueue).
  Wait wait = Wait::none;
};

/// One step in the steady state.
struct SimulatedStep {
  double seconds = 0;    ///< from the end of an update on the device to the end of the next; in evaluation,
                         ///< from one batch's loss on the host to the next
  double busy = 0;       ///< share of the step in which the device computes
  double host_busy = 0;  ///< share of the step in which the host does not wait
  double launches = 0;   ///< of the host, in the step
  std::vector<SimulatedSpan> spans;  ///< ordered by begin, in seconds since the begin of the step
};

/// Compiles `graph` for a simulated GPU and runs steps as train does for one worker.
///
/// Cost   milliseconds
[[nodiscard]] SimulatedStep simulate_step(const graph::Graph& graph, const CompileOptions& options,
                                          const SimulatedStepOptions& how = {});

/// Draws a step as text: a line of figures, a time line for each unit, and a table of what the device
/// computed when. Rows are grouped by the first part of the ops' names ("layer1" for "layer1.0.conv1").
[[nodiscard]] std::string picture_of(const SimulatedStep& step, const std::string& title, int batch);
/// Only the line of figures.
[[nodiscard]] std::string figures_of(const SimulatedStep& step, int batch);

}  // namespace paceline::engine::cuda
