#pragma once

/// Training batches, prepared by the loader's own threads while the engine computes.
///
/// One loader serves one worker. In step s of an epoch it yields positions [s*global_batch + first,
/// s*global_batch + first + local_batch) of the epoch's order. The last short batch of an epoch is dropped;
/// its samples appear in other epochs, which are shuffled differently. The record has the number of dropped
/// samples (`dropped_per_epoch`).

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/augment.h"
#include "data/dataset.h"
#include "data/prefetch.h"
#include "data/sampler.h"

namespace paceline::data {

/// A view of one prepared batch; valid until the next call to next().
struct Batch {
  std::span<const float> images;  ///< [local_batch][H][W][C], normalised; empty if there are draws
  std::span<const base::SampleDraw> draws = {};  ///< [local_batch], with LoaderOptions::draws
  std::span<const std::int32_t> labels;          ///< [local_batch]
  std::int64_t epoch = 0;
  std::int64_t step = 0;            ///< within the epoch
  std::int64_t first_position = 0;  ///< of the batch's first sample, in the epoch's order
};

struct LoaderOptions {
  std::int64_t global_batch = 0;
  std::int64_t local_batch = 0;
  std::int64_t first = 0;  ///< first position of this worker in the global batch: rank * local_batch
  /// Preparing threads; results do not depend on their number. 0: next() prepares the batch itself while the
  /// caller waits.
  int threads = 1;
  int prefetch = 2;            ///< batches prepared ahead (none without threads); memory holds one more
  LoaderPool* pool = nullptr;  ///< its threads help one another; null: only this loader's threads
  /// Batches hold draws instead of images, for an engine that has the images. Nothing is read here; next()
  /// draws in the caller's thread, about 0.1 us a sample.
  bool draws = false;
  std::span<const std::int32_t> labels = {};  ///< with draws: of every sample of the data set
  std::int64_t start_epoch = 0;               ///< resume: begin here
  std::int64_t start_step = 0;
};

/// What the loader did, for the record.
struct LoaderStatistics {
  std::int64_t batches = 0;
  /// Preparing time, summed over the threads. batches * local_batch / prepare_s is the highest rate of one
  /// thread.
  double prepare_s = 0;
  double processor_s = 0;  ///< processor time of it; batches * local_batch / processor_s = images/s a core
  double wait_s = 0;       ///< time that next() waited for a batch that was not ready
  std::int64_t waits = 0;  ///< calls of next() that waited
  std::int64_t ready = 0;  ///< ready batches, summed over the calls of next()
};

/// Threads  next() from one thread; it throws the exceptions of preparing threads (bad data)
class Loader {
 public:
  Loader(const Dataset& dataset, Sampler sampler, Augment augment, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch in order. Epochs follow one another without a pause: the next one is prepared ahead.
  const Batch& next();

  [[nodiscard]] std::int64_t steps_per_epoch() const;
  [[nodiscard]] std::int64_t dropped_per_epoch() const;
  [[nodiscard]] LoaderStatistics statistics() const;
  /// Blocks until `prefetch` batches (before the first next(): all slots) are prepared; returns none. For
  /// tests and benchmarks that must not begin with an empty loader.
  void wait_until_prepared();
  [[nodiscard]] bool is_waiting() const;  ///< whether a call of next() is blocked now; from any thread
  /// Memory of a loader with these options, for the memory plan.
  [[nodiscard]] static std::int64_t planned_bytes(const ImageFormat& format, const LoaderOptions& options);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace paceline::data
