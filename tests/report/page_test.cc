#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

#include "report/build.h"
#include "report/document.h"
#include "report/page.h"
#include "report/page_data.h"
#include "report/sample.h"
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

namespace {

using testing::HasSubstr;

TEST(Html, CarriesTheWholeReportInThePage) {
  const std::string html = to_html(sample_document());
  const std::size_t begin = html.find('>', html.find("application/json")) + 1;
  const std::size_t end = html.find("</script", begin);
  ASSERT_NE(end, std::string::npos);
  const auto data = html.substr(begin, end - begin);
  // The page that stands in for the built one reads plain JSON only.
  if (page_is_built())
    EXPECT_EQ(data, compressed(to_json(sample_document())));
  else
    EXPECT_EQ(nlohmann::json::parse(data), nlohmann::json::parse(to_json(sample_document())));
}

TEST(Html, CannotBeLeftByTextOfTheReport) {
  const std::string page = "<html><script id=paceline-data type=\"application/json\"></script></html>";
  const std::string html = fill_page(page, R"({"text": "</script><script>alert(1)</script><!--"})");
  EXPECT_EQ(html.find("<script>alert"), std::string::npos);
  EXPECT_EQ(html.find("</script>"), html.rfind("</script>"));
  EXPECT_THAT(html, HasSubstr("\\u003c/script>"));
}

TEST(Html, FindsItsPlaceHoweverTheTagIsSpelled) {
  for (const char* tag : {"<script id=\"paceline-data\" type=\"application/json\">",
                          "<script type=application/json id=paceline-data>"})
    EXPECT_THAT(fill_page(fmt::format("<script>var a = 'paceline-data';</script>{}</script>", tag), "{}"),
                HasSubstr(fmt::format("{}{{}}</script>", tag)));
}

}  // namespace
}  // namespace paceline::report
