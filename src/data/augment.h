#pragma once

/// Turns stored pixels into network input: crop, colours, flip, normalise. Random choices are a pure function
/// of (seed, epoch, position), so the images do not depend on the number of workers.

#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"
#include "base/sample_draw.h"
#include "data/dataset.h"
#include "data/trivial_augment.h"

namespace paceline::data {

// Rotation, shear and shift of an image, as in Keras's ImageDataGenerator.

/// Each value is drawn uniformly from -value .. +value; 0: off.
struct WarpOptions {
  double rotate = 0;  ///< degrees
  double shear = 0;   ///< degrees: rows move sideways by sin(shear) times their distance from the middle
  double shift = 0;   ///< as part of the height and, drawn separately, of the width
  [[nodiscard]] bool is_none() const { return rotate == 0 && shear == 0 && shift == 0; }
};

/// Maps output to source coordinates, both from the middle: source = matrix * (y, x) + offset.
struct WarpMap {
  double yy = 1, yx = 0, xy = 0, xx = 1;
  double y = 0, x = 0;
};

[[nodiscard]] WarpMap draw_warp(const WarpOptions& options, const ImageFormat& format, base::Rng& rng);

/// Applies `map` to `src` and writes `dst`: bilinear between pixels; beyond the edge the edge pixels repeat.
/// Both hold an image of `format` and do not overlap.
void warp(const ImageFormat& format, const WarpMap& map, std::span<const std::uint8_t> src,
          std::span<std::uint8_t> dst);

inline constexpr int kMostViews = 6;  ///< the number of views of view_draw()

struct AugmentOptions {
  int crop_padding = 0;  ///< padding on each side, then a random crop of the original size; 0: none
  Flip flip = Flip::none;
  std::vector<float> mean, stddev;  ///< per channel, of pixels / 255
  std::uint64_t seed = 0;
  double crop_area = 0;  ///< > 0: random-resized-crop, see part(); instead of crop_padding
  double jitter = 0;     ///< > 0: see jitter()
  CropFill crop_fill = CropFill::black;
  WarpOptions warp = {};  ///< before the crop, on the stored pixels
  bool trivial = false;   ///< after the warp: see trivial_augment.h; images of 1 or 3 channels
  double erase = 0;       ///< the part of the images of which a box is set to 0 at the end, the mean colour
};

class Augment {
 public:
  Augment(const ImageFormat& format, AugmentOptions options);
  /// The crop and flip of a sample at (epoch, position). `index` becomes the draw's index, and matters to
  /// alternating flips.
  [[nodiscard]] base::SampleDraw draw(std::int64_t index, std::int64_t epoch, std::int64_t position) const;
  /// Applies `draw` to `pixels` (uint8 [H][W][C]), normalises, and writes to `dst` float [H][W][C]. Ignores
  /// the draw's index.
  void show(std::span<const std::uint8_t> pixels, const base::SampleDraw& draw, std::span<float> dst) const;
  /// [channels][256]: the normalised value of each byte.
  [[nodiscard]] std::span<const float> byte_values() const { return table_; }
  /// Reads sample `index` of `dataset` and writes its augmented form to `dst`: a part of the image if
  /// crop_area is set, then colours, warp, TrivialAugment, crop, flip, normalisation, erasing. Returns the
  /// label. `scratch` has room for the pixels.
  std::int32_t read_train(const Dataset& dataset, std::int64_t index, std::int64_t epoch,
                          std::int64_t position, std::span<std::uint8_t> scratch, std::span<float> dst) const;
  /// The part of a stored image [height][width] for (epoch, position), as torchvision's RandomResizedCrop: an
  /// area of crop_area .. 1 of the whole, an aspect ratio of 3/4 .. 4/3 of the format's (log-uniform), and a
  /// random position; the centre after ten draws that do not fit.
  [[nodiscard]] Box part(int height, int width, std::int64_t epoch, std::int64_t position) const;
  /// Changes brightness, contrast and saturation of RGB `pixels`, in this order, each by a random factor of
  /// 1 - jitter .. 1 + jitter: torchvision's ColorJitter without its random order.
  void jitter(std::span<std::uint8_t> pixels, std::int64_t epoch, std::int64_t position) const;
  /// Normalises only, for evaluation.
  void evaluate(std::span<const std::uint8_t> pixels, std::span<float> dst) const;
  /// One of the views that test-time augmentation averages, as a draw of sample `index`: odd views are
  /// mirrored. Views 0 and 1 are not moved, 2 and 3 are moved by a pixel up and left, 4 and 5 down and right,
  /// with reflection. show() of view 0 is evaluate().
  [[nodiscard]] static base::SampleDraw view_draw(std::int64_t index, int view);

 private:
  /// The generator of what is drawn for `purpose` at (epoch, position).
  [[nodiscard]] base::Rng rng(base::Purpose purpose, std::int64_t epoch, std::int64_t position) const;
  void erase(std::int64_t epoch, std::int64_t position, std::span<float> dst) const;
  ImageFormat format_;
  AugmentOptions options_;
  std::vector<float> table_;  ///< byte_values()
};

}  // namespace paceline::data
