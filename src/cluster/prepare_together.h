#pragma once

/// prepare_together() chooses the kernels of a run of several processes.

#include <span>
#include <string>

#include "engine/engine.h"
#include "graph/graph.h"

namespace paceline::cluster {

class Session;

/// The kernels of this process. All processes of the run call it.
///
/// Measured kernels are those of the first process, as after a resume: record and checkpoints name them. A
/// process that cannot compute a problem in this way uses its default; then the first process's note says so.
///
/// Errors   those of engine::prepare()
[[nodiscard]] engine::PreparedKernels prepare_together(const std::string& device, Session& session,
                                                       const graph::Graph& graph,
                                                       const engine::CompileOptions& how,
                                                       const engine::KernelRequest& asked);

/// A process that computes some problems by other algorithms than the first process.
struct OtherKernels {
  int process = 0;
  std::string host;
  int problems = 0;  ///< how many
};

/// A sentence about `others`, which differ in some of `problems` problems; empty if there are none.
[[nodiscard]] std::string note_of_other_kernels(std::span<const OtherKernels> others, std::size_t problems);

}  // namespace paceline::cluster
