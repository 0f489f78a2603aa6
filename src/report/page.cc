#include "report/page.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "report/document.h"

namespace paceline::report {
std::string base64(std::string_view bytes) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t k) {
      return i + k < bytes.size() ? std::uint32_t{static_cast<unsigned char>(bytes[i + k])} : 0U;
    };
    const std::uint32_t group = byte(0) << 16U | byte(1) << 8U | byte(2);
    const std::size_t letters = std::min<std::size_t>(bytes.size() - i, 3) + 1;
    for (std::size_t k = 0; k < 4; ++k) out += k < letters ? kLetters[group >> (18U - 6U * k) & 63U] : '=';
  }
  return out;
}

std::string compressed(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::string bytes(size, '\0');
  const int result = compress2(reinterpret_cast<Bytef*>(bytes.data()), &size,
                               reinterpret_cast<const Bytef*>(text.data()), text.size(), Z_BEST_COMPRESSION);
  if (result != Z_OK)
    base::fail(base::ErrorKind::device,
               "the report's {} bytes could not be compressed for the page (zlib says {}); free some memory, "
               "or write it as --json",
               text.size(), result);
  bytes.resize(size);
  return base64(bytes);
}

}  // namespace paceline::report

// The assembler includes the file directly: no limit on the size of literals, no escaping, and no time to
// compile a megabyte.
asm(".section .rodata\n"
    ".global paceline_page_begin\n"
    ".global paceline_page_end\n"
    "paceline_page_begin:\n"
    ".incbin \"" PACELINE_PAGE_FILE
    "\"\n"
    "paceline_page_end:\n"
    ".byte 0\n"
    ".text\n");
extern "C" const char paceline_page_begin[];
extern "C" const char paceline_page_end[];

namespace paceline::report {

const std::string& page_template() {
  static const std::string page(paceline_page_begin, paceline_page_end);
  return page;
}

bool page_is_built() { return page_template().find("paceline-fallback-page") == std::string::npos; }

namespace {

/// Position for the data: directly after the script tag that names it. Bundlers reorder attributes and drop
/// quotes, so any spelling of the tag is found.
std::size_t place_of_data(const std::string& page) {
  for (std::size_t at = page.find("<script"); at != std::string::npos; at = page.find("<script", at + 1)) {
    const std::size_t end = page.find('>', at);
    if (end == std::string::npos) break;
    const std::string tag = page.substr(at, end - at);
    if (tag.find("paceline-data") != std::string::npos && tag.find("application/json") != std::string::npos)
      return end + 1;
  }
  return std::string::npos;
}

}  // namespace

std::string fill_page(const std::string& page, const std::string& json) {
  const std::size_t begin = place_of_data(page);
  base::expects(begin != std::string::npos, "the page has a script paceline-data for the report's JSON");
  const std::size_t end = page.find("</script", begin);
  base::expects(end != std::string::npos, "the page's script paceline-data is closed");
  std::string out = page.substr(0, begin);
  out.reserve(page.size() + json.size());
  for (const char letter : json) {
    if (letter == '<')
      out += "\\u003c";
    else
      out += letter;
  }
  return out.append(page, end);
}

std::string page_of(const std::string& json) {
  // The placeholder for the built page reads only plain JSON.
  return fill_page(page_template(), page_is_built() ? compressed(json) : json);
}

std::string to_html(const Document& document) { return page_of(to_json(document)); }

}  // namespace paceline::report
