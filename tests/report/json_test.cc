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
  table.rows = {{TableCell{.value = 1.5}},
                {TableCell{.value = std::numeric_limits<double>::quiet_NaN(),
                           .high = std::numeric_limits<double>::infinity()}}};
  const auto cell = nlohmann::json::parse(to_json(document))["sections"][0]["blocks"][0]["columns"][0];
  EXPECT_EQ(cell["value"].dump(), "[1.5,null]");
  EXPECT_FALSE(cell.contains("low")) << "nothing is in it";
  EXPECT_FALSE(cell.contains("high"));
}

TEST(Json, SurvivesTextThatIsNotUtf8) {
  Document document;
  document.facts = {{"command", "train --out \xff\xfe"}};
  EXPECT_TRUE(nlohmann::json::accept(to_json(document)));
}

}  // namespace
}  // namespace paceline::report
