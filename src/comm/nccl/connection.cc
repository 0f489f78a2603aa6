#include "comm/nccl/connection.h"

#include <algorithm>
#include <condition_variable>
#include <utility>

namespace paceline::comm::nccl {

namespace {

using base::Clock;
using base::ErrorKind;
using std::chrono::milliseconds;

constexpr milliseconds kWatchPause{10};
constexpr std::chrono::microseconds kPollPause{100};
constexpr milliseconds kShort{1};  ///< calls that happen in every step end within this time, without a sleep

/// A call hangs if it has not returned for this time (or the deadline, if that is shorter) after the
/// deadline, or after a failure.
///
/// Before a failure some calls rightly take long: the start of many ranks, the first launch of a kernel that
/// the driver compiles, during which it holds a lock that every other call needs. All of them may take the
/// deadline, and cannot need more: meanwhile this rank posts nothing, so the others give it up after the
/// deadline in any case. With no collective under way the device is not asked, so compiling before the first
/// step has no limit here. After a failure only ncclCommAbort follows, which waits for nobody but the device.
constexpr milliseconds kToReturn{2000};

/// What a look counts at most as time since the last one. A process that was suspended for an hour has waited
/// for nobody, and its threads must get time to say so.
constexpr milliseconds kLongestPause{50};

constexpr const char* kOfDevice = "a call of the device";
constexpr const char* kInit = "ncclCommInitRankConfig";

/// Calls `look`, which must not throw, every `pause`, and a last time when the thread is to stop.
std::jthread call_every(milliseconds pause, std::function<void()> look) {
  return std::jthread([pause, look = std::move(look)](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    for (bool is_last = false; !is_last;) {
      is_last = wake.wait_for(lock, stop, pause, [&] { return stop.stop_requested(); });
      look();
    }
  });
}

std::string text_of(const CollectiveName& name) {
  return fmt::format("{} {} of {} floats", name.function, name.number, name.count);
}

std::string text_of(milliseconds time) {
  return time % std::chrono::seconds(1) == milliseconds(0) ? fmt::format("{} s", time.count() / 1000)
                                                           : fmt::format("{} ms", time.count());
}

}  // namespace

Connection::Connection(const Api& api, std::unique_ptr<base::SideStream> stream, Communicator& host,
                       milliseconds deadline, bool is_blocking, std::function<void(const std::string&)> hangs)
    : api_(api),
      stream_(std::move(stream)),
      host_(host),
      deadline_(deadline),
      patience_(std::min(kToReturn, deadline)),
      is_blocking_(is_blocking),
      who_(fmt::format("nccl: rank {} of {} (device {})", host.rank(), host.size(), stream_->device())),
      hangs_(std::move(hangs)) {}

Connection::~Connection() {
  is_over_ = true;
  if (opens_.joinable()) opens_.join();
  asks_ = {};  // its last look aborts
  call_ = "the end of the stream";
  stream_.reset();
  decides_ = {};  // after all that may not return
}

void Connection::open(const UniqueId& id) {
  decided_ = Clock::now();
  const auto pause = std::min(kWatchPause, deadline_);
  asks_ = call_every(pause, [this] { ask(); });
  decides_ = call_every(pause, [this] { decide(); });
  if (is_blocking_) open_in_thread(id);
  Lock lock = enter();
  if (!is_blocking_) {
    stream_->enter();
    call_ = kInit;
    join(id);
  }
  settle(lock, in_progress(), kInit, opened_);
  const std::lock_guard brief(mutex_);
  is_open_ = true;
}

void Connection::join(const UniqueId& id) {
  Config config{.blocking = is_blocking_ ? 1 : 0};
  Comm comm = nullptr;
  opened_ = api_.ncclCommInitRankConfig(&comm, host_.size(), id, host_.rank(), &config);
  comm_ = comm;  // ask() aborts it if the rank has failed meanwhile
}

void Connection::open_in_thread(const UniqueId& id) {
  const auto begin = Clock::now();
  is_opening_ = true;
  opens_ = std::thread([this, id] {
    try {
      stream_->enter();
      join(id);
    } catch (const std::exception& error) {
      give_up(ErrorKind::device, fmt::format("{}: {}", who_, error.what()));
    }
    is_opening_ = false;
  });
  for (; is_opening_; std::this_thread::sleep_for(kPollPause)) {
    if (Clock::now() - begin >= deadline_)
      give_up(ErrorKind::comm, late(fmt::format("{}, {},", in_progress(), kInit)));
    check();
  }
}

OperationRef Connection::post(const char* name, std::size_t count, const char* function, const Call& call,
                              const Finish& finish) {
  Lock lock = enter();
  const CollectiveName named{.function = name, .count = count, .number = ++posted_};
  {
    const std::lock_guard brief(mutex_);
    under_way_.push_back(named);
    is_posting_ = true;
  }
  stream_->enter();
  OperationRef operation = new_operation();
  operation->name = named;
  stream_->follow_engine();
  stream_->set(operation->begin);
  call_ = function;
  settle(lock, text_of(named), function, call(comm_, stream_->native()));
  call_ = kOfDevice;
  if (finish) finish(*stream_);
  stream_->set(operation->end);
  operation->is_under_way = true;
  const std::lock_guard brief(mutex_);
  is_posting_ = false;
  return operation;
}

OperationRef Connection::new_operation() {
  for (const auto& one : operations_) {
    ask_of(*one);
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
    lock.unlock();  // so that ask() can run
    gone > kShort ? std::this_thread::sleep_for(kPollPause) : std::this_thread::yield();
    if (gone >= deadline_) give_up(ErrorKind::comm, late(what));
    enter(lock);
    call_ = "ncclCommGetAsyncError";
    Status state = kSuccess;
    status = api_.ncclCommGetAsyncError(comm_, &state);
    if (status == kSuccess) status = state;
  }
  if (status == kSuccess) return;
  give_up_after(what, function, status);
  check();
}

void Connection::order(const Operation& operation) {
  const Lock lock = enter();
  stream_->engine_follows(operation.end);
}

bool Connection::is_done(const Operation& operation) const {
  const Lock lock = enter();
  return stream_->is_done(operation.end);
}

Timing Connection::timing(const Operation& operation) {
  stream_->wait(operation.end);  // without the mutex, so that ask() can end the wait
  const Lock lock = enter();
  note_done(operation.name.number);
  return {.posted = stream_->done_at(operation.begin), .done = stream_->done_at(operation.end)};
}

Connection::Lock Connection::enter() const {
  Lock lock(device_mutex_, std::defer_lock);
  enter(lock);
  return lock;
}

void Connection::enter(Lock& lock) const {
  for (const auto begin = Clock::now(); !lock.try_lock(); check())
    Clock::now() - begin > kShort ? std::this_thread::sleep_for(kPollPause) : std::this_thread::yield();
  check();  // ask() takes comm_ only with the mutex and after a failure
  call_ = kOfDevice;
}

bool Connection::lock_to_ask(Lock& lock) const {
  if (!is_blocking_) {
    lock.lock();
    return true;
  }
  // After a failure whoever holds it is about to release it, or is in a call that only the abort ends.
  std::optional<base::TimePoint> failed;
  for (; !lock.try_lock(); std::this_thread::sleep_for(kPollPause)) {
    if (!failed && has_failed()) failed = Clock::now();
    if (failed && Clock::now() - *failed > patience_ / 4) return false;
  }
  return true;
}

void Connection::ask() {
  Comm gone = nullptr;
  {
    Lock lock(device_mutex_, std::defer_lock);
    if (lock_to_ask(lock)) {
      if (!is_over_ && !has_failed()) check_device();
      if (!is_over_ && !has_failed()) check_host();  // now the collective that it ends is known
    }
    if (is_over_ || has_failed()) gone = comm_.exchange(nullptr);
  }
  // Not ncclCommFinalize and ncclCommDestroy, which wait for peers: the communicators of this process end one
  // after the other in one thread. Without the mutex, so that the engine's thread gets the failure meanwhile.
  if (gone != nullptr) {
    call_ = "ncclCommAbort";
    (void)api_.ncclCommAbort(gone);
  }
  ++looks_;
}

void Connection::check_device() {
  call_ = kOfDevice;
  try {
    OperationRef oldest;
    for (const auto& one : operations_) {
      ask_of(*one);
      if (one->is_under_way && (oldest == nullptr || one->name.number < oldest->name.number)) oldest = one;
    }
    if (oldest != nullptr && stream_->is_done(oldest->begin)) {
      const std::lock_guard lock(mutex_);
      begun_ = oldest->name.number;
    }
    if (comm_ == nullptr) return;
    call_ = "ncclCommGetAsyncError";
    Status state = kSuccess;
    Status status = api_.ncclCommGetAsyncError(comm_, &state);
    if (status == kSuccess && state != kInProgress) status = state;
    if (status != kSuccess) give_up_after(in_progress(), "ncclCommGetAsyncError", status);
  } catch (const std::exception& error) {  // an error of the device, which the engine's thread also gets
    give_up(ErrorKind::device, fmt::format("{}: {}", who_, error.what()));
  }
}

void Connection::decide() {
  const auto now = Clock::now();
  const Clock::duration passed = std::min<Clock::duration>(now - std::exchange(decided_, now), kLongestPause);
  const auto looks = looks_.load();
  stands_still_ = looks == std::exchange(looks_seen_, looks) ? stands_still_ + passed : Clock::duration();
  if (!has_failed()) {
    check_time(passed);
    if (is_blocking_ && has_failed()) stands_still_ = {};  // the abort may end the call
  }
  opens_still_ = is_opening_ && has_failed() ? opens_still_ + passed : Clock::duration();
  if (hangs_ && std::max(stands_still_, opens_still_) > patience_ && has_failed())
    std::exchange(hangs_, {})(hang());
}

void Connection::check_host() {
  try {
    host_.check();
  } catch (const base::Error& error) {
    give_up(error.kind(), fmt::format("{}: {} was aborted: {}", who_, in_progress(), error.what()));
  }
}

void Connection::check_time(Clock::duration passed) {
  if (stands_still_ > kLongestPause) check_host();
  // A collective that the device has not reached waits for the engine, not for a peer.
  std::int64_t begun = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!under_way_.empty() && under_way_.front().number <= begun_) begun = under_way_.front().number;
  }
  waited_ = begun == std::exchange(watched_, begun) ? waited_ + passed : Clock::duration();
  if (begun != 0 && waited_ > deadline_) return give_up(ErrorKind::comm, late(in_progress()));
  if (stands_still_ > deadline_ + patience_) give_up(ErrorKind::comm, stuck());
}

void Connection::check() const {
  const std::lock_guard lock(mutex_);
  if (failure_) throw *failure_;
}

bool Connection::has_failed() const {
  const std::lock_guard lock(mutex_);
  return failure_.has_value();
}

void Connection::ask_of(Operation& operation) {
  if (!operation.is_under_way || !stream_->is_done(operation.end)) return;
  operation.is_under_way = false;
  note_done(operation.name.number);
}

void Connection::note_done(std::int64_t number) {
  const std::lock_guard lock(mutex_);
  while (!under_way_.empty() && under_way_.front().number <= number) under_way_.pop_front();
}

std::string Connection::in_progress() const {
  const std::lock_guard lock(mutex_);
  if (!is_open_) return "the start";
  return under_way_.empty() ? "what comes next" : text_of(under_way_.front());
}

std::string Connection::late(const std::string& what) const {
  return fmt::format(
      "{}: {} is not complete {} after it began (--deadline): a rank has not entered it, or the link "
      "between the devices hangs; read what the other ranks report, or give a longer --deadline",
      who_, what, text_of(deadline_));
}

std::string Connection::hang() const {
  std::string what = in_progress();
  {
    const std::lock_guard lock(mutex_);
    if (is_posting_) what = text_of(under_way_.back());
  }
  return fmt::format("{}: {} does not return, in {}", who_, is_opening_ ? kInit : call_.load(), what);
}

std::string Connection::stuck() const {
  return fmt::format(
      "{}, {} after it began (--deadline {}): the device or its driver hangs, most likely because it waits for "
      "a rank that is lost; read what the other ranks report, or give a longer --deadline",
      hang(), text_of(deadline_ + patience_), text_of(deadline_));
}

void Connection::give_up_after(const std::string& what, const char* function, Status status) {
  give_up(ErrorKind::comm, fmt::format("{}: {} failed: {}; NCCL_DEBUG=INFO in the environment says more",
                                       who_, what, describe_error(api_, comm_, status, function)));
}

void Connection::give_up(ErrorKind kind, const std::string& text) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_.emplace(kind, text);
  }
  host_.abort(text, kind);
}

}  // namespace paceline::comm::nccl
