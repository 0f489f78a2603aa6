#pragma once

/// The batches that a Prefetch holds, and how far each has come: bookkeeping alone, without threads.
///
/// Batch n lies in slot n % slots. One reader holds one batch at most; batches [handed back, handed back +
/// slots) may be filled. Work is given out in pieces of a batch, in order, and comes back in any order.
///
/// Threads  none of its own: its owner's lock is held in every call but image() and label(), whose samples
///          belong to whoever took their piece

#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "base/buffer.h"

namespace paceline::data {

/// A finished batch, lent by the ring.
struct BatchView {
  std::int64_t number = 0;
  std::span<const float> images;         ///< [samples][image_values]
  std::span<const std::int32_t> labels;  ///< [samples]
};

class Ring {
 public:
  /// Samples [begin, end) of batch `number`.
  struct Piece {
    std::int64_t number = 0, begin = 0, end = 0;
  };

  /// `samples(number)` is how many samples a batch has, 1 .. `batch`.
  Ring(std::int64_t batch, std::int64_t image_values, std::int64_t slots,
       std::function<std::int64_t(std::int64_t number)> samples);

  [[nodiscard]] bool has_room() const;  ///< a piece can be taken
  /// Of the batch that the reader gets next, a piece has not been taken yet.
  [[nodiscard]] bool lacks_next() const { return next_batch_ == yielded_; }
  [[nodiscard]] std::int64_t ahead() const { return next_batch_ - yielded_; }  ///< batches wholly given out
  [[nodiscard]] Piece take();                                                  ///< needs has_room()
  [[nodiscard]] std::span<float> image(std::int64_t number, std::int64_t i);
  [[nodiscard]] std::int32_t& label(std::int64_t number, std::int64_t i);
  /// `piece` is done, or failed with `error` at sample `failed_at`. True when its batch is complete.
  bool finish(const Piece& piece, std::int64_t failed_at, const std::exception_ptr& error);

  /// The reader's batch comes back, if it has one. True when that made room where there was none.
  bool take_back();
  [[nodiscard]] std::int64_t ready() const;  ///< complete batches in a row that the reader has not had
  /// The next batch; needs ready() > 0. Throws what its first failing sample threw: the same one for any
  /// number of threads.
  [[nodiscard]] BatchView yield();
  [[nodiscard]] bool is_full() const;  ///< every slot that may be filled is complete

 private:
  struct RingSlot {
    base::Buffer images;
    std::vector<std::int32_t> labels;
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
  std::int64_t next_batch_ = 0;   ///< the batch whose samples are being given out ...
  std::int64_t next_sample_ = 0;  ///< ... and the next of them
};

}  // namespace paceline::data
