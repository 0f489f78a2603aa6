// Parts of JPEGs, by the interface of libjpeg-turbo that can leave out rows and columns; TurboJPEG 2, which
// decode.cc uses, decodes whole images.

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdio>  // before jpeglib.h
#include <utility>

#include <jpeglib.h>

#include "data/dataset.h"
#include "data/image/decode.h"

namespace paceline::data {
namespace {

// The outermost columns of a part have other neighbours than in the whole image, from which colours of half
// the resolution are interpolated; and Resizer reads two pixels beside a box that it enlarges.
constexpr double kBesides = 4;

/// The pixels of a side of `all` that are to be decoded, first and behind the last.
std::pair<int, int> pixels_of(double begin, double length, int divisor, JDIMENSION all) {
  const auto most = static_cast<double>(all);
  const double from = std::floor(begin / divisor) - kBesides,
               to = std::ceil((begin + length) / divisor) + kBesides;
  return {static_cast<int>(std::clamp(from, 0.0, most - 1)), static_cast<int>(std::clamp(to, 1.0, most))};
}

}  // namespace

class JpegPartReader {
 public:
  JpegPartReader() {
    info_.err = jpeg_std_error(&errors_);
    errors_.error_exit = end;
    errors_.emit_message = [](j_common_ptr info, int level) {
      if (level < 0) end(info);  // a warning: what follows would be guessed
    };
    jpeg_create_decompress(&info_);
    info_.client_data = this;
  }
  ~JpegPartReader() { jpeg_destroy_decompress(&info_); }
  JpegPartReader(const JpegPartReader&) = delete;
  JpegPartReader& operator=(const JpegPartReader&) = delete;

  std::optional<PartOf> read(std::span<const std::uint8_t> bytes, int divisor, const Box& box,
                             RgbImage& dst) {
    // No object with a destructor is made between here and a fault.
    const bool is_read = setjmp(on_fault_) == 0 && read_rows(bytes, divisor, box, dst);
    jpeg_abort_decompress(&info_);
    return is_read ? std::optional(part_) : std::nullopt;
  }

 private:
  [[noreturn]] static void end(j_common_ptr info) {
    std::longjmp(static_cast<JpegPartReader*>(info->client_data)->on_fault_, 1);
  }

  bool read_rows(std::span<const std::uint8_t> bytes, int divisor, const Box& box, RgbImage& dst) {
    jpeg_mem_src(&info_, bytes.data(), bytes.size());
    jpeg_read_header(&info_, TRUE);
    const bool is_usual = info_.jpeg_color_space == JCS_YCbCr || info_.jpeg_color_space == JCS_GRAYSCALE;
    if (!is_usual || jpeg_has_multiple_scans(&info_))
      return false;  // several scans are read before any row is known
    info_.scale_num = 1;
    info_.scale_denom = static_cast<unsigned>(divisor);
    info_.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info_);
    const auto [top, bottom] = pixels_of(box.top, box.height, divisor, info_.output_height);
    const auto [left, right] = pixels_of(box.left, box.width, divisor, info_.output_width);
    part_ = {.height = static_cast<int>(info_.output_height),
             .width = static_cast<int>(info_.output_width),
             .top = top};
    auto first = static_cast<JDIMENSION>(left), columns = static_cast<JDIMENSION>(right - left);
    jpeg_crop_scanline(&info_, &first, &columns);  // from the beginning of a block on
    part_.left = static_cast<int>(first);
    jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(top));
    dst.resize(bottom - top, static_cast<int>(columns));
    const auto stride = 3 * std::size_t{columns};
    for (JDIMENSION row = 0; row < static_cast<JDIMENSION>(dst.height);) {
      JSAMPROW to = dst.pixels.data() + row * stride;
      row += jpeg_read_scanlines(&info_, &to, 1);
    }
    return true;
  }

  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  std::jmp_buf on_fault_{};
  PartOf part_;
};

void JpegPartCloser::operator()(JpegPartReader* reader) const { delete reader; }

std::optional<PartOf> decode_jpeg_part(JpegParts& parts, std::span<const std::uint8_t> bytes, int divisor,
                                       const Box& box, RgbImage& dst) {
  if (!parts) parts.reset(new JpegPartReader);
  return parts->read(bytes, divisor, box, dst);
}

}  // namespace paceline::data
