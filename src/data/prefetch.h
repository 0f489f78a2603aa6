#pragma once

/// The ring of prepared batches behind Loader and EvaluationBatches: threads fill slots ahead of one reader.
///
/// Batches are numbered 0, 1, 2, ... without end and are yielded in that order. What stands in batch n is a
/// pure function that the owner hands in, so the number of threads cannot change it: they share the samples
/// of a batch in chunks. All memory is taken once, in the constructor: prefetch + 1 slots (one is being
/// read).
///
/// Threads  next() and wait_until_prepared() from one thread; the rest from any

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "data/dataset.h"

namespace paceline::data {

class Prefetch {
 public:
  struct Options {
    ImageFormat format;
    std::int64_t batch = 0;  ///< the most samples in a batch
    int threads = 1;
    int prefetch = 2;
    /// How many samples batch `number` has, 1 .. batch.
    std::function<std::int64_t(std::int64_t number)> samples;
    /// Prepares sample `i` of batch `number`: writes `dst` float [H][W][C], returns the label. `scratch` has
    /// room for the stored pixels. Called by several threads at once; what it throws is thrown by next().
    std::function<std::int32_t(std::int64_t number, std::int64_t i, std::span<std::uint8_t> scratch,
                               std::span<float> dst)>
        prepare;
  };

  struct View {
    std::int64_t number = 0;
    std::span<const float> images;
    std::span<const std::int32_t> labels;
  };

  struct Statistics {
    std::int64_t batches = 0;  ///< yielded
    std::int64_t waits = 0;    ///< calls of next() that found their batch unfinished
    double prepare_s = 0;
    double wait_s = 0;
  };

  explicit Prefetch(Options options);
  ~Prefetch();  ///< stops the threads after the sample each is at
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// The next batch; takes the previous one back. Valid until the next call. A batch that could not be
  /// prepared throws what its preparation threw, here and in every later call.
  View next();
  /// Blocks until every slot that may be filled is filled, without yielding one.
  void wait_until_prepared();
  /// Whether a call of next() is blocked now.
  [[nodiscard]] bool is_waiting() const;
  [[nodiscard]] Statistics statistics() const;

  [[nodiscard]] static std::int64_t planned_bytes(const ImageFormat& format, std::int64_t batch, int threads,
                                                  int prefetch);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace paceline::data
