#include "comm/processes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <thread>

#include "base/error.h"
#include "comm/tree.h"

namespace paceline::comm {
namespace {

using std::chrono::milliseconds;

/// A process that dies breaks its messages and its watch at the same time: how long the watch, which knows
/// its name and place, is waited for before the broken message is told instead.
constexpr milliseconds kForTheName{1500};
constexpr milliseconds kForTheRecord{5000};

double combine(Reduce reduce, double left, double right) {
  switch (reduce) {
    case Reduce::sum:
      return left + right;
    case Reduce::min:
      return right < left ? right : left;
    case Reduce::max:
      return right > left ? right : left;
  }
  return left;
}

}  // namespace

Processes::Processes(Wire& wire, ProcessesOptions options, std::function<void(const std::string&)> say)
    : wire_(wire),
      ranks_each_(options.ranks_each),
      deadline_(options.deadline),
      say_(std::move(say)),
      carried_(options.carried) {
  try {
    connect(options.watch);
  } catch (...) {
    wire_.give_up();
    throw;
  }
}

void Processes::connect(const WatchOptions& options) {
  Address address;
  const auto until = base::Clock::now() + options.connecting;
  const auto in_time = [&] { return base::Clock::now() < until; };
  std::vector<Send> sends;
  std::vector<Receive> receives;
  if (process() == 0) {
    watch_ = std::make_unique<Watch>(processes(), options);
    address = watch_->address();
    for (int other = 1; other < processes(); ++other)
      sends.push_back({other, std::as_bytes(std::span(&address, 1))});
  } else {
    receives.push_back({0, std::as_writable_bytes(std::span(&address, 1))});
  }
  if (const auto missing = wire_.swap(Channel::exchanges, sends, receives, in_time); !missing.empty())
    base::fail(base::ErrorKind::comm, "{}: process {} did not answer within {} s of its start", name(),
               fmt::join(missing, ", "), options.connecting.count() / 1000);
  if (process() != 0) watch_ = std::make_unique<Watch>(process(), address, options);
  watch_->start({.ranks_of = [this](int other) { return ranks_of(other); },
                 .on_failure = [this](const Failure& failure) { take_failure(failure); },
                 .warn =
                     [this](const std::string& text) {
                       if (say_) say_(text);
                     }});
}

std::string Processes::ranks_of(int process) const {
  const int each = ranks_each_;
  if (each == 1) return fmt::format("rank {}", process);
  return fmt::format("ranks {} to {}", process * each, (process + 1) * each - 1);
}

void Processes::take_failure(const Failure& failure) {
  failed_ = true;
  if (process() == 0 && say_) say_(failure.text);
  const std::lock_guard lock(mutex_);
  if (on_failure_) on_failure_(failure.text);
}

void Processes::fail(const std::string& reason, base::ErrorKind kind) {
  failed_ = true;
  watch_->fail({.kind = kind, .text = reason});
}

void Processes::on_failure(std::function<void(const std::string&)> told) {
  const std::lock_guard lock(mutex_);
  on_failure_ = std::move(told);
}

void Processes::at(std::int64_t step, const char* phase) { watch_->at(step, phase); }

bool Processes::farewell() {
  wire_.give_up();
  return watch_->wait_until_heard(kForTheRecord);
}

void Processes::check() const {
  if (!failed_) return;
  const auto failure = watch_->failure();
  throw base::Error(base::ErrorKind::comm, failure ? failure->text : "another process has failed");
}

std::string Processes::late(const std::vector<int>& missing, const std::string& what) const {
  std::vector<std::string> names;
  for (const int other : missing) names.push_back(watch_->describe(other));
  return fmt::format("{} did not come to {} within {} s; look there for what holds it up",
                     fmt::join(names, ", "), what, deadline_.load().count());
}

void Processes::round(Channel channel, const std::string& what, std::span<const Send> sends,
                      std::span<const Receive> receives) {
  check();
  const auto until = base::Clock::now() + deadline_.load();
  std::vector<int> missing;
  try {
    missing = wire_.swap(channel, sends, receives, [&] { return !failed_ && base::Clock::now() < until; });
  } catch (const base::Error&) {
    for (auto waited = milliseconds(0); waited < kForTheName && !failed_; waited += milliseconds(10))
      std::this_thread::sleep_for(milliseconds(10));
    wire_.give_up();
    check();
    throw;
  }
  if (missing.empty()) return;
  wire_.give_up();
  if (!failed_) fail(late(missing, what), base::ErrorKind::comm);
  check();
}

void Processes::all_reduce(std::span<float> values) {
  const Round round = [&](std::span<const Send> sends, std::span<const Receive> receives) {
    this->round(Channel::reductions, fmt::format("an all-reduce of {} floats", values.size()), sends,
                receives);
  };
  count(exchange_all_reduce(values, process(), processes(), room_, round, carried_));
}

void Processes::all_reduce(std::span<double> values, Reduce reduce) {
  std::vector<double> all(values.size() * static_cast<std::size_t>(processes()));
  all_gather(std::as_bytes(values), std::as_writable_bytes(std::span(all)));
  std::vector<double> column(static_cast<std::size_t>(processes()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t p = 0; p < column.size(); ++p) column[p] = all[p * values.size() + i];
    values[i] =
        tree_fold<double>(column, [&](double left, double right) { return combine(reduce, left, right); });
  }
}

void Processes::broadcast(std::span<std::byte> bytes, int root_process) {
  if (bytes.empty()) return;
  std::vector<Send> sends;
  std::vector<Receive> receives;
  if (process() == root_process) {
    for (int step = 1; step < processes(); ++step) sends.push_back({(process() + step) % processes(), bytes});
  } else {
    receives.push_back({root_process, bytes});
  }
  round(Channel::exchanges, fmt::format("a broadcast of {} bytes", bytes.size()), sends, receives);
  const auto moved = static_cast<std::int64_t>(bytes.size());
  count({.rounds = 1,
         .bytes_sent = moved * static_cast<std::int64_t>(sends.size()),
         .bytes_received = moved * static_cast<std::int64_t>(receives.size())});
}

void Processes::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  const Round round = [&](std::span<const Send> sends, std::span<const Receive> receives) {
    this->round(Channel::exchanges, fmt::format("an exchange of {} bytes each", mine.size()), sends,
                receives);
  };
  count(exchange_all_gather(mine, all, process(), processes(), round));
}

void Processes::barrier() {
  const std::byte mine{};
  std::vector<std::byte> all(static_cast<std::size_t>(processes()));
  const Round round = [&](std::span<const Send> sends, std::span<const Receive> receives) {
    this->round(Channel::exchanges, "a barrier", sends, receives);
  };
  (void)exchange_all_gather(std::span(&mine, 1), all, process(), processes(), round);
}

void Processes::count(const Moved& moved) {
  const std::lock_guard lock(mutex_);
  traffic_.steps += moved.rounds;
  traffic_.bytes_sent += moved.bytes_sent;
  traffic_.bytes_received += moved.bytes_received;
}

Traffic Processes::traffic() const {
  const std::lock_guard lock(mutex_);
  return traffic_;
}

}  // namespace paceline::comm
