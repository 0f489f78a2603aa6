#include <fmt/core.h>
#include <gif_lib.h>
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "data/file_bytes.h"
#include "data/image/decode.h"

// One file of it is compiled here; it reads BMP alone.
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#include <stb/stb_image.h>

// Kinds that few photographs have, each by its library (TIFF: decode_tiff.cc), the first picture of a file
// that holds several. PIL is the model: transparency is dropped, not blended.

namespace paceline::data {
namespace {

using Bytes = std::span<const std::uint8_t>;

// ---- WebP

// EXIF's orientation, and the first frame of an animation, need the container's parts.

int webp_turn(Bytes bytes) {
  const WebPData file{bytes.data(), bytes.size()};
  const std::unique_ptr<WebPDemuxer, void (*)(WebPDemuxer*)> demuxer(WebPDemux(&file), WebPDemuxDelete);
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
  dst.resize(header.height, header.width);
  if (webp_features(bytes).has_animation == 0) {
    if (WebPDecodeRGBInto(bytes.data(), bytes.size(), dst.pixels.data(), dst.pixels.size(),
                          3 * header.width) == nullptr)
      throw BrokenImage("WebP: its pixels are damaged or end early");
    return;
  }
  constexpr std::size_t kMostValues = std::size_t{1} << 27;  // the decoder keeps two canvases besides
  if (dst.pixels.size() > kMostValues)
    throw BrokenImage("WebP: its animation is larger than 44 million pixels");
  const WebPData file{bytes.data(), bytes.size()};
  WebPAnimDecoderOptions options;
  base::expects(WebPAnimDecoderOptionsInit(&options) != 0, "libwebpdemux is the one that was compiled with");
  options.color_mode = MODE_RGBA;
  options.use_threads = 0;
  const std::unique_ptr<WebPAnimDecoder, void (*)(WebPAnimDecoder*)> decoder(
      WebPAnimDecoderNew(&file, &options), WebPAnimDecoderDelete);
  WebPAnimInfo info;
  std::uint8_t* frame = nullptr;
  int until_ms = 0;
  if (decoder == nullptr || WebPAnimDecoderGetInfo(decoder.get(), &info) == 0 ||
      info.canvas_width != static_cast<std::uint32_t>(header.width) ||
      info.canvas_height != static_cast<std::uint32_t>(header.height) ||
      WebPAnimDecoderGetNext(decoder.get(), &frame, &until_ms) == 0)
    throw BrokenImage("WebP: the first frame of its animation is damaged");
  for (std::size_t i = 0, o = 0; o < dst.pixels.size(); i += 4, o += 3)
    std::copy_n(frame + i, 3, &dst.pixels[o]);
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

/// The canvas, or what the first image needs where that is more.
ImageHeader gif_header(Bytes bytes) {
  GifSource source{.bytes = bytes};
  const GifFile file = open_gif(source);
  (void)find_gif_image(file.get());
  if (DGifGetImageDesc(file.get()) == GIF_ERROR) fail_gif(file->Error);
  const GifImageDesc& image = file->Image;
  return {.kind = ImageKind::gif,
          .height = std::max(file->SHeight, image.Top + image.Height),
          .width = std::max(file->SWidth, image.Left + image.Width),
          .colour = "palette"};
}

/// The first image on the file's canvas; beside it the transparent colour, or the first.
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
  dst.resize(header.height, header.width);
  const auto put = [&](int y, int x, int index) {
    const GifColorType colour = index < colours->ColorCount ? colours->Colors[index] : GifColorType{0, 0, 0};
    std::uint8_t* const to =
        &dst.pixels[3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(header.width) +
                         static_cast<std::size_t>(x))];
    to[0] = colour.Red, to[1] = colour.Green, to[2] = colour.Blue;
  };
  const int behind = std::max(0, transparent);  // NO_TRANSPARENT_COLOR is -1
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
  if (width < 1 || height == 0 || height == std::numeric_limits<int>::min())
    throw BrokenImage("BMP: its header is damaged");
  height = std::abs(height);  // negative: its rows begin at the top
  return {.kind = ImageKind::bmp,
          .height = height,
          .width = width,
          .colour = channels == 4 ? "RGB + alpha" : "RGB"};
}

/// What stb_image takes for granted: it reads missing bytes as zeros, and colours that a palette lacks from
/// memory that nobody has written.
void require_whole(Bytes bytes, const ImageHeader& header) {
  constexpr std::size_t kOldHeader = 12, kHeaderAt = 14;
  if (bytes.size() < kHeaderAt + 16) fail_bmp();
  const std::size_t head = number_at(bytes, kHeaderAt, 4), at = number_at(bytes, 10, 4);
  const std::size_t bits = number_at(bytes, head == kOldHeader ? 24 : 28, 2);
  if (at < kHeaderAt + head) throw BrokenImage("BMP: its header is damaged");
  if (head == kOldHeader && bits < 24) throw BrokenImage("BMP: palettes of OS/2 are not read");
  const std::size_t row = (static_cast<std::size_t>(header.width) * bits + 31) / 32 * 4;
  const std::size_t needed = at + row * static_cast<std::size_t>(header.height);
  if (bytes.size() < needed)
    throw BrokenImage(fmt::format("BMP: it has {} bytes and needs {}", bytes.size(), needed));
  const std::size_t colours = (at - kHeaderAt - head) / 4;
  if (bits > 8 || bits == 0 || colours >= std::size_t{1} << bits) return;
  const std::size_t in_a_byte = 8 / bits, mask = (std::size_t{1} << bits) - 1;
  for (std::size_t y = 0; y < static_cast<std::size_t>(header.height); ++y)
    for (std::size_t x = 0; x < static_cast<std::size_t>(header.width); ++x) {
      const std::size_t byte = bytes[at + y * row + x / in_a_byte];
      if ((byte >> (8 - bits * (1 + x % in_a_byte)) & mask) >= colours)
        throw BrokenImage("BMP: a pixel has a colour that its palette lacks");
    }
}

void decode_bmp(Bytes bytes, const ImageHeader& header, RgbImage& dst) {
  require_whole(bytes, header);
  int width = 0, height = 0, channels = 0;
  const std::unique_ptr<stbi_uc, void (*)(void*)> pixels(
      stbi_load_from_memory(bytes.data(), static_cast<int>(bytes.size()), &width, &height, &channels, 3),
      stbi_image_free);
  if (pixels == nullptr) fail_bmp();
  if (width != header.width || std::abs(height) != header.height)
    throw BrokenImage("BMP: its header is damaged");
  dst.resize(header.height, header.width);
  std::copy_n(pixels.get(), dst.pixels.size(), dst.pixels.begin());
}

}  // namespace

std::optional<ImageHeader> read_other_header(Bytes bytes) {
  using std::string_view_literals::operator""sv;
  const auto text = as_chars(bytes);
  if (text.starts_with("RIFF") && text.size() >= 12 && text.substr(8, 4) == "WEBP") return webp_header(bytes);
  if (text.starts_with("II*\0"sv) || text.starts_with("MM\0*"sv)) return tiff_header(bytes);
  if (text.starts_with("GIF87a") || text.starts_with("GIF89a")) return gif_header(bytes);
  if (text.starts_with("BM")) return bmp_header(bytes);
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
