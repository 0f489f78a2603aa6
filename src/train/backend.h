#pragma once

/// What a run gets from outside train: engines, communicators, and where its process runs.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "engine/engine.h"
#include "graph/plan.h"
#include "measure/record.h"
#include "train/process_history.h"
#include "train/stall_listener.h"

namespace paceline::train {

/// Where this process stands among those that a launcher started. Every process has as many workers, in the
/// order of processes: process p's are ranks p L to (p+1) L - 1.
struct ProcessPlacement {
  int process = 0;
  int processes = 1;
  int neighbours = 1;          ///< processes on this host, this one included: they share its memory
  int core_sharers = 1;        ///< of them, those that may run on the very same cores as this one
  int core_share_index = 0;    ///< this one's place among these
  int host_cores = 0;          ///< that all processes here may use together; 0: this one alone knows its own
  int device_sharers = 1;      ///< of the neighbours, those that see the same GPUs as this one
  int device_share_index = 0;  ///< this one's place among these
  int hosts = 1;               ///< of all processes
  std::vector<int> processes_of_hosts;  ///< on each of them, in the order of their first processes
  std::string
      placement;  ///< "packed" or "spread": how a study chose the processes; empty: there was no choice
  bool is_beside_first = true;   ///< on the host of process 0
  bool is_first_of_host = true;  ///< no process before it is on its host
  std::string host;
  std::string launcher;  ///< "mpirun (OMPI_COMM_WORLD_SIZE)"; empty: started alone
  std::string library;   ///< "Open MPI v4.1.4"
  [[nodiscard]] bool is_first() const { return process == 0; }
};

/// That a rank of another process was lost.
struct Loss {
  measure::LossRecord record;
  bool of_first = false;  ///< process 0, which else writes for all, is the lost one
};

/// A device that workers of this process compute on.
struct DeviceShare {
  engine::DeviceInfo info;
  int workers = 1;  ///< of this host that share it
};

/// The concrete backends, handed in by cli: train itself names none.
struct Backend {
  std::function<std::unique_ptr<engine::Engine>(const graph::Graph&, const engine::CompileOptions&)> compile;
  /// Chooses the algorithms, the same in all processes of a host. Empty: engines have no choice.
  std::function<engine::PreparedKernels(const graph::Graph&, const engine::CompileOptions&,
                                        const engine::KernelRequest&)>
      prepare;
  /// Tells the other processes what this one does before and after its steps; may be empty.
  std::function<void(const char* phase)> at = {};
  std::function<graph::MemoryPlan(const graph::Graph&, const engine::CompileOptions&)> plan;
  /// The communicators of this process's `ranks` workers.
  std::function<std::vector<std::unique_ptr<comm::Communicator>>(int ranks, std::chrono::seconds deadline)>
      communicators;
  /// Of sums that GPUs form among themselves, where every worker has one of its own: bytes of the buffers on
  /// each GPU. 0: all sums go over the host's memory.
  std::int64_t device_sum_bytes = 0;
  std::function<std::optional<Loss>()> loss;
  /// The device that `local_workers` workers of this process would compute on; nothing for engines of the
  /// host. Empty: likewise. Errors   Error(device): what is missing
  std::function<std::optional<DeviceShare>(int local_workers)> device = {};
  /// What the host's GPUs say, a sentence each, for the record; empty: the run uses none.
  std::function<std::vector<std::string>()> describe_gpus = {};
  /// What the cores can do at most, where somebody measured it.
  std::optional<measure::PeakRecord> peak = {};
  ProcessPlacement place = {};
  bool has_bf16_units = false;
  bool keeps_images = false;           ///< engines take CompileOptions::stored_images
  std::vector<std::string> libraries;  ///< that compute, with versions: for the record
  std::shared_ptr<ProcessHistory> history = std::make_shared<ProcessHistory>();
  std::shared_ptr<StallListener> stalls = {};  ///< hears what the communicators say; may be empty
  /// Gives every process these bytes of the first one; blocks until that has come to it. Empty: there is one.
  std::function<void(std::span<std::byte> bytes)> from_first = {};
};

/// The first process's `word`. Collective: every process comes to it.
template <typename T>
[[nodiscard]] T first_says(const Backend& backend, T word) {
  if (backend.from_first) backend.from_first(std::as_writable_bytes(std::span(&word, 1)));
  return word;
}

}  // namespace paceline::train
