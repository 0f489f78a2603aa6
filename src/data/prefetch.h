#pragma once

/// The threads and memory behind Loader and EvaluationBatches: threads fill a ring of batches ahead of one
/// reader.
///
/// Batches are numbered 0, 1, 2, ... without end and yielded in that order. The contents of batch n are a
/// pure function given by the owner, so they do not depend on the number of threads or on which thread
/// prepares a sample. Threads share a batch in pieces (ring.h). The constructor allocates all memory:
/// prefetch + 1 slots (one is being read).
///
/// **A pool** joins all loader threads of a process's workers. Each Prefetch has threads of its own, which
/// stay on the cores of the worker that made them. They fill their own ring first. While it is full they
/// prepare pieces of the pool's other rings; a ring whose reader waits comes first of all. So no thread is
/// idle while a worker waits, however uneven images and cores are (docs/decisions/loader-crew.md).
///
/// Threads  next() and wait_until_prepared() from one thread; the rest from any

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "data/dataset.h"
#include "data/ring.h"

namespace paceline::data {

/// Must outlive every Prefetch that belongs to it.
///
/// Threads  any
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
  std::int64_t batch = 0;      ///< largest number of samples in a batch
  int views = 1;               ///< images written per sample, one after another
  int threads = 1;             ///< of its own; 0: the pool's other threads do the work; if the pool has none
                               ///< yet, next() does it in the reader's thread, and nothing is prepared ahead
  int prefetch = 2;            ///< may be 0 only if next() does the work
  LoaderPool* pool = nullptr;  ///< null: its threads serve only this ring
  /// The number of samples of batch `number`, 1 .. batch.
  std::function<std::int64_t(std::int64_t number)> samples;
  /// Prepares sample `i` of batch `number`: writes `dst` float [views][H][W][C] and returns the label.
  /// `scratch` has room for the stored pixels. Several threads call it at once; next() throws its exceptions.
  std::function<std::int32_t(std::int64_t number, std::int64_t i, std::span<std::uint8_t> scratch,
                             std::span<float> dst)>
      prepare;
};

class Prefetch {
 public:
  struct Statistics {
    std::int64_t batches = 0;  ///< yielded
    std::int64_t waits = 0;    ///< calls of next() that found their batch unfinished
    std::int64_t ready = 0;    ///< ready batches, at most `prefetch`, summed over the calls of next()
    double prepare_s = 0;      ///< preparing time of this ring's batches, summed over all threads
    double processor_s = 0;    ///< the processor time of it
    double wait_s = 0;
  };

  explicit Prefetch(PrefetchOptions options);
  /// Stops work on this ring after the sample that each thread is preparing. Its own threads first finish the
  /// piece of another ring on which they work.
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// Returns the next batch and takes the previous one back. Valid until the next call. If a batch could not
  /// be prepared, this and every later call throw its exception.
  BatchView next();
  /// Blocks until every slot that may be filled is filled; returns no batch.
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
