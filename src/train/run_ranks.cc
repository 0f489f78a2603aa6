#include "train/run_ranks.h"

#include <fmt/format.h>

#include <exception>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/topology.h"

namespace paceline::train {

std::vector<std::vector<int>> choose_cores(const Resolved& resolved, const Backend& backend,
                                           std::vector<std::string>& notes) {
  const ProcessPlacement& place = backend.place;
  const auto near = backend.machine->cores_near(resolved.local_workers);
  const auto plan = base::plan_cores(resolved.local_workers * place.core_sharers, resolved.threads, near);
  notes.push_back(plan.note);
  const auto first = plan.cores.begin() + place.core_share_index * resolved.local_workers;
  return {first, first + resolved.local_workers};
}

void bind_worker(const Job& job, int local_rank, measure::RankRecord& rank, std::vector<std::string>& notes) {
  if (job.cores.empty()) return;
  rank.cores = job.cores[static_cast<std::size_t>(local_rank)];
  const auto refused = base::bind_current_thread(rank.cores);
  if (!refused) return;
  rank.cores.clear();
  notes.push_back("workers are not pinned to cores: " + *refused);
}

namespace {

/// The first cause among the ranks' errors: a rank that fails makes the others fail with comm errors. An
/// error that the ranks agreed on is the cause only if nothing else went wrong.
std::exception_ptr first_cause(const std::vector<std::exception_ptr>& errors) {
  std::exception_ptr consequence, agreed;
  for (const auto& error : errors) {
    if (!error) continue;
    try {
      std::rethrow_exception(error);
    } catch (const base::AgreedError&) {
      if (!agreed) agreed = error;
    } catch (const base::Error& typed) {
      if (typed.kind() != base::ErrorKind::comm) return error;
      if (!consequence) consequence = error;
    } catch (...) {
      return error;
    }
  }
  return consequence ? consequence : agreed;
}

/// Tells the other ranks that this one has failed, and why.
void abort_with(comm::Communicator& communicator, const std::exception_ptr& error) {
  constexpr auto kOther = base::ErrorKind::device;  // out of memory, as main reports it
  try {
    std::rethrow_exception(error);
  } catch (const base::Error& typed) {
    communicator.abort(typed.what(), typed.kind());
  } catch (const std::exception& known) {
    communicator.abort(known.what(), kOther);
  } catch (...) {
    communicator.abort("an unknown exception", kOther);
  }
}

}  // namespace

void run_ranks(const std::vector<std::unique_ptr<comm::Communicator>>& communicators,
               const std::function<void(std::size_t)>& work, const base::StartThread& start) {
  std::vector<std::exception_ptr> errors(communicators.size());
  const auto give_up = [&](std::size_t rank, const std::exception_ptr& error) {
    errors[rank] = error;
    abort_with(*communicators[rank], error);
  };
  {
    std::vector<std::jthread> threads;
    threads.reserve(communicators.size());
    for (std::size_t rank = 0; rank < communicators.size(); ++rank) {
      try {
        threads.push_back(start([&, rank] {
          try {
            work(rank);
          } catch (const base::AgreedError&) {
            errors[rank] = std::current_exception();  // no rank waits for this one: the others throw it too
          } catch (const std::system_error& error) {
            const bool refused = base::is_refused_thread(error);  // a thread that the work itself wanted
            give_up(rank, refused ? std::make_exception_ptr(base::refused_thread("a thread", error))
                                  : std::current_exception());
          } catch (...) {
            give_up(rank, std::current_exception());
          }
        }));
      } catch (const std::system_error& error) {
        const auto which = fmt::format("worker thread {} of {}", rank + 1, communicators.size());
        give_up(rank, std::make_exception_ptr(base::refused_thread(which, error)));
        break;
      }
    }
  }
  if (const auto cause = first_cause(errors)) std::rethrow_exception(cause);
}

}  // namespace paceline::train
