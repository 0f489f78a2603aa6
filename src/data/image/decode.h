#pragma once

/// Decodes image files in memory to RGB pixels: JPEG and PNG with libjpeg-turbo and spng, PPM by a copy, and
/// WebP, TIFF, GIF and BMP, of which few photographs are, with libwebp, libtiff, giflib and stb_image.
///
/// The first bytes determine the kind, not the file name. As with PIL's convert("RGB"), grey, palette and
/// 16-bit images become RGB of 8 bits, CMYK is converted, and transparency is dropped. Images whose EXIF says
/// how they lie are turned upright, as PIL's exif_transpose() does.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "data/range.h"

namespace paceline::data {

struct Box;

/// Why an image cannot be decoded. The caller adds the name of the file.
class BrokenImage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class ImageKind { jpeg, png, ppm, webp, tiff, gif, bmp };
[[nodiscard]] const char* name(ImageKind kind);    ///< "JPEG", "PNG", "PPM", "WebP", "TIFF", "GIF", "BMP"
[[nodiscard]] const char* ending(ImageKind kind);  ///< of a file's name, without its dot: "jpg"

/// What an image's header says.
struct ImageHeader {
  ImageKind kind = ImageKind::jpeg;
  int height = 0, width = 0;  ///< upright
  const char* colour =
      "";        ///< "RGB", "grey", "CMYK" or "palette", with " + alpha" and " 16 bit" where they apply
  int turn = 1;  ///< EXIF's orientation of the stored pixels, 1 (upright) to 8
};

/// Pixels [height][width][3]. The memory is reused when another image is decoded into it.
struct RgbImage {
  int height = 0, width = 0;
  std::vector<std::uint8_t> pixels;
  /// Makes room for an image of this size.
  void resize(int rows, int columns) {
    height = rows;
    width = columns;
    pixels.resize(3 * static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
  }
};

/// An image of which pixels are a part, and where in it they begin.
struct PartOf {
  int height = 0, width = 0;
  int top = 0, left = 0;
};

/// Reads parts of JPEGs (decode_jpeg_part.cc).
class JpegPartReader;
struct JpegPartCloser {
  void operator()(JpegPartReader* reader) const;
};
using JpegParts = std::unique_ptr<JpegPartReader, JpegPartCloser>;

struct JpegCloser {
  void operator()(void* handle) const;
};

/// Decodes images one after another. It keeps its JPEG decompressor, since making one costs as much as
/// decoding a small image. A broken image does not affect the next one.
///
/// Threads  one at a time
class ImageDecoder {
 public:
  /// Errors   BrokenImage: none of these kinds, a damaged header, or more pixels than a file of this
  ///          length can hold (so that a false header cannot make us allocate)
  [[nodiscard]] ImageHeader read_header(std::span<const std::uint8_t> bytes);

  /// Decodes `bytes` into `dst`. A JPEG may be decoded at 1/2, 1/4 or 1/8 of its size, which is much cheaper:
  /// the smallest scale that is at least `least_scale` is used (1: always full size).
  ///
  /// `range`: how an image of 16 bits is scaled, as in Source; others stay as they are.
  ///
  /// Errors   BrokenImage: the data ends early or is damaged
  void decode(std::span<const std::uint8_t> bytes, const ImageHeader& header, double least_scale,
              RgbImage& dst, const std::optional<Range>& range = {});

  /// As decode(), but of a JPEG perhaps no more than `box` (in pixels of the image) and some pixels around
  /// it: the same pixels in less time, since what lies below is not read, and above and beside it not
  /// transformed. So damage below is not seen; a file that was cut short is.
  [[nodiscard]] PartOf decode_part(std::span<const std::uint8_t> bytes, const ImageHeader& header,
                                   double least_scale, const Box& box, RgbImage& dst,
                                   const std::optional<Range>& range = {});

 private:
  std::unique_ptr<void, JpegCloser> jpeg_;  ///< made for the first JPEG
  JpegParts parts_;                         ///< for the first of a part
};

/// ImageDecoder::decode_part() of a JPEG at 1 / `divisor` of its size.
///
/// Returns   nothing for a damaged file, one of several scans, or of four colours: to be decoded as a whole
[[nodiscard]] std::optional<PartOf> decode_jpeg_part(JpegParts& parts, std::span<const std::uint8_t> bytes,
                                                     int divisor, const Box& box, RgbImage& dst);

// WebP, TIFF, GIF and BMP (decode_others.cc): the first picture of a file that holds several.

/// The header, with the sides as they are stored; nothing for other kinds. Errors as read_header().
[[nodiscard]] std::optional<ImageHeader> read_other_header(std::span<const std::uint8_t> bytes);
/// Decodes what `stored` is the header of, as it is stored. Errors as decode().
void decode_other(std::span<const std::uint8_t> bytes, const ImageHeader& stored, RgbImage& dst);
/// The same of a TIFF alone (decode_tiff.cc).
[[nodiscard]] ImageHeader tiff_header(std::span<const std::uint8_t> bytes);
void decode_tiff(std::span<const std::uint8_t> bytes, const ImageHeader& stored, RgbImage& dst);

/// The values [height][width][3] of an image of 16 bits as they are stored, without its alpha channel: grey
/// three times, and a TIFF whose 0 is white inverted. Empty for other images. Decoding without a range keeps
/// the upper 8 of the 16 bits.
///
/// Cost     decodes the image
/// Errors   BrokenImage: as decode(); a TIFF of 16 bits in tiles, planes or signed numbers
[[nodiscard]] std::vector<std::uint16_t> values_of_16_bits(std::span<const std::uint8_t> bytes);
/// The same of a TIFF alone, whose header says that it has 16 bits.
[[nodiscard]] std::vector<std::uint16_t> tiff_of_16_bits(std::span<const std::uint8_t> bytes,
                                                         const ImageHeader& stored);

// EXIF's orientation (exif.cc): 1 is upright; 2 mirrored; 3 upside down; 4 both; 5 to 8 the same with rows
// and columns exchanged.

/// The orientation that EXIF data has (a TIFF header, with or without "Exif" in front); 1 where it has none,
/// or is damaged.
[[nodiscard]] int exif_turn(std::span<const std::uint8_t> exif);
/// That of the first EXIF segment of a JPEG.
[[nodiscard]] int jpeg_turn(std::span<const std::uint8_t> jpeg);
/// Turns pixels that are stored as `turn` says.
void turn_upright(RgbImage& image, int turn);

/// A binary PPM (P6, 8 bits): a line of text, then the pixels.
[[nodiscard]] std::vector<std::uint8_t> to_ppm(const RgbImage& image);

}  // namespace paceline::data
