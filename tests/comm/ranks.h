#pragma once

/// Ranks as threads: what every test of collectives runs in.

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "comm/make.h"

namespace paceline::comm {

/// Runs `body(communicator)` on one thread a rank and returns each rank's error text, "" for none. A rank
/// that leaves by an error says so, as a training does: without it the others may wait until their deadline.
inline std::vector<std::string> on_ranks(int ranks, LocalOptions options,
                                         const std::function<void(Communicator&)>& body) {
  auto communicators = make_local(ranks, options);
  std::vector<std::string> errors(communicators.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < communicators.size(); ++r)
    threads.emplace_back([&, r] {
      try {
        body(*communicators[r]);
      } catch (const std::exception& error) {
        errors[r] = error.what();
        communicators[r]->abort(error.what());
      }
    });
  for (auto& thread : threads) thread.join();
  return errors;
}

}  // namespace paceline::comm
