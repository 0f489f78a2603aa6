/// Implements wire.h with MPI. It is built as a separate module, paceline_mpi.so, which the program opens
/// only when a launcher started it (comm/mpi/load.cc), so that the program runs without MPI.
///
/// No library of this project is linked: it uses only headers of base.
///
/// It uses MPI_THREAD_SERIALIZED with a mutex: only two channels call MPI, and calls do not block. This
/// avoids the locks that MPI_THREAD_MULTIPLE would take in every call.

#include <mpi.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <string>

#include "base/error.h"
#include "comm/mpi/load.h"
#include "comm/wire.h"

namespace paceline::comm::mpi {
namespace {

constexpr std::size_t kLongest = std::size_t{1} << 30;  ///< bytes of one MPI message; its counts are ints

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  base::fail(base::ErrorKind::comm, "mpi: {} failed: {}", call,
             std::string(text.data(), static_cast<std::size_t>(length)));
}

/// Lets a thread wait for messages without taking the core from computing threads: it polls for some
/// microseconds, as long as a small message between running processes takes, then sleeps for longer and
/// longer times.
class Backoff {
 public:
  explicit Backoff(bool cores_are_shared) : shared_(cores_are_shared) {}
  void wait() {
    if (++looks_ < kLooks && !shared_) return;
    const timespec pause{0, sleep_ns_};
    ::nanosleep(&pause, nullptr);
    slept_ns_ += sleep_ns_;
    sleep_ns_ = std::min(2 * sleep_ns_, slept_ns_ < kLongWaitNs ? kLongestSleepNs : kLongWaitSleepNs);
  }

 private:
  static constexpr int kLooks = 100;
  static constexpr long kLongestSleepNs = 200'000;
  /// After a long wait the sleep is about a hundredth of the time waited.
  static constexpr long kLongWaitNs = 500'000'000, kLongWaitSleepNs = 5'000'000;
  bool shared_;
  int looks_ = 0;
  long sleep_ns_ = 5'000;
  long slept_ns_ = 0;
};

class MpiWire final : public Wire {
 public:
  MpiWire() {
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
    if (provided < MPI_THREAD_SERIALIZED)
      base::fail(base::ErrorKind::comm,
                 "mpi: this library does not allow MPI calls from several threads in turn "
                 "(MPI_THREAD_SERIALIZED); use one that does, such as Debian's Open MPI");
    for (auto& channel : channels_) {
      check(MPI_Comm_dup(MPI_COMM_WORLD, &channel), "MPI_Comm_dup");
      check(MPI_Comm_set_errhandler(channel, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &process_);
    MPI_Comm_size(MPI_COMM_WORLD, &processes_);
    cores_are_shared_ = more_neighbours_than_cores();
  }
  ~MpiWire() override {
    if (gave_up_) return;  // MPI_Finalize would wait for lost processes
    for (auto& channel : channels_) MPI_Comm_free(&channel);
    MPI_Finalize();
  }
  MpiWire(const MpiWire&) = delete;
  MpiWire& operator=(const MpiWire&) = delete;

  [[nodiscard]] int process() const override { return process_; }
  [[nodiscard]] int processes() const override { return processes_; }
  [[nodiscard]] std::string name() const override { return "mpi"; }
  [[nodiscard]] std::string library() const override {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    std::string whole(
        text.data());  // "Open MPI v4.1.4, package: ...", "MPICH Version:\t4.0.2\nMPICH Release date: ..."
    whole = whole.substr(0, whole.find_first_of(",\n"));
    std::replace(whole.begin(), whole.end(), '\t', ' ');
    return whole;
  }

  std::vector<int> swap(Channel channel, std::span<const Send> sends, std::span<const Receive> receives,
                        const std::function<bool()>& keep_waiting) override {
    Requests requests;
    MPI_Comm where = channels_[static_cast<std::size_t>(channel)];
    {
      const std::lock_guard lock(mutex_);
      if (gave_up_) return {process_};
      for (const auto& one : receives) post(one, where, requests);
      for (const auto& one : sends) post(one, where, requests);
    }
    Backoff backoff(cores_are_shared_);
    while (!done(requests)) {
      if (!keep_waiting()) return unfinished(requests);
      backoff.wait();
    }
    return {};
  }

  void give_up() override {
    const std::lock_guard lock(mutex_);
    gave_up_ = true;
  }

 private:
  struct Requests {
    std::vector<MPI_Request> all;
    std::vector<int> peer;  ///< [request]
  };

  /// Splits a long message into several; the other side splits it at the same places.
  template <typename Message>
  void post(const Message& message, MPI_Comm where, Requests& requests) {
    for (std::size_t begin = 0; begin < message.bytes.size(); begin += kLongest) {
      const auto part = message.bytes.subspan(begin, std::min(kLongest, message.bytes.size() - begin));
      const auto count = static_cast<int>(part.size());
      requests.all.push_back(MPI_REQUEST_NULL);
      if constexpr (std::is_same_v<Message, Send>) {
        check(MPI_Isend(part.data(), count, MPI_BYTE, message.to, 0, where, &requests.all.back()),
              "MPI_Isend");
        requests.peer.push_back(message.to);
      } else {
        check(MPI_Irecv(part.data(), count, MPI_BYTE, message.from, 0, where, &requests.all.back()),
              "MPI_Irecv");
        requests.peer.push_back(message.from);
      }
    }
  }

  bool done(Requests& requests) {
    const std::lock_guard lock(mutex_);
    if (gave_up_) return false;
    int complete = 0;
    check(MPI_Testall(static_cast<int>(requests.all.size()), requests.all.data(), &complete,
                      MPI_STATUSES_IGNORE),
          "a message between processes (MPI_Testall)");
    return complete != 0;
  }

  std::vector<int> unfinished(Requests& requests) {
    const std::lock_guard lock(mutex_);
    std::vector<int> missing;
    for (std::size_t i = 0; i < requests.all.size(); ++i) {
      int complete = 0;
      if (!gave_up_) MPI_Test(&requests.all[i], &complete, MPI_STATUS_IGNORE);
      if (complete == 0) missing.push_back(requests.peer[i]);
    }
    std::sort(missing.begin(), missing.end());
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    return missing;
  }

  /// Whether processes of this host share cores; polling then takes time from the sender.
  static bool more_neighbours_than_cores() {
    MPI_Comm host = MPI_COMM_NULL;
    int neighbours = 1;
    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host) != MPI_SUCCESS)
      return true;
    cpu_set_t mine, all;
    CPU_ZERO(&mine);
    CPU_ZERO(&all);
    ::sched_getaffinity(0, sizeof mine, &mine);
    MPI_Comm_size(host, &neighbours);
    MPI_Allreduce(&mine, &all, sizeof mine, MPI_BYTE, MPI_BOR, host);
    MPI_Comm_free(&host);
    return neighbours > CPU_COUNT(&all);
  }

  std::mutex mutex_;  ///< held for every call into MPI once swap() may run
  std::array<MPI_Comm, 2> channels_{};
  int process_ = 0, processes_ = 1;
  bool cores_are_shared_ = false;
  bool gave_up_ = false;
};

}  // namespace
}  // namespace paceline::comm::mpi

extern "C" paceline::comm::Wire* paceline_open_mpi() { return new paceline::comm::mpi::MpiWire; }
