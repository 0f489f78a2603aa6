#include "report/compress.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "report/build.h"
#include "report/document.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

/// What `compressed` made, by zlib's other side and letters counted by hand.
std::string restored(const std::string& letters, std::size_t size) {
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
  std::string text(size + 1, ' ');
  uLongf found = text.size();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(text.data()), &found, bytes.data(), bytes.size()), Z_OK);
  text.resize(found);
  return text;
}

TEST(Compress, IsRestoredWhateverItsLength) {
  std::string text;
  for (int i = 0; i < 70; ++i) {
    const auto letters = compressed(text);
    EXPECT_EQ(letters.size() % 4, 0U);
    EXPECT_EQ(letters.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="),
              std::string::npos);
    EXPECT_EQ(restored(letters, text.size()), text);
    text += static_cast<char>(37 * i + i * i);
  }
}

// The aim is 80 kB for a quick study and 500 kB for a long one (web/README.md); these records make 80 kB of
// JSON.
TEST(Compress, LeavesLessThanHalfOfAStudy) {
  const auto json = to_json(build(study()));
  const auto letters = compressed(json);
  EXPECT_EQ(restored(letters, json.size()), json);
  EXPECT_LT(2 * letters.size(), json.size());
  EXPECT_LT(letters.size(), 80'000U);
}

}  // namespace
}  // namespace paceline::report
