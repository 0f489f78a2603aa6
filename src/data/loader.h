#pragma once

/// Training batches, prepared by the loader's own threads while the engine computes.
///
/// One loader serves one worker. In step s of an epoch it yields positions [s*global_batch + first,
/// s*global_batch + first + local_batch) of the epoch's order. The last short batch of an epoch is dropped;
/// its samples appear in other epochs, which are shuffled differently. The record has the number of dropped
/// samples (`dropped_per_epoch`). Where images are mixed in pairs (mix.h), a sample whose partner is not in
/// the same piece of work reads it too, be it another worker's or dropped; the last of an odd number of
/// samples has no partner and stays as it is.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "data/augment.h"
#include "data/dataset.h"
#include "data/mix.h"
#include "data/prefetch.h"
#include "data/shuffle.h"

namespace paceline::data {

// A worker's part of the test set, in consecutive batches without augmentation, each sample once.
//
// Worker r of N evaluates [size * r / N, size * (r + 1) / N). The parts cover every sample once for any N;
// sums over them are added up and divided once. One object serves a whole run: a new pass starts at `begin`,
// and its first batches are prepared ahead.

struct EvaluationBatch {
  std::span<const float> images;  ///< [count][views][H][W][C], normalised; empty if there are draws
  std::span<const base::SampleDraw> draws = {};  ///< [count][views], with EvaluationOptions::draws
  std::span<const std::int32_t> labels;          ///< [count]
  std::int64_t first = 0;                        ///< index in the data set of the first sample
  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
};

struct EvaluationOptions {
  std::int64_t begin = 0, end = 0;  ///< samples [begin, end) of the data set; may be empty
  std::int64_t batch = 0;           ///< samples of every batch but the last of a pass, which may be shorter
  int views = 1;                    ///< of each sample, those of Augment::view_draw(), from 0 on
  int threads = 1;                  ///< of its own; 0: threads of its pool prepare
  int prefetch = 2;
  /// > 0: the number of passes; nothing is prepared beyond them.
  std::int64_t passes = 0;
  LoaderPool* pool = nullptr;  ///< its threads help one another; null: only this object's threads
  /// Batches hold draws instead of images, for an engine that has the images. Nothing is read here, and no
  /// thread is needed.
  bool draws = false;
  std::int64_t first_draw = 0;                ///< with draws: the draw index of sample `begin`
  std::span<const std::int32_t> labels = {};  ///< with draws: of samples [begin, end)
};

/// The samples [begin, end) of `size` that `rank` of `world` evaluates. `begin` is a multiple of `unit`. With
/// `unit` = the batch, each sample has the same place in its batch for any `world`. That matters because a
/// library's matrix product may round rows by their place (oneDNN's does with AVX2).
struct SampleRange {
  std::int64_t begin = 0, end = 0;
};
[[nodiscard]] constexpr SampleRange evaluation_part(std::int64_t size, int rank, int world,
                                                    std::int64_t unit = 1) {
  const std::int64_t units = (size + unit - 1) / unit;
  const auto end_of = [&](std::int64_t ranks) {
    const std::int64_t end = units * ranks / world * unit;
    return end < size ? end : size;
  };
  return {end_of(rank), end_of(rank + 1)};
}

/// Threads  next() from one thread; it throws the exceptions of preparing threads
class EvaluationBatches {
 public:
  /// `dataset` and `augment` must outlive this object.
  EvaluationBatches(const Dataset& dataset, const Augment& augment, EvaluationOptions options);
  EvaluationBatches(const EvaluationBatches&) = delete;
  EvaluationBatches& operator=(const EvaluationBatches&) = delete;

  /// The next batch of this pass, valid until the next call; nullptr at the end of the pass. The call after
  /// that begins a new pass.
  const EvaluationBatch* next();

  /// Blocks until the batches ahead are prepared; returns none. For tests and benchmarks.
  void wait_until_prepared();
  [[nodiscard]] double wait_s() const;  ///< time next() waited, all passes
  [[nodiscard]] std::int64_t samples() const { return options_.end - options_.begin; }  ///< of a pass

  /// Memory for these options, for the memory plan.
  [[nodiscard]] static std::int64_t planned_bytes(const ImageFormat& format,
                                                  const EvaluationOptions& options);

 private:
  [[nodiscard]] bool is_past_the_end(std::int64_t number) const;
  [[nodiscard]] std::int64_t first(std::int64_t number) const;
  std::int32_t prepare(std::int64_t number, std::int64_t i, std::span<std::uint8_t> scratch,
                       std::span<float> dst) const;
  void draw();

  const Dataset& dataset_;
  const Augment& augment_;
  const EvaluationOptions options_;
  const std::int64_t batches_per_pass_;
  std::int64_t yielded_in_pass_ = 0;
  EvaluationBatch current_;
  std::vector<base::SampleDraw> draws_;  ///< with draws: those of one batch
  std::int64_t drawn_ = 0;               ///< likewise: batches so far
  /// None for an empty part or with draws. Last member, because its threads use the others.
  std::optional<Prefetch> prefetch_;
};

enum class Order {
  shuffled,       ///< anew for each epoch
  shuffled_once,  ///< every epoch as the first: PyTorch's DistributedSampler without set_epoch
  as_stored,
};

/// A permutation of [0, size) for each epoch, seeded by a hash of (seed, epoch); the number of workers does
/// not matter. As stored it is the identity.
///
/// Cost     O(1) a call, no storage
/// Threads  any number at once
class Sampler {
 public:
  Sampler(std::int64_t size, std::uint64_t seed, Order order = Order::shuffled);
  /// As `given` says; with Order::shuffled_once every epoch is as the first.
  Sampler(std::int64_t size, std::shared_ptr<const EpochOrder> given, Order order = Order::shuffled);
  /// The index in the data set of `position` in `epoch`. Requires 0 <= position < size().
  [[nodiscard]] std::int64_t index(std::int64_t epoch, std::int64_t position) const;
  [[nodiscard]] std::int64_t size() const { return size_; }

 private:
  std::int64_t size_;
  std::uint64_t seed_ = 0;
  Order order_;
  std::shared_ptr<const EpochOrder> given_;
};

/// An endless order of samples in rounds. In a round every class that has samples comes once, in an order
/// drawn for that round; inside a class each sample comes once before the first comes again, in an order
/// drawn for each of these cycles. So of any positions in a row two classes have equally many, to within two;
/// from the beginning of a training, to within one.
///
/// Epoch e has the places e * positions ... (e + 1) * positions - 1 of this order, and the next epoch
/// continues where it ends: no sample is passed over. The sample of a place is a function of seed and place
/// alone.
///
/// Cost     8 bytes a sample; index() is O(1)
/// Threads  index() from any number at once
class BalancedOrder final : public EpochOrder {
 public:
  /// `positions`: samples of an epoch that are trained on, whole global batches.
  BalancedOrder(const Dataset& set, int classes, std::uint64_t seed, std::int64_t positions);
  [[nodiscard]] std::int64_t index(std::int64_t epoch, std::int64_t position) const override;

  [[nodiscard]] static std::int64_t planned_bytes(const Dataset& set) {
    return set.size() * static_cast<std::int64_t>(sizeof(std::int64_t));
  }

 private:
  struct OfClass {
    std::int64_t first = 0;  ///< in members_
    Sampler order;           ///< of its samples, for each cycle
  };
  std::vector<std::int64_t> members_;  ///< indices of all samples, class by class
  std::vector<OfClass> classes_;       ///< those that have samples
  Sampler turns_;                      ///< of these classes, for each round
  std::int64_t positions_;
};

/// A view of one prepared batch; valid until the next call to next().
struct Batch {
  std::span<const float> images;  ///< [local_batch][H][W][C], normalised; empty if there are draws
  std::span<const base::SampleDraw> draws = {};           ///< [local_batch], with LoaderOptions::draws
  std::span<const std::int32_t> labels;                   ///< [local_batch]
  std::span<const base::SecondLabel> second_labels = {};  ///< [local_batch], with LoaderOptions::mix
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
  MixOptions mix = {};                        ///< not with draws
  std::int64_t start_epoch = 0;               ///< resume: begin here
  std::int64_t start_step = 0;
};

/// Threads  next() from one thread; it throws the exceptions of preparing threads (bad data)
class Loader {
 public:
  Loader(const Dataset& dataset, Sampler sampler, Augment augment, LoaderOptions options);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch in order. Epochs follow one another without a pause: the next one is prepared ahead.
  const Batch& next();

  [[nodiscard]] std::int64_t steps_per_epoch() const { return steps_per_epoch_; }
  [[nodiscard]] std::int64_t dropped_per_epoch() const {
    return dataset_.size() - steps_per_epoch_ * options_.global_batch;
  }
  [[nodiscard]] LoaderStatistics statistics() const;
  /// Blocks until `prefetch` batches (before the first next(): all slots) are prepared; returns none. For
  /// tests and benchmarks that must not begin with an empty loader.
  void wait_until_prepared();
  /// Whether a call of next() is blocked now; from any thread.
  [[nodiscard]] bool is_waiting() const { return prefetch_ && prefetch_->is_waiting(); }
  /// Memory of a loader with these options, for the memory plan.
  [[nodiscard]] static std::int64_t planned_bytes(const ImageFormat& format, const LoaderOptions& options);

 private:
  /// Batch `number` of this loader, without its contents.
  [[nodiscard]] Batch place_of(std::int64_t number) const;
  std::int32_t read(const Batch& at, std::int64_t position, std::span<std::uint8_t> scratch,
                    std::span<float> dst) const;
  void mix_pairs(const PreparedPiece& piece, std::span<float> other, std::span<std::uint8_t> pixels) const;
  void draw();

  const Dataset& dataset_;
  const Sampler sampler_;
  const Augment augment_;
  const LoaderOptions options_;
  const std::int64_t steps_per_epoch_;
  Batch current_;
  // With draws:
  std::vector<base::SampleDraw> draws_;
  std::vector<std::int32_t> labels_;
  LoaderStatistics drawn_;
  std::optional<Prefetch> prefetch_;  ///< without draws. Last member, because its threads use the others
};

}  // namespace paceline::data
