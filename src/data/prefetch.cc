#include "data/prefetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread_pool.h"

namespace paceline::data {
namespace {

// Samples of a piece: few enough that threads share even a batch of 32, and enough that taking the lock
// (about 0.1 us) is negligible beside preparing them (at least 5 us each).
constexpr std::int64_t kPiece = 16;

/// A stored image; where images are mixed, an image of floats before it.
std::size_t scratch_bytes(const ImageFormat& format, bool mixes) {
  return static_cast<std::size_t>(format.bytes()) * (mixes ? 1 + sizeof(float) : 1);
}

}  // namespace

Ring::Ring(std::int64_t batch, std::int64_t image_values, std::int64_t slots,
           std::function<std::int64_t(std::int64_t)> samples, bool has_two_labels)
    : batch_(batch),
      image_values_(static_cast<std::size_t>(image_values)),
      samples_(std::move(samples)),
      slots_(static_cast<std::size_t>(slots)) {
  for (auto& slot : slots_) {
    slot.images = base::Buffer(static_cast<std::size_t>(batch) * image_values_ * sizeof(float));
    slot.labels.resize(static_cast<std::size_t>(batch));
    slot.second_labels.resize(has_two_labels ? slot.labels.size() : 0);
  }
  open(0);
}

Ring::RingSlot& Ring::slot_of(std::int64_t number) {
  return slots_[static_cast<std::size_t>(number) % slots_.size()];
}
const Ring::RingSlot& Ring::slot_of(std::int64_t number) const {
  return slots_[static_cast<std::size_t>(number) % slots_.size()];
}

/// Empties the slot for batch `number`.
void Ring::open(std::int64_t number) {
  RingSlot& slot = slot_of(number);
  slot.samples = samples_(number);
  base::expects(slot.samples >= 1 && slot.samples <= batch_, "1 <= samples of a batch <= batch");
  slot.finished = 0;
  slot.failed_at = std::numeric_limits<std::int64_t>::max();
  slot.error = nullptr;
}

bool Ring::has_room() const { return next_batch_ < handed_back_ + slots(); }

Ring::Piece Ring::take() {
  const RingSlot& slot = slot_of(next_batch_);
  const Piece piece{next_batch_, next_sample_, std::min(next_sample_ + kPiece, slot.samples)};
  next_sample_ = piece.end;
  if (piece.end == slot.samples) {
    ++next_batch_;
    next_sample_ = 0;
    // The next slot is opened here if it is free, otherwise by take_back() when it becomes free.
    if (has_room()) open(next_batch_);
  }
  return piece;
}

std::span<float> Ring::image(std::int64_t number, std::int64_t i) {
  return slot_of(number).images.as<float>().subspan(static_cast<std::size_t>(i) * image_values_,
                                                    image_values_);
}
std::int32_t& Ring::label(std::int64_t number, std::int64_t i) {
  return slot_of(number).labels[static_cast<std::size_t>(i)];
}

PreparedPiece Ring::prepared(const Piece& piece) {
  RingSlot& slot = slot_of(piece.number);
  const auto begin = static_cast<std::size_t>(piece.begin),
             count = static_cast<std::size_t>(piece.end) - begin;
  return {piece.number, piece.begin,
          slot.images.as<float>().subspan(begin * image_values_, count * image_values_),
          std::span(slot.labels).subspan(begin, count), std::span(slot.second_labels).subspan(begin, count)};
}

bool Ring::finish(const Piece& piece, std::int64_t failed_at, const std::exception_ptr& error) {
  RingSlot& slot = slot_of(piece.number);
  if (error && failed_at < slot.failed_at) {
    slot.failed_at = failed_at;
    slot.error = error;
  }
  slot.finished += piece.end - piece.begin;
  return slot.finished == slot.samples;
}

bool Ring::take_back() {
  if (yielded_ == handed_back_) return false;
  const bool was_full = !has_room();
  ++handed_back_;
  if (was_full) open(next_batch_);
  return was_full;
}

std::int64_t Ring::ready() const {
  std::int64_t number = yielded_;
  while (number < next_batch_ && slot_of(number).finished == slot_of(number).samples) ++number;
  return number - yielded_;
}

BatchView Ring::yield() {
  const RingSlot& slot = slot_of(yielded_);
  if (slot.error) std::rethrow_exception(slot.error);
  const auto samples = static_cast<std::size_t>(slot.samples);
  return {yielded_++, slot.images.as<float>().first(samples * image_values_),
          std::span(slot.labels).first(samples),
          std::span(slot.second_labels).first(slot.second_labels.empty() ? 0 : samples)};
}

bool Ring::is_full() const { return !has_room() && ready() == ahead(); }

/// One lock for all rings of a pool. Preparing a piece takes at least 80 us and handing it out 0.1 us, so 64
/// threads hold the lock for less than a tenth of the time.
struct LoaderPool::Impl {
  mutable std::mutex mutex;
  std::vector<Prefetch::Impl*> members;  ///< under the mutex
  int threads = 0;                       ///< of all members; under the mutex

  [[nodiscard]] Prefetch::Impl* choose(Prefetch::Impl& home) const;
  void call_all();
};

struct Prefetch::Impl {
  const PrefetchOptions options;
  std::unique_ptr<LoaderPool> alone;  ///< its own pool, if none was given
  LoaderPool::Impl& pool;

  std::condition_variable room;  ///< tells the threads of this ring that there may be work, here or elsewhere
  /// Tells the reader, or whoever waits for the end, that a piece was finished.
  std::condition_variable ready;
  // Under the pool's mutex.
  Ring ring;
  bool waiting = false;  ///< a call of next() is blocked
  int under_way = 0;     ///< pieces of this ring that threads are preparing
  LoaderStatistics statistics;

  bool is_reader_alone = false;  ///< next() itself prepares what it returns; constant after the constructor
  std::atomic<bool> stopping{false};
  std::vector<std::vector<std::uint8_t>>
      scratches;  ///< [thread], or one of the reader's: scratch_bytes(); made here, since a thread may
                  ///< begin long after the constructor has returned. It grows for a member that needs more
  std::vector<std::thread> threads;

  explicit Impl(PrefetchOptions given)
      : options(checked(std::move(given))),
        alone(options.pool == nullptr ? std::make_unique<LoaderPool>() : nullptr),
        pool(options.pool == nullptr ? *alone->impl_ : *options.pool->impl_),
        ring(options.batch, options.views * options.format.bytes(), options.prefetch + 1, options.samples,
             options.mix != nullptr) {
    join();
    scratches.assign(static_cast<std::size_t>(is_reader_alone ? 1 : options.threads),
                     std::vector<std::uint8_t>(scratch_bytes(options.format, options.mix != nullptr)));
    if (is_reader_alone) return;
    threads.reserve(scratches.size());
    try {
      for (auto& scratch : scratches) threads.emplace_back([this, &scratch] { work(scratch); });
    } catch (const std::system_error& error) {  // threads already running must not outlive this object
      stop();
      throw base::refused_thread(fmt::format("loader thread {} of {}", threads.size() + 1, scratches.size()),
                                 error);
    }
  }

  ~Impl() { stop(); }

  static PrefetchOptions checked(PrefetchOptions options) {
    base::expects(options.batch >= 1 && options.views >= 1, "batch and views are at least 1");
    base::expects(options.threads >= 0 && options.prefetch >= (options.threads > 0 ? 1 : 0),
                  "threads prepare at least one batch ahead");
    return options;
  }

  void join() {
    const std::lock_guard lock(pool.mutex);
    pool.members.push_back(this);
    pool.threads += options.threads;
    is_reader_alone = pool.threads == 0;
    base::expects(is_reader_alone || options.prefetch >= 1, "threads prepare at least one batch ahead");
    call();
  }

  void stop() {
    {
      std::unique_lock lock(pool.mutex);
      stopping = true;
      std::erase(pool.members, this);
      pool.threads -= options.threads;
      room.notify_all();
      ready.wait(lock, [&] { return under_way == 0; });
    }
    for (auto& thread : threads) thread.join();
  }

  // The functions below hold the pool's mutex, except prepare().

  /// Whether the reader waits for a piece that no thread has taken.
  [[nodiscard]] bool is_urgent() const { return waiting && ring.lacks_next(); }

  /// Announces that there is room. It wakes this ring's own threads, which wake up once a step anyway; those
  /// that find this ring full then look at the other rings.
  void call() {
    if (options.threads > 0)
      room.notify_all();
    else
      pool.call_all();
  }

  void work(std::vector<std::uint8_t>& scratch) {
    std::unique_lock lock(pool.mutex);
    while (true) {
      Impl* target = nullptr;
      room.wait(lock, [&] { return stopping || (target = pool.choose(*this)) != nullptr; });
      if (stopping) return;
      target->work_on_piece(lock, scratch);
    }
  }

  /// Prepares a piece; unlocks meanwhile. Afterwards this object may be destroyed, unless the caller is one
  /// of its own threads.
  void work_on_piece(std::unique_lock<std::mutex>& lock, std::vector<std::uint8_t>& scratch) {
    const Ring::Piece piece = ring.take();
    ++under_way;
    lock.unlock();
    const auto started = base::Clock::now();
    const double processor_before = base::thread_processor_s();
    std::int64_t at = piece.begin;
    const std::exception_ptr error = prepare(piece, at, scratch);
    const double processor_s = base::thread_processor_s() - processor_before;
    const double spent = base::seconds_since(started);
    lock.lock();
    statistics.prepare_s += spent;
    statistics.processor_s += processor_s;
    --under_way;
    if (ring.finish(piece, at, error) || stopping) ready.notify_all();
  }

  /// Prepares the samples of `piece`; `at` is the position where it ended. Returns the exception, or null.
  std::exception_ptr prepare(const Ring::Piece& piece, std::int64_t& at, std::vector<std::uint8_t>& scratch) {
    try {
      const auto image = static_cast<std::size_t>(options.format.bytes());
      const auto needed = scratch_bytes(options.format, options.mix != nullptr);
      if (scratch.size() < needed) scratch.resize(needed);
      for (; at < piece.end && !stopping.load(std::memory_order_relaxed); ++at)
        ring.label(piece.number, at) =
            options.prepare(piece.number, at, std::span(scratch).first(image), ring.image(piece.number, at));
      if (options.mix && at == piece.end) {
        at = piece.begin;  // where an error is then reported
        options.mix(ring.prepared(piece), {reinterpret_cast<float*>(scratch.data()), image},
                    std::span(scratch).subspan(image * sizeof(float), image));
      }
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  }

  BatchView next() {
    std::unique_lock lock(pool.mutex);
    if (ring.take_back()) call();
    const std::int64_t found = ring.ready();
    if (found == 0 && is_reader_alone)
      prepare_next(lock);
    else if (found == 0)
      wait(lock);
    BatchView view = ring.yield();
    statistics.ready += std::min<std::int64_t>(found, options.prefetch);
    ++statistics.batches;
    return view;
  }

  void wait(std::unique_lock<std::mutex>& lock) {
    ++statistics.waits;
    waiting = true;
    if (is_urgent()) pool.call_all();
    const auto started = base::Clock::now();
    ready.wait(lock, [&] { return ring.ready() > 0; });
    statistics.wait_s += base::seconds_since(started);
    waiting = false;
  }

  /// The reader prepares the batch itself: all of the preparation counts as waiting.
  void prepare_next(std::unique_lock<std::mutex>& lock) {
    ++statistics.waits;
    const double before = statistics.prepare_s;
    while (ring.ready() == 0 && ring.has_room()) work_on_piece(lock, scratches.front());
    ready.wait(lock, [&] { return ring.ready() > 0; });  // for pieces that threads of a later member took
    statistics.wait_s += statistics.prepare_s - before;
  }

  void wait_until_prepared() {
    std::unique_lock lock(pool.mutex);
    if (ring.has_room()) call();
    while (is_reader_alone && ring.has_room()) work_on_piece(lock, scratches.front());
    ready.wait(lock, [&] { return ring.is_full(); });
  }
};

/// The ring from which a thread of `home` takes its next piece; null if there is nothing to do.
Prefetch::Impl* LoaderPool::Impl::choose(Prefetch::Impl& home) const {
  if (home.is_urgent()) return &home;
  Prefetch::Impl* emptiest = nullptr;
  for (Prefetch::Impl* member : members) {
    if (member->is_urgent()) return member;
    if (member->ring.has_room() && (emptiest == nullptr || member->ring.ahead() < emptiest->ring.ahead()))
      emptiest = member;
  }
  return home.ring.has_room() ? &home : emptiest;
}

void LoaderPool::Impl::call_all() {
  for (Prefetch::Impl* member : members) member->room.notify_all();
}

LoaderPool::LoaderPool() : impl_(std::make_unique<Impl>()) {}
LoaderPool::~LoaderPool() { base::expects(impl_->members.empty(), "a pool outlives its rings"); }

Prefetch::Prefetch(PrefetchOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Prefetch::~Prefetch() = default;

BatchView Prefetch::next() { return impl_->next(); }
void Prefetch::wait_until_prepared() { impl_->wait_until_prepared(); }

bool Prefetch::is_waiting() const {
  const std::lock_guard lock(impl_->pool.mutex);
  return impl_->waiting;
}

LoaderStatistics Prefetch::statistics() const {
  const std::lock_guard lock(impl_->pool.mutex);
  return impl_->statistics;
}

std::int64_t Prefetch::planned_bytes(const ImageFormat& format, std::int64_t batch, int views, int threads,
                                     int prefetch, bool mixes) {
  const auto images =
      static_cast<std::size_t>(batch * views * format.bytes()) * sizeof(float);  // a slot's buffer
  const auto labels =
      batch * static_cast<std::int64_t>(sizeof(std::int32_t) + (mixes ? sizeof(base::SecondLabel) : 0));
  return (prefetch + 1) * (static_cast<std::int64_t>(base::Buffer::resident_bytes(images)) + labels) +
         std::max(1, threads) * static_cast<std::int64_t>(scratch_bytes(format, mixes));
}

}  // namespace paceline::data
