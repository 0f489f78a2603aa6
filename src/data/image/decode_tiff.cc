#include <tiffio.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/error.h"
#include "data/image/decode.h"

// TIFF with libtiff: rows of 8 bits as they stand, all else by its conversion to RGBA. The first page of a
// file.

namespace paceline::data {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr tmsize_t kMostAtOnce = tmsize_t{1} << 28;  // bytes that false tags may make us allocate

/// A file in memory for libtiff, and what it said of it.
struct TiffSource {
  Bytes bytes;
  std::size_t at = 0;
  std::string said;
};

TiffSource& tiff_source(thandle_t handle) { return *static_cast<TiffSource*>(handle); }

tmsize_t read_tiff(thandle_t handle, void* to, tmsize_t size) {
  auto& source = tiff_source(handle);
  const std::size_t left = source.bytes.size() - std::min(source.at, source.bytes.size());
  const std::size_t count = std::min(left, static_cast<std::size_t>(size));
  if (count > 0) std::memcpy(to, source.bytes.data() + source.at, count);
  source.at += count;
  return static_cast<tmsize_t>(count);
}

toff_t seek_tiff(thandle_t handle, toff_t offset, int whence) {
  auto& source = tiff_source(handle);
  const std::size_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? source.at : source.bytes.size();
  source.at = from + static_cast<std::size_t>(offset);
  return source.at;
}

/// libtiff's messages go to the file that they are about; those about none are not printed either.
void hear_tiff(thandle_t handle, const char* /*where*/, const char* format, va_list arguments) {
  if (handle == nullptr) return;
  char text[256];
  std::vsnprintf(text, sizeof text, format, arguments);
  if (auto& said = tiff_source(handle).said; said.empty()) said = text;
}

using TiffFile = std::unique_ptr<TIFF, void (*)(TIFF*)>;

[[noreturn]] void fail_tiff(const TiffSource& source, const char* otherwise) {
  throw BrokenImage("TIFF: " + (source.said.empty() ? std::string(otherwise) : source.said));
}

TiffFile open_tiff(TiffSource& source) {
  static const bool is_quiet = [] {
    TIFFSetErrorHandler(nullptr);
    TIFFSetWarningHandler(nullptr);
    TIFFSetErrorHandlerExt(hear_tiff);
    return true;
  }();
  base::expects(is_quiet, "libtiff's handlers are set once");
  const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(TIFFOpenOptionsAlloc(),
                                                                             TIFFOpenOptionsFree);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kMostAtOnce);
  TiffFile file(
      TIFFClientOpenExt(
          "image", "rm", &source, read_tiff, [](thandle_t, void*, tmsize_t) -> tmsize_t { return -1; },
          seek_tiff, [](thandle_t) { return 0; },
          [](thandle_t handle) -> toff_t { return tiff_source(handle).bytes.size(); }, nullptr, nullptr,
          options.get()),
      TIFFClose);
  if (file == nullptr) fail_tiff(source, "its header is damaged");
  return file;
}

std::uint16_t tag_of(TIFF* file, std::uint32_t tag) {
  std::uint16_t value = 0;
  return TIFFGetFieldDefaulted(file, tag, &value) == 1 ? value : std::uint16_t{0};
}

const char* tiff_colour(TIFF* file) {
  const bool is_deep = tag_of(file, TIFFTAG_BITSPERSAMPLE) == 16;
  switch (tag_of(file, TIFFTAG_PHOTOMETRIC)) {
    case PHOTOMETRIC_MINISBLACK:
    case PHOTOMETRIC_MINISWHITE:
      return is_deep ? "grey 16 bit" : "grey";
    case PHOTOMETRIC_PALETTE:
      return "palette";
    case PHOTOMETRIC_SEPARATED:
      return "CMYK";
    default:
      return is_deep ? "RGB 16 bit" : "RGB";
  }
}

/// Rows of grey or RGB that stand in the file as they are, with the channels of a pixel together.
struct TiffRows {
  std::size_t bytes = 0;    ///< of a row
  std::size_t samples = 0;  ///< of a pixel
  bool is_grey = false;
};

/// Nothing if the file has no such rows of values of `bits`.
std::optional<TiffRows> rows_of(TIFF* file, int bits) {
  constexpr int kMostSamples = 8;
  const auto samples = tag_of(file, TIFFTAG_SAMPLESPERPIXEL);
  const auto photometric = tag_of(file, TIFFTAG_PHOTOMETRIC);
  const bool is_grey =
      photometric == PHOTOMETRIC_MINISBLACK || (bits == 16 && photometric == PHOTOMETRIC_MINISWHITE);
  if (tag_of(file, TIFFTAG_BITSPERSAMPLE) != bits || TIFFIsTiled(file) != 0 ||
      tag_of(file, TIFFTAG_PLANARCONFIG) != PLANARCONFIG_CONTIG ||
      !(is_grey || (photometric == PHOTOMETRIC_RGB && samples >= 3)) || samples < 1 || samples > kMostSamples)
    return std::nullopt;
  const tmsize_t bytes = TIFFScanlineSize(file);
  if (bytes < 1 || bytes > kMostAtOnce) return std::nullopt;
  return TiffRows{.bytes = static_cast<std::size_t>(bytes), .samples = samples, .is_grey = is_grey};
}

/// Reads `rows` as [height][width][3] to `out`; false if they are damaged or end early.
template <typename Value>
bool read_plain_rows(TIFF* file, const TiffRows& rows, const ImageHeader& header, Value* out) {
  std::vector<Value> row(rows.bytes / sizeof(Value));
  const auto width = static_cast<std::size_t>(header.width);
  if (row.size() < width * rows.samples) return false;
  for (int y = 0; y < header.height; ++y) {
    if (TIFFReadScanline(file, row.data(), static_cast<std::uint32_t>(y), 0) != 1) return false;
    for (std::size_t x = 0; x < width; ++x)
      for (std::size_t c = 0; c < 3; ++c) *out++ = row[x * rows.samples + (rows.is_grey ? 0 : c)];
  }
  return true;
}

}  // namespace

ImageHeader tiff_header(Bytes bytes) {
  TiffSource source{.bytes = bytes, .said = {}};
  const TiffFile file = open_tiff(source);
  std::uint32_t height = 0, width = 0;
  if (TIFFGetField(file.get(), TIFFTAG_IMAGELENGTH, &height) != 1 ||
      TIFFGetField(file.get(), TIFFTAG_IMAGEWIDTH, &width) != 1)
    fail_tiff(source, "it does not say how large its image is");
  // A cut size would be another image's, for which libtiff was not asked.
  constexpr std::uint32_t kMostSide = 1u << 28;
  if (height > kMostSide || width > kMostSide) throw BrokenImage("TIFF: its header is damaged");
  const int turn = tag_of(file.get(), TIFFTAG_ORIENTATION);
  return {.kind = ImageKind::tiff,
          .height = static_cast<int>(height),
          .width = static_cast<int>(width),
          .colour = tiff_colour(file.get()),
          .turn = turn >= 1 && turn <= 8 ? turn : 1};
}

std::vector<std::uint16_t> tiff_of_16_bits(Bytes bytes, const ImageHeader& header) {
  TiffSource source{.bytes = bytes, .said = {}};
  const TiffFile file = open_tiff(source);
  const auto rows = rows_of(file.get(), 16);
  if (!rows || tag_of(file.get(), TIFFTAG_SAMPLEFORMAT) != SAMPLEFORMAT_UINT)
    throw BrokenImage(
        "TIFF: range= is for 16 bits without sign, grey or RGB, in rows with the channels of a pixel together; write "
        "it so");
  std::vector<std::uint16_t> values(3 * static_cast<std::size_t>(header.height) *
                                    static_cast<std::size_t>(header.width));
  if (!read_plain_rows(file.get(), *rows, header, values.data()))
    fail_tiff(source, "its pixels are damaged or end early");
  if (tag_of(file.get(), TIFFTAG_PHOTOMETRIC) == PHOTOMETRIC_MINISWHITE)
    for (auto& value : values) value = static_cast<std::uint16_t>(65535 - value);
  return values;
}

void decode_tiff(Bytes bytes, const ImageHeader& header, RgbImage& dst) {
  TiffSource source{.bytes = bytes, .said = {}};
  const TiffFile file = open_tiff(source);
  source.said.clear();  // of tags that it then left out
  dst.resize(header.height, header.width);
  // libtiff's conversion would multiply colours by their alpha.
  if (const auto rows = rows_of(file.get(), 8);
      rows && read_plain_rows(file.get(), *rows, header, dst.pixels.data()))
    return;
  if (!source.said.empty()) fail_tiff(source, "");
  // As if colours had been multiplied by their alpha: they are then taken as they are.
  std::uint16_t extra = 0;
  std::uint16_t* kinds = nullptr;
  if (TIFFGetField(file.get(), TIFFTAG_EXTRASAMPLES, &extra, &kinds) == 1 && extra > 0) {
    std::vector<std::uint16_t> as_is(extra, EXTRASAMPLE_ASSOCALPHA);
    TIFFSetField(file.get(), TIFFTAG_EXTRASAMPLES, extra, as_is.data());
  }
  std::vector<std::uint32_t> raster(dst.pixels.size() / 3);
  // In the order in which they are stored; the caller turns them.
  const int stored = std::max<int>(1, tag_of(file.get(), TIFFTAG_ORIENTATION));
  if (TIFFReadRGBAImageOriented(file.get(), static_cast<std::uint32_t>(header.width),
                                static_cast<std::uint32_t>(header.height), raster.data(), stored, 1) != 1)
    fail_tiff(source, "its pixels are damaged or end early");
  std::uint8_t* out = dst.pixels.data();
  for (const std::uint32_t pixel : raster) {
    *out++ = static_cast<std::uint8_t>(TIFFGetR(pixel));
    *out++ = static_cast<std::uint8_t>(TIFFGetG(pixel));
    *out++ = static_cast<std::uint8_t>(TIFFGetB(pixel));
  }
}

}  // namespace paceline::data
