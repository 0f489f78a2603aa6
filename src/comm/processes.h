#pragma once

/// The processes of one run, joined: Across over any Wire, with a Watch beside it that names who is lost.

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/across.h"
#include "comm/algorithms/exchange.h"
#include "comm/watch.h"
#include "comm/wire.h"

namespace paceline::comm {

struct ProcessesOptions {
  std::chrono::seconds deadline{60};  ///< a collective that takes longer is Error(comm)
  Carried carried = Carried::fp32;    ///< what gradients travel as
  int ranks_each = 1;                 ///< workers in every process, for the names of ranks in sentences
  WatchOptions watch;
};

/// Threads  as Across; made and destroyed by one thread
class Processes final : public Across {
 public:
  /// Connects the watch. `say(text)` is called, at process 0 and from another thread, with what is worth
  /// saying.
  ///
  /// Lifetime `wire` outlives it
  /// Errors   Error(comm) when the others cannot be reached; the wire has then been given up
  Processes(Wire& wire, ProcessesOptions options, std::function<void(const std::string&)> say);

  [[nodiscard]] int process() const override { return wire_.process(); }
  [[nodiscard]] int processes() const override { return wire_.processes(); }
  [[nodiscard]] std::string name() const override { return wire_.name(); }
  [[nodiscard]] std::string algorithm() const override {
    return carried_ == Carried::bf16 ? "exchange (messages, as bf16)" : "exchange (messages)";
  }

  void all_reduce(std::span<float> values) override;
  void all_reduce(std::span<double> values, Reduce reduce) override;
  void broadcast(std::span<std::byte> bytes, int root_process) override;
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  void barrier() override;

  void fail(const std::string& reason, base::ErrorKind kind) override;
  void on_failure(std::function<void(const std::string&)> told) override;
  void at(std::int64_t step, const char* phase) override;
  [[nodiscard]] Traffic traffic() const override;

  /// The first failure known here. Of another process: it was told, not found.
  [[nodiscard]] std::optional<Failure> failure() const { return watch_->failure(); }
  /// Whether it was found here; else it came from another process, and process 0 has said it.
  [[nodiscard]] bool failure_is_own() const { return watch_->failure_is_own(); }
  /// At the end of a process that failed: gives process 0 time to note it and to write its record. True when
  /// it has taken note.
  bool farewell();
  void set_ranks_each(int ranks) { ranks_each_ = ranks; }
  void set_carried(Carried carried) { carried_ = carried; }  ///< before the first all-reduce
  void set_deadline(std::chrono::seconds deadline) { deadline_ = deadline; }

 private:
  void connect(const WatchOptions& options);
  void round(Channel channel, const std::string& what, std::span<const Send> sends,
             std::span<const Receive> receives);
  [[nodiscard]] std::string ranks_of(int process) const;
  [[nodiscard]] std::string late(const std::vector<int>& missing, const std::string& what) const;
  void check() const;
  void take_failure(const Failure& failure);
  void count(const Moved& moved);

  Wire& wire_;
  std::atomic<int> ranks_each_;
  std::atomic<std::chrono::seconds> deadline_;
  std::function<void(const std::string&)> say_;
  std::atomic<bool> failed_{false};
  std::atomic<Carried> carried_;
  ExchangeRoom room_;  ///< of the reductions' thread

  mutable std::mutex mutex_;  ///< guards what follows
  std::function<void(const std::string&)> on_failure_;
  Traffic traffic_;

  std::unique_ptr<Watch> watch_;  ///< last: its thread uses all of the above
};

}  // namespace paceline::comm
