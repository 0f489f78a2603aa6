/// One process of a run whose GPU does not answer: its workers, each with a device of the tests, reduce
/// through the libnccl.so.2 of tests/libraries, and never come back.
///
///     NCCL_HANGS=FUNCTION gpu_hangs WORKERS DEADLINE
///
/// FUNCTION: ncclCommInitRankConfig, ncclAllReduce; ncclCommAbort, after the last worker's error; or query,
/// of the device. With RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT: one of several processes.
///
/// It has the session and the communicators of the program, and fails as a training does. It says "begins"
/// when all processes are there.

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "cluster/log.h"
#include "cluster/make_backend.h"
#include "cluster/session.h"
#include "comm/launch.h"
#include "comm/nccl/thread_device.h"

namespace {

using namespace paceline;

void work(comm::Communicator& communicator, const comm::ThreadDevice& device, const std::string& hangs) {
  const auto array = communicator.array(1000, device);
  if (hangs == "ncclCommAbort" && communicator.rank() == communicator.size() - 1)
    base::fail(base::ErrorKind::comm, "a link of device {} is broken", communicator.rank());
  if (hangs == "query") device.queries()->shut();  // of which the first asks for what is posted now
  communicator.all_reduce(array.array())->wait();
  for (;;) {  // until somebody says why
    communicator.check();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void run(int workers, std::chrono::seconds deadline, cluster::Session* session, const std::string& hangs) {
  std::vector<std::unique_ptr<comm::ThreadDevice>> devices;  // the threads that hang use them to the end
  const auto communicators =
      cluster::make_communicators({.device = "cuda", .session = session}, workers, deadline);
  for (const auto& one : communicators)
    devices.push_back(std::make_unique<comm::ThreadDevice>(std::to_string(one->rank())));
  std::vector<std::exception_ptr> errors(communicators.size());
  std::vector<std::jthread> threads;
  for (std::size_t worker = 0; worker < communicators.size(); ++worker)
    threads.emplace_back([&, worker] {
      try {
        work(*communicators[worker], *devices[worker], hangs);
      } catch (const base::Error& error) {
        errors[worker] = std::current_exception();
        communicators[worker]->abort(error.what(), error.kind());
      }
    });
  threads.clear();
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace

int main(int, char** words) {
  const int workers = std::atoi(words[1]);
  const std::chrono::seconds deadline(std::atoi(words[2]));
  const std::string hangs = std::getenv("NCCL_HANGS");
  const auto launch = comm::read_launch([](const char* name) -> const char* { return std::getenv(name); });
  std::unique_ptr<cluster::Session> session;
  try {
    if (!launch.alone()) session = std::make_unique<cluster::Session>(launch, deadline);
    if (session) session->meet("1", "gpu_hangs", false);
    std::puts("begins");
    std::fflush(stdout);
    run(workers, deadline, session.get(), hangs);
  } catch (const base::Error& error) {
    if (!session || session->fail(error.kind(), error.what())) cluster::log_line(error.what());
    return static_cast<int>(error.kind());
  }
  return 0;
}
