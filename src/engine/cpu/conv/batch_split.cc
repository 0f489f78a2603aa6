#include "engine/cpu/conv/batch_split.h"

#include "base/error.h"
#include "engine/cpu/parallel.h"

namespace paceline::engine::cpu {

int samples_of_chunk(const ConvShape& batch, Direction direction) {
  // A chunk of the weight gradient writes a full copy of the weights, which is summed later; it needs enough
  // pixels to make that cost small. The other directions read the weights once per chunk, from a distant
  // cache.
  const bool sums = direction == Direction::backward_weights;
  const std::int64_t most_chunks = sums ? 8 : kMostRanges;
  const std::int64_t pixels = sums ? 2048 : batch.is_dense ? 32 : 256;
  // About half a millisecond on one core; but no more data than fits into the second-level cache, because
  // sums over rows are taken from rows just written (norm_epilogue.h).
  constexpr std::int64_t kProducts = 50'000'000, kBytes = 1 << 20;
  const std::int64_t products = (kProducts + batch.products() - 1) / batch.products();
  const std::int64_t cached = std::max<std::int64_t>(1, kBytes / (4 * batch.dst.elements()));
  const auto samples_of = [&](std::int64_t pixels) {
    return (pixels + batch.dst_pixels() - 1) / batch.dst_pixels();
  };
  std::int64_t least = samples_of(pixels);
  // With a single chunk the other threads wait. Two chunks are better, though each is less efficient, if they
  // are not too small.
  constexpr std::int64_t kHalfPixels = 64;
  if (!sums && !batch.is_dense && least >= batch.samples)
    least = std::max<std::int64_t>(samples_of(kHalfPixels), (batch.samples + 1) / 2);
  const std::int64_t samples = std::max(
      {least, sums ? products : std::min(products, cached), (batch.samples + most_chunks - 1) / most_chunks});
  if (samples >= batch.samples) return batch.samples;
  const std::int64_t chunks = (batch.samples + samples - 1) / samples;
  return static_cast<int>((batch.samples + chunks - 1) / chunks);
}

BatchSplit::BatchSplit(int batch, int samples) : batch_(batch), samples_(std::min(samples, batch)) {
  base::expects(samples_ >= 1, "a chunk has samples");
}

template <typename Kernel>
ChunkKernels<Kernel>::ChunkKernels(const ConvShape& batch, int samples, const Make& make)
    : BatchSplit(batch.samples, samples) {
  ConvShape chunk = batch;
  chunk.samples = size(0);
  chunk.is_alone = count() == 1;
  full_ = make(chunk, nullptr);
  if (const int rest = batch.samples % size(0); rest > 0) {
    chunk.samples = rest;
    last_ = make(chunk, full_.get());
    base::expects(last_->packed_bytes() == full_->packed_bytes() && last_->parts() == full_->parts(),
                  "the last chunk is like the others");
  }
}

template <typename Kernel>
std::int64_t ChunkKernels<Kernel>::scratchpad_bytes() const {
  return std::max(full_->scratchpad_bytes(), last_ ? last_->scratchpad_bytes() : 0);
}

template class ChunkKernels<WeightReader>;
template class ChunkKernels<WgradKernel>;

}  // namespace paceline::engine::cpu
