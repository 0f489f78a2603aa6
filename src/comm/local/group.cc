#include "comm/local/group.h"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/word_of.h"
#include "comm/algorithms/direct.h"

namespace paceline::comm::local {
namespace {

/// About 10 microseconds of spinning, the length of a small exchange between running ranks. Longer spinning
/// would take the core from this rank's progress thread, which is pinned to it.
constexpr int kSpins = 200;

/// The text of an Error(comm), which here only ProcessGroup throws; "" for other errors.
std::string between_processes(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const base::Error& known) {
    return known.kind() == base::ErrorKind::comm ? known.what() : "";
  } catch (...) {
    return "";
  }
}

}  // namespace

std::string to_string(const Description& what) {
  const auto text = base::word_of<OperationKind::barrier>(
      what.kind,
      {"all-reduce of {0} floats", "reduce-scatter of {0} floats a rank",
       "memory of {0} bytes for reductions", "{2} of {0} doubles", "broadcast of {0} bytes from rank {1}",
       "all-gather of {0} bytes a rank", "scatter of {0} bytes a rank from rank {1}",
       "gather of {0} bytes a rank at rank {1}", "sum of {0} floats at rank {1}", "barrier"});
  const auto reduction = base::word_of<Reduce::max>(what.reduce, {"sum", "min", "max"});
  return fmt::format(fmt::runtime(text), what.count, what.root, reduction);
}

void Operation::begin(const Description& description, std::int64_t number) {
  what = description;
  sequence = number;
  std::fill(came.begin(), came.end(), false);
  arrived = working = finished = 0;
  left_to_waiter = false;
  begun_at = done_at = {};
  done.store(false, std::memory_order_relaxed);
}

Group::Group(int ranks, std::chrono::milliseconds deadline, ProcessGroup* across, StallOptions stall_options)
    : ranks_(ranks),
      across_(across),
      deadline_(deadline),
      stall_options_(std::move(stall_options)),
      spins_(ranks <= static_cast<int>(std::thread::hardware_concurrency()) ? kSpins : 0),
      reductions_(ranks),
      exchanges_(ranks),
      traffic_(static_cast<std::size_t>(ranks)),
      said_(static_cast<std::size_t>(ranks)),
      where_(static_cast<std::size_t>(ranks)) {
  base::expects(ranks >= 1, "ranks >= 1");
  for (int rank = 0; rank < ranks; ++rank) progress_.push_back(std::make_unique<ProgressThread>());
  if (across_ == nullptr) {
    if (stall_options_.say) standstill_thread_ = std::thread([this] { look_for_standstill(); });
    return;
  }
  across_->on_failure([this](const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (!failed_) fail(reason);
  });
}

Group::~Group() {
  if (across_ != nullptr) across_->on_failure({});
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    across_wake_.notify_one();
    over_.notify_one();
  }
  if (across_thread_.joinable()) across_thread_.join();
  if (standstill_thread_.joinable()) standstill_thread_.join();
}

OperationRef Group::post(int rank, const Description& what, RankBuffers place) {
  const std::lock_guard lock(mutex_);
  auto operation = arrive(reductions_, rank, what, place);
  if (operation->arrived == ranks_) begin_reduction(operation);
  return operation;
}

void Group::exchange(int rank, const Description& what, RankBuffers place, const Work& work) {
  std::unique_lock lock(mutex_);
  const OperationRef operation = arrive(exchanges_, rank, what, place);
  if (operation->arrived < ranks_) {
    lock.unlock();
    wait(*operation);
    return;
  }
  ++operation->working;
  lock.unlock();
  try {
    work(operation->places);
  } catch (...) {
    // An error between processes has its own reason; any other error is this rank's.
    const auto reason = between_processes(std::current_exception());
    lock.lock();
    --operation->working;
    if (!failed_)
      fail(reason.empty()
               ? fmt::format("rank {} could not do its part of {}", first_rank() + rank, to_string(what))
               : reason);
    changed_.notify_all();
    throw;
  }
  lock.lock();
  --operation->working;
  operation->done_at = base::Clock::now();
  operation->done.store(true, std::memory_order_release);
  exchanges_.drop_done();
  changed_.notify_all();
}

void Group::give_up(Operation& operation, int rank) noexcept {
  std::unique_lock lock(mutex_);
  if (operation.done) return;
  if (!failed_)
    fail(fmt::format(
        "rank {} left {} (call {} of the run) before it was complete, most likely after an error that rank {} reports",
        first_rank() + rank, to_string(operation.what), operation.sequence, first_rank() + rank));
  changed_.wait(lock, [&] { return operation.working == 0; });
}

void Group::serve(int rank) {
  auto& mine = *progress_[static_cast<std::size_t>(rank)];
  std::unique_lock lock(mutex_);
  while (true) {
    OperationRef operation;
    mine.wake.wait(lock, [&] {
      if (mine.stop || failed_) return mine.stop;
      const auto at = static_cast<std::size_t>(mine.next - reductions_.first);
      if (at >= reductions_.open.size() || reductions_.open[at]->arrived < ranks_) return false;
      operation = reductions_.open[at];
      return true;
    });
    if (mine.stop) return;
    ++mine.next;
    ++operation->working;
    lock.unlock();

    const Traffic moved = do_part(*operation, rank);

    lock.lock();
    traffic_[static_cast<std::size_t>(rank)] += moved;
    --operation->working;
    if (++operation->finished == ranks_) {
      if (across_ == nullptr) {
        finish_reduction(*operation);
      } else {
        queue_across(operation);
      }
      if (failed_) changed_.notify_all();
    } else if (failed_ && operation->working == 0) {
      changed_.notify_all();
    }
  }
}

Traffic Group::do_part(Operation& operation, int rank) const {
  const auto ranks = static_cast<std::size_t>(ranks_);
  const std::size_t count = operation.what.count;
  std::vector<const float*> sources(ranks);
  std::vector<float*> targets(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    sources[r] = static_cast<const float*>(operation.places[r].source);
    targets[r] = static_cast<float*>(operation.places[r].target);
  }
  Segment segment = direct_segment(count, rank, ranks_);
  const bool is_scatter = operation.what.kind == OperationKind::reduce_scatter;
  if (!is_scatter) {
    direct_all_reduce(sources, targets, segment);
  } else if (across_ == nullptr) {
    const auto me = static_cast<std::size_t>(rank);
    segment = {me * count, (me + 1) * count};
    direct_sum(sources, segment, targets[me]);
  } else {  // the process's sum must be complete before parts are sent to other processes
    segment = direct_segment(count * static_cast<std::size_t>(world()), rank, ranks_);
    direct_sum(sources, segment, operation.sum.as<float>().data() + segment.begin);
  }
  const auto moved = static_cast<std::int64_t>(segment.count() * sizeof(float)) * (ranks_ - 1);
  return {.collectives = 1, .steps = 1, .bytes_sent = is_scatter ? 0 : moved, .bytes_received = moved};
}

void Group::begin_reduction(const OperationRef& operation) {
  if (across_ != nullptr && !across_thread_.joinable())
    across_thread_ = std::thread([this] { serve_across(); });
  if (ranks_ > 1) {
    if (across_ != nullptr && operation->what.kind == OperationKind::reduce_scatter)
      operation->sum =
          base::Buffer(operation->what.count * static_cast<std::size_t>(world()) * sizeof(float));
    for (auto& progress : progress_) progress->wake.notify_one();
    return;
  }
  queue_across(operation);  // a single rank has nothing to add here
}

void Group::finish_reduction(Operation& operation) {
  operation.done_at = base::Clock::now();
  operation.done.store(true, std::memory_order_release);
  reductions_.drop_done();
  changed_.notify_all();
}

void Group::stop(int rank) noexcept {
  const std::lock_guard lock(mutex_);
  if (!failed_ && !(reductions_.open.empty() && exchanges_.open.empty()))
    fail(fmt::format("rank {} has ended while others wait for it", first_rank() + rank));
  auto& mine = *progress_[static_cast<std::size_t>(rank)];
  mine.stop = true;
  mine.wake.notify_one();
}

void Group::abort(int rank, const std::string& reason, base::ErrorKind kind) {
  const auto text = fmt::format("rank {} gave up: {}", first_rank() + rank, reason);
  {
    const std::lock_guard lock(mutex_);
    if (failed_) return;
    fail(text, kind);
  }
  if (across_ != nullptr) across_->fail(text, kind);
}

void Group::check() const {
  const std::lock_guard lock(mutex_);
  throw_if_failed();
}

Traffic Group::traffic(int rank) const {
  // Traffic between processes belongs to all ranks of the group; it is counted once, for the first.
  Traffic sum = across_ != nullptr && rank == 0 ? across_->traffic() : Traffic{};
  const std::lock_guard lock(mutex_);
  return sum += traffic_[static_cast<std::size_t>(rank)];
}

void Group::count(int rank, const Traffic& more) {
  const std::lock_guard lock(mutex_);
  traffic_[static_cast<std::size_t>(rank)] += more;
}

void Group::CollectiveQueue::drop_done() {
  while (!open.empty() && open.front()->done) {
    spare = std::move(open.front());
    open.pop_front();
    ++first;
  }
}

/// Reuses a finished operation that nobody refers to any more, since allocating one takes a tenth of a small
/// message's time between processes. Only with a single rank: then all other threads release operations while
/// they hold the mutex, and this rank is the one that arrives.
OperationRef Group::new_operation(CollectiveQueue& queue) const {
  if (ranks_ == 1 && queue.spare && queue.spare.use_count() == 1) return std::move(queue.spare);
  return std::make_shared<Operation>(ranks_);
}

OperationRef Group::arrive(CollectiveQueue& queue, int rank, const Description& what, RankBuffers place) {
  throw_if_failed();
  const auto me = static_cast<std::size_t>(rank);
  const std::int64_t sequence = queue.next[me]++;
  const auto at = static_cast<std::size_t>(sequence - queue.first);
  if (at == queue.open.size()) {
    queue.open.push_back(new_operation(queue));
    queue.open.back()->begin(what, sequence);
  }
  OperationRef operation = queue.open[at];
  if (operation->what != what) {
    fail(fmt::format(
        "rank {} calls {} where an earlier rank called {} (number {} of its kind); all ranks must call "
        "the same collectives with the same sizes in the same order",
        first_rank() + rank, to_string(what), to_string(operation->what), sequence));
    throw_if_failed();
  }
  operation->places[me] = place;
  operation->came[me] = true;
  ++operation->arrived;
  return operation;
}

void Group::fail(std::string text, base::ErrorKind kind) {
  if (!failed_ && stall_options_.failed) stall_options_.failed(text, kind);
  failed_ = true;
  failure_ = std::move(text);
  changed_.notify_all();
}

void Group::throw_if_failed() const {
  if (!failed_) return;
  throw base::Error(base::ErrorKind::comm, across_ == nullptr ? "local communicator: " + failure_ : failure_);
}

}  // namespace paceline::comm::local
