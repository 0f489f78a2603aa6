#include "report/pack.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "report/build.h"
#include "report/document.h"
#include "report/golden.h"
#include "report/sample.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using Json = nlohmann::ordered_json;

/// The format of pack.h by its letter, in the fewest words: the page's own reader is web/src/data/unpack.ts.
class Unpacked {
 public:
  explicit Unpacked(const std::string& text) : root_(Json::parse(text)) {}
  [[nodiscard]] Json report() const { return read(root_["report"]); }

 private:
  [[nodiscard]] Json read(const Json& value) const {
    if (value.is_string()) return text(value.get<std::string>());
    if (!value.is_array()) return value;
    const auto mark = !value.empty() && value[0].is_string() ? value[0].get<std::string>() : "";
    Json out = Json::array();
    if (mark.starts_with("~:")) return object(read(root_["shapes"])[std::stoul(mark.substr(2))], value);
    if (mark == "~*") {
      for (std::size_t i = 1; i < value.size(); i += 2)
        for (std::size_t k = 0; k < value[i + 1].get<std::size_t>(); ++k) out.push_back(read(value[i]));
    } else if (mark == "~[") {
      const Json list = read(value[1]);
      for (const auto& index : read(value[2])) out.push_back(list[index.get<std::size_t>()]);
    } else {
      for (const auto& item : value) out.push_back(read(item));
    }
    return out;
  }
  [[nodiscard]] Json text(const std::string& text) const {
    if (!text.starts_with('~')) return text;
    return text.starts_with("~~") ? Json(text.substr(1)) : read(root_["values"][std::stoul(text.substr(1))]);
  }
  [[nodiscard]] Json object(const Json& shape, const Json& values) const {
    Json out = Json::object();
    std::size_t next = 1;
    for (const auto& name : shape)
      if (name.is_string())
        out[name.get<std::string>()] = read(values[next++]);
      else
        out[name[0].get<std::string>()] = name[1];
    return out;
  }

  Json root_;
};

void expect_restored(const std::string& json) {
  EXPECT_EQ(Unpacked(packed(json)).report().dump(), Json::parse(json).dump());
}

TEST(Pack, IsRestoredWithItsFieldsInOrder) {
  expect_restored(to_json(sample_document()));
  expect_restored(to_json(build(study())));
}

TEST(Pack, HasTheFormThatThePageReads) {
  expect_golden("sample-report-packed.json", packed(to_json(sample_document())));
}

TEST(Pack, KeepsTextsThatLookLikeItsMarks) {
  expect_restored(R"({"a": "~1", "b": ["~:0", "~~", "~[", "~*"], "c": [["~1"], ["~1"]], "d": "~/runs"})");
}

TEST(Pack, KeepsRunsSelectionsAndShapes) {
  expect_restored(R"({"long": [0.125001, 1.250002, 2.500003, 3.750004, 5.125005, 6.250006, 7.500007],
                      "part": [3.750004, 1.250002, 0.125001, 7.500007],
                      "same": [2, 2, 2, 2, 2, 2, 2, 2, 2, 2], "mixed": [1, 1.0, true, true, true, null, null],
                      "empty": [[], {}, "", [""]]})");
}

TEST(Pack, WritesAListThatIsRowsOfAnotherAsTheirPlaces) {
  const auto text = packed(R"({"all": [10.12345, 11.12345, 12.12345, 13.12345, 14.12345, 15.12345],
                              "some": [11.12345, 12.12345, 14.12345, 15.12345]})");
  EXPECT_NE(text.find(R"(["~[")"), std::string::npos) << text;
  EXPECT_EQ(text.find("11.12345"), text.rfind("11.12345")) << "written twice: " << text;
}

/// Nothing is stated twice, so a report with the same sections again hardly grows.
TEST(Pack, WeighsLittleMoreThanWhatIsNew) {
  const auto document = build(study());
  const auto json = to_json(document);
  const auto once = packed(json);
  EXPECT_LT(once.size(), 0.66 * static_cast<double>(json.size()));
  auto twice = document;
  twice.sections.insert(twice.sections.end(), document.sections.begin(), document.sections.end());
  EXPECT_LT(static_cast<double>(packed(to_json(twice)).size()), 1.05 * static_cast<double>(once.size()));
}

}  // namespace
}  // namespace paceline::report
