#include "report/compress.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace paceline::report {
namespace {

/// RFC 4648, with its padding.
std::string base64(const std::vector<Bytef>& bytes) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t k) { return i + k < bytes.size() ? std::uint32_t{bytes[i + k]} : 0U; };
    const std::uint32_t group = byte(0) << 16U | byte(1) << 8U | byte(2);
    const std::size_t letters = std::min<std::size_t>(bytes.size() - i, 3) + 1;
    for (std::size_t k = 0; k < 4; ++k) out += k < letters ? kLetters[group >> (18U - 6U * k) & 63U] : '=';
  }
  return out;
}

}  // namespace

std::string compressed(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::vector<Bytef> bytes(size);
  const int result = compress2(bytes.data(), &size, reinterpret_cast<const Bytef*>(text.data()), text.size(),
                               Z_BEST_COMPRESSION);
  if (result != Z_OK)
    base::fail(base::ErrorKind::device,
               "the report's {} bytes could not be compressed for the page (zlib says {}); free some memory, "
               "or write it as --json",
               text.size(), result);
  bytes.resize(size);
  return base64(bytes);
}

}  // namespace paceline::report
