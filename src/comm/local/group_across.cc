#include <algorithm>
#include <exception>
#include <span>
#include <string>

#include "base/buffer.h"
#include "base/clock.h"
#include "comm/local/group.h"

// The second half of a reduction, between processes. The group's thread does it, so that it continues while
// the ranks compute; or a rank that waits, if the thread has not begun. A small message with nothing before
// it is left to the waiting rank, since waking a thread takes longer than the message.

namespace paceline::comm::local {
namespace {

/// Up to this size the cost of a reduction between processes is its latency.
constexpr std::size_t kLeftToWaiter = 4096;  ///< floats

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

}  // namespace paceline::comm::local
