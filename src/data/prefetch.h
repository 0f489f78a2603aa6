#pragma once

/// The prepared batches behind Loader and EvaluationBatches: threads fill a ring ahead of one reader.
///
/// Batches are numbered 0, 1, 2, ... without end and are yielded in that order. What stands in batch n is a
/// pure function that the owner hands in, so neither the number of threads nor who prepares which sample can
/// change it: they share a batch in pieces (ring.h). All memory is taken once, in the constructor: prefetch +
/// 1 slots (one is being read).
///
/// **A pool** is all the threads of a process's workers. Each Prefetch brings threads of its own, which stay
/// on the cores of the worker that made them. They fill their own ring first; while it is full they prepare
/// pieces of the pool's other rings, and a ring whose reader waits comes before all else. So none rests while
/// a worker waits, however unevenly images and cores are dealt out (docs/decisions/loader-crew.md).
///
/// Threads  next() and wait_until_prepared() from one thread; the rest from any

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "data/dataset.h"
#include "data/ring.h"

namespace paceline::data {

/// Outlives every Prefetch that belongs to it. Threads  any
class LoaderPool {
 public:
  LoaderPool();
  ~LoaderPool();
  LoaderPool(const LoaderPool&) = delete;
  LoaderPool& operator=(const LoaderPool&) = delete;

 private:
  friend class Prefetch;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct PrefetchOptions {
  ImageFormat format;          ///< the same for all of a pool
  std::int64_t batch = 0;      ///< the most samples in a batch
  int views = 1;               ///< images that are written of each sample, one after the other
  int threads = 1;             ///< of its own; 0: the pool's other threads do the work, or where the pool has
                               ///< none yet, next() does it, in the reader's thread and nothing ahead
  int prefetch = 2;            ///< 0 only where next() does the work
  LoaderPool* pool = nullptr;  ///< null: its threads serve nobody else
  /// How many samples batch `number` has, 1 .. batch.
  std::function<std::int64_t(std::int64_t number)> samples;
  /// Prepares sample `i` of batch `number`: writes `dst` float [views][H][W][C], returns the label.
  /// `scratch` has room for the stored pixels. Called by several threads at once; what it throws is thrown
  /// by next().
  std::function<std::int32_t(std::int64_t number, std::int64_t i, std::span<std::uint8_t> scratch,
                             std::span<float> dst)>
      prepare;
};

class Prefetch {
 public:
  struct Statistics {
    std::int64_t batches = 0;  ///< yielded
    std::int64_t waits = 0;    ///< calls of next() that found their batch unfinished
    std::int64_t ready = 0;    ///< batches that calls of next() found ready, `prefetch` at most, summed up
    double prepare_s = 0;      ///< spent on this ring's batches, summed over whoever prepared them
    double processor_s = 0;    ///< of it, on a processor: the rest, its thread was not running
    double wait_s = 0;
  };

  explicit Prefetch(PrefetchOptions options);
  /// Stops the work on this ring after the sample that each thread is at; its own threads first finish the
  /// piece of another ring that they help with.
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// The next batch; takes the previous one back. Valid until the next call. A batch that could not be
  /// prepared throws what its preparation threw, here and in every later call.
  BatchView next();
  /// Blocks until every slot that may be filled is filled, without yielding one.
  void wait_until_prepared();
  /// Whether a call of next() is blocked now.
  [[nodiscard]] bool is_waiting() const;
  [[nodiscard]] Statistics statistics() const;

  [[nodiscard]] static std::int64_t planned_bytes(const ImageFormat& format, std::int64_t batch, int views,
                                                  int threads, int prefetch);

 private:
  friend class LoaderPool;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace paceline::data
