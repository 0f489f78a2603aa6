#include "base/visible.h"

#include <fmt/format.h>

#include <cstdint>

namespace paceline::base {
namespace {

/// A code point and its bytes; 0 bytes: what stands there is no UTF-8.
struct Letter {
  std::uint32_t code = 0;
  std::size_t bytes = 0;
};

Letter letter_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : 4;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return {};
  std::uint32_t code = first & (0xffu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  return code < kLeast[bytes] || code > 0x10ffff || is_surrogate ? Letter{} : Letter{code, bytes};
}

bool is_control(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) ||  // C0, DEL, C1
         code == 0x200e || code == 0x200f || code == 0x061c || code == 0x2028 || code == 0x2029 ||
         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::string visible(std::string_view text, bool keeps_lines) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto [code, bytes] = letter_at(text);
    const bool is_blank = bytes == 1 && (code == '\n' || code == '\t');
    if (bytes == 0)
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    else if (is_blank && !keeps_lines)
      result += ' ';
    else if (is_blank || !is_control(code))
      result += text.substr(0, bytes);
    else
      result += code < 0x80 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return result;
}

}  // namespace paceline::base
