#pragma once

/// `paceline doctor`: what this machine and this build have, reach, and lack.

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace paceline::cluster {
class Session;
struct RankOnGpu;
}  // namespace paceline::cluster

namespace paceline::cli {

struct DoctorOptions {
  std::string kernels_model;      ///< if not empty, lists the implementation of each op of this model
  std::int64_t local_batch = 32;  ///< for that list
  std::string device = "cpu";
  std::string precision = "auto";  ///< "fp32", "bf16", "fp16" or "auto"
  int threads = 0;                 ///< for that list; 0: all usable cores
  graph::Shape input;              ///< the model's; no channels: its usual one
  int classes = 10;
  bool measure = true;  ///< bandwidth of memory and all-reduce: about two seconds, 200 MB; kernels: longer
};

/// The row about the memory that processes of a host share. `bytes`: the size of /dev/shm.
[[nodiscard]] std::string text_about_shared_memory(std::uintmax_t bytes, std::uintmax_t available);

/// Writes the findings as text. Where the system refuses something (pinning, a measurement), the text says
/// so.
///
/// `session`: the processes that a launcher started; nullptr: this one was started alone.
/// `ranks_on_gpus`: of all processes; if started alone, one for each GPU of this host.
///
/// Errors   Error(usage) for an unknown model or device
void doctor(const DoctorOptions& options, const cluster::Session* session,
            const std::vector<cluster::RankOnGpu>& ranks_on_gpus, std::ostream& out);

}  // namespace paceline::cli
