#include "train/run_workers.h"

#include <exception>
#include <string>
#include <thread>

#include "base/error.h"

namespace paceline::train {
namespace {

/// The error that began it: a rank that failed drags the others into comm errors.
std::exception_ptr first_cause(const std::vector<std::exception_ptr>& errors) {
  std::exception_ptr consequence;
  for (const auto& error : errors) {
    if (!error) continue;
    try {
      std::rethrow_exception(error);
    } catch (const base::Error& typed) {
      if (typed.kind() != base::ErrorKind::comm) return error;
      if (!consequence) consequence = error;
    } catch (...) {
      return error;
    }
  }
  return consequence;
}

std::string sentence_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an unknown exception";
  }
}

base::ErrorKind kind_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const base::Error& typed) {
    return typed.kind();
  } catch (...) {
    return base::ErrorKind::device;  // no memory, as main says it
  }
}

}  // namespace

std::vector<WorkerResult> run_workers(const Job& job,
                                      std::vector<std::unique_ptr<comm::Communicator>>& communicators) {
  std::vector<WorkerResult> results(communicators.size());
  std::vector<std::exception_ptr> errors(communicators.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < communicators.size(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          results[rank] = work(job, *communicators[rank]);
        } catch (...) {
          errors[rank] = std::current_exception();
          communicators[rank]->abort(sentence_of(errors[rank]), kind_of(errors[rank]));
        }
      });
    }
  }
  if (const auto cause = first_cause(errors)) std::rethrow_exception(cause);
  return results;
}

}  // namespace paceline::train
