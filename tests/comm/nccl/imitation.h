#pragma once

/// NCCL inside of a process: ranks are threads, their devices' streams run what is put on them, and a
/// collective waits there until all ranks have come to it. It checks what NCCL leaves to its users (the same
/// calls in the same order on all ranks, none while another is in progress or after an abort), and any call
/// can be made to fail, or not to return.

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "comm/nccl/api.h"
#include "comm/nccl/gate.h"

namespace paceline::comm::nccl {

class Imitation;

/// A rank's communicator.
struct OpaqueComm {
  int rank = 0;
  int ranks = 0;
  int world = 0;
  int polls_left = 0;  ///< so often the last call is said to be in progress
  bool blocks = false;
  int launching = 0;  ///< calls whose thread has not put the collective on its stream yet
  Status state = kSuccess;
  std::size_t collectives = 0;
  bool is_aborted = false;
};

class Imitation {
 public:
  /// How work is put on a stream: `stream` is what SideStream::native() gives.
  using Put = std::function<void(void* stream, std::function<void()> work)>;
  /// One at a time: functions of a C table have no object.
  explicit Imitation(Put put) : put_(std::move(put)) {
    base::expects(living() == nullptr, "one imitation at a time");
    living() = this;
  }
  ~Imitation() { living() = nullptr; }
  Imitation(const Imitation&) = delete;
  Imitation& operator=(const Imitation&) = delete;

  [[nodiscard]] static const Api& api() {
    static const Api table = make_api();
    return table;
  }

  /// Rank `rank`'s call number `number` (from 1 on) of `function` fails; in the background where that is how
  /// it goes on.
  void fail(int rank, std::string function, int number, bool in_background = false) {
    const std::lock_guard lock(mutex_);
    failing_rank_ = rank;
    failing_function_ = std::move(function);
    failing_number_ = number;
    fails_in_background_ = in_background;
  }
  /// From now on rank `rank`'s calls of `function` (a collective, ncclCommInitRankConfig, ncclCommAbort)
  /// begin with `gate`.
  void hang(int rank, const std::string& function, Gate& gate) {
    const std::lock_guard lock(mutex_);
    gates_[{rank, function}] = &gate;
  }
  void forget_gates() {
    const std::lock_guard lock(mutex_);
    gates_.clear();
  }
  /// From now on rank `rank`'s calls of `function`, a collective, return when its communicator is aborted.
  void block_until_aborted(int rank, const std::string& function) {
    const std::lock_guard lock(mutex_);
    blocked_ = {rank, function};
  }
  /// From now on a collective of a communicator that does not block is put on its stream by another thread,
  /// after `delay`, as NCCL does it from 2.23 on.
  void launch_from_another_thread(std::chrono::milliseconds delay) {
    const std::lock_guard lock(mutex_);
    launch_delay_ = delay;
  }
  [[nodiscard]] int launched_by_another_thread() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(launchers_.size());
  }
  /// Collectives stay where they are until release().
  void hold() {
    const std::lock_guard lock(mutex_);
    is_held_ = true;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    is_held_ = false;
    changed_.notify_all();
  }

  /// What was done that NCCL forbids; empty: nothing.
  [[nodiscard]] std::string misuse() const {
    const std::lock_guard lock(mutex_);
    return misuse_;
  }
  /// Communicators that nobody has ended.
  [[nodiscard]] int living_comms() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(std::ranges::count_if(comms_, [](const auto& one) { return !one->is_aborted; }));
  }
  /// From now on rank `rank`'s communicators have failed.
  void break_down(int rank) {
    const std::lock_guard lock(mutex_);
    for (auto& one : comms_)
      if (one->rank == rank) one->state = kFailure;
  }
  /// Rank `rank` does not join: its start and that of the others goes on for ever.
  void leave_out(int rank) {
    const std::lock_guard lock(mutex_);
    left_out_ = rank;
  }
  [[nodiscard]] int calls_of(int rank, const std::string& function) const {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find({rank, function});
    return found == counts_.end() ? 0 : found->second;
  }
  [[nodiscard]] int calls(const std::string& function) const {
    const std::lock_guard lock(mutex_);
    int all = 0;
    for (const auto& [call, times] : counts_)
      if (call.second == function) all += times;
    return all;
  }

 private:
  static constexpr Status kFailure = kUnhandledCudaError;
  static constexpr int kPolls = 2;  ///< of a call before it is over

  /// A collective: what was called, and what each rank gave.
  struct Meeting {
    std::string what;
    std::vector<std::vector<float>> given;
    int came = 0, left = 0;
  };
  struct World {
    int ranks = 0;
    std::set<int> joined;
    std::map<std::size_t, Meeting> meetings;
  };

  static Imitation*& living() {
    static Imitation* one = nullptr;
    return one;
  }

  /// Counts a call; whether it is the one to fail. Mutex held.
  bool is_failing(int rank, const char* function) {
    const int number = ++counts_[{rank, function}];
    return rank == failing_rank_ && function == failing_function_ && number == failing_number_;
  }
  /// Without the mutex.
  void pass_gate(int rank, const char* function) {
    Gate* gate = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = gates_.find({rank, function}); found != gates_.end()) gate = found->second;
    }
    if (gate != nullptr) gate->pass();
  }
  void forbid(const std::string& what) {
    if (misuse_.empty()) misuse_ = what;
  }

  Status unique_id(UniqueId* id) {
    const std::lock_guard lock(mutex_);
    if (is_failing(0, "ncclGetUniqueId")) return kFailure;
    *id = {};
    const int world = ++worlds_made_;
    std::memcpy(id->internal, &world, sizeof world);
    return kSuccess;
  }

  Status init(Comm* comm, int ranks, const UniqueId& id, int rank, const Config& config) {
    pass_gate(rank, "ncclCommInitRankConfig");
    std::unique_lock lock(mutex_);
    const bool fails = is_failing(rank, "ncclCommInitRankConfig");
    if (fails && !fails_in_background_) return kFailure;
    int world = 0;
    std::memcpy(&world, id.internal, sizeof world);
    if (world < 1 || world > worlds_made_) forbid("an id that ncclGetUniqueId did not give");
    if (config.size != sizeof(Config) || config.magic != 0xcafebeef || config.blocking < 0 ||
        config.blocking > 1)
      forbid("a config that is none");
    World& all = worlds_[world];
    all.ranks = ranks;
    if (rank != left_out_ && !all.joined.insert(rank).second) forbid("a rank that came twice");
    comms_.push_back(std::make_unique<OpaqueComm>(
        OpaqueComm{.rank = rank, .ranks = ranks, .world = world, .blocks = config.blocking == 1}));
    OpaqueComm& made = *comms_.back();
    if (fails) made.state = kFailure;
    *comm = &made;
    if (!made.blocks) {
      made.polls_left = kPolls;
      return kInProgress;
    }
    changed_.notify_all();
    const auto have_joined = [&] { return std::cmp_equal(all.joined.size(), ranks); };
    return changed_.wait_for(lock, std::chrono::seconds(30), have_joined) ? made.state : kFailure;
  }

  Status async_error(Comm comm, Status* state) {
    const std::lock_guard lock(mutex_);
    if (comm == nullptr || comm->is_aborted) {
      forbid("ncclCommGetAsyncError of a communicator that is none");
      return kFailure;
    }
    if (is_failing(comm->rank, "ncclCommGetAsyncError")) return kFailure;
    *state = comm->state;
    if (comm->state != kSuccess) return kSuccess;
    const World& world = worlds_[comm->world];
    if (comm->polls_left > 0) --comm->polls_left;
    if (comm->polls_left > 0 || comm->launching > 0 || std::cmp_less(world.joined.size(), world.ranks))
      *state = kInProgress;
    return kSuccess;
  }

  Status abort(Comm comm) {
    if (comm != nullptr) pass_gate(comm->rank, "ncclCommAbort");
    const std::lock_guard lock(mutex_);
    if (comm == nullptr || comm->is_aborted) forbid("ncclCommAbort of a communicator that is none");
    if (comm != nullptr) comm->is_aborted = true;
    changed_.notify_all();
    return comm != nullptr && is_failing(comm->rank, "ncclCommAbort") ? kFailure : kSuccess;
  }

  /// Puts a collective on a stream. `reads`, `writes`: floats of src and dst; combine(given, rank, i):
  /// element i of this rank's dst.
  using Combine =
      std::function<float(const std::vector<std::vector<float>>& given, std::size_t rank, std::size_t i)>;
  Status collective(const char* function, const std::string& what, Comm comm, void* stream, const float* src,
                    float* dst, std::size_t reads, std::size_t writes, int type, Combine combine) {
    std::size_t number = 0;
    bool is_launched_by_another = false;
    if (comm != nullptr) pass_gate(comm->rank, function);
    {
      std::unique_lock lock(mutex_);
      if (comm == nullptr || comm->is_aborted) {
        forbid(what + " on a communicator that is none");
        return kFailure;
      }
      if (comm->polls_left > 0) forbid(what + " while another call is in progress");
      if (type != kFloat32) forbid(what + " of no floats");
      if (is_failing(comm->rank, function)) {
        if (!fails_in_background_) return kFailure;
        comm->state = kFailure;
      }
      if (blocked_ == std::pair(comm->rank, std::string(function))) {
        if (!changed_.wait_for(lock, std::chrono::seconds(30), [comm] { return comm->is_aborted; }))
          forbid(what + " was not aborted within 30 s");
        return kFailure;
      }
      comm->polls_left = comm->blocks ? 0 : kPolls;
      number = ++comm->collectives;
      is_launched_by_another = !comm->blocks && launch_delay_ > std::chrono::milliseconds(0);
      if (is_launched_by_another) ++comm->launching;
    }
    const auto launch = [=, this, combine = std::move(combine)] {
      const Meeting* meeting = meet(*comm, number, what, src, reads);  // stays until all have left
      if (meeting == nullptr) return;
      std::vector<float> result(writes);
      for (std::size_t i = 0; i < writes; ++i)
        result[i] = combine(meeting->given, static_cast<std::size_t>(comm->rank), i);
      std::ranges::copy(result, dst);
      const std::lock_guard lock(mutex_);
      auto& meetings = worlds_[comm->world].meetings;
      if (++meetings[number].left == comm->ranks) meetings.erase(number);
    };
    if (!is_launched_by_another) {
      put_(stream, launch);
      return comm->blocks ? kSuccess : kInProgress;
    }
    const std::lock_guard lock(mutex_);
    launchers_.emplace_back([this, comm, stream, launch, delay = launch_delay_] {
      std::this_thread::sleep_for(delay);
      put_(stream, launch);
      const std::lock_guard of_thread(mutex_);
      --comm->launching;
    });
    return kInProgress;
  }

  /// What all ranks gave; nullptr: this one's communicator was aborted.
  const Meeting* meet(OpaqueComm& comm, std::size_t number, const std::string& what, const float* src,
                      std::size_t reads) {
    std::unique_lock lock(mutex_);
    if (comm.is_aborted) return nullptr;
    Meeting& meeting = worlds_[comm.world].meetings[number];
    if (meeting.given.empty()) {
      meeting.what = what;
      meeting.given.resize(static_cast<std::size_t>(comm.ranks));
    } else if (meeting.what != what) {
      forbid("rank " + std::to_string(comm.rank) + " calls " + what + " where another called " +
             meeting.what);
    }
    meeting.given[static_cast<std::size_t>(comm.rank)].assign(src, src + reads);
    ++meeting.came;
    changed_.notify_all();
    const auto is_over = [&] { return comm.is_aborted || (meeting.came == comm.ranks && !is_held_); };
    // Nobody hangs in a test: what nobody aborts ends here, and the test fails.
    if (!changed_.wait_for(lock, std::chrono::seconds(30), is_over)) {
      forbid(what + " was neither joined by all ranks nor aborted within 30 s");
      comm.is_aborted = true;
    }
    return comm.is_aborted ? nullptr : &meeting;
  }

  /// The order of a ring: element i's sum begins at a rank of its own.
  static float ring_sum(const std::vector<std::vector<float>>& given, std::size_t i, std::size_t count) {
    const std::size_t ranks = given.size(), chunk = (count + ranks - 1) / ranks;
    const std::size_t begin = i / chunk + 1;
    float sum = given[begin % ranks][i];
    for (std::size_t step = 1; step < ranks; ++step) sum += given[(begin + step) % ranks][i];
    return sum;
  }

  static std::string named(const char* name, std::size_t count) {
    return std::string(name) + " of " + std::to_string(count);
  }

  static Api make_api() {
    Api api;
    api.ncclGetVersion = [](int* version) -> Status {
      *version = 22809;
      return kSuccess;
    };
    api.ncclGetUniqueId = [](UniqueId* id) { return living()->unique_id(id); };
    api.ncclGetErrorString = [](Status status) -> const char* {
      return status == kFailure ? "unhandled cuda error" : "another error";
    };
    api.ncclGetLastError = [](Comm) -> const char* { return "imitated failure"; };
    api.ncclCommInitRankConfig = [](Comm* comm, int ranks, UniqueId id, int rank, Config* config) {
      return living()->init(comm, ranks, id, rank, *config);
    };
    api.ncclCommGetAsyncError = [](Comm comm, Status* state) { return living()->async_error(comm, state); };
    api.ncclCommAbort = [](Comm comm) { return living()->abort(comm); };
    api.ncclAllReduce = [](const void* src, void* dst, std::size_t count, int type, int op, Comm comm,
                           void* stream) -> Status {
      if (op != kSum) living()->forbid("an all-reduce that does not add");
      return living()->collective(
          "ncclAllReduce", named("all_reduce", count), comm, stream, static_cast<const float*>(src),
          static_cast<float*>(dst), count, count, type,
          [count](const auto& given, std::size_t, std::size_t i) { return ring_sum(given, i, count); });
    };
    api.ncclReduceScatter = [](const void* src, void* dst, std::size_t count, int type, int op, Comm comm,
                               void* stream) -> Status {
      if (op != kSum) living()->forbid("a reduce-scatter that does not add");
      const auto all = count * static_cast<std::size_t>(comm->ranks);
      return living()->collective("ncclReduceScatter", named("reduce_scatter", count), comm, stream,
                                  static_cast<const float*>(src), static_cast<float*>(dst), all, count, type,
                                  [count, all](const auto& given, std::size_t rank, std::size_t i) {
                                    return ring_sum(given, rank * count + i, all);
                                  });
    };
    api.ncclAllGather = [](const void* src, void* dst, std::size_t count, int type, Comm comm,
                           void* stream) -> Status {
      return living()->collective(
          "ncclAllGather", named("all_gather", count), comm, stream, static_cast<const float*>(src),
          static_cast<float*>(dst), count, count * static_cast<std::size_t>(comm->ranks), type,
          [count](const auto& given, std::size_t, std::size_t i) { return given[i / count][i % count]; });
    };
    api.ncclBroadcast = [](const void* src, void* dst, std::size_t count, int type, int root, Comm comm,
                           void* stream) -> Status {
      return living()->collective("ncclBroadcast",
                                  named("broadcast", count) + " from " + std::to_string(root), comm, stream,
                                  static_cast<const float*>(src), static_cast<float*>(dst), count, count,
                                  type, [root](const auto& given, std::size_t, std::size_t i) {
                                    return given[static_cast<std::size_t>(root)][i];
                                  });
    };
    return api;
  }

  const Put put_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string misuse_;
  int worlds_made_ = 0;
  std::map<int, World> worlds_;
  std::deque<std::unique_ptr<OpaqueComm>> comms_;
  std::map<std::pair<int, std::string>, int> counts_;  ///< calls by rank and function
  std::map<std::pair<int, std::string>, Gate*> gates_;
  int failing_rank_ = -1;
  std::string failing_function_;
  int failing_number_ = 0;
  bool fails_in_background_ = false;
  bool is_held_ = false;
  int left_out_ = -1;
  std::pair<int, std::string> blocked_{-1, ""};
  std::chrono::milliseconds launch_delay_{0};
  std::deque<std::jthread> launchers_;  ///< last: they use all of the above
};

}  // namespace paceline::comm::nccl
