#include "data/prefetch.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"

namespace paceline::data {
namespace {

// Samples that a thread takes at a time: small enough that threads share even a batch of 32, large enough
// that taking the lock (about 0.1 us) is nothing beside preparing them (5 us each and more).
constexpr std::int64_t kChunk = 16;

struct Slot {
  base::Buffer images;
  std::vector<std::int32_t> labels;
  std::int64_t samples = 0;
  std::int64_t finished = 0;  ///< prepared or failed
  // The first sample that could not be prepared: the same one for any number of threads.
  std::int64_t failed_at = std::numeric_limits<std::int64_t>::max();
  std::exception_ptr error;
};

}  // namespace

struct Prefetch::Impl {
  Options options;
  std::size_t image_values = 0;
  std::vector<Slot> slots;

  mutable std::mutex mutex;
  std::condition_variable room;   ///< a slot was handed back, or stopping
  std::condition_variable ready;  ///< a batch was finished
  // Under the mutex. Batch n lies in slot n % slots; batches [handed_back, handed_back + slots) may be
  // filled.
  std::int64_t handed_back = 0;
  std::int64_t yielded = 0;      ///< batches [handed_back, yielded) are with the reader: one at most
  std::int64_t work_batch = 0;   ///< the batch whose samples are being given out ...
  std::int64_t work_sample = 0;  ///< ... and the next of them
  bool waiting = false;
  Statistics statistics;

  std::atomic<bool> stopping{false};
  std::vector<std::vector<std::uint8_t>>
      scratches;  ///< [thread]: one stored image; made here, since a thread may
                  ///< begin long after the constructor has returned
  std::vector<std::thread> threads;

  explicit Impl(Options given) : options(std::move(given)) {
    base::expects(options.batch >= 1 && options.threads >= 1 && options.prefetch >= 1,
                  "batch, threads and prefetch are at least 1");
    image_values = static_cast<std::size_t>(options.format.bytes());
    slots.resize(static_cast<std::size_t>(options.prefetch) + 1);
    for (auto& slot : slots) {
      slot.images = base::Buffer(static_cast<std::size_t>(options.batch) * image_values * sizeof(float));
      slot.labels.resize(static_cast<std::size_t>(options.batch));
    }
    open(0);
    scratches.assign(static_cast<std::size_t>(options.threads), std::vector<std::uint8_t>(image_values));
    threads.reserve(static_cast<std::size_t>(options.threads));
    try {
      for (auto& scratch : scratches) threads.emplace_back([this, &scratch] { work(scratch); });
    } catch (...) {  // the system refused a thread: the ones that run must not outlive this object
      stop();
      throw;
    }
  }

  ~Impl() { stop(); }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    room.notify_all();
    for (auto& thread : threads) thread.join();
  }

  Slot& slot_of(std::int64_t number) { return slots[static_cast<std::size_t>(number) % slots.size()]; }

  /// Makes the slot of batch `number` empty, for that batch. Under the mutex.
  void open(std::int64_t number) {
    Slot& slot = slot_of(number);
    slot.samples = options.samples(number);
    base::expects(slot.samples >= 1 && slot.samples <= options.batch, "1 <= samples of a batch <= batch");
    slot.finished = 0;
    slot.failed_at = std::numeric_limits<std::int64_t>::max();
    slot.error = nullptr;
  }

  [[nodiscard]] bool has_room() const {
    return work_batch < handed_back + static_cast<std::int64_t>(slots.size());
  }

  void work(std::vector<std::uint8_t>& scratch) {
    std::unique_lock lock(mutex);
    while (true) {
      room.wait(lock, [&] { return stopping || has_room(); });
      if (stopping) return;
      const std::int64_t number = work_batch;
      Slot& slot = slot_of(number);
      const std::int64_t begin = work_sample;
      const std::int64_t end = std::min(begin + kChunk, slot.samples);
      work_sample = end;
      if (end == slot.samples) {
        ++work_batch;
        work_sample = 0;
        // The next slot is opened by whoever makes it available: here if it is free, else by next().
        if (has_room()) open(work_batch);
      }
      lock.unlock();

      const auto started = base::Clock::now();
      std::exception_ptr error;
      std::int64_t i = begin;
      try {
        for (; i < end && !stopping.load(std::memory_order_relaxed); ++i) {
          const auto at = static_cast<std::size_t>(i);
          slot.labels[at] = options.prepare(number, i, scratch,
                                            slot.images.as<float>().subspan(at * image_values, image_values));
        }
      } catch (...) {
        error = std::current_exception();
      }
      const double spent = base::seconds_since(started);

      lock.lock();
      statistics.prepare_s += spent;
      if (error && i < slot.failed_at) {
        slot.failed_at = i;
        slot.error = error;
      }
      slot.finished += end - begin;
      if (slot.finished == slot.samples) ready.notify_all();
    }
  }

  View next() {
    std::unique_lock lock(mutex);
    if (yielded > handed_back) {
      const bool was_full = !has_room();
      ++handed_back;
      if (was_full) {
        open(work_batch);
        room.notify_all();
      }
    }
    Slot& slot = slot_of(yielded);
    const auto is_finished = [&] { return yielded < work_batch && slot.finished == slot.samples; };
    if (!is_finished()) {
      ++statistics.waits;
      waiting = true;
      const auto started = base::Clock::now();
      ready.wait(lock, is_finished);
      statistics.wait_s += base::seconds_since(started);
      waiting = false;
    }
    if (slot.error) std::rethrow_exception(slot.error);
    ++statistics.batches;
    const std::int64_t number = yielded++;
    const auto samples = static_cast<std::size_t>(slot.samples);
    return {number, slot.images.as<float>().first(samples * image_values),
            std::span(slot.labels).first(samples)};
  }

  void wait_until_prepared() {
    std::unique_lock lock(mutex);
    ready.wait(lock, [&] {
      if (has_room()) return false;
      for (std::int64_t n = yielded; n < work_batch; ++n)
        if (slot_of(n).finished != slot_of(n).samples) return false;
      return true;
    });
  }
};

Prefetch::Prefetch(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Prefetch::~Prefetch() = default;

Prefetch::View Prefetch::next() { return impl_->next(); }
void Prefetch::wait_until_prepared() { impl_->wait_until_prepared(); }

bool Prefetch::is_waiting() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->waiting;
}

Prefetch::Statistics Prefetch::statistics() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->statistics;
}

std::int64_t Prefetch::planned_bytes(const ImageFormat& format, std::int64_t batch, int threads,
                                     int prefetch) {
  const std::int64_t sample = format.bytes() * static_cast<std::int64_t>(sizeof(float)) +
                              static_cast<std::int64_t>(sizeof(std::int32_t));
  return (prefetch + 1) * batch * sample + threads * format.bytes();
}

}  // namespace paceline::data
