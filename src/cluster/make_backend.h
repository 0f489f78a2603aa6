#pragma once

/// Makes the concrete engine and communicators for train, which itself names none. With a session the
/// communicators join all of its processes.

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cluster/session.h"
#include "comm/communicator.h"
#include "comm/emulate.h"
#include "train/given/backend.h"
#include "train/given/options.h"
#include "train/given/stall_listener.h"

namespace paceline::cluster {

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
/// workers hang (exit_watchdog.h).
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
