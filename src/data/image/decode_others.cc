#include <fmt/core.h>
#include <gif_lib.h>
#include <tiffio.h>
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/error.h"
#include "data/image/decode.h"

// One file of it is compiled here; it reads BMP alone.
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#include <stb/stb_image.h>

// Kinds that few photographs have: WebP, TIFF, GIF and BMP, each by its library, the first picture of a file
// that holds several. PIL is the model: transparency is dropped, not blended.

namespace paceline::data {
namespace {

using Bytes = std::span<const std::uint8_t>;

std::size_t values_in(const ImageHeader& header) {
  return 3 * static_cast<std::size_t>(header.height) * static_cast<std::size_t>(header.width);
}

void make_room(const ImageHeader& header, RgbImage& dst) {
  dst.height = header.height;
  dst.width = header.width;
  dst.pixels.resize(values_in(header));
}

// ---- WebP

/// EXIF's orientation, and the first frame of an animation, need the container's parts.
struct DemuxerCloser {
  void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
};
struct AnimationCloser {
  void operator()(WebPAnimDecoder* decoder) const { WebPAnimDecoderDelete(decoder); }
};

int webp_turn(Bytes bytes) {
  const WebPData file{bytes.data(), bytes.size()};
  const std::unique_ptr<WebPDemuxer, DemuxerCloser> demuxer(WebPDemux(&file));
  WebPChunkIterator chunk;
  if (demuxer == nullptr || WebPDemuxGetChunk(demuxer.get(), "EXIF", 1, &chunk) == 0) return 1;
  const int turn = exif_turn({chunk.chunk.bytes, chunk.chunk.size});
  WebPDemuxReleaseChunkIterator(&chunk);
  return turn;
}

WebPBitstreamFeatures webp_features(Bytes bytes) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(bytes.data(), bytes.size(), &features) != VP8_STATUS_OK)
    throw BrokenImage("WebP: its header is damaged");
  return features;
}

ImageHeader webp_header(Bytes bytes) {
  const auto features = webp_features(bytes);
  return {.kind = ImageKind::webp,
          .height = features.height,
          .width = features.width,
          .colour = features.has_alpha != 0 ? "RGB + alpha" : "RGB",
          .turn = webp_turn(bytes)};
}

void decode_webp(Bytes bytes, const ImageHeader& header, RgbImage& dst) {
  make_room(header, dst);
  if (webp_features(bytes).has_animation == 0) {
    if (WebPDecodeRGBInto(bytes.data(), bytes.size(), dst.pixels.data(), dst.pixels.size(),
                          3 * header.width) == nullptr)
      throw BrokenImage("WebP: its pixels are damaged or end early");
    return;
  }
  const WebPData file{bytes.data(), bytes.size()};
  WebPAnimDecoderOptions options;
  base::expects(WebPAnimDecoderOptionsInit(&options) != 0, "libwebpdemux is the one that was compiled with");
  options.color_mode = MODE_RGBA;
  options.use_threads = 0;
  const std::unique_ptr<WebPAnimDecoder, AnimationCloser> decoder(WebPAnimDecoderNew(&file, &options));
  std::uint8_t* frame = nullptr;
  int until_ms = 0;
  if (decoder == nullptr || WebPAnimDecoderGetNext(decoder.get(), &frame, &until_ms) == 0)
    throw BrokenImage("WebP: the first frame of its animation is damaged");
  for (std::size_t i = 0, o = 0; o < dst.pixels.size(); i += 4, o += 3)
    std::copy_n(frame + i, 3, &dst.pixels[o]);
}

// ---- TIFF

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

struct TiffCloser {
  void operator()(TIFF* file) const { TIFFClose(file); }
};
using TiffFile = std::unique_ptr<TIFF, TiffCloser>;

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
  constexpr tmsize_t kMostAtOnce = tmsize_t{1} << 28;  // what false tags may make it allocate
  const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(TIFFOpenOptionsAlloc(),
                                                                             TIFFOpenOptionsFree);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kMostAtOnce);
  TiffFile file(TIFFClientOpenExt(
      "image", "rm", &source, read_tiff, [](thandle_t, void*, tmsize_t) -> tmsize_t { return -1; }, seek_tiff,
      [](thandle_t) { return 0; },
      [](thandle_t handle) -> toff_t { return tiff_source(handle).bytes.size(); }, nullptr, nullptr,
      options.get()));
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

ImageHeader tiff_header(Bytes bytes) {
  TiffSource source{.bytes = bytes, .said = {}};
  const TiffFile file = open_tiff(source);
  std::uint32_t height = 0, width = 0;
  if (TIFFGetField(file.get(), TIFFTAG_IMAGELENGTH, &height) != 1 ||
      TIFFGetField(file.get(), TIFFTAG_IMAGEWIDTH, &width) != 1)
    fail_tiff(source, "it does not say how large its image is");
  constexpr std::uint32_t kMostSide = 1u << 28;
  const int turn = tag_of(file.get(), TIFFTAG_ORIENTATION);
  return {.kind = ImageKind::tiff,
          .height = static_cast<int>(std::min(height, kMostSide)),
          .width = static_cast<int>(std::min(width, kMostSide)),
          .colour = tiff_colour(file.get()),
          .turn = turn >= 1 && turn <= 8 ? turn : 1};
}

/// Rows of 8 bits of grey or RGB as they stand. libtiff's conversion would multiply colours by their alpha.
bool read_plain_rows(TIFF* file, const ImageHeader& header, RgbImage& dst) {
  const auto samples = tag_of(file, TIFFTAG_SAMPLESPERPIXEL);
  const auto photometric = tag_of(file, TIFFTAG_PHOTOMETRIC);
  const bool is_grey = photometric == PHOTOMETRIC_MINISBLACK;
  if (tag_of(file, TIFFTAG_BITSPERSAMPLE) != 8 || TIFFIsTiled(file) != 0 ||
      tag_of(file, TIFFTAG_PLANARCONFIG) != PLANARCONFIG_CONTIG ||
      !(is_grey || (photometric == PHOTOMETRIC_RGB && samples >= 3)) || samples < 1)
    return false;
  const auto width = static_cast<std::size_t>(header.width);
  std::vector<std::uint8_t> row(static_cast<std::size_t>(TIFFScanlineSize(file)));
  if (row.size() < width * samples) return false;
  std::uint8_t* out = dst.pixels.data();
  for (int y = 0; y < header.height; ++y) {
    if (TIFFReadScanline(file, row.data(), static_cast<std::uint32_t>(y), 0) != 1) return false;
    for (std::size_t x = 0; x < width; ++x)
      for (std::size_t c = 0; c < 3; ++c) *out++ = row[x * samples + (is_grey ? 0 : c)];
  }
  return true;
}

void decode_tiff(Bytes bytes, const ImageHeader& header, RgbImage& dst) {
  TiffSource source{.bytes = bytes, .said = {}};
  const TiffFile file = open_tiff(source);
  make_room(header, dst);
  if (read_plain_rows(file.get(), header, dst)) return;
  if (!source.said.empty()) fail_tiff(source, "");
  std::vector<std::uint32_t> raster(values_in(header) / 3);
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

// ---- GIF

struct GifSource {
  Bytes bytes;
  std::size_t at = 0;
};

int read_gif(GifFileType* file, GifByteType* to, int size) {
  auto& source = *static_cast<GifSource*>(file->UserData);
  const std::size_t count = std::min(source.bytes.size() - source.at, static_cast<std::size_t>(size));
  if (count > 0) std::memcpy(to, source.bytes.data() + source.at, count);
  source.at += count;
  return static_cast<int>(count);
}

struct GifCloser {
  void operator()(GifFileType* file) const { DGifCloseFile(file, nullptr); }
};
using GifFile = std::unique_ptr<GifFileType, GifCloser>;

[[noreturn]] void fail_gif(int code) {
  const char* const said = GifErrorString(code);
  throw BrokenImage(fmt::format("GIF: {}", said == nullptr ? "it is damaged" : said));
}

GifFile open_gif(GifSource& source) {
  int code = 0;
  GifFile file(DGifOpen(&source, read_gif, &code));
  if (file == nullptr) fail_gif(code);
  return file;
}

ImageHeader gif_header(Bytes bytes) {
  GifSource source{.bytes = bytes};
  const GifFile file = open_gif(source);
  return {.kind = ImageKind::gif, .height = file->SHeight, .width = file->SWidth, .colour = "palette"};
}

/// Reads up to the first image; -1 or the transparent colour that stands before it.
int find_gif_image(GifFileType* file) {
  int transparent = NO_TRANSPARENT_COLOR;
  while (true) {
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    if (DGifGetRecordType(file, &type) == GIF_ERROR) fail_gif(file->Error);
    if (type == TERMINATE_RECORD_TYPE) throw BrokenImage("GIF: it holds no image");
    if (type == IMAGE_DESC_RECORD_TYPE) return transparent;
    if (type != EXTENSION_RECORD_TYPE) continue;
    int code = 0;
    GifByteType* block = nullptr;
    if (DGifGetExtension(file, &code, &block) == GIF_ERROR) fail_gif(file->Error);
    GraphicsControlBlock control;
    if (code == GRAPHICS_EXT_FUNC_CODE && block != nullptr &&
        DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
      transparent = control.TransparentColor;
    while (block != nullptr)
      if (DGifGetExtensionNext(file, &block) == GIF_ERROR) fail_gif(file->Error);
  }
}

/// The first image on the file's canvas.
void decode_gif(Bytes bytes, const ImageHeader& header, RgbImage& dst) {
  GifSource source{.bytes = bytes};
  const GifFile file = open_gif(source);
  const int transparent = find_gif_image(file.get());
  if (DGifGetImageDesc(file.get()) == GIF_ERROR) fail_gif(file->Error);
  const GifImageDesc& image = file->Image;
  const ColorMapObject* const colours = image.ColorMap != nullptr ? image.ColorMap : file->SColorMap;
  if (colours == nullptr) throw BrokenImage("GIF: it has no palette");
  if (image.Left < 0 || image.Top < 0 || image.Width < 1 || image.Height < 1 ||
      image.Left + image.Width > header.width || image.Top + image.Height > header.height)
    throw BrokenImage("GIF: its first image lies outside of its canvas");
  make_room(header, dst);
  const auto put = [&](int y, int x, int index) {
    const GifColorType colour = index < colours->ColorCount ? colours->Colors[index] : GifColorType{0, 0, 0};
    std::uint8_t* const to =
        &dst.pixels[3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(header.width) +
                         static_cast<std::size_t>(x))];
    to[0] = colour.Red, to[1] = colour.Green, to[2] = colour.Blue;
  };
  const int behind = transparent != NO_TRANSPARENT_COLOR ? transparent : file->SBackGroundColor;
  if (image.Width < header.width || image.Height < header.height)
    for (int y = 0; y < header.height; ++y)
      for (int x = 0; x < header.width; ++x) put(y, x, behind);
  std::vector<GifPixelType> row(static_cast<std::size_t>(image.Width));
  const auto read_row = [&](int y) {
    if (DGifGetLine(file.get(), row.data(), image.Width) == GIF_ERROR) fail_gif(file->Error);
    for (int x = 0; x < image.Width; ++x)
      put(image.Top + y, image.Left + x, row[static_cast<std::size_t>(x)]);
  };
  if (!image.Interlace) {
    for (int y = 0; y < image.Height; ++y) read_row(y);
    return;
  }
  constexpr std::pair<int, int> kPasses[]{{0, 8}, {4, 8}, {2, 4}, {1, 2}};
  for (const auto& [first, step] : kPasses)
    for (int y = first; y < image.Height; y += step) read_row(y);
}

// ---- BMP

[[noreturn]] void fail_bmp() {
  const char* const said = stbi_failure_reason();
  throw BrokenImage(fmt::format("BMP: {}", said == nullptr ? "it is damaged" : said));
}

ImageHeader bmp_header(Bytes bytes) {
  int width = 0, height = 0, channels = 0;
  if (stbi_info_from_memory(bytes.data(), static_cast<int>(bytes.size()), &width, &height, &channels) == 0)
    fail_bmp();
  return {.kind = ImageKind::bmp,
          .height = height,
          .width = width,
          .colour = channels == 4 ? "RGB + alpha" : "RGB"};
}

/// stb_image takes what is missing for zeros.
void require_all_rows(Bytes bytes, const ImageHeader& header) {
  constexpr std::size_t kOldHeader = 12, kHeaderAt = 14;
  const auto number = [&](std::size_t at, int size) {
    std::size_t value = 0;
    for (int i = size; i-- > 0;) value = value << 8 | bytes[at + static_cast<std::size_t>(i)];
    return value;
  };
  if (bytes.size() < kHeaderAt + 16) fail_bmp();
  const std::size_t bits = number(number(kHeaderAt, 4) == kOldHeader ? 24 : 28, 2);
  const std::size_t row = (static_cast<std::size_t>(header.width) * bits + 31) / 32 * 4;
  const std::size_t needed = number(10, 4) + row * static_cast<std::size_t>(header.height);
  if (bytes.size() < needed)
    throw BrokenImage(fmt::format("BMP: it has {} bytes and needs {}", bytes.size(), needed));
}

void decode_bmp(Bytes bytes, const ImageHeader& header, RgbImage& dst) {
  require_all_rows(bytes, header);
  int width = 0, height = 0, channels = 0;
  const std::unique_ptr<stbi_uc, void (*)(void*)> pixels(
      stbi_load_from_memory(bytes.data(), static_cast<int>(bytes.size()), &width, &height, &channels, 3),
      stbi_image_free);
  if (pixels == nullptr) fail_bmp();
  if (width != header.width || height != header.height) throw BrokenImage("BMP: its header is damaged");
  make_room(header, dst);
  std::copy_n(pixels.get(), dst.pixels.size(), dst.pixels.begin());
}

bool has_magic(Bytes bytes, std::string_view start, std::size_t at = 0) {
  return bytes.size() >= at + start.size() && std::memcmp(bytes.data() + at, start.data(), start.size()) == 0;
}

}  // namespace

std::optional<ImageHeader> read_other_header(Bytes bytes) {
  using std::string_view_literals::operator""sv;
  if (has_magic(bytes, "RIFF") && has_magic(bytes, "WEBP", 8)) return webp_header(bytes);
  if (has_magic(bytes, "II*\0"sv) || has_magic(bytes, "MM\0*"sv)) return tiff_header(bytes);
  if (has_magic(bytes, "GIF87a") || has_magic(bytes, "GIF89a")) return gif_header(bytes);
  if (has_magic(bytes, "BM")) return bmp_header(bytes);
  return std::nullopt;
}

void decode_other(Bytes bytes, const ImageHeader& stored, RgbImage& dst) {
  switch (stored.kind) {
    case ImageKind::webp:
      return decode_webp(bytes, stored, dst);
    case ImageKind::tiff:
      return decode_tiff(bytes, stored, dst);
    case ImageKind::gif:
      return decode_gif(bytes, stored, dst);
    default:
      return decode_bmp(bytes, stored, dst);
  }
}

}  // namespace paceline::data
