#pragma once

/// Training steps of the CUDA engine on a simulated clock, and their picture: does the device ever wait?

#include <string>
#include <vector>

#include "engine/cuda/simulated_runtime.h"
#include "engine/engine.h"
#include "graph/graph.h"

namespace paceline::engine::cuda {

/// What is done to the steps, to see what it costs.
struct SimulatedStepOptions {
  enum class Wait { none, loss, middle, end };
  bool captures = true;  ///< EngineSettings::captures
  /// The device keeps the images, and steps name them (CompileOptions::stored_images); off: they are copied.
  bool stores_images = true;
  /// Convolutions compute what the batch norms beside them need (ConvProblem::is_fused).
  bool fuses = false;
  /// Full batches are evaluated, one after the other, in place of training steps; `wait` is without effect.
  bool evaluates = false;
  /// Where the host waits for the device: for each step's loss, in Engine::forward(), or for all, between
  /// forward and backward or after the update. None: steps go into the queue, and the oldest is collected.
  Wait wait = Wait::none;
};

/// One step of many that follow one another, in the steady state.
struct SimulatedStep {
  double seconds = 0;                ///< from the end of an update on the device to that of the next; or from
                                     ///< one evaluated batch's loss on the host to the next one's
  double busy = 0;                   ///< share of it in which the device computes
  double host_busy = 0;              ///< share of it in which the host does not wait
  double launches = 0;               ///< that the host paid for
  std::vector<SimulatedSpan> spans;  ///< in the order of their begin, seconds from the begin of the step
};

/// Compiles `graph` for a simulated GPU and runs steps as train does for one worker.
///
/// Cost   milliseconds
[[nodiscard]] SimulatedStep simulate_step(const graph::Graph& graph, const CompileOptions& options,
                                          const SimulatedStepOptions& how = {});

/// A line of figures, a line of marks for each unit, and a table of what the device computed when, folded by
/// the first part of the ops' names ("layer1" of "layer1.0.conv1").
[[nodiscard]] std::string picture_of(const SimulatedStep& step, const std::string& title, int batch);
/// The line of figures alone.
[[nodiscard]] std::string figures_of(const SimulatedStep& step, int batch);

}  // namespace paceline::engine::cuda
