#include "engine/cpu/conv/bf16/algorithms.h"

#include <array>

#include "base/error.h"

namespace paceline::engine::cpu {

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
