#pragma once

/// From stored pixels to what the network sees: crop, colours, flip, normalise. Random choices are a pure
/// function of (seed, epoch, position), so any worker count sees the same images.

#include <cstdint>
#include <span>
#include <vector>

#include "base/sample_draw.h"
#include "data/dataset.h"
#include "data/warp.h"

namespace paceline::data {

inline constexpr int kMostViews = 6;  ///< of evaluate_view()

struct AugmentOptions {
  int crop_padding = 0;  ///< padding on each side, then a random crop of the original size; 0: none
  Flip flip = Flip::none;
  std::vector<float> mean, stddev;  ///< per channel, of pixels / 255
  std::uint64_t seed = 0;
  double crop_area = 0;  ///< > 0: random-resized-crop, see part(); instead of crop_padding
  double jitter = 0;     ///< > 0: see jitter()
  CropFill crop_fill = CropFill::black;
  WarpOptions warp = {};  ///< before the crop, on the stored pixels
  /// Whether a training form is more than a draw(): then the pixels themselves change.
  [[nodiscard]] bool changes_pixels() const { return crop_area > 0 || jitter > 0 || !warp.is_none(); }
};

class Augment {
 public:
  Augment(const ImageFormat& format, AugmentOptions options);
  /// How train() shows sample `index` at (epoch, position): crop and flip. `index` is the draw's.
  [[nodiscard]] base::SampleDraw draw(std::int64_t index, std::int64_t epoch, std::int64_t position) const;
  /// Writes to `dst` float [H][W][C] what `draw` shows of `pixels` (uint8 [H][W][C]), normalised. The draw's
  /// index is not read.
  void show(std::span<const std::uint8_t> pixels, const base::SampleDraw& draw, std::span<float> dst) const;
  /// [channels][256]: the normalised value of each byte.
  [[nodiscard]] std::span<const float> byte_values() const { return table_; }
  /// The training form of `pixels` (uint8 [H][W][C]), sample `index` of its set, at (epoch, position),
  /// written to `dst` float [H][W][C]: show() of draw(). The index matters to alternating flips only.
  void train(std::span<const std::uint8_t> pixels, std::int64_t index, std::int64_t epoch,
             std::int64_t position, std::span<float> dst) const;
  /// Reads sample `index` of `dataset` and writes its training form to `dst`: the chosen part where crop_area
  /// is set, its colours, rotation and the like, crop, flip, normalised. `scratch` has room for the pixels.
  std::int32_t read_train(const Dataset& dataset, std::int64_t index, std::int64_t epoch,
                          std::int64_t position, std::span<std::uint8_t> scratch, std::span<float> dst) const;
  /// The part of a stored image [height][width] that (epoch, position) shows: an area drawn from crop_area ..
  /// 1 of the whole, proportions from 3/4 .. 4/3 of the format's (evenly in their logarithm), a place where
  /// it fits; after ten draws that do not fit, the centre. torchvision's RandomResizedCrop.
  [[nodiscard]] Box part(int height, int width, std::int64_t epoch, std::int64_t position) const;
  /// Changes brightness, contrast and saturation of RGB `pixels`, in this order, each by a factor drawn from
  /// 1 - jitter .. 1 + jitter; torchvision's ColorJitter without its random order.
  void jitter(std::span<std::uint8_t> pixels, std::int64_t epoch, std::int64_t position) const;
  /// The evaluation form: normalised only.
  void evaluate(std::span<const std::uint8_t> pixels, std::span<float> dst) const;
  /// One of the forms that test-time augmentation averages over: even views as they are, odd ones mirrored;
  /// views 0 and 1 in place, 2 and 3 moved by a pixel up and left, 4 and 5 down and right, with reflection.
  void evaluate_view(std::span<const std::uint8_t> pixels, int view, std::span<float> dst) const;
  /// The same of sample `index` as a draw; view 0 alone is evaluate().
  [[nodiscard]] static base::SampleDraw view_draw(std::int64_t index, int view);

 private:
  /// `dst` is only room: it holds a copy of the pixels meanwhile.
  void warp_in_place(std::span<std::uint8_t> pixels, std::int64_t epoch, std::int64_t position,
                     std::span<float> dst) const;
  ImageFormat format_;
  AugmentOptions options_;
  std::vector<float> table_;  ///< byte_values()
};

}  // namespace paceline::data
