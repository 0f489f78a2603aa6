// Winograd's row in the table of algorithms: what it can compute, when it pays, how it splits a batch.
// Rounding: docs/decisions/winograd.md.

#include <algorithm>

#include "engine/cpu/conv/algorithm.h"
#include "engine/cpu/conv/batch_split.h"
#include "engine/cpu/conv/bf16/support.h"
#include "engine/cpu/conv/onednn.h"
#include "engine/cpu/conv/winograd_kernel.h"
#include "engine/cpu/conv/winograd_wgrad.h"

namespace paceline::engine::cpu {
namespace {

std::int64_t image_tiles(const ConvShape& s) {
  return std::int64_t{1} * ((s.dst.height + 3) / 4) * ((s.dst.width + 3) / 4);
}

std::optional<std::string> refusal(const ConvProblem& problem) {
  const ConvShape& s = problem.shape;
  if (s.is_dense || s.kernel != 3 || s.stride > 2) return "is for 3x3 convolutions with stride 1 or 2";
  if (s.type != s.dst_type) return "reads and writes one precision";
  if (s.src.channels % 16 != 0 || s.dst.channels % 16 != 0) return "needs multiples of 16 channels";
  if (winograd::kernels_here().empty()) return "needs AVX2";
  if (s.padding > 2) return "needs at most 2 pixels of padding";
  if (s.stride == 2 && s.padding != 1) return "needs 1 pixel of padding with stride 2";
  return std::nullopt;
}

/// With AMX, what this project's tile kernels do not compute is left to oneDNN, unless oneDNN may not use AMX
/// (ONEDNN_MAX_CPU_ISA).
bool leaves_it_to_amx(const ConvShape& s) {
  return !tiles::refusal_to_multiply(tiles::Unit::amx, s) &&
         bf16_products_here() == Bf16Products::in_hardware;
}

/// Where needing only a quarter of the multiplications outweighs the transforms: with enough channels, whole
/// tiles, and enough tiles to be worth reading the transformed weights, which are four times as large. With
/// stride 2 more than half of the multiplications remain; then tiles must not extend far beyond the images,
/// and few channels need more tiles.
bool prefers(const ConvProblem& problem) {
  constexpr int kLeastChannels = 32, kMostChannels = 512, kPixels = 16, kTiles = 32;
  constexpr int kManyChannels = 128, kMostPercent = 120;
  const ConvShape& s = problem.shape;
  if (leaves_it_to_amx(s)) return false;
  if (s.stride > 1) {
    if (100 * kPixels * image_tiles(s) > kMostPercent * s.dst_pixels()) return false;
    if (std::min(s.src.channels, s.dst.channels) < kManyChannels && s.samples * image_tiles(s) < 2 * kTiles)
      return false;
  }
  return std::min(s.src.channels, s.dst.channels) >= kLeastChannels &&
         std::max(s.src.channels, s.dst.channels) <= kMostChannels && s.dst_pixels() >= kPixels &&
         s.samples * image_tiles(s) >= kTiles;
}

std::string preference(const ConvProblem& problem) {
  if (leaves_it_to_amx(problem.shape)) return "is chosen only by measuring";
  return "is preferred for 32 to 512 channels, images of 4x4 or more, and 32 tiles of that size; with "
         "stride 2 for tiles that cover at most a fifth more than the image, and 64 of them below 128 "
         "channels";
}

int chunk(const ConvShape& batch, Direction direction) {
  const int usual = samples_of_chunk(batch, direction);
  if (direction == Direction::backward_weights) return usual;
  // Each chunk reads four times the weights: the more weights, the more tiles a chunk needs.
  const std::int64_t tiles = batch.weights() > 128 * 128 * 9 ? 96 : 48;
  const std::int64_t samples = (tiles + image_tiles(batch) - 1) / image_tiles(batch);
  // Chunks of nearly equal size; if they are few, an even number of them. With an odd number one thread
  // computes the last chunk while another waits.
  constexpr std::int64_t kFew = 8;
  const std::int64_t most = std::clamp<std::int64_t>(samples, usual, batch.samples);
  std::int64_t chunks = (batch.samples + most - 1) / most;
  if (chunks < kFew) chunks += chunks % 2;
  return static_cast<int>((batch.samples + chunks - 1) / chunks);
}

}  // namespace

ConvAlgorithm winograd_algorithm() {
  return {.name = "winograd",
          .refusal = refusal,
          .prefers = prefers,
          .preference = preference,
          .chunk = chunk,
          .make_reader =
              [](const ConvShape& chunk, Direction direction, const WeightReader*) {
                return make_winograd_reader(chunk, direction, *winograd::kernels_here().back());
              },
          .make_wgrad =
              [](const ConvShape& chunk, const WgradKernel*) {
                return make_winograd_wgrad(chunk, *winograd::kernels_here().back());
              },
          .converts_bf16 = true};
}

}  // namespace paceline::engine::cpu
