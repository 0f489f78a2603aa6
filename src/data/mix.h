#pragma once

/// Mixes two training images and their labels: mixup (Zhang et al. 2018) and CutMix (Yun et al. 2019).
///
/// Positions 2i and 2i + 1 of an epoch are a pair, whose images are mixed with one another in opposite
/// proportions. How is a function of (seed, epoch, i), so it does not depend on how samples are divided among
/// workers. Images are mixed once they are augmented and normalised. Mixup is linear, so that mixing pixels
/// before would give the same values, but for their rounding to bytes.

#include <cstdint>
#include <span>

#include "base/rng.h"
#include "data/dataset.h"

namespace paceline::data {

/// The parameters of Beta(A, A), from which factors are drawn; 0: off. If both are given, each pair is mixed
/// in one of the two ways, with equal chance.
struct MixOptions {
  double mixup = 0, cutmix = 0;
  std::uint64_t seed = 0;
  [[nodiscard]] bool is_none() const { return mixup == 0 && cutmix == 0; }
};

/// A draw from Beta(a, a); a > 0.
[[nodiscard]] double draw_beta(double a, base::Rng& rng);

/// How each image of a pair gets the other one.
struct PairMix {
  bool is_cut = false;
  float share = 0;                               ///< of the other image, and the weight of its label: 0 .. 1
  int top = 0, left = 0, height = 0, width = 0;  ///< is_cut: the box that shows the other image
};

/// Mixup: the share is a draw from Beta(mixup, mixup). CutMix: the box has the centre of a random pixel and,
/// before it is cut off at the edges, sides of sqrt(draw from Beta(cutmix, cutmix)) of the image's, rounded
/// down to an even number of pixels, as torchvision's reference recipe has it; the share is its area.
///
/// Requires  not options.is_none()
[[nodiscard]] PairMix draw_pair(const MixOptions& options, const ImageFormat& format, std::int64_t epoch,
                                std::int64_t pair);

/// Mixes `other` into `own`, both normalised images [H][W][C]. The same bits whatever instructions the
/// compiler chooses: each value is rounded once.
void mix_into(const ImageFormat& format, const PairMix& pair, std::span<const float> other,
              std::span<float> own);

}  // namespace paceline::data
