#pragma once

/// TrivialAugment (Müller and Hutter 2021) as torchvision's TrivialAugmentWide: one operation of 14, each
/// equally often, at one of 31 strengths, on uint8 pixels and with the results of Pillow's operations. The
/// nearest pixel is taken, and what lies outside is black.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/rng.h"
#include "data/dataset.h"

namespace paceline::data {

/// Grey by ITU-R 601 with weights in 1/65536, as PIL computes it.
[[nodiscard]] constexpr int grey_of(const std::uint8_t* rgb) {
  return (rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16;
}

/// By torchvision's names and in its order.
inline constexpr std::array<std::string_view, 14> kTrivialOperations{
    "Identity", "ShearX",   "ShearY",    "TranslateX", "TranslateY", "Rotate",       "Brightness",
    "Color",    "Contrast", "Sharpness", "Posterize",  "Solarize",   "AutoContrast", "Equalize"};

struct TrivialChoice {
  int operation = 0;         ///< index in kTrivialOperations
  int strength = 0;          ///< 0 .. kTrivialStrengths - 1
  bool is_negative = false;  ///< of geometry and colours; the others have no sign
};
inline constexpr int kTrivialStrengths = 31;

[[nodiscard]] TrivialChoice draw_trivial(base::Rng& rng);

/// Applies `choice` to `pixels`, an image [height][width][channels] of 1 or 3 channels. `copy` is scratch of
/// the same size.
void apply_trivial(const ImageFormat& format, const TrivialChoice& choice, std::span<std::uint8_t> pixels,
                   std::span<std::uint8_t> copy);

/// Where RandomErasing of torchvision erases: 0.02 to 0.33 of the area, height over width of 0.3 to 3.3
/// (log-uniform); nothing (height 0) after ten draws that do not fit.
struct ErasedBox {
  int top = 0, left = 0, height = 0, width = 0;
};
[[nodiscard]] ErasedBox draw_erased(const ImageFormat& format, base::Rng& rng);

}  // namespace paceline::data
