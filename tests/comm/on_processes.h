#pragma once

/// Ranks of several processes as threads, joined by the fake network: what tests of such collectives run in.

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/fake_wire.h"
#include "comm/make.h"
#include "comm/process_group.h"

namespace paceline::comm {

struct Outcome {
  std::vector<std::string> errors;  ///< [rank]
  std::vector<std::string> said;    ///< by process 0
};

/// What stands around a process's communicators.
using Wrap = std::function<std::vector<std::unique_ptr<Communicator>>(
    std::vector<std::unique_ptr<Communicator>> communicators)>;

/// Runs `body` on `processes` x `each` ranks: threads of the test that share no memory but the fake network.
inline Outcome on_processes(int processes, int each, ProcessGroupOptions options,
                            const std::function<void(Communicator&)>& body, const Wrap& wrap = {}) {
  const auto network = std::make_shared<FakeNetwork>(processes);
  Outcome outcome;
  outcome.errors.resize(static_cast<std::size_t>(processes * each));
  std::mutex mutex;
  options.ranks_each = each;
  const auto run = [&](int process) {
    FakeWire wire(network, process);
    ProcessGroup joined(wire, options, [&](const std::string& text) {
      const std::lock_guard lock(mutex);
      outcome.said.push_back(text);
    });
    auto communicators = make_local(each, {.deadline = options.deadline, .across = &joined});
    if (wrap) communicators = wrap(std::move(communicators));
    std::vector<std::thread> ranks;
    for (int local = 0; local < each; ++local)
      ranks.emplace_back([&, local] {
        try {
          body(*communicators[static_cast<std::size_t>(local)]);
        } catch (const std::exception& error) {
          outcome.errors[static_cast<std::size_t>(process * each + local)] = error.what();
          communicators[static_cast<std::size_t>(local)]->abort(error.what());
        }
      });
    for (auto& rank : ranks) rank.join();
    communicators.clear();
    if (joined.failure()) (void)joined.leave_after_failure();
  };
  std::vector<std::thread> threads;
  for (int process = 0; process < processes; ++process) threads.emplace_back(run, process);
  for (auto& thread : threads) thread.join();
  return outcome;
}

}  // namespace paceline::comm
