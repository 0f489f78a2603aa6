#pragma once

/// From stored pixels to what the network sees: crop, flip, normalise. Random choices are a pure function of
/// (seed, epoch, position), so any worker count sees the same images.

#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.h"

namespace paceline::data {

struct AugmentOptions {
  int crop_padding = 0;  ///< zero padding on each side, then a random crop of the original size; 0: none
  bool flip = false;     ///< horizontal flip with probability 1/2
  std::vector<float> mean, stddev;  ///< per channel, of pixels / 255
  std::uint64_t seed = 0;
};

class Augment {
 public:
  Augment(const ImageFormat& format, AugmentOptions options);
  /// The training form of `pixels` (uint8 [H][W][C]) at (epoch, position), written to `dst` float [H][W][C].
  void train(std::span<const std::uint8_t> pixels, std::int64_t epoch, std::int64_t position,
             std::span<float> dst) const;
  /// The evaluation form: normalised only.
  void evaluate(std::span<const std::uint8_t> pixels, std::span<float> dst) const;

 private:
  ImageFormat format_;
  AugmentOptions options_;
  std::vector<float> table_;  ///< [channels][256]: the normalised value of each byte
};

}  // namespace paceline::data
