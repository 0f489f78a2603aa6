#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "comm/failure/stall_detector.h"
#include "comm/local/group.h"

// The second half of a reduction, between processes, which the group's thread does or a rank that waits.

namespace paceline::comm::local {
namespace {

using base::Clock;
using std::chrono::milliseconds;

/// Up to this size the cost of a reduction between processes is its latency.
constexpr std::size_t kLeftToWaiter = 4096;  ///< floats

constexpr int kLooks = 12;  ///< checks until a late rank is reported
constexpr milliseconds kSaidAgain{60000};

/// Counts a waiting thread during its lifetime. Constructor and destructor require the mutex.
struct Waits {
  explicit Waits(int& threads) : threads(threads) { ++threads; }
  ~Waits() { --threads; }
  Waits(const Waits&) = delete;
  Waits& operator=(const Waits&) = delete;
  int& threads;
};

void pause_thread() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

void Group::queue_across(const OperationRef& operation) {
  operation->left_to_waiter =
      ranks_ == 1 && !across_busy_ && operation->what.count <= kLeftToWaiter &&
      std::all_of(summed_.begin(), summed_.end(), [](const auto& other) { return other->left_to_waiter; });
  summed_.push_back(operation);
  if (operation->left_to_waiter) return;
  for (const auto& other : summed_) other->left_to_waiter = false;
  across_wake_.notify_one();
}

void Group::help(Operation& operation) {
  std::unique_lock lock(mutex_);
  while (!operation.done && !failed_ && !across_busy_ && !summed_.empty()) do_next_across(lock);
}

void Group::do_next_across(std::unique_lock<std::mutex>& lock) {
  const OperationRef operation = summed_.front();
  summed_.pop_front();
  across_busy_ = true;
  ++operation->working;
  if (operation->left_to_waiter) operation->begun_at = base::Clock::now();
  lock.unlock();
  std::string failure;
  try {
    go_across(*operation);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  lock.lock();
  across_busy_ = false;
  --operation->working;
  if (failure.empty()) {
    if (ranks_ == 1) ++traffic_[0].collectives;
    finish_reduction(*operation);
    if (!summed_.empty() && !summed_.front()->left_to_waiter) across_wake_.notify_one();
  } else {
    if (!failed_) fail(failure);
    changed_.notify_all();
  }
}

void Group::serve_across() {
  std::unique_lock lock(mutex_);
  while (true) {
    across_wake_.wait(lock, [&] {
      const bool has_work = !summed_.empty() && !summed_.front()->left_to_waiter;
      return is_over_ || (!failed_ && !across_busy_ && has_work);
    });
    if (is_over_) return;
    do_next_across(lock);
  }
}

void Group::go_across(Operation& operation) const {
  const std::size_t count = operation.what.count;
  const bool is_alone = ranks_ == 1;
  const auto* const source = static_cast<const float*>(operation.places[0].source);
  const auto target = [&](std::size_t rank) { return static_cast<float*>(operation.places[rank].target); };
  if (operation.what.kind == OperationKind::all_reduce) {
    across_->all_reduce(std::span(is_alone ? source : target(0), count), std::span(target(0), count));
    for (std::size_t rank = 1; rank < operation.places.size(); ++rank)
      std::copy_n(target(0), count, target(rank));
    return;
  }
  const std::size_t all = count * static_cast<std::size_t>(world());
  if (is_alone) {
    across_->reduce_scatter({source, all}, {target(0), count});
    return;
  }
  const auto sum = operation.sum.as<float>().first(all);
  const auto ours =
      sum.subspan(count * static_cast<std::size_t>(first_rank()), count * static_cast<std::size_t>(ranks_));
  across_->reduce_scatter(sum, ours);
  for (std::size_t rank = 0; rank < operation.places.size(); ++rank)
    std::copy_n(ours.data() + rank * count, count, target(rank));
}

// Waiting of a rank for the other ranks of its process, and detection of those that do not come. With several
// processes, process 0 reports late ranks, and learns from here which rank of this process it is. A single
// process also detects here that all its ranks hang while none waits in a collective.

void Group::at(int rank, std::int64_t step, const char* phase) {
  auto& where = where_[static_cast<std::size_t>(rank)];
  where.step.store(step, std::memory_order_relaxed);
  where.phase.store(phase, std::memory_order_relaxed);
  where.signs.store(where.signs.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (rank == 0 && across_ != nullptr) across_->at(step, phase);
}

void Group::wait(Operation& operation) {
  const bool is_reduction = operation.what.kind == OperationKind::all_reduce ||
                            operation.what.kind == OperationKind::reduce_scatter;
  if (across_ != nullptr && is_reduction) help(operation);
  for (int spin = 0; spin < spins_; ++spin) {
    if (operation.done.load(std::memory_order_acquire)) return;
    pause_thread();
  }
  std::unique_lock lock(mutex_);
  const Waits waits(waiting_);
  const auto settled = [&] { return operation.done || (failed_ && operation.working == 0); };
  const auto begin = Clock::now();
  base::WatchedDeadline deadline(deadline_);
  const auto look = stall_options_.held_up / kLooks;
  if (!changed_.wait_until(lock, std::min(begin + look, deadline.until()), settled)) {
    StallDetector stall_detector(begin, look, stall_options_.held_up);
    WorkMeter work;
    do {
      look_for_who_is_late(lock, operation, stall_detector, work);
    } while (!changed_.wait_until(lock, std::min(Clock::now() + look, deadline.until()), settled) &&
             !deadline.is_over());
    // Not where this process gives up: process 0 reaches the same deadline, and then still names the late
    // rank.
    if (across_ != nullptr && (settled() || operation.arrived == ranks_)) across_->held_up_by({});
  }
  if (!settled()) {
    // The half between processes has its own deadline, and names late processes itself.
    const bool under_way = across_ != nullptr && operation.arrived == ranks_;
    if (!failed_ && !under_way) fail(late(operation));
    changed_.wait(lock, settled);  // bounded: parts that have begun end, and no others begin
  }
  if (operation.done) return;
  throw_if_failed();
}

RankStatus Group::place_of_rank(int rank) const {
  const auto me = static_cast<std::size_t>(rank);
  RankStatus where{.step = where_[me].step.load(std::memory_order_relaxed),
                   .collectives = reductions_.next[me] + exchanges_.next[me],
                   .rank = first_rank() + rank};
  if (const char* phase = where_[me].phase.load(std::memory_order_relaxed)) where.phase = phase;
  return where;
}

std::vector<RankStatus> Group::places_of_ranks() const {
  std::vector<RankStatus> places;
  for (int rank = 0; rank < ranks_; ++rank) places.push_back(place_of_rank(rank));
  return places;
}

void Group::look_for_who_is_late(std::unique_lock<std::mutex>& lock, const Operation& operation,
                                 StallDetector& stall_detector, WorkMeter& work) {
  const auto places = places_of_ranks();
  if (across_ != nullptr) {
    const bool by_one = operation.arrived == ranks_ - 1;
    const auto missing = std::find(operation.came.begin(), operation.came.end(), false);
    across_->held_up_by(
        by_one ? std::optional(places[static_cast<std::size_t>(missing - operation.came.begin())])
               : std::nullopt);
    return;
  }
  const auto now = Clock::now();
  const auto held = stall_detector.look(places, operation.came, work.has_worked(), now);
  std::vector<std::string> texts;
  for (const auto rank : held.by) {
    auto& said = said_[rank];
    if (said != base::TimePoint{} && now - said < kSaidAgain) continue;
    said = now;
    texts.push_back(text_of_waiting(held.waited, name_of_rank(static_cast<int>(rank)), deadline_));
  }
  if (texts.empty() || !stall_options_.say) return;
  lock.unlock();
  for (const auto& text : texts) stall_options_.say(text);
  lock.lock();
}

void Group::look_for_standstill() {
  const auto look = stall_options_.held_up / kLooks;
  const std::vector<bool> none(static_cast<std::size_t>(ranks_));
  std::optional<StallDetector> stall_detector;
  WorkMeter work;
  std::int64_t signs = 0;
  base::TimePoint said{};
  std::unique_lock lock(mutex_);
  while (!over_.wait_for(lock, look, [&] { return is_over_; }) && !failed_) {
    std::int64_t signs_now = 0;
    for (const auto& where : where_) signs_now += where.signs.load(std::memory_order_relaxed);
    const bool has_told = std::exchange(signs, signs_now) != signs_now;
    const bool has_worked = work.has_worked() || has_told;
    if (waiting_ > 0) {  // a waiting rank checks by itself
      stall_detector.reset();
      continue;
    }
    const auto now = Clock::now();
    if (!stall_detector) stall_detector.emplace(now, look, stall_options_.held_up);
    const auto held = stall_detector->look(places_of_ranks(), none, has_worked, now);
    if (held.by.empty()) continue;
    std::vector<std::string> names;
    for (int rank = 0; rank < ranks_; ++rank) names.push_back(name_of_rank(rank));
    const auto text = text_of_standstill(held.rested, names);
    if (held.rested >= deadline_) return fail(text + "; the run is given up");
    if (said != base::TimePoint{} && now - said < kSaidAgain) continue;
    said = now;
    lock.unlock();
    stall_options_.say(text + text_of_giving_up(deadline_));
    lock.lock();
  }
}

std::string Group::name_of_rank(int rank) const {
  const auto where = place_of_rank(rank);
  return fmt::format("rank {} on host {} (last in {})", where.rank, base::host_name(), place_of(where));
}

std::string Group::late(const Operation& operation) const {
  std::vector<std::string> missing;
  for (int rank = 0; rank < ranks_; ++rank)
    if (!operation.came[static_cast<std::size_t>(rank)]) missing.push_back(name_of_rank(rank));
  if (missing.empty())
    return fmt::format(
        "{} (number {}) was not complete within {} s although every rank has entered it; the machine is "
        "overloaded, or the thread of a rank hangs",
        to_string(operation.what), operation.sequence, base::seconds(deadline_));
  return fmt::format("{} did not enter {} (number {}) within {} s; look there for what holds it up",
                     fmt::join(missing, ", "), to_string(operation.what), operation.sequence,
                     base::seconds(deadline_));
}

}  // namespace paceline::comm::local
