/// The rules are quiet on sound tables, and fire on the same tables with one mistake made in them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "check/check.h"
#include "check/mistakes.h"
#include "check/rule.h"

namespace paceline::check {
namespace {

using mistakes::Made;
using mistakes::Mistake;

bool is_long() { return std::getenv("PACELINE_LONG") != nullptr; }

TEST(SoundTables, DrawNoError) {
  // PACELINE_SOUND_FROM: other tables than those of every day, 200,000 of them.
  const char* const others = std::getenv("PACELINE_SOUND_FROM");
  const std::uint64_t from = others != nullptr ? std::strtoull(others, nullptr, 10) : 0;
  const std::uint64_t tables = from + (others != nullptr ? 200000 : is_long() ? 20000 : 2000);
  int shown = 0;
  for (std::uint64_t seed = from; seed < tables; ++seed) {
    const auto table = sound::any_table(seed);
    bool has_error = false;
    for (const auto& finding : check_table(table).findings) {
      if (finding.severity != Severity::error) continue;
      if (!has_error && ++shown <= 5)
        ADD_FAILURE() << "seed " << seed << ": " << finding.rule << ": " << finding.sentence << "\n"
                      << table::to_csv(table);
      has_error = true;
    }
  }
  EXPECT_EQ(shown, 0) << "of " << tables << " sound tables";
}

std::vector<Mistake> all_mistakes() {
  std::vector<Mistake> all;
  for (const auto& some :
       {mistakes::of_claims(), mistakes::of_scaling(), mistakes::of_times(), mistakes::of_sizes(),
        mistakes::of_bandwidth(), mistakes::of_quality(), mistakes::of_protocol()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

TEST(AllMistakes, AreThereForEveryRule) {
  std::set<std::string> rules;
  for (const auto& one : all_mistakes()) rules.insert(one.rule);
  for (const auto& rule : catalogue()) EXPECT_TRUE(rules.contains(std::string(rule.name))) << rule.name;
}

/// The table without one column, also above its header.
table::Table without(table::Table table, Column column) {
  for (auto& row : table.rows) row.set(column, "");
  return table;
}

// A wrong table got "0 errors" because one column was missing, and the rules that could not run were not
// listed.
TEST(AllMistakes, AreNeverMissedInSilence) {
  constexpr int kTables = 10;
  std::map<std::string, int> silent;
  for (const auto& one : all_mistakes()) {
    int made = 0;
    for (std::uint64_t seed = 0; made < kTables && seed < 20 * kTables; ++seed) {
      const auto wrong = one.make(seed);
      if (!wrong) continue;
      ++made;
      const auto whole = check_table(wrong->table);
      const auto has = [&](const Result& result) {
        return std::ranges::any_of(result.findings, [&](const Finding& finding) {
          return finding.rule == one.rule && finding.severity == Severity::error;
        });
      };
      if (!has(whole)) continue;
      for (std::size_t at = 0; at < Column::count(); ++at) {
        const Column column = Column::at(at);
        if (std::ranges::none_of(wrong->table.rows, [&](const auto& row) { return row.knows(column); }))
          continue;
        const auto result = check_table(without(wrong->table, column));
        const bool is_listed = std::ranges::any_of(
            result.not_checked, [&](const NotChecked& missing) { return missing.rule == one.rule; });
        if (result.number_of(Severity::error) == 0 && !has(result) && !is_listed)
          ++silent[fmt::format("{} without {}", one.rule, column.name())];
      }
    }
  }
  for (const auto& [what, number] : silent) ADD_FAILURE() << what << ": " << number;
}

/// What one table with a mistake gave.
struct Outcome {
  bool is_found = false, is_near = false;
  std::string others;  ///< errors of rules that the mistake does not explain
};

Severity worst_of(const std::string& rule) {
  for (const auto& one : catalogue())
    if (one.name == rule) return one.worst;
  return Severity::error;
}

Outcome outcome_of(const Mistake& mistake, const Made& made) {
  Outcome outcome;
  for (const auto& finding : check_table(made.table).findings) {
    if (finding.rule != mistake.rule) {
      if (finding.severity == Severity::error && !mistake.also.contains(finding.rule))
        outcome.others += finding.rule + ": " + finding.sentence + "\n";
      continue;
    }
    const bool is_of_row =
        made.row.empty() || std::ranges::find(finding.rows, made.row) != finding.rows.end();
    if (!is_of_row || (finding.severity != worst_of(mistake.rule) && !mistake.is_weaker)) continue;
    outcome.is_found = true;
    if (!made.right || !finding.corrected) continue;
    const auto& [value, low, high] = *finding.corrected;
    // The workers whose steps were printed are a range.
    const bool is_within = mistake.rule == "size.workers" && low <= *made.right && *made.right <= high;
    if (std::abs(value - *made.right) <= 0.03 * std::abs(*made.right) || is_within) outcome.is_near = true;
  }
  return outcome;
}

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreFoundAndNothingElseIs) {
  const auto& mistake = GetParam();
  int made = 0, found = 0, near = 0, with_figure = 0, others = 0;
  const std::uint64_t most = is_long() ? 20000 : 1500;
  for (std::uint64_t seed = 0; seed < most && made < (is_long() ? 2000 : 200); ++seed) {
    const auto one = mistake.make(seed);
    if (!one) continue;
    ++made;
    const auto outcome = outcome_of(mistake, *one);
    found += outcome.is_found ? 1 : 0;
    with_figure += outcome.is_found && one->right ? 1 : 0;
    near += outcome.is_near ? 1 : 0;
    if (!outcome.others.empty() && ++others <= 2)
      ADD_FAILURE() << mistake.name << ", seed " << seed << ", also\n"
                    << outcome.others << table::to_csv(one->table);
    if ((!outcome.is_found && made - found <= 1) ||
        (one->right && outcome.is_found && !outcome.is_near && with_figure - near <= 1)) {
      std::printf("%s, seed %d: %s\n%s", mistake.name.c_str(), static_cast<int>(seed),
                  outcome.is_found ? "another figure" : "not found", table::to_csv(one->table).c_str());
      for (const auto& finding : check_table(one->table).findings)
        std::printf("  %s: %s\n", finding.rule.c_str(), finding.sentence.c_str());
    }
  }
  ASSERT_GE(made, 20);
  EXPECT_GE(found, 0.99 * made) << mistake.name;
  EXPECT_GE(near, 0.95 * with_figure) << mistake.name;
  std::printf("%s: %s: %d of %d found, %d of %d figures right\n", mistake.rule.c_str(), mistake.name.c_str(),
              found, made, near, with_figure);
}

INSTANTIATE_TEST_SUITE_P(OfEveryKind, Mistakes, testing::ValuesIn(all_mistakes()), [](const auto& info) {
  std::string name;
  for (const char one : info.param.name)
    if (std::isalnum(static_cast<unsigned char>(one)) != 0) name += one;
  return name;
});

}  // namespace
}  // namespace paceline::check
