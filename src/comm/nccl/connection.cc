#include "comm/nccl/connection.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace paceline::comm::nccl {
namespace {

using base::Clock;
using base::ErrorKind;

constexpr std::chrono::milliseconds kWatchPause{10};
constexpr std::chrono::microseconds kPollPause{100};
constexpr std::chrono::milliseconds kShort{
    1};  ///< calls that happen in every step end within this time, without a sleep

}  // namespace

Connection::Connection(const Api& api, std::unique_ptr<base::SideStream> stream, Communicator& host,
                       std::chrono::milliseconds deadline)
    : api_(api), stream_(std::move(stream)), host_(host), deadline_(deadline) {}

Connection::~Connection() {
  watch_.reset();
  // Not ncclCommFinalize and ncclCommDestroy, which wait for peers: the communicators of this process end one
  // after the other in one thread. Collectives are done by now, or have failed.
  const std::lock_guard lock(mutex_);
  if (comm_ != nullptr) (void)api_.ncclCommAbort(comm_);
}

void Connection::open(const UniqueId& id) {
  stream_->enter();
  Config config;
  {
    Lock lock(mutex_);
    const auto status = api_.ncclCommInitRankConfig(&comm_, host_.size(), id, host_.rank(), &config);
    settle(lock, "the start", "ncclCommInitRankConfig", status);
  }
  watch_.emplace(std::min(kWatchPause, deadline_), [this] { look(); });
}

OperationRef Connection::post(const char* name, std::size_t count, const char* function, const Call& call,
                              const Finish& finish) {
  stream_->enter();
  Lock lock(mutex_);
  throw_failure();
  OperationRef operation = new_operation();
  operation->name = name;
  operation->count = count;
  operation->number = ++posted_;
  posting_ = operation;
  stream_->follow_engine();
  stream_->set(operation->begin);
  settle(lock, text_of(*operation), function, call(comm_, stream_->native()));
  if (finish) finish(*stream_);
  stream_->set(operation->end);
  operation->is_under_way = true;
  posting_.reset();
  return operation;
}

OperationRef Connection::new_operation() {
  for (const auto& one : operations_) {
    if (one->is_under_way && stream_->is_done(one->end)) one->is_under_way = false;
    if (!one->is_under_way && one.use_count() == 1) return one;
  }
  operations_.push_back(std::make_shared<Operation>());
  operations_.back()->begin = stream_->make_mark();
  operations_.back()->end = stream_->make_mark();
  return operations_.back();
}

void Connection::settle(Lock& lock, const std::string& what, const char* function, Status status) {
  const auto begin = Clock::now();
  while (status == kInProgress) {
    const auto gone = Clock::now() - begin;
    const bool is_long = gone > kShort;
    lock.unlock();  // so that the watch thread can run
    is_long ? std::this_thread::sleep_for(kPollPause) : std::this_thread::yield();
    lock.lock();
    throw_failure();
    try {
      if (is_long) host_.check();
    } catch (const base::Error& error) {
      give_up(error.kind(), fmt::format("{}: {} was aborted: {}", who(), what, error.what()));
    }
    if (gone >= deadline_) give_up(ErrorKind::comm, late(what));
    throw_failure();
    Status state = kSuccess;
    status = api_.ncclCommGetAsyncError(comm_, &state);
    if (status == kSuccess) status = state;
  }
  if (status == kSuccess) return;
  give_up(ErrorKind::comm, fmt::format("{}: {} failed: {}; NCCL_DEBUG=INFO in the environment says more",
                                       who(), what, describe_error(api_, comm_, status, function)));
  throw_failure();
}

void Connection::order(const Operation& operation) {
  const Lock lock(mutex_);
  throw_failure();
  stream_->engine_follows(operation.end);
}

bool Connection::is_done(const Operation& operation) const {
  const Lock lock(mutex_);
  return stream_->is_done(operation.end);
}

Timing Connection::timing(const Operation& operation) {
  stream_->wait(operation.end);  // without the mutex, so that the watch thread can end the wait
  const Lock lock(mutex_);
  throw_failure();
  return {.posted = stream_->done_at(operation.begin), .done = stream_->done_at(operation.end)};
}

void Connection::look() {
  const Lock lock(mutex_);
  if (failure_) return;
  OperationRef oldest;
  try {
    for (const auto& one : operations_) {
      if (one->is_under_way && stream_->is_done(one->end)) one->is_under_way = false;
      if (one->is_under_way && (oldest == nullptr || one->number < oldest->number)) oldest = one;
    }
    const auto& named = oldest == nullptr ? posting_ : oldest;
    const std::string what = named == nullptr ? "what comes next" : text_of(*named);
    Status state = kSuccess;
    Status status = api_.ncclCommGetAsyncError(comm_, &state);
    if (status == kSuccess && state != kInProgress) status = state;
    if (status != kSuccess)
      return give_up(ErrorKind::comm,
                     fmt::format("{}: {} failed: {}; NCCL_DEBUG=INFO in the environment says more", who(),
                                 what, describe_error(api_, comm_, status, "ncclCommGetAsyncError")));
    try {
      host_.check();
    } catch (const base::Error& error) {
      return give_up(error.kind(), fmt::format("{}: {} was aborted: {}", who(), what, error.what()));
    }
    // A collective that the device has not reached waits for the engine, not for a peer.
    if (oldest == nullptr || !stream_->is_done(oldest->begin)) return;
    if (watched_ != oldest->number) {
      watched_ = oldest->number;
      watched_since_ = Clock::now();
    } else if (Clock::now() - watched_since_ > deadline_) {
      give_up(ErrorKind::comm, late(what));
    }
  } catch (const std::exception& error) {  // an error of the device, which the engine's thread also gets
    give_up(ErrorKind::device, fmt::format("{}: {}", who(), error.what()));
  }
}

void Connection::check() const {
  const Lock lock(mutex_);
  throw_failure();
}

std::string Connection::who() const {
  return fmt::format("nccl: rank {} of {} (device {})", host_.rank(), host_.size(), stream_->device());
}

std::string Connection::text_of(const Operation& operation) {
  return fmt::format("{} {} of {} floats", operation.name, operation.number, operation.count);
}

std::string Connection::late(const std::string& what) const {
  return fmt::format(
      "{}: {} is not complete {} after it began (--deadline): a rank has not entered it, or the link "
      "between the devices hangs; read what the other ranks report, or give a longer --deadline",
      who(), what,
      deadline_ % std::chrono::seconds(1) == std::chrono::milliseconds(0)
          ? fmt::format("{} s", deadline_.count() / 1000)
          : fmt::format("{} ms", deadline_.count()));
}

void Connection::give_up(ErrorKind kind, const std::string& text) {
  if (failure_) return;
  failure_.emplace(kind, text);
  if (comm_ != nullptr) (void)api_.ncclCommAbort(std::exchange(comm_, nullptr));
  host_.abort(text, kind);
}

void Connection::throw_failure() const {
  if (failure_) throw *failure_;
}

}  // namespace paceline::comm::nccl
