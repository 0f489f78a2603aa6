#pragma once

/// The threads and memory behind Loader and EvaluationBatches: threads fill a ring of batches ahead of one
/// reader.
///
/// Batches are numbered 0, 1, 2, ... without end and yielded in that order. The contents of batch n are a
/// pure function given by the owner, so they do not depend on the number of threads or on which thread
/// prepares a sample. Threads share a batch in pieces. The constructor allocates all memory:
/// prefetch + 1 slots (one is being read).
///
/// **A pool** joins all loader threads of a process's workers. Each Prefetch has threads of its own, which
/// stay on the cores of the worker that made them. They fill their own ring first. While it is full they
/// prepare pieces of the pool's other rings; a ring whose reader waits comes first of all. So no thread is
/// idle while a worker waits, however uneven images and cores are (docs/decisions/loader-crew.md).
///
/// Threads  next() and wait_until_prepared() from one thread; the rest from any

#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "base/sample_draw.h"
#include "data/dataset.h"

namespace paceline::data {

// The batches of a Prefetch and their progress: bookkeeping without threads.
//
// Batch n lies in slot n % slots. The reader holds one batch at most. Batches [handed back, handed back +
// slots) may be filled. Work is handed out in pieces of a batch, in order, and may finish in any order.
//
// Threads  the owner's lock must be held in every call but image(), label() and prepared(), whose samples
//          belong to the thread that took their piece

/// A finished batch, lent by the ring.
struct BatchView {
  std::int64_t number = 0;
  std::span<const float> images;                          ///< [samples][image_values]
  std::span<const std::int32_t> labels;                   ///< [samples]
  std::span<const base::SecondLabel> second_labels = {};  ///< [samples], with PrefetchOptions::mix
};

/// Samples of a batch that one thread has prepared.
struct PreparedPiece {
  std::int64_t number = 0, begin = 0;          ///< of the batch, and in it
  std::span<float> images;                     ///< [samples][image_values]
  std::span<const std::int32_t> labels;        ///< [samples]
  std::span<base::SecondLabel> second_labels;  ///< [samples]
};

class Ring {
 public:
  /// Samples [begin, end) of batch `number`.
  struct Piece {
    std::int64_t number = 0, begin = 0, end = 0;
  };

  /// `samples(number)` returns the number of samples of a batch, 1 .. `batch`.
  Ring(std::int64_t batch, std::int64_t image_values, std::int64_t slots,
       std::function<std::int64_t(std::int64_t number)> samples, bool has_two_labels);

  [[nodiscard]] bool has_room() const;  ///< whether a piece can be taken
  /// Whether the batch that the reader gets next has pieces that nobody has taken.
  [[nodiscard]] bool lacks_next() const { return next_batch_ == yielded_; }
  [[nodiscard]] std::int64_t ahead() const { return next_batch_ - yielded_; }  ///< batches handed out whole
  [[nodiscard]] Piece take();                                                  ///< requires has_room()
  [[nodiscard]] std::span<float> image(std::int64_t number, std::int64_t i);
  [[nodiscard]] std::int32_t& label(std::int64_t number, std::int64_t i);
  /// Requires  the ring has two labels
  [[nodiscard]] PreparedPiece prepared(const Piece& piece);
  /// Marks `piece` as done, or as failed with `error` at sample `failed_at`. True if its batch is complete.
  bool finish(const Piece& piece, std::int64_t failed_at, const std::exception_ptr& error);

  /// Takes the reader's batch back, if it has one. True if there was no room before, and there is now.
  bool take_back();
  [[nodiscard]] std::int64_t ready() const;  ///< complete batches in a row that the reader has not had
  /// The next batch; requires ready() > 0. Throws the exception of its first failing sample, which does not
  /// depend on the number of threads.
  [[nodiscard]] BatchView yield();
  [[nodiscard]] bool is_full() const;  ///< every slot that may be filled is complete

 private:
  struct RingSlot {
    base::Buffer images;
    std::vector<std::int32_t> labels;
    std::vector<base::SecondLabel> second_labels;
    std::int64_t samples = 0;
    std::int64_t finished = 0;  ///< done or failed
    std::int64_t failed_at = std::numeric_limits<std::int64_t>::max();
    std::exception_ptr error;
  };

  [[nodiscard]] RingSlot& slot_of(std::int64_t number);
  [[nodiscard]] const RingSlot& slot_of(std::int64_t number) const;
  [[nodiscard]] std::int64_t slots() const { return static_cast<std::int64_t>(slots_.size()); }
  void open(std::int64_t number);

  std::int64_t batch_;
  std::size_t image_values_;
  std::function<std::int64_t(std::int64_t)> samples_;
  std::vector<RingSlot> slots_;
  std::int64_t handed_back_ = 0;
  std::int64_t yielded_ = 0;      ///< batches [handed_back, yielded) are with the reader: one at most
  std::int64_t next_batch_ = 0;   ///< the batch that is being handed out ...
  std::int64_t next_sample_ = 0;  ///< ... and its next sample
};

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
  /// Changes the images of a piece whose samples are prepared, in the same thread, and writes their second
  /// labels. `image` and `pixels` are scratch of one image. Empty: there are no second labels.
  std::function<void(const PreparedPiece& piece, std::span<float> image, std::span<std::uint8_t> pixels)>
      mix = {};
};

/// What a loader did, for the record.
struct LoaderStatistics {
  std::int64_t batches = 0;  ///< yielded
  /// Preparing time of these, summed over all threads. batches * local_batch / prepare_s is the highest rate
  /// of one thread.
  double prepare_s = 0;
  double processor_s = 0;  ///< processor time of it; batches * local_batch / processor_s = images/s a core
  double wait_s = 0;       ///< time that next() waited for a batch that was not ready
  std::int64_t waits = 0;  ///< calls of next() that waited
  std::int64_t ready = 0;  ///< ready batches, at most `prefetch`, summed over the calls of next()
};

class Prefetch {
 public:
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
  [[nodiscard]] LoaderStatistics statistics() const;

  [[nodiscard]] static std::int64_t planned_bytes(const ImageFormat& format, std::int64_t batch, int views,
                                                  int threads, int prefetch, bool mixes = false);

 private:
  friend class LoaderPool;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace paceline::data
