#pragma once

/// Makes the concrete engine and communicators for train, which itself names none. With a session the
/// communicators join all of its processes.

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cluster/session.h"
#include "comm/communicator.h"
#include "comm/emulate.h"
#include "comm/process_group.h"
#include "engine/engine.h"
#include "train/given/backend.h"
#include "train/given/options.h"

namespace paceline::cluster {

/// Whether engines of `device` keep arrays on GPUs, so that NCCL can be used.
[[nodiscard]] bool is_gpu(const std::string& device);

/// The kernels of this process in a run of several; all of `processes` call it. `prepare`: engine::prepare().
///
/// Measured kernels are those of the first process, as after a resume: record and checkpoints name them. A
/// process that cannot compute a problem in this way uses its default. What one of them cannot compile or
/// start, none of them uses: then the first process chooses again without it, and the others follow it.
///
/// Errors   those of `prepare`
[[nodiscard]] engine::PreparedKernels prepare_alike(
    comm::ProcessGroup& processes, const engine::KernelRequest& asked,
    const std::function<engine::PreparedKernels(const engine::KernelRequest&)>& prepare);

/// A process that computes some problems by other algorithms than the first process.
struct OtherKernels {
  int process = 0;
  std::string host;
  int problems = 0;  ///< how many
};

/// A sentence about `others`, which differ in some of `problems` problems; empty if there are none.
[[nodiscard]] std::string note_of_other_kernels(std::span<const OtherKernels> others, std::size_t problems);

/// What joins the workers of a run.
struct Joining {
  std::string device;
  Session* session = nullptr;
  comm::Emulation emulation = {};  ///< with the number of hosts
  comm::WireFormat wire_format = comm::WireFormat::fp32;
  std::shared_ptr<train::StallListener> stalls = std::make_shared<train::StallListener>();

  /// Whether NCCL may join the workers' GPUs.
  [[nodiscard]] bool joins_gpus() const;
};

/// The communicators of this process's `ranks` workers. A process whose run has failed is ended if its
/// workers hang (guard.h).
[[nodiscard]] std::vector<std::unique_ptr<comm::Communicator>> make_communicators(
    const Joining& how, int ranks, std::chrono::seconds deadline);

/// `members`: the processes of the session after regroup(); empty: all.
[[nodiscard]] train::Backend make_backend(const std::string& device, Session* session = nullptr,
                                          const comm::Emulation& emulation = {},
                                          comm::WireFormat wire_format = comm::WireFormat::fp32,
                                          std::span<const int> members = {});

/// The emulation that --emulate-link and --emulate-straggler describe.
[[nodiscard]] comm::Emulation emulation_of(const train::Options& options);

/// Names and versions of the libraries that compute: for Environment::libraries.
[[nodiscard]] std::vector<std::string> libraries();

}  // namespace paceline::cluster
