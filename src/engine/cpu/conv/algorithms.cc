#include "engine/cpu/conv/algorithms.h"

#include <algorithm>

#include "engine/cpu/conv/batch_split.h"
#include "engine/cpu/conv/bf16/packed_images.h"
#include "engine/cpu/conv/bf16/pixel_rows.h"
#include "engine/cpu/conv/bf16/support.h"
#include "engine/cpu/conv/bf16/wgrad_im2col.h"
#include "engine/cpu/kernels/bf16/tiles.h"
#include "engine/cpu/kernels/winograd/winograd.h"

namespace paceline::engine::cpu {
namespace {

/// Where one product by tap and pixel is faster than oneDNN: few pixels, many channels, and samples to fill
/// the rows.
bool wants_taps(const ConvShape& s) {
  constexpr int kPixels = 16, kChannels = 256, kSamples = 32;
  return s.kernel > 1 && s.dst_pixels() <= kPixels && s.src.channels >= kChannels &&
         s.dst.channels >= kChannels && s.samples >= kSamples;
}

std::int64_t winograd_tiles(const ConvShape& s) {
  return std::int64_t{1} * ((s.dst.height + 3) / 4) * ((s.dst.width + 3) / 4);
}

/// Where a quarter of the multiplications pays for the transforms: enough channels, whole tiles, and enough
/// of them to be worth reading the weights' fourfold form. With a stride of 2 more than half of them are
/// left: then tiles must not hang over the images by much, and few channels want more tiles.
bool wants_winograd(const ConvShape& s) {
  constexpr int kLeastChannels = 32, kMostChannels = 512, kPixels = 16, kTiles = 32;
  constexpr int kManyChannels = 128, kMostPercent = 120;
  if (s.stride > 1) {
    if (100 * kPixels * winograd_tiles(s) > kMostPercent * s.dst_pixels()) return false;
    if (std::min(s.src.channels, s.dst.channels) < kManyChannels &&
        s.samples * winograd_tiles(s) < 2 * kTiles)
      return false;
  }
  return std::min(s.src.channels, s.dst.channels) >= kLeastChannels &&
         std::max(s.src.channels, s.dst.channels) <= kMostChannels && s.dst_pixels() >= kPixels &&
         s.samples * winograd_tiles(s) >= kTiles;
}

/// Where AMX by own tiles is faster than by oneDNN, up to 11 times: rows long enough for strips, or short
/// ones and images beside them; and with channels and samples to fill the tiles gradients of weights,
/// backward data with a stride, small images.
bool wants_amx(const ConvProblem& problem) {
  constexpr int kChannels = 64, kSamples = 16, kPixels = 64;
  const ConvShape& s = problem.shape;
  if (s.kernel > 1 && fits_pixel_rows(s, problem.direction, tiles::kernels_of(tiles::Unit::amx)) &&
      std::min(s.src.channels, s.dst.channels) >= kChannels)
    return true;
  if (const int images = images_side_by_side(s, problem.direction, tiles::kernels_of(tiles::Unit::amx));
      images > 0 && s.samples >= images && std::min(s.src.channels, s.dst.channels) >= kChannels)
    return true;
  if (problem.direction == Direction::backward_weights && fits_wgrad_im2col(s) && s.dst.channels >= kChannels)
    return true;
  if (s.is_dense || std::min(s.src.channels, s.dst.channels) < kChannels || s.samples < kSamples)
    return false;
  switch (problem.direction) {
    case Direction::forward:
      return s.kernel > 1 && s.dst_pixels() <= kPixels;
    case Direction::backward_data:
      return s.stride > 1 || s.dst_pixels() <= kPixels;
    case Direction::backward_weights:
      return true;
  }
  return false;
}

/// The unit of tile products; empty: `method` is something else.
std::optional<tiles::Unit> tile_unit(Method method) {
  switch (method) {
    case Method::amx:
      return tiles::Unit::amx;
    case Method::avx512_bf16:
      return tiles::Unit::avx512_bf16;
    case Method::emulated_amx:
      return tiles::Unit::emulated_amx;
    case Method::emulated_avx512:
      return tiles::Unit::emulated_avx512;
    case Method::winograd:
    case Method::taps:
    case Method::turned:
    case Method::onednn:
      break;
  }
  return std::nullopt;
}

/// By tiles a copy of many weights is what a chunk of a gradient has to wait for: it is fetched, written back
/// and read again to be summed up. Twice the usual pixels then, and no more than four copies.
int samples_of_far_gradient(const ConvShape& batch, int usual) {
  constexpr std::int64_t kNearBytes = 256 << 10;
  constexpr std::int64_t kPixels = 4096, kMostChunks = 4;
  if (4 * batch.weights() <= kNearBytes) return usual;
  const std::int64_t samples = std::max((kPixels + batch.dst_pixels() - 1) / batch.dst_pixels(),
                                        (batch.samples + kMostChunks - 1) / kMostChunks);
  return static_cast<int>(std::clamp<std::int64_t>(samples, usual, batch.samples));
}

/// Whole blocks of samples, whose tiles are read half as often; but half ones where there would be few
/// chunks.
int samples_of_tile_chunk(int usual, int batch, Direction direction) {
  constexpr int kFewChunks = 4;
  const bool halves = direction != Direction::backward_weights && batch < kFewChunks * tiles::kBlock;
  const int multiple = halves ? tiles::kHalf : tiles::kBlock;
  return std::min((usual + multiple - 1) / multiple * multiple, batch);
}

/// Images side by side in the tiles of this method; 0: none are.
int images_of_tile(Method method, const ConvShape& s, Direction direction) {
  const auto unit = tile_unit(method);
  return unit ? images_side_by_side(s, direction, tiles::kernels_of(*unit)) : 0;
}

/// The unit is asked about in runs in bf16 only: it is checked then.
std::optional<std::string> refusal_of_tiles(tiles::Unit unit, const ConvShape& s) {
  if (s.type != Storage::bf16 && !s.in_blocks) return "is for bf16";
  if (auto refused = tiles::refusal_of(unit)) return refused;
  if (s.in_blocks) return "multiplies bf16, and this run multiplies float copies";
  return std::nullopt;
}

/// With AMX what is not by own tiles is oneDNN's, unless that may not use it (ONEDNN_MAX_CPU_ISA).
bool leaves_winograd_to_amx(const ConvProblem& problem) {
  return !refusal(Method::amx, problem) && bf16_products_here() == Bf16Products::in_hardware;
}

std::optional<std::string> refusal_of_onednn(const ConvShape& s) {
  if (s.type == Storage::f32 || bf16_products_here() != Bf16Products::none) return std::nullopt;
  return "multiplies bf16 from AVX-512 on";
}

}  // namespace

std::string_view name_of(Method method) {
  if (const auto unit = tile_unit(method)) return tiles::name_of(*unit);
  switch (method) {
    case Method::winograd:
      return "winograd";
    case Method::taps:
      return "taps";
    case Method::turned:
      return "turned";
    case Method::onednn:
      return "onednn";
    case Method::amx:
    case Method::avx512_bf16:
    case Method::emulated_amx:
    case Method::emulated_avx512:
      break;  // above
  }
  return "";
}

std::optional<std::string> refusal(Method method, const ConvProblem& problem) {
  const ConvShape& s = problem.shape;
  if (const auto unit = tile_unit(method)) return refusal_of_tiles(*unit, s);
  switch (method) {
    case Method::winograd:
      if (s.is_dense || s.kernel != 3 || s.stride > 2) return "is for 3x3 convolutions with stride 1 or 2";
      if (s.type != s.dst_type) return "reads and writes one precision";
      if (s.src.channels % 16 != 0 || s.dst.channels % 16 != 0) return "wants multiples of 16 channels";
      if (winograd::kernels_here().empty()) return "needs AVX2";
      if (s.padding > 2) return "has at most 2 pixels of padding";
      if (s.stride == 2 && s.padding != 1) return "has 1 pixel of padding with stride 2";
      return std::nullopt;
    case Method::taps:
      if (s.is_dense) return "is for convolutions";
      if (s.bias) return "adds no bias";
      if (s.type != Storage::f32 || s.dst_type != Storage::f32) return "is for fp32";
      return std::nullopt;
    case Method::turned:
      if (problem.direction != Direction::backward_data) return "is for backward data";
      if (s.is_dense || s.stride != 1) return "is for convolutions with stride 1";
      if (s.padding >= s.kernel) return "wants less padding than its kernel is wide";
      return refusal_of_onednn(s);
    case Method::onednn:
      return refusal_of_onednn(s);
    case Method::amx:
    case Method::avx512_bf16:
    case Method::emulated_amx:
    case Method::emulated_avx512:
      break;
  }
  return std::nullopt;
}

bool suits_winograd(const ConvProblem& problem) {
  return !refusal(Method::winograd, problem) && wants_winograd(problem.shape);
}

Method usual_method(const ConvProblem& problem) {
  if (!refusal(Method::amx, problem) && wants_amx(problem)) return Method::amx;
  if (!leaves_winograd_to_amx(problem) && suits_winograd(problem)) return Method::winograd;
  if (!refusal(Method::taps, problem) && wants_taps(problem.shape)) return Method::taps;
  return Method::onednn;
}

std::string why_not_others(Method chosen, const ConvProblem& problem, bool measured) {
  std::string text;
  for (const Method method : kMethods) {
    if (method == chosen) continue;
    if (!text.empty()) text += "; ";
    text += std::string(name_of(method)) + " ";
    const auto refused = refusal(method, problem);
    if (refused) {
      text += *refused;
    } else if (measured) {
      text += "was not clearly faster";
    } else if (method == Method::amx) {
      text +=
          "wants 64 channels, and rows of 16 pixels, or images with rows of 8 or of 4 and enough of them for "
          "16, or 16 samples and small images, strides or gradients";
    } else if (tile_unit(method) || method == Method::turned ||
               (method == Method::winograd && leaves_winograd_to_amx(problem))) {
      text += "is taken only where it was measured";
    } else if (method == Method::winograd) {
      text +=
          "wants 32 to 512 channels, images of 4x4 or more, and 32 tiles of that size; with stride 2 tiles "
          "that cover at most a fifth more than the image, and 64 of them below 128 channels";
    } else if (method == Method::taps) {
      text += "wants many channels and samples, and few pixels";
    } else {
      text += "comes last";
    }
  }
  return text;
}

int samples_of_chunk(Method method, const ConvShape& batch, Direction direction) {
  int usual = samples_of_chunk(batch, direction);
  if (tile_unit(method) && direction == Direction::backward_weights)
    usual = samples_of_far_gradient(batch, usual);
  if (method == Method::taps) return batch.samples;  // its parts share the batch
  const bool is_unfolded = direction == Direction::backward_weights && fits_wgrad_im2col(batch);
  if (const auto unit = tile_unit(method);
      unit && fits_pixel_rows(batch, direction, tiles::kernels_of(*unit)))
    return usual;
  if (const int images = images_of_tile(method, batch, direction); images > 0)
    return std::min((usual + images - 1) / images * images, batch.samples);
  if (tile_unit(method) && !is_unfolded) return samples_of_tile_chunk(usual, batch.samples, direction);
  if (method != Method::winograd || direction == Direction::backward_weights) return usual;
  // Winograd reads four times the weights for a chunk: the more of them, the more tiles that must be worth
  // it.
  const std::int64_t tiles = batch.weights() > 128 * 128 * 9 ? 96 : 48;
  const std::int64_t samples = (tiles + winograd_tiles(batch) - 1) / winograd_tiles(batch);
  // Nearly equal, and even in number where they are few: of an odd number, or of one, the last is one
  // thread's, while another one waits.
  constexpr std::int64_t kFew = 8;
  const std::int64_t most = std::clamp<std::int64_t>(samples, usual, batch.samples);
  std::int64_t chunks = (batch.samples + most - 1) / most;
  if (chunks < kFew) chunks += chunks % 2;
  return static_cast<int>((batch.samples + chunks - 1) / chunks);
}

std::unique_ptr<ConvKernel> make_kernel(Method method, const ConvShape& chunk, Direction direction,
                                        const ConvKernel* like) {
  if (const auto unit = tile_unit(method))
    return make_tile_kernel(chunk, direction, tiles::kernels_of(*unit));
  if (method == Method::winograd)
    return make_winograd_kernel(chunk, direction, *winograd::kernels_here().back());
  if (method == Method::turned) return make_dgrad_as_forward_kernel(chunk, like);
  if (method == Method::taps) return make_gemm_per_tap_kernel(chunk, direction);
  return make_onednn_kernel(chunk, direction, like);
}

}  // namespace paceline::engine::cpu
