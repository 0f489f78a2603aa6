#pragma once

/// Backend: what a run gets from outside of train: the Machine that makes engines and communicators, and the
/// place of its process.

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "data/image/inspect.h"
#include "engine/engine.h"
#include "graph/plan.h"
#include "measure/gpu_watch.h"
#include "measure/record.h"

namespace paceline::train {

/// Shared by all backends of a command, so that later runs do not repeat work.
///
/// Threads  any number at once
struct ProcessCache {
  std::atomic<bool> has_run{false};  ///< a run has computed, so its one-time memory is already allocated
  data::BrokenImageCache broken_images;
};

/// Threads  any
class StallListener {
 public:
  /// Replaces the listener; empty: none.
  void listen(std::function<void(const std::string&)> listener) {
    const std::lock_guard lock(mutex_);
    listener_ = std::move(listener);
  }
  void hear(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (listener_) listener_(text);
  }

 private:
  std::mutex mutex_;
  std::function<void(const std::string&)> listener_;
};

/// The place of this process among those of the run. Every process has the same number L of workers: process
/// p's are ranks p L to (p+1) L - 1.
struct ProcessPlacement {
  int process = 0;
  int processes = 1;
  int neighbours = 1;        ///< processes on this host, including this one: they share its memory
  int core_sharers = 1;      ///< of the neighbours, those that may run on the same cores as this one
  int core_share_index = 0;  ///< this one's index among these
  int host_cores = 0;        ///< cores that all processes here may use together; 0: unknown
  int hosts = 1;             ///< of all processes
  std::vector<int> processes_of_hosts;  ///< on each host, in the order of their first processes
  std::string
      placement;  ///< "packed" or "spread": how a study chose the processes; empty: there was no choice
  bool is_beside_first = true;  ///< on the host of process 0
  std::string host;
  std::string launcher;  ///< "mpirun (OMPI_COMM_WORLD_SIZE)"; empty: started alone
  std::string library;   ///< "Open MPI v4.1.4"
  [[nodiscard]] bool is_first() const { return process == 0; }
};

/// The loss of a rank of another process.
struct Loss {
  measure::LossRecord record;
  bool of_first = false;  ///< process 0 is lost, which otherwise writes for all
};

/// A device that workers of this process compute on.
struct DeviceShare {
  engine::DeviceInfo info;
  int workers = 1;             ///< workers of this host that share it
  bool is_any_shared = false;  ///< workers of the run share a device, here or on another host
};

/// What this process computes and communicates with. cluster makes it; train itself names no concrete engine
/// or communicator.
class Machine {
 public:
  virtual ~Machine() = default;

  [[nodiscard]] virtual std::unique_ptr<engine::Engine> compile(const graph::Graph& graph,
                                                                const engine::CompileOptions& how) const = 0;
  [[nodiscard]] virtual graph::MemoryPlan plan(const graph::Graph& graph,
                                               const engine::CompileOptions& how) const = 0;
  /// Chooses the algorithms; measured ones are the same in all processes.
  [[nodiscard]] virtual engine::PreparedKernels prepare(const graph::Graph& /*graph*/,
                                                        const engine::CompileOptions& /*how*/,
                                                        const engine::KernelRequest& /*asked*/) const {
    return {};
  }
  /// The communicators of this process's `ranks` workers.
  [[nodiscard]] virtual std::vector<std::unique_ptr<comm::Communicator>> communicators(
      int ranks, std::chrono::seconds deadline) const = 0;

  // Of the devices of `local_workers` workers of this process.

  /// The number of the device that each takes, for engine::CompileOptions::worker_on_host.
  [[nodiscard]] virtual std::vector<int> device_numbers(int local_workers) const {
    std::vector<int> numbers(static_cast<std::size_t>(local_workers));
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }
  /// The device on which they would compute; nothing for engines that compute on the host.
  ///
  /// Errors   Error(device): what is missing
  [[nodiscard]] virtual std::optional<DeviceShare> device(int /*local_workers*/) const { return {}; }
  /// Where links are emulated for workers of this process that sleep: measures the real sums of buckets of
  /// these bytes and says what they take; else empty.
  ///
  /// Errors   Error(usage): the sums would delay the links
  [[nodiscard]] virtual std::string require_slow_links(int /*workers*/,
                                                       std::span<const std::int64_t> /*bucket_bytes*/) const {
    return {};
  }
  /// A function that opens their GPUs, to read them while they compute; empty if the run uses none.
  [[nodiscard]] virtual measure::OpenGpus gpus(int /*local_workers*/) const { return {}; }
  /// The cores near the GPU of each, for the processes that may use the same cores as this one
  /// (`local_workers` each), in their order: one list per worker, empty if unknown. No lists: nothing is
  /// known, or the run uses no GPU.
  [[nodiscard]] virtual std::vector<std::vector<int>> cores_near(int /*local_workers*/) const { return {}; }
  /// Describes the host's GPUs, a sentence each, for the record; nothing if the run uses none.
  [[nodiscard]] virtual std::optional<std::vector<std::string>> describe_gpus() const { return {}; }

  // Of the other processes.

  /// Publishes the phase of this process before and after its steps.
  virtual void at(const char* /*phase*/) const {}
  /// The lost rank, once a communicator has failed; nothing if none was lost.
  [[nodiscard]] virtual std::optional<Loss> lost_rank() const { return {}; }
  /// Sends the first process's bytes to every process; blocks until the first process calls it.
  virtual void from_first(std::span<std::byte> /*bytes*/) const {}
};

struct Backend {
  std::shared_ptr<const Machine> machine;
  /// Bytes of the buffers on each GPU for sums that GPUs compute among themselves (when every worker has its
  /// own GPU). 0: all sums go through the host's memory.
  std::int64_t device_sum_bytes = 0;
  /// The process ids of the run's other processes on this host, also of those without workers.
  std::vector<int> neighbour_pids = {};
  /// The measured peak of the cores, if there is one.
  std::optional<measure::PeakRecord> peak = {};
  ProcessPlacement place = {};
  engine::Precision auto_precision = engine::Precision::f32;  ///< of --precision auto on this device
  bool keeps_images = false;           ///< engines support CompileOptions::stored_images
  std::vector<std::string> libraries;  ///< that compute, with versions: for the record
  std::shared_ptr<ProcessCache> history = std::make_shared<ProcessCache>();
  std::shared_ptr<StallListener> stalls = {};  ///< gets the communicators' warnings; may be empty
};

/// The first process's `word`, on every process. Collective.
template <typename T>
[[nodiscard]] T first_says(const Backend& backend, T word) {
  backend.machine->from_first(std::as_writable_bytes(std::span(&word, 1)));
  return word;
}

}  // namespace paceline::train
