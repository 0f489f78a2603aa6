#include "comm/process_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace paceline::comm {
namespace {

using std::chrono::milliseconds;

/// A dying process breaks its messages and its connection to the detector at the same time. This is how long
/// to wait for the detector's report, which has name and phase, before the broken message is reported
/// instead.
constexpr milliseconds kForTheName{1500};
/// How long other processes wait at a deadline for the first one to report who is missing.
constexpr milliseconds kForTheFirst{1500};
constexpr milliseconds kForTheRecord{5000};
/// Processes do not notice the loss of process 0 at the same moment: the first to notice stays this long to
/// answer later ones.
constexpr milliseconds kForTheRollCall{1500};

}  // namespace

ProcessGroup::ProcessGroup(Wire& wire, ProcessGroupOptions options,
                           std::function<void(const std::string&)> say)
    : wire_(wire),
      numbers_(static_cast<std::size_t>(wire.processes())),
      members_(wire.processes()),
      place_(wire.process()),
      wanted_block_(options.block_bytes),
      ranks_each_(options.ranks_each),
      deadline_(options.deadline),
      say_(std::move(say)),
      wire_format_(options.wire_format) {
  for (std::size_t place = 0; place < numbers_.size(); ++place) numbers_[place] = static_cast<int>(place);
  try {
    connect(options.watch);
    if (options.shared_memory) share_memory();
  } catch (...) {
    wire_.give_up();
    throw;
  }
}

int ProcessGroup::leave(int mine) {
  if (parted_with_) return *parted_with_;
  parted_with_ = mine;  // a call after a failed one does not wait again
  std::byte end{};
  order(std::span(&end, 1));
  parted_with_ = highest(mine);
  return *parted_with_;
}

std::string ProcessGroup::ranks_of(int process) const {
  const int each = ranks_each_, members = members_;
  int place = 0;
  while (place < members && number_of(place) != process) ++place;
  if (place == members) return fmt::format("process {}", process);  // the process has no rank in this cell
  if (each == 1) return fmt::format("rank {}", place);
  return fmt::format("ranks {} to {}", place * each, (place + 1) * each - 1);
}

void ProcessGroup::take_failure(const Failure& failure) {
  failed_ = true;
  if (say_ && wire_.process() == failure.reporter) say_(failure.text);
  const std::lock_guard lock(mutex_);
  if (on_failure_) on_failure_(failure.text);
}

void ProcessGroup::fail(const std::string& reason, base::ErrorKind kind) {
  detector_->fail({.kind = kind, .text = reason});
  failed_ = true;
}

void ProcessGroup::on_failure(std::function<void(const std::string&)> told) {
  const std::lock_guard lock(mutex_);
  on_failure_ = std::move(told);
}

void ProcessGroup::at(std::int64_t step, const char* phase) { detector_->heartbeat().at(step, phase); }

void ProcessGroup::held_up_by(const std::optional<RankStatus>& rank) {
  detector_->heartbeat().held_up_by(rank);
}

bool ProcessGroup::leave_after_failure() {
  wire_.give_up();
  // Counted from now, since asking a host that does not respond takes as long by itself.
  const auto until = base::Clock::now() + kForTheRollCall;
  const bool heard = detector_->wait_until_heard(kForTheRecord);
  if (const auto failure = detector_->failure(); failure && failure->of_first())
    std::this_thread::sleep_until(until);
  return heard;
}

void ProcessGroup::check() const {
  if (!failed_) return;
  const auto failure = detector_->failure();
  throw base::Error(base::ErrorKind::comm, failure ? failure->text : "another process has failed");
}

std::string ProcessGroup::late(const std::vector<int>& missing, const std::string& what) const {
  const auto names = base::texts_of(missing, [&](int other) { return detector_->describe_late(other); });
  return fmt::format("{} did not enter {} within {} s; look there for what holds it up",
                     fmt::join(names, ", "), what, deadline_.load().count());
}

void ProcessGroup::lose(const std::vector<int>& missing, const LazyName& what) {
  wire_.give_up();
  const bool of_first = std::find(missing.begin(), missing.end(), 0) != missing.end();
  // The first process reaches the same deadline at about this time, and it alone knows host and last phase of
  // all processes.
  const auto until = base::Clock::now() + kForTheFirst;
  while (wire_.process() != 0 && !of_first && !failed_ && base::Clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (!failed_) {
    // Who waits for a silent process may reach its deadline a moment before the detector does.
    const auto silent = detector_->silent_among(missing);
    auto failure =
        silent.value_or(Failure{.kind = base::ErrorKind::comm,
                                .text = late(missing, what()),
                                .detection_s = std::chrono::duration<double>(deadline_.load()).count()});
    std::string others;
    if (of_first) failure.reporter = detector_->reporter_without_first(others);
    if (silent) failure.text += others;  // the other sentence names all that are late
    detector_->fail(failure);
    failed_ = true;  // set last, since another thread that sees it reads the text
  }
  check();
}

/// Exists while this process waits in a collective or for an order of process 0, and reports that to the
/// heartbeat from its first check on.
class ProcessGroup::Wait {
 public:
  Wait(Heartbeat& heartbeat, Channel channel) : heartbeat_(heartbeat), channel_(channel) {}
  ~Wait() {
    if (told_) heartbeat_.leaves(channel_);
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  void goes_on(bool follows = false) {
    heartbeat_.looks(channel_, follows);
    told_ = true;
  }

 private:
  Heartbeat& heartbeat_;
  const Channel channel_;
  bool told_ = false;
};

void ProcessGroup::order(std::span<std::byte> bytes) {
  check();
  std::vector<Send> sends;
  std::vector<Receive> receives;
  const bool is_first = wire_.process() == 0;
  if (!is_first) receives.push_back({0, bytes});
  for (int other = 1; is_first && other < wire_.processes(); ++other) sends.push_back({other, bytes});
  Wait wait(detector_->heartbeat(), Channel::exchanges);
  const auto missing = wire_.swap(Channel::exchanges, sends, receives, [&] {
    wait.goes_on(!is_first);
    return !failed_;
  });
  if (!missing.empty()) wire_.give_up();
  check();
}

void ProcessGroup::round(Channel channel, const LazyName& what, std::span<const Send> sends,
                         std::span<const Receive> receives) {
  check();
  base::WatchedDeadline deadline(deadline_.load());
  std::vector<int> missing;
  detector_->heartbeat().enters(channel);
  Wait wait(detector_->heartbeat(), channel);
  try {
    missing = wire_.swap(channel, sends, receives, [&] {
      wait.goes_on();
      return !failed_ && !deadline.is_over();
    });
  } catch (const base::Error&) {
    for (auto waited = milliseconds(0); waited < kForTheName && !failed_; waited += milliseconds(10))
      std::this_thread::sleep_for(milliseconds(10));
    wire_.give_up();
    check();
    throw;
  }
  if (!missing.empty()) lose(missing, what);
}

void ProcessGroup::round_of_members(Channel channel, const LazyName& what, std::span<const Send> sends,
                                    std::span<const Receive> receives) {
  std::vector<Send> to(sends.begin(), sends.end());
  std::vector<Receive> from(receives.begin(), receives.end());
  for (auto& one : to) one.to = number_of(one.to);
  for (auto& one : from) one.from = number_of(one.from);
  round(channel, what, to, from);
}

template <typename Collective>
void ProcessGroup::stage(Staged& staged, const LazyName& what, const Collective& collective) {
  check();
  const Channel channel = &staged == &*reductions_ ? Channel::reductions : Channel::exchanges;
  detector_->heartbeat().enters(channel);
  Wait wait(detector_->heartbeat(), channel);
  std::optional<base::WatchedDeadline> deadline;  // begins at the first check: most collectives end before
  const Staged::KeepWaiting keep_waiting = [&] {
    wait.goes_on();
    if (!deadline) deadline.emplace(deadline_.load());
    return !failed_ && !deadline->is_over();
  };
  if (!collective(staged, keep_waiting)) {
    auto missing = staged.missing();
    for (int& one : missing) one = number_of(one);
    lose(missing, what);
  }
  count(staged.moved());
}

void ProcessGroup::all_reduce(std::span<const float> src, std::span<float> dst) {
  const LazyName what = [&] { return fmt::format("an all-reduce of {} floats", dst.size()); };
  if (reductions_ && wire_format_ == WireFormat::fp32)
    return stage(*reductions_, what, [&](Staged& staged, const Staged::KeepWaiting& keep_waiting) {
      const auto common = common_ ? std::span(*common_) : std::span<const SharedMemory>();
      return staged.all_reduce(src, dst, keep_waiting, common);
    });
  count(exchange_all_reduce(src, dst, process(), processes(), room_, rounds(Channel::reductions, what),
                            wire_format_));
}

void ProcessGroup::reduce_scatter(std::span<const float> src, std::span<float> dst) {
  const LazyName what = [&] { return fmt::format("a reduce-scatter of {} floats each", dst.size()); };
  if (reductions_)
    return stage(*reductions_, what, [&](Staged& staged, const Staged::KeepWaiting& keep_waiting) {
      return staged.reduce_scatter(src, dst, keep_waiting);
    });
  count(exchange_reduce_scatter(src, dst, process(), processes(), room_, rounds(Channel::reductions, what)));
}

void ProcessGroup::all_reduce(std::span<double> values, Reduce reduce) {
  std::vector<double> all(values.size() * static_cast<std::size_t>(processes()));
  all_gather(std::as_bytes(values), std::as_writable_bytes(std::span(all)));
  std::vector<double> column(static_cast<std::size_t>(processes()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t p = 0; p < column.size(); ++p) column[p] = all[p * values.size() + i];
    values[i] = reduced(column, reduce);
  }
}

void ProcessGroup::broadcast(std::span<std::byte> bytes, int root_process) {
  if (bytes.empty()) return;
  const LazyName what = [&] { return fmt::format("a broadcast of {} bytes", bytes.size()); };
  if (exchanges_)
    return stage(*exchanges_, what, [&](Staged& staged, const Staged::KeepWaiting& keep_waiting) {
      return staged.broadcast(bytes, root_process, keep_waiting);
    });
  std::vector<Send> sends;
  std::vector<Receive> receives;
  if (process() == root_process) {
    for (int step = 1; step < processes(); ++step) sends.push_back({(process() + step) % processes(), bytes});
  } else {
    receives.push_back({root_process, bytes});
  }
  round_of_members(Channel::exchanges, what, sends, receives);
  const auto moved = static_cast<std::int64_t>(bytes.size());
  count({.steps = 1,
         .bytes_sent = moved * static_cast<std::int64_t>(sends.size()),
         .bytes_received = moved * static_cast<std::int64_t>(receives.size())});
}

void ProcessGroup::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  const LazyName what = [&] { return fmt::format("an exchange of {} bytes each", mine.size()); };
  if (exchanges_)
    return stage(*exchanges_, what, [&](Staged& staged, const Staged::KeepWaiting& keep_waiting) {
      return staged.all_gather(mine, all, keep_waiting);
    });
  count(exchange_all_gather(mine, all, process(), processes(), rounds(Channel::exchanges, what)));
}

void ProcessGroup::barrier() {
  const LazyName what = [] { return std::string("a barrier"); };
  if (exchanges_)
    return stage(*exchanges_, what, [](Staged& staged, const Staged::KeepWaiting& keep_waiting) {
      return staged.barrier(keep_waiting);
    });
  const std::byte mine{};
  std::vector<std::byte> all(static_cast<std::size_t>(processes()));
  (void)exchange_all_gather(std::span(&mine, 1), all, process(), processes(),
                            rounds(Channel::exchanges, what));
}

void ProcessGroup::count(const Traffic& moved) {
  const std::lock_guard lock(mutex_);
  traffic_ += moved;
}

Traffic ProcessGroup::traffic() const {
  const std::lock_guard lock(mutex_);
  return traffic_;
}

}  // namespace paceline::comm
