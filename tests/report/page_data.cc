#include "report/page_data.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string_view>
#include <vector>

namespace paceline::report {

std::string restored(const std::string& letters) {
  const std::string all = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<Bytef> bytes;
  unsigned bits = 0, group = 0;
  for (const char letter : letters) {
    if (letter == '=') break;
    group = group << 6U | static_cast<unsigned>(all.find(letter));
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<Bytef>(group >> bits & 255U));
  }
  std::string text;
  uLongf found = 0;
  int code = Z_BUF_ERROR;
  for (std::size_t room = 1024; code == Z_BUF_ERROR && room < (std::size_t{1} << 30); room *= 4) {
    text.assign(room, ' ');
    found = text.size();
    code = uncompress(reinterpret_cast<Bytef*>(text.data()), &found, bytes.data(), bytes.size());
  }
  EXPECT_EQ(code, Z_OK);
  text.resize(code == Z_OK ? found : 0);
  return text;
}

std::string with_plain_data(const std::string& html) {
  constexpr std::string_view kBegin = "<script id=\"paceline-data\" type=\"application/json\">";
  const auto tag = html.find(kBegin);
  EXPECT_NE(tag, std::string::npos) << "the page carries no data";
  if (tag == std::string::npos) return html;
  const auto begin = tag + kBegin.size(), end = html.find("</script>", begin);
  const std::string data = html.substr(begin, end - begin);
  return data.starts_with('{') ? html : html.substr(0, begin) + restored(data) + html.substr(end);
}

}  // namespace paceline::report
