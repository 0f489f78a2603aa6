#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "report/document.h"
#include "report/golden.h"
#include "report/sample.h"

namespace paceline::report {
namespace {

TEST(Json, HasTheShapeThatThePageReads) { expect_golden("sample-report.json", to_json(sample_document())); }

TEST(Json, WritesWhatIsNotFiniteAsNull) {
  Document document;
  document.sections.push_back(
      {.id = "s", .title = "", .blocks = {Table{.id = "t", .columns = {{.key = "k"}}}}});
  auto& table = std::get<Table>(document.sections[0].blocks[0]);
  table.rows = {{TableCell{.value = std::numeric_limits<double>::quiet_NaN(),
                           .high = std::numeric_limits<double>::infinity()}}};
  const auto cell = nlohmann::json::parse(to_json(document))["sections"][0]["blocks"][0]["rows"][0][0];
  EXPECT_TRUE(cell["value"].is_null());
  EXPECT_TRUE(cell["low"].is_null());
  EXPECT_TRUE(cell["high"].is_null());
}

TEST(Json, SurvivesTextThatIsNotUtf8) {
  Document document;
  document.facts = {{"command", "train --out \xff\xfe"}};
  EXPECT_TRUE(nlohmann::json::accept(to_json(document)));
}

}  // namespace
}  // namespace paceline::report
