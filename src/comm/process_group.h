#pragma once

/// The processes of one run, joined: InterProcessComm over any Wire, with a Watch beside it that names who is
/// lost.

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/algorithms/exchange.h"
#include "comm/algorithms/staged.h"
#include "comm/failure/detector.h"
#include "comm/failure/survivor_probe.h"
#include "comm/inter_process_comm.h"
#include "comm/shared_memory.h"
#include "comm/wire.h"

namespace paceline::comm {

struct ProcessGroupOptions {
  std::chrono::seconds deadline{60};          ///< a collective that takes longer is Error(comm)
  WireFormat wire_format = WireFormat::fp32;  ///< what gradients travel as
  int ranks_each = 1;                ///< workers in every process, for the names of ranks in sentences
  bool shared_memory = true;         ///< where all are on one host; else messages
  std::size_t block_bytes = 131072;  ///< of reductions in shared memory; a multiple of 4096
  DetectorOptions watch;
};

/// Threads  as InterProcessComm; made and destroyed by one thread
class ProcessGroup final : public InterProcessComm {
 public:
  /// Connects the failure detector. `say(text)` is called, at the process that speaks for all and from
  /// another thread, with what is worth saying.
  ///
  /// Lifetime `wire` outlives it
  /// Errors   Error(comm) when the others cannot be reached; the wire has then been given up
  ProcessGroup(Wire& wire, ProcessGroupOptions options, std::function<void(const std::string&)> say);

  /// This process's place among the members of the group, -1: it is none; and how many they are. Until
  /// regroup() these are all processes, by their own numbers.
  [[nodiscard]] int process() const override { return place_; }
  [[nodiscard]] int processes() const override { return members_; }
  [[nodiscard]] std::string name() const override { return wire_.name(); }
  [[nodiscard]] std::string algorithm() const override {
    if (wire_format_ == WireFormat::bf16) return "exchange (messages, as bf16)";
    if (common_) return "direct (memory of the host)";
    return reductions_ ? "staged (memory of the host)" : "exchange (messages)";
  }

  void all_reduce(std::span<const float> src, std::span<float> dst) override;
  void reduce_scatter(std::span<const float> src, std::span<float> dst) override;
  [[nodiscard]] base::Buffer memory(std::size_t bytes) override;
  void all_reduce(std::span<double> values, Reduce reduce) override;
  void broadcast(std::span<std::byte> bytes, int root_process) override;
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  void barrier() override;

  void fail(const std::string& reason, base::ErrorKind kind) override;
  void on_failure(std::function<void(const std::string&)> told) override;
  void at(std::int64_t step, const char* phase) override;
  void held_up_by(const std::optional<RankStatus>& rank) override;
  [[nodiscard]] Traffic traffic() const override;

  /// The first failure known here. Of another process: it was told, not found.
  [[nodiscard]] std::optional<Failure> failure() const { return detector_->failure(); }
  /// Whether it was found here; else it came from another process, and process 0 has said it.
  [[nodiscard]] bool failure_is_own() const { return detector_->failure_is_own(); }
  /// At the end of a process that failed: gives process 0 time to note it and to write its record; where that
  /// one is lost, the others time to hear that this one is there. True when process 0 has taken note.
  bool farewell();
  /// Where all members are on one host, collectives go through memory that they share from now on, and those
  /// of every later regroup() too. All call it, once; the constructor does where its options say so.
  void share_memory();
  /// From now on the collectives are those of the processes `members`: numbers of the run in ascending order,
  /// 0 the first. The others take part in none but this one and order(). All processes call it with the same
  /// numbers, while no collective is under way.
  void regroup(std::span<const int> members);
  /// Process 0's bytes in all processes, members or not, however long the others have to wait for them.
  void order(std::span<std::byte> bytes);
  /// At the end of a run that went well: everybody waits, for as long as it takes, until process 0 is through
  /// with its files, then all for one another, up to the deadline. So nobody's exit ends a process that still
  /// writes, and one that has stopped is found by the detector, not waited for in the library's own farewell.
  /// All processes call it; a second call does nothing.
  void part();
  void set_ranks_each(int ranks) { ranks_each_ = ranks; }
  void set_wire_format(WireFormat wire_format) {
    wire_format_ = wire_format;
  }  ///< before the first all-reduce
  void set_deadline(std::chrono::seconds deadline) {
    deadline_ = deadline;
    detector_->set_deadline(deadline);
  }

 private:
  /// What a collective is called in sentences; asked for only when one is said.
  using LazyName = std::function<std::string()>;
  class Wait;

  void connect(const DetectorOptions& options);
  /// What share_memory() does, among the members of now.
  void join_memory();
  void make_streams();
  [[nodiscard]] bool everywhere(bool here);  ///< whether all members say yes
  void meet_all();
  /// Processes are numbers of the run here, and places among the members in the second.
  void round(Channel channel, const LazyName& what, std::span<const Send> sends,
             std::span<const Receive> receives);
  void round_of_members(Channel channel, const LazyName& what, std::span<const Send> sends,
                        std::span<const Receive> receives);
  [[nodiscard]] Round rounds(Channel channel, const LazyName& what) {
    return [this, channel, &what](std::span<const Send> sends, std::span<const Receive> receives) {
      round_of_members(channel, what, sends, receives);
    };
  }
  [[nodiscard]] int number_of(int place) const { return numbers_[static_cast<std::size_t>(place)]; }
  /// Runs `collective(staged, keep_waiting)`, a function of Staged.
  template <typename Collective>
  void stage(Staged& staged, const LazyName& what, const Collective& collective);
  /// Who is late is a failure; what another process failed with is thrown.
  void lose(const std::vector<int>& missing, const LazyName& what);
  [[nodiscard]] std::string ranks_of(int process) const;
  [[nodiscard]] std::string late(const std::vector<int>& missing, const std::string& what) const;
  void check() const;
  void take_failure(const Failure& failure);
  void count(const Moved& moved);

  Wire& wire_;
  std::vector<std::atomic<int>> numbers_;  ///< [place]: of the run; the first `members_` of them count
  std::atomic<int> members_;
  std::atomic<int> place_;
  bool shares_memory_ = false;  ///< share_memory() was called
  const std::size_t wanted_block_;
  std::atomic<int> ranks_each_;
  std::atomic<std::chrono::seconds> deadline_;
  std::function<void(const std::string&)> say_;
  std::atomic<bool> failed_{false};
  bool has_parted_ = false;
  std::atomic<WireFormat> wire_format_;
  ExchangeRoom room_;  ///< of the reductions' thread
  /// Where all members are on one host: memory that they share, and its two streams.
  std::optional<SharedMemory> memory_;
  std::size_t blocks_[2] = {};  ///< bytes of each stream's blocks
  SpinLimits limits_;
  std::optional<Staged> reductions_, exchanges_;
  /// [place] what memory() gave last: shared with whoever has it, and all processes let go of it together.
  std::shared_ptr<const std::vector<SharedMemory>> common_;

  mutable std::mutex mutex_;  ///< guards what follows
  std::function<void(const std::string&)> on_failure_;
  Traffic traffic_;

  std::unique_ptr<SurvivorProbe> survivor_probe_;  ///< process 0 has none
  std::unique_ptr<FailureDetector> detector_;      ///< last: its thread uses all of the above
};

}  // namespace paceline::comm
