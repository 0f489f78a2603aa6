#pragma once

/// Batches, prepared by threads of the loader's own while the engine computes.
///
/// One loader serves one worker: in step s of an epoch it yields positions
/// [s*global_batch + first, s*global_batch + first + local_batch) of the epoch's order. The last short batch
/// of an epoch is dropped (Tail policy "drop": its samples come in another epoch, under another shuffle); the
/// number of dropped samples is known (`dropped_per_epoch`) and stands in the record.

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
  std::span<const float> images;  ///< [local_batch][H][W][C], normalised; none where there are draws
  std::span<const base::SampleDraw> draws = {};  ///< [local_batch], with LoaderOptions::draws
  std::span<const std::int32_t> labels;          ///< [local_batch]
  std::int64_t epoch = 0;
  std::int64_t step = 0;            ///< within the epoch
  std::int64_t first_position = 0;  ///< of the batch's first sample, in the epoch's order
};

struct LoaderOptions {
  std::int64_t global_batch = 0;
  std::int64_t local_batch = 0;
  std::int64_t first = 0;  ///< where this worker's part begins inside the global batch: rank * local_batch
  /// Preparing threads; results do not depend on it. 0: next() prepares its batch itself, while the caller
  /// waits.
  int threads = 1;
  int prefetch = 2;            ///< batches prepared ahead, none without threads; memory is one batch more
  LoaderPool* pool = nullptr;  ///< whose threads help one another; null: this loader's alone
  /// Batches say how each sample is shown, for whoever has the images: none is read here. next() draws, in
  /// its caller's thread: about 0.1 us a sample.
  bool draws = false;
  std::span<const std::int32_t> labels = {};  ///< with draws: of every sample of the data set
  std::int64_t start_epoch = 0;               ///< resume: begin here
  std::int64_t start_step = 0;
};

/// What the loader did, for the record.
struct LoaderStatistics {
  std::int64_t batches = 0;
  /// Time spent preparing, summed over the threads that did it; batches * local_batch / it = ceiling a
  /// thread.
  double prepare_s = 0;
  double processor_s = 0;  ///< of it, on a processor; batches * local_batch / it = images/s a core
  double wait_s = 0;       ///< time next() waited for a batch that was not ready
  std::int64_t waits = 0;  ///< how many calls of next() waited
  std::int64_t ready = 0;  ///< batches that stood ready, summed over the calls of next()
};

/// Threads  next() from one thread; exceptions of preparing threads (bad data) are thrown by next()
class Loader {
 public:
  Loader(const Dataset& dataset, Sampler sampler, Augment augment, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch in order, over epoch ends without a pause (the next epoch is prepared ahead).
  const Batch& next();

  [[nodiscard]] std::int64_t steps_per_epoch() const;
  [[nodiscard]] std::int64_t dropped_per_epoch() const;
  [[nodiscard]] LoaderStatistics statistics() const;
  /// Blocks until `prefetch` batches (all slots, before the first next()) are prepared; yields none. For
  /// tests and benchmarks that must not begin with a cold loader.
  void wait_until_prepared();
  [[nodiscard]] bool is_waiting() const;  ///< whether a call of next() is blocked now; from any thread
  /// Memory a loader of these options holds; the plan's line for it.
  [[nodiscard]] static std::int64_t planned_bytes(const ImageFormat& format, const LoaderOptions& options);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace paceline::data
