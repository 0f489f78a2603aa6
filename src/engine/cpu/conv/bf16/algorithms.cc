#include "engine/cpu/conv/bf16/algorithms.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "engine/cpu/conv/batch_split.h"

namespace paceline::engine::cpu {

std::optional<std::string> Bf16Algorithm::refusal(const ConvShape& shape, Direction direction,
                                                  const tiles::TileKernels& kernels) const {
  const bool is_gradient = direction == Direction::backward_weights;
  if (is_gradient && make_wgrad == nullptr) return "is for forward and backward data";
  if (!is_gradient && make_reader == nullptr) return "is for backward weights";
  return limit == nullptr ? std::nullopt : limit(shape, direction, kernels);
}

bool fills_tiles(const ConvShape& s, Direction direction) {
  constexpr int kSamples = 16, kPixels = 64;
  if (s.is_dense || std::min(s.src.channels, s.dst.channels) < kPreferredChannels || s.samples < kSamples)
    return false;
  switch (direction) {
    case Direction::forward:
      return s.kernel > 1 && s.dst_pixels() <= kPixels;
    case Direction::backward_data:
      return s.stride > 1 || s.dst_pixels() <= kPixels;
    case Direction::backward_weights:
      return true;
  }
  return false;
}

int whole_block_chunk(const ConvShape& batch, Direction direction) {
  constexpr int kFewChunks = 4;
  const bool is_gradient = direction == Direction::backward_weights;
  const int usual = is_gradient ? chunk_of_far_gradient(batch) : samples_of_chunk(batch, direction);
  const bool halves = !is_gradient && batch.samples < kFewChunks * tiles::kBlock;
  const int multiple = halves ? tiles::kHalf : tiles::kBlock;
  return std::min((usual + multiple - 1) / multiple * multiple, batch.samples);
}

int chunk_of_far_gradient(const ConvShape& batch) {
  constexpr std::int64_t kNearBytes = 256 << 10;
  constexpr std::int64_t kPixels = 4096, kMostChunks = 4;
  const int usual = samples_of_chunk(batch, Direction::backward_weights);
  if (4 * batch.weights() <= kNearBytes) return usual;
  const std::int64_t samples = std::max((kPixels + batch.dst_pixels() - 1) / batch.dst_pixels(),
                                        (batch.samples + kMostChunks - 1) / kMostChunks);
  return static_cast<int>(std::clamp<std::int64_t>(samples, usual, batch.samples));
}

// Each is defined in the file with its name.
extern const Bf16Algorithm kPixelRows, kPackedImages, kBatchRows, kWgradIm2col, kWgradPixelK, kWgradBatchK;

namespace {
constexpr std::array<const Bf16Algorithm*, 6> kTable = {
    // forward and backward data
    &kPixelRows,
    &kPackedImages,
    &kBatchRows,
    // backward weights
    &kWgradIm2col,
    &kWgradPixelK,
    &kWgradBatchK,
};
}  // namespace

std::span<const Bf16Algorithm* const> bf16_algorithms() { return kTable; }

const Bf16Algorithm& usual_bf16_algorithm(const ConvShape& shape, Direction direction,
                                          const tiles::TileKernels& kernels) {
  for (const Bf16Algorithm* algorithm : kTable)
    if (!algorithm->refusal(shape, direction, kernels)) return *algorithm;
  base::expects(false, "some bf16 algorithm computes any shape");
  return *kTable.front();
}

}  // namespace paceline::engine::cpu
