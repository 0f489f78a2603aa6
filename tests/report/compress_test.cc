#include "report/compress.h"

#include <gtest/gtest.h>

#include <string>

#include "report/build.h"
#include "report/document.h"
#include "report/page_data.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

TEST(Compress, IsRestoredWhateverItsLength) {
  std::string text;
  for (int i = 0; i < 70; ++i) {
    const auto letters = compressed(text);
    EXPECT_EQ(letters.size() % 4, 0U);
    EXPECT_EQ(letters.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="),
              std::string::npos);
    EXPECT_EQ(restored(letters), text);
    text += static_cast<char>(37 * i + i * i);
  }
}

// The aim is 80 kB for a quick study and 500 kB for a long one (web/README.md); these records make 80 kB of
// JSON.
TEST(Compress, LeavesLessThanHalfOfAStudy) {
  const auto json = to_json(build(study()));
  const auto letters = compressed(json);
  EXPECT_EQ(restored(letters), json);
  EXPECT_LT(2 * letters.size(), json.size());
  EXPECT_LT(letters.size(), 80'000U);
}

}  // namespace
}  // namespace paceline::report
