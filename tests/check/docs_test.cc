/// docs/check.md has a section for each rule, and the example in it gives that finding.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "base/file.h"
#include "check/check.h"
#include "check/rule.h"

namespace paceline::check {
namespace {

const std::string kPage = std::string(PACELINE_SOURCE_DIR) + "/docs/check.md";
constexpr const char* kBegin =
    "<!-- made from the rules in src/check: PACELINE_UPDATE_DOCS=1 test_check -->\n";
constexpr const char* kEnd = "<!-- end of what is made -->\n";

std::string page() { return base::read_file(kPage); }

/// "`claimed_speedup`, `time_s` or `rate_per_s`", of "claimed_speedup time_s|rate_per_s".
std::string columns_in_words(std::string_view needs) {
  std::string text;
  for (const char letter : needs)
    text += letter == ' '   ? std::string("`, `")
            : letter == '|' ? std::string("` or `")
                            : std::string(1, letter);
  return text.empty() ? "" : fmt::format("`{}`", text);
}

std::string table_of_rules() {
  std::string text = "| rule | at worst | finds | needs |\n|---|---|---|---|\n";
  for (const auto& rule : catalogue())
    text += fmt::format("| `{}` | {} | {} | {} |\n", rule.name, check::name(rule.worst), rule.what,
                        columns_in_words(rule.needs));
  return text;
}

TEST(CheckPage, ListsTheRulesOfTheCatalogue) {
  const auto text = page();
  const auto begin = text.find(kBegin), end = text.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const auto wanted = text.substr(0, begin) + kBegin + table_of_rules() + text.substr(end);
  if (std::getenv("PACELINE_UPDATE_DOCS") != nullptr) std::ofstream(kPage) << wanted;
  EXPECT_EQ(page(), wanted) << "run test_check with PACELINE_UPDATE_DOCS=1 and commit " << kPage;
}

/// The section of a rule, without its heading; "" where there is none.
std::string section_of(const std::string& text, const std::string& rule) {
  const auto heading = "\n### `" + rule + "`\n";
  const auto begin = text.find(heading);
  if (begin == std::string::npos) return "";
  const auto end = text.find("\n##", begin + heading.size());
  return text.substr(begin + heading.size(), end == std::string::npos ? end : end - begin - heading.size());
}

TEST(CheckPage, HasASectionWithFormulaSourceAndExampleForEachRule) {
  const auto text = page();
  for (const auto& rule : catalogue()) {
    const std::string name(rule.name);
    const auto section = section_of(text, name);
    ASSERT_FALSE(section.empty()) << name << " has no section in docs/check.md";
    EXPECT_NE(section.find("**Formula**"), std::string::npos) << name;
    EXPECT_NE(section.find("**Source**"), std::string::npos) << name;
    const auto begin = section.find("```csv\n");
    ASSERT_NE(begin, std::string::npos) << name << " has no example";
    const auto example = section.substr(begin + 7, section.find("```", begin + 7) - begin - 7);
    const auto result = check_table(table::read_table(example, name + ".csv"));
    bool is_found = false;
    std::string all;
    for (const auto& finding : result.findings) {
      all += fmt::format("{} {}: {}\n", check::name(finding.severity), finding.rule, finding.sentence);
      is_found = is_found || (finding.rule == name && finding.severity == rule.worst);
      EXPECT_TRUE(finding.severity != Severity::error || finding.rule == name)
          << "the example of " << name << " has another error:\n"
          << all;
    }
    // A residual is an error only beside another finding.
    if (name == "parts.residual") is_found = all.find("warning parts.residual") != std::string::npos;
    EXPECT_TRUE(is_found) << "the example of " << name << " gives\n" << all;
  }
}

TEST(CheckPage, NamesEveryColumn) {
  const auto text = page();
  for (std::size_t i = 0; i < Column::count(); ++i)
    EXPECT_NE(text.find(fmt::format("`{}`", Column::at(i).name())), std::string::npos)
        << Column::at(i).name();
}

TEST(Catalogue, HasEachRuleOnceAndItsColumns) {
  std::set<std::string_view> names;
  for (const auto& rule : catalogue()) EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
  EXPECT_EQ(names.size(), 46U);
}

TEST(Catalogue, SaysWhatItCouldNotCheckAndWhichColumnWouldAllowIt) {
  const auto result = check_table(table::read_table("run,workers\na,1\nb,2\n", "t.csv"));
  EXPECT_TRUE(result.findings.empty());
  bool is_named = false;
  for (const auto& one : result.not_checked)
    is_named = is_named || (one.rule == "ratio.speedup" &&
                            one.missing == "column claimed_speedup; columns time_s or rate_per_s");
  EXPECT_TRUE(is_named);
}

}  // namespace
}  // namespace paceline::check
