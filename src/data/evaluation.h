#pragma once

/// The test set in consecutive batches, un-augmented, each sample once: what a worker evaluates on.
///
/// Worker r of N takes part [size * r / N, size * (r + 1) / N): the parts cover every sample once for any N,
/// and sums over them are then added up and divided once. One object serves a whole run: after the end of a
/// pass it starts again at `begin`, and the first batches of the next pass are prepared ahead already.

#include <cstdint>
#include <memory>
#include <span>

#include "data/augment.h"
#include "data/dataset.h"
#include "data/prefetch.h"

namespace paceline::data {

struct EvaluationBatch {
  std::span<const float> images;  ///< [count][views][H][W][C], normalised; none where there are draws
  std::span<const base::SampleDraw> draws = {};  ///< [count][views], with EvaluationOptions::draws
  std::span<const std::int32_t> labels;          ///< [count]
  std::int64_t first = 0;                        ///< index in the data set of the first sample
  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
};

struct EvaluationOptions {
  std::int64_t begin = 0, end = 0;  ///< samples [begin, end) of the data set; may be empty
  std::int64_t batch = 0;           ///< samples of every batch but the last of a pass, which may be shorter
  int views = 1;                    ///< > 1: each sample in so many forms, Augment::evaluate_view(0) and on
  int threads = 1;                  ///< of its own; 0: the others of its pool prepare
  int prefetch = 2;
  /// > 0: after so many passes nothing more is read, not even ahead; there is no pass after them.
  std::int64_t passes = 0;
  LoaderPool* pool = nullptr;  ///< whose threads help one another; null: this object's alone
  /// Batches say how each sample is shown, for whoever has the images: none is read here, and no thread
  /// helps.
  bool draws = false;
  std::int64_t first_draw = 0;                ///< with draws: the draws' index of sample `begin`
  std::span<const std::int32_t> labels = {};  ///< with draws: of samples [begin, end)
};

/// The part of `size` samples that `rank` of `world` evaluates, as [begin, end): a multiple of `unit`
/// samples, but for the last. With whole batches each sample has the same place in its batch for any `world`;
/// a library's matrix product may round the rows of a batch differently (oneDNN's with AVX2 does).
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

/// Threads  next() from one thread; exceptions of preparing threads are thrown by next()
class EvaluationBatches {
 public:
  /// `dataset` and `augment` must outlive this object.
  EvaluationBatches(const Dataset& dataset, const Augment& augment, EvaluationOptions options);
  ~EvaluationBatches();
  EvaluationBatches(const EvaluationBatches&) = delete;
  EvaluationBatches& operator=(const EvaluationBatches&) = delete;

  /// The next batch of this pass, valid until the next call; nullptr at its end. The call after that begins a
  /// new pass.
  const EvaluationBatch* next();

  /// Blocks until the batches ahead are prepared; yields none. For tests and benchmarks.
  void wait_until_prepared();
  [[nodiscard]] double wait_s() const;         ///< time next() waited, all passes
  [[nodiscard]] std::int64_t samples() const;  ///< of a pass

  /// Memory that these options hold; the plan's line for it.
  [[nodiscard]] static std::int64_t planned_bytes(const ImageFormat& format,
                                                  const EvaluationOptions& options);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace paceline::data
