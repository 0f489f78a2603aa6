#pragma once

/// A worker's part of the test set, in consecutive batches without augmentation, each sample once.
///
/// Worker r of N evaluates [size * r / N, size * (r + 1) / N). The parts cover every sample once for any N;
/// sums over them are added up and divided once. One object serves a whole run: a new pass starts at `begin`,
/// and its first batches are prepared ahead.

#include <cstdint>
#include <memory>
#include <span>

#include "data/augment.h"
#include "data/dataset.h"
#include "data/prefetch.h"

namespace paceline::data {

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
  int views = 1;                    ///< > 1: each sample in this many views, Augment::evaluate_view(0 ...)
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
  ~EvaluationBatches();
  EvaluationBatches(const EvaluationBatches&) = delete;
  EvaluationBatches& operator=(const EvaluationBatches&) = delete;

  /// The next batch of this pass, valid until the next call; nullptr at the end of the pass. The call after
  /// that begins a new pass.
  const EvaluationBatch* next();

  /// Blocks until the batches ahead are prepared; returns none. For tests and benchmarks.
  void wait_until_prepared();
  [[nodiscard]] double wait_s() const;         ///< time next() waited, all passes
  [[nodiscard]] std::int64_t samples() const;  ///< of a pass

  /// Memory for these options, for the memory plan.
  [[nodiscard]] static std::int64_t planned_bytes(const ImageFormat& format,
                                                  const EvaluationOptions& options);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace paceline::data
