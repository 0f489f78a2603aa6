#include "data/image/decode.h"

#include <fmt/core.h>
#include <spng.h>
#include <turbojpeg.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/file_bytes.h"

namespace paceline::data {
namespace {

struct KindRow {
  const char *name, *ending;
  /// An upper bound for the pixels per byte of a file. JPEG: a block of 8x8 costs at least a bit per scan,
  /// and with the widest chroma subsampling (4x4) 18 blocks hold 1,024 pixels: 455 per byte. PNG: deflate
  /// packs at most 1032 to 1, and a byte of its input holds at most 8 pixels; TIFF may deflate too. GIF: a
  /// code of 12 bits stands for at most 4,096 pixels. BMP: 8 pixels of 1 bit. WebP needs no bit for a plain
  /// area: what is refused is no photograph.
  std::int64_t most_pixels_a_byte;
};
constexpr KindRow kKinds[]{{"JPEG", "jpg", 512},      {"PNG", "png", 1032 * 8},  {"PPM", "ppm", 1},
                           {"WebP", "webp", 1 << 16}, {"TIFF", "tif", 1032 * 8}, {"GIF", "gif", 4096},
                           {"BMP", "bmp", 8}};
const KindRow& row_of(ImageKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

constexpr std::int64_t kMostPixels = std::int64_t{1} << 28;

void check_size(const ImageHeader& header, std::size_t bytes) {
  const std::int64_t pixels = std::int64_t{header.height} * header.width;
  if (header.height < 1 || header.width < 1 || pixels > kMostPixels ||
      pixels / row_of(header.kind).most_pixels_a_byte > static_cast<std::int64_t>(bytes))
    throw BrokenImage(fmt::format("its header announces {}x{} pixels, which {} bytes cannot hold",
                                  header.height, header.width, bytes));
}

// ---- JPEG

using JpegHandle = std::unique_ptr<void, JpegCloser>;

void require_decompressor(JpegHandle& handle) {
  if (!handle) handle.reset(tjInitDecompress());
  base::expects(handle != nullptr, "libjpeg-turbo has the memory for a decompressor");
}

/// A decoder that failed is not reused: it may be in the middle of the broken file and take the next file for
/// the rest of it.
[[noreturn]] void fail_jpeg(JpegHandle& handle, const std::string& said) {
  handle.reset();
  throw BrokenImage("JPEG: " + said);
}

/// Stray bytes between two segments, which some cameras write, change no pixel.
bool is_harmless(std::string_view warning) {
  return warning.find("extraneous bytes") != std::string_view::npos;
}

void check_jpeg(int status, JpegHandle& handle) {
  if (status == 0) return;
  const std::string said = tjGetErrorStr2(handle.get());
  if (tjGetErrorCode(handle.get()) == TJERR_WARNING && is_harmless(said)) return;
  fail_jpeg(handle, said);
}

ImageHeader jpeg_header(JpegHandle& handle, std::span<const std::uint8_t> bytes) {
  require_decompressor(handle);
  ImageHeader header{.kind = ImageKind::jpeg};
  int subsampling = 0, colour = 0;
  check_jpeg(tjDecompressHeader3(handle.get(), bytes.data(), bytes.size(), &header.width, &header.height,
                                 &subsampling, &colour),
             handle);
  if (header.width == 0) fail_jpeg(handle, "it ends before its image begins");
  header.turn = jpeg_turn(bytes);
  header.colour = colour == TJCS_GRAY ? "grey" : colour == TJCS_CMYK || colour == TJCS_YCCK ? "CMYK" : "RGB";
  return header;
}

bool is_cmyk(const ImageHeader& header) { return std::string_view(header.colour) == "CMYK"; }

/// Only Adobe's programs write CMYK, and they write it inverted (255 is no ink). So a colour is its own value
/// times black's.
void multiply_out(std::span<const std::uint8_t> cmyk, std::span<std::uint8_t> rgb) {
  for (std::size_t i = 0, o = 0; o < rgb.size(); i += 4, o += 3)
    for (std::size_t c = 0; c < 3; ++c)
      rgb[o + c] = static_cast<std::uint8_t>((cmyk[i + c] * cmyk[i + 3] + 127) / 255);
}

/// The most by which decoding may divide both sides.
int divisor_of(double least_scale) {
  int divisor = 1;
  while (divisor < 8 && 1.0 / (2 * divisor) >= least_scale) divisor *= 2;
  return divisor;
}

/// Whether the file has its end, so that nothing of it is missing below a part.
bool has_jpeg_end(std::span<const std::uint8_t> bytes) {
  return bytes.size() > 2 && bytes[bytes.size() - 2] == 0xff && bytes.back() == 0xd9;
}

void decode_jpeg(JpegHandle& handle, std::span<const std::uint8_t> bytes, const ImageHeader& header,
                 double least_scale, RgbImage& dst) {
  const tjscalingfactor factor{1, divisor_of(least_scale)};
  dst.resize(TJSCALED(header.height, factor), TJSCALED(header.width, factor));
  require_decompressor(handle);
  const auto decode_to = [&](std::uint8_t* to, int format) {
    check_jpeg(tjDecompress2(handle.get(), bytes.data(), bytes.size(), to, dst.width, 0, dst.height, format,
                             TJFLAG_LIMITSCANS),
               handle);
  };
  if (!is_cmyk(header)) return decode_to(dst.pixels.data(), TJPF_RGB);
  std::vector<std::uint8_t> cmyk(dst.pixels.size() / 3 * 4);
  decode_to(cmyk.data(), TJPF_CMYK);
  multiply_out(cmyk, dst.pixels);
}

// ---- PNG

using PngContext = std::unique_ptr<spng_ctx, void (*)(spng_ctx*)>;

void check_png(int status) {
  if (status != 0) throw BrokenImage(std::string("PNG: ") + spng_strerror(status));
}

PngContext open_png(std::span<const std::uint8_t> bytes) {
  PngContext context(spng_ctx_new(0), spng_ctx_free);
  base::expects(context != nullptr, "spng has the memory for its context");
  check_png(spng_set_chunk_limits(context.get(), bytes.size(),
                                  bytes.size()));  // no chunk can be longer than its file
  check_png(spng_set_png_buffer(context.get(), bytes.data(), bytes.size()));
  return context;
}

const char* png_colour(const spng_ihdr& ihdr) {
  const bool deep = ihdr.bit_depth == 16;
  switch (ihdr.color_type) {
    case SPNG_COLOR_TYPE_GRAYSCALE:
      return deep ? "grey 16 bit" : "grey";
    case SPNG_COLOR_TYPE_GRAYSCALE_ALPHA:
      return deep ? "grey + alpha 16 bit" : "grey + alpha";
    case SPNG_COLOR_TYPE_INDEXED:
      return "palette";
    case SPNG_COLOR_TYPE_TRUECOLOR_ALPHA:
      return deep ? "RGB + alpha 16 bit" : "RGB + alpha";
    default:
      return deep ? "RGB 16 bit" : "RGB";
  }
}

ImageHeader png_header(std::span<const std::uint8_t> bytes) {
  const PngContext context = open_png(bytes);
  spng_ihdr ihdr{};
  check_png(spng_get_ihdr(context.get(), &ihdr));
  constexpr std::uint32_t kMostSide = 1u << 28;
  spng_exif exif{};
  const bool has_exif = spng_get_exif(context.get(), &exif) == 0;
  return {.kind = ImageKind::png,
          .height = static_cast<int>(std::min(ihdr.height, kMostSide)),
          .width = static_cast<int>(std::min(ihdr.width, kMostSide)),
          .colour = png_colour(ihdr),
          .turn = has_exif ? exif_turn({reinterpret_cast<const std::uint8_t*>(exif.data), exif.length}) : 1};
}

void decode_png(std::span<const std::uint8_t> bytes, const ImageHeader& header, RgbImage& dst) {
  const PngContext context = open_png(bytes);
  dst.resize(header.height, header.width);
  check_png(spng_decode_image(context.get(), dst.pixels.data(), dst.pixels.size(), SPNG_FMT_RGB8, 0));
}

/// Values [height][width][3] of one of 16 bits.
std::vector<std::uint16_t> png_of_16_bits(std::span<const std::uint8_t> bytes, const ImageHeader& header) {
  const PngContext context = open_png(bytes);
  std::vector<std::uint16_t> with_alpha(4 * static_cast<std::size_t>(header.height) *
                                        static_cast<std::size_t>(header.width));
  check_png(spng_decode_image(context.get(), with_alpha.data(), with_alpha.size() * sizeof(std::uint16_t),
                              SPNG_FMT_RGBA16, 0));
  std::vector<std::uint16_t> values;
  values.reserve(with_alpha.size() / 4 * 3);
  for (std::size_t i = 0; i < with_alpha.size(); ++i)
    if (i % 4 != 3) values.push_back(with_alpha[i]);
  return values;
}

// ---- PPM

/// The header and the pixels: after "P6", width, height and 255, each followed by one blank or line end.
/// to_ppm and most programs write it like this; comments, which the format also allows, are not accepted.
struct Ppm {
  ImageHeader header;
  std::span<const std::uint8_t> pixels;
};
Ppm read_ppm(std::span<const std::uint8_t> bytes) {
  auto rest = as_chars(bytes).substr(3);
  const auto number = [&](int least, int most) {
    const auto value = base::take_number<int>(rest);
    if (!value || *value < least || *value > most || !(rest.starts_with(' ') || rest.starts_with('\n')))
      throw BrokenImage("PPM: its header is not \"P6 WIDTH HEIGHT 255\"");
    rest.remove_prefix(1);
    return *value;
  };
  const int width = number(1, 1 << 28), height = number(1, 1 << 28);
  number(255, 255);
  return {{.kind = ImageKind::ppm, .height = height, .width = width, .colour = "RGB"},
          bytes.last(rest.size())};
}

void decode_ppm(std::span<const std::uint8_t> bytes, const ImageHeader& header, RgbImage& dst) {
  const auto pixels = read_ppm(bytes).pixels;
  const auto wanted = 3 * static_cast<std::size_t>(header.height) * static_cast<std::size_t>(header.width);
  if (pixels.size() < wanted)
    throw BrokenImage(fmt::format("PPM: it has {} bytes of pixels and needs {}", pixels.size(), wanted));
  dst.resize(header.height, header.width);
  std::ranges::copy(pixels.first(wanted), dst.pixels.begin());
}

/// With the sides as stored of one upright, and the other way round.
ImageHeader as_turned(ImageHeader header) {
  if (header.turn >= 5) std::swap(header.height, header.width);
  return header;
}

bool is_of_16_bits(const ImageHeader& header) { return std::string_view(header.colour).ends_with("16 bit"); }

/// Of one of 16 bits, as it is stored.
std::vector<std::uint16_t> values_as_stored(std::span<const std::uint8_t> bytes, const ImageHeader& stored) {
  return stored.kind == ImageKind::tiff ? tiff_of_16_bits(bytes, stored) : png_of_16_bits(bytes, stored);
}

}  // namespace

void JpegCloser::operator()(void* handle) const { tjDestroy(handle); }

ImageHeader ImageDecoder::read_header(std::span<const std::uint8_t> bytes) {
  ImageHeader header;
  const auto text = as_chars(bytes);
  if (text.starts_with("\xFF\xD8\xFF"))
    header = jpeg_header(jpeg_, bytes);
  else if (text.starts_with("\x89PNG\r\n\x1A\n"))
    header = png_header(bytes);
  else if (text.starts_with("P6\n") || text.starts_with("P6 "))
    header = read_ppm(bytes).header;
  else if (const auto other = read_other_header(bytes))
    header = *other;
  else
    throw BrokenImage(bytes.empty() ? "the file is empty"
                                    : "it is no JPEG, PNG, PPM, WebP, TIFF, GIF or BMP file");
  check_size(header, bytes.size());
  return as_turned(header);
}

void ImageDecoder::decode(std::span<const std::uint8_t> bytes, const ImageHeader& header, double least_scale,
                          RgbImage& dst, const std::optional<Range>& range) {
  const ImageHeader stored = as_turned(header);
  if (range && is_of_16_bits(header)) {
    const auto values = values_as_stored(bytes, stored);
    dst.resize(stored.height, stored.width);
    scale_to_8_bits(values, *range, dst.pixels);
  } else if (header.kind == ImageKind::jpeg)
    decode_jpeg(jpeg_, bytes, stored, least_scale, dst);
  else if (header.kind == ImageKind::png)
    decode_png(bytes, stored, dst);
  else if (header.kind == ImageKind::ppm)
    decode_ppm(bytes, stored, dst);
  else
    decode_other(bytes, stored, dst);
  turn_upright(dst, header.turn);
}

PartOf ImageDecoder::decode_part(std::span<const std::uint8_t> bytes, const ImageHeader& header,
                                 double least_scale, const Box& box, RgbImage& dst,
                                 const std::optional<Range>& range) {
  if (header.kind == ImageKind::jpeg && header.turn == 1 && has_jpeg_end(bytes))
    if (const auto part = decode_jpeg_part(parts_, bytes, divisor_of(least_scale), box, dst)) return *part;
  decode(bytes, header, least_scale, dst, range);
  return {.height = dst.height, .width = dst.width};
}

const char* name(ImageKind kind) { return row_of(kind).name; }
const char* ending(ImageKind kind) { return row_of(kind).ending; }

std::vector<std::uint16_t> values_of_16_bits(std::span<const std::uint8_t> bytes) {
  ImageDecoder decoder;
  const ImageHeader header = as_turned(decoder.read_header(bytes));
  return is_of_16_bits(header) ? values_as_stored(bytes, header) : std::vector<std::uint16_t>();
}

std::vector<std::uint8_t> to_ppm(const RgbImage& image) {
  const std::string header = fmt::format("P6\n{} {}\n255\n", image.width, image.height);
  std::vector<std::uint8_t> file(header.begin(), header.end());
  file.insert(file.end(), image.pixels.begin(), image.pixels.end());
  return file;
}

}  // namespace paceline::data
