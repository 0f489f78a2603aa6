#pragma once

/// JPEG, PNG and PPM files in memory to RGB pixels: libjpeg-turbo, spng and a copy behind one function.
///
/// The kind is told by the first bytes, never by a name. Grey, palette and 16-bit images become RGB of 8
/// bits, CMYK is multiplied out, transparency is dropped, EXIF rotation is not applied: what PIL's
/// convert("RGB") does.

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace paceline::data {

/// Why an image cannot be decoded, without the name of the file: whoever knows the name says it.
class BrokenImage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class ImageKind { jpeg, png, ppm };
[[nodiscard]] const char* name(ImageKind kind);  ///< "JPEG", "PNG", "PPM"

/// What an image says of itself.
struct ImageHeader {
  ImageKind kind = ImageKind::jpeg;
  int height = 0, width = 0;
  const char* colour =
      "";  ///< "RGB", "grey", "CMYK", "palette", with " + alpha" and " 16 bit" where it is so
};

/// Pixels [height][width][3]. Keeps its memory when another image is decoded into it.
struct RgbImage {
  int height = 0, width = 0;
  std::vector<std::uint8_t> pixels;
};

struct JpegCloser {
  void operator()(void* handle) const;
};

/// Decodes one image after the other, and keeps its JPEG decompressor: to make one costs as much as to decode
/// a small image. After a broken image it goes on with the next as a new one would.
///
/// Threads  one at a time
class ImageDecoder {
 public:
  /// Errors   BrokenImage: neither JPEG, PNG nor PPM, a damaged header, or more pixels than a file of this
  ///          length can hold (so that no header makes us take memory that the file does not explain)
  [[nodiscard]] ImageHeader read_header(std::span<const std::uint8_t> bytes);

  /// Decodes `bytes` into `dst`. A JPEG may be decoded at 1/2, 1/4 or 1/8 of its size, which is much cheaper:
  /// the smallest that is still at least `least_scale` of the whole is taken (1: always the whole).
  ///
  /// Errors   BrokenImage: the data ends early or is damaged
  void decode(std::span<const std::uint8_t> bytes, const ImageHeader& header, double least_scale,
              RgbImage& dst);

 private:
  std::unique_ptr<void, JpegCloser> jpeg_;  ///< made for the first JPEG
};

/// A binary PPM (P6, 8 bits): the pixels with a line of text before them.
[[nodiscard]] std::vector<std::uint8_t> to_ppm(const RgbImage& image);

}  // namespace paceline::data
