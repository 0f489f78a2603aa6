#include "data/ring.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace paceline::data {
namespace {

// Samples of a piece: few enough that threads share even a batch of 32, and enough that taking the lock
// (about 0.1 us) is negligible beside preparing them (at least 5 us each).
constexpr std::int64_t kPiece = 16;

}  // namespace

Ring::Ring(std::int64_t batch, std::int64_t image_values, std::int64_t slots,
           std::function<std::int64_t(std::int64_t)> samples)
    : batch_(batch),
      image_values_(static_cast<std::size_t>(image_values)),
      samples_(std::move(samples)),
      slots_(static_cast<std::size_t>(slots)) {
  for (auto& slot : slots_) {
    slot.images = base::Buffer(static_cast<std::size_t>(batch) * image_values_ * sizeof(float));
    slot.labels.resize(static_cast<std::size_t>(batch));
  }
  open(0);
}

Ring::RingSlot& Ring::slot_of(std::int64_t number) {
  return slots_[static_cast<std::size_t>(number) % slots_.size()];
}
const Ring::RingSlot& Ring::slot_of(std::int64_t number) const {
  return slots_[static_cast<std::size_t>(number) % slots_.size()];
}

/// Empties the slot for batch `number`.
void Ring::open(std::int64_t number) {
  RingSlot& slot = slot_of(number);
  slot.samples = samples_(number);
  base::expects(slot.samples >= 1 && slot.samples <= batch_, "1 <= samples of a batch <= batch");
  slot.finished = 0;
  slot.failed_at = std::numeric_limits<std::int64_t>::max();
  slot.error = nullptr;
}

bool Ring::has_room() const { return next_batch_ < handed_back_ + slots(); }

Ring::Piece Ring::take() {
  const RingSlot& slot = slot_of(next_batch_);
  const Piece piece{next_batch_, next_sample_, std::min(next_sample_ + kPiece, slot.samples)};
  next_sample_ = piece.end;
  if (piece.end == slot.samples) {
    ++next_batch_;
    next_sample_ = 0;
    // The next slot is opened here if it is free, otherwise by take_back() when it becomes free.
    if (has_room()) open(next_batch_);
  }
  return piece;
}

std::span<float> Ring::image(std::int64_t number, std::int64_t i) {
  return slot_of(number).images.as<float>().subspan(static_cast<std::size_t>(i) * image_values_,
                                                    image_values_);
}
std::int32_t& Ring::label(std::int64_t number, std::int64_t i) {
  return slot_of(number).labels[static_cast<std::size_t>(i)];
}

bool Ring::finish(const Piece& piece, std::int64_t failed_at, const std::exception_ptr& error) {
  RingSlot& slot = slot_of(piece.number);
  if (error && failed_at < slot.failed_at) {
    slot.failed_at = failed_at;
    slot.error = error;
  }
  slot.finished += piece.end - piece.begin;
  return slot.finished == slot.samples;
}

bool Ring::take_back() {
  if (yielded_ == handed_back_) return false;
  const bool was_full = !has_room();
  ++handed_back_;
  if (was_full) open(next_batch_);
  return was_full;
}

std::int64_t Ring::ready() const {
  std::int64_t number = yielded_;
  while (number < next_batch_ && slot_of(number).finished == slot_of(number).samples) ++number;
  return number - yielded_;
}

BatchView Ring::yield() {
  const RingSlot& slot = slot_of(yielded_);
  if (slot.error) std::rethrow_exception(slot.error);
  const auto samples = static_cast<std::size_t>(slot.samples);
  return {yielded_++, slot.images.as<float>().first(samples * image_values_),
          std::span(slot.labels).first(samples)};
}

bool Ring::is_full() const { return !has_room() && ready() == ahead(); }

}  // namespace paceline::data
