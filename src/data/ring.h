#pragma once

/// The batches of a Prefetch and their progress: bookkeeping without threads.
///
/// Batch n lies in slot n % slots. The reader holds one batch at most. Batches [handed back, handed back +
/// slots) may be filled. Work is handed out in pieces of a batch, in order, and may finish in any order.
///
/// Threads  the owner's lock must be held in every call but image() and label(), whose samples belong to the
///          thread that took their piece

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

  /// `samples(number)` returns the number of samples of a batch, 1 .. `batch`.
  Ring(std::int64_t batch, std::int64_t image_values, std::int64_t slots,
       std::function<std::int64_t(std::int64_t number)> samples);

  [[nodiscard]] bool has_room() const;  ///< whether a piece can be taken
  /// Whether the batch that the reader gets next has pieces that nobody has taken.
  [[nodiscard]] bool lacks_next() const { return next_batch_ == yielded_; }
  [[nodiscard]] std::int64_t ahead() const { return next_batch_ - yielded_; }  ///< batches handed out whole
  [[nodiscard]] Piece take();                                                  ///< requires has_room()
  [[nodiscard]] std::span<float> image(std::int64_t number, std::int64_t i);
  [[nodiscard]] std::int32_t& label(std::int64_t number, std::int64_t i);
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

}  // namespace paceline::data
