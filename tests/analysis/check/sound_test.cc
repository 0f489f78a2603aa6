/// The rules are quiet on sound tables, and fire on the same tables with one mistake made in them.

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <set>

#include "analysis/check/check.h"
#include "analysis/check/sound.h"
#include "analysis/check/study.h"

namespace paceline::analysis::rules {
namespace {

using sound::draw_table;
using sound::printed;
using sound::SoundTable;

bool is_long() { return std::getenv("PACELINE_LONG") != nullptr; }

TEST(SoundTables, DrawNoError) {
  const std::uint64_t tables = is_long() ? 20000 : 2000;
  int shown = 0;
  for (std::uint64_t seed = 0; seed < tables; ++seed) {
    const auto sound = draw_table(seed);
    for (const auto& finding : check_table(sound.table).findings) {
      if (finding.severity != Severity::error || ++shown > 5) continue;
      ADD_FAILURE() << "seed " << seed << ": " << finding.rule << ": " << finding.sentence << "\n"
                    << table::to_csv(sound.table);
    }
  }
  EXPECT_EQ(shown, 0);
}

/// One kind of mistake: made in a sound table, or not where the table has nothing to make it in, or it would
/// be below the stated limit. `right` is the corrected figure of the first row that it was made in.
struct Mutation {
  const char* name;
  const char* rule;
  std::function<bool(SoundTable&, std::size_t& row, double& right)> make;
  std::set<std::string> also = {};  ///< rules that are right to fire too
};

void set(SoundTable& sound, std::size_t i, Column column, double value) {
  sound.table.rows[i].set(column, printed(value, sound.digits, sound.cuts));
}

double scale(const SoundTable& sound, std::size_t i) {
  return *sound.table.rows[i].value("workers") / *sound.table.rows.front().value("workers");
}

/// A claim of all rows but the baseline, as a function of what is right.
Mutation ratio_mutation(const char* name, bool of_efficiency, double (*wrong)(double right, double n)) {
  return {name, of_efficiency ? "ratio.efficiency" : "ratio.speedup",
          [=](SoundTable& sound, std::size_t& row, double& right) {
            bool is_large = false;
            for (std::size_t i = 1; i < sound.truth.size(); ++i) {
              const double one = of_efficiency ? sound.truth[i].efficiency : sound.truth[i].speedup;
              const double value = wrong(one, scale(sound, i));
              if (value <= 0) return false;
              set(sound, i, of_efficiency ? Column("claimed_efficiency") : Column("claimed_speedup"), value);
              if (!is_large && std::abs(value / one - 1) > 0.06) {
                is_large = true;
                row = i;
                right = one;
              }
            }
            return is_large;
          }};
}

Mutation bandwidth_mutation(const char* name, double (*factor)(const SoundTable& sound, std::size_t i)) {
  return {name, "bandwidth.formula", [=](SoundTable& sound, std::size_t& row, double& right) {
            bool made = false;
            for (std::size_t i = 1; i < sound.truth.size(); ++i) {
              auto& one = sound.table.rows[i];
              const auto claim = one.value("claimed_bandwidth");
              if (!claim || one.text("bandwidth_is") == "algbw") continue;
              const double f = factor(sound, i);
              if (std::abs(f - 1) < 0.06) continue;
              set(sound, i, Column("claimed_bandwidth"), *claim * f);
              if (!made) right = *claim;
              if (!made) row = i;
              made = true;
            }
            return made;
          }};
}

std::vector<Mutation> claim_mutations() {
  return {
      ratio_mutation("speedup x N", false, [](double s, double n) { return s * n; }),
      ratio_mutation("speedup / N", false, [](double s, double n) { return s / n; }),
      ratio_mutation("speedup inverted", false, [](double s, double) { return 1 / s; }),
      ratio_mutation("time saved", false, [](double s, double) { return 1 - 1 / s; }),
      ratio_mutation("efficiency x N", true, [](double e, double n) { return e * n; }),
      ratio_mutation("efficiency / N", true, [](double e, double n) { return e / n; }),
      bandwidth_mutation("one step's bytes",
                         [](const SoundTable& sound, std::size_t i) {
                           return sound.is_of_epoch ? 1 / sound.truth[i].steps : 1.0;
                         }),
      bandwidth_mutation("MB for GB", [](const SoundTable&, std::size_t) { return 1000.0; }),
      bandwidth_mutation("bits", [](const SoundTable&, std::size_t) { return 8.0; }),
      bandwidth_mutation("no ring factor",
                         [](const SoundTable& sound, std::size_t i) {
                           const double n = *sound.table.rows[i].value("workers");
                           return n / (2 * (n - 1));
                         }),
      bandwidth_mutation("elements", [](const SoundTable&, std::size_t) { return 0.25; }),
  };
}

std::vector<Mutation> part_mutations() {
  return {
      {"parts too long", "parts.sum",
       [](SoundTable& sound, std::size_t& row, double& right) {
         for (std::size_t i = 1; i < sound.truth.size(); ++i) {
           auto& one = sound.table.rows[i];
           const auto communication = one.value("communication_s");
           if (!communication || one.knows("data_wait_s") || *communication < 0.06 * sound.truth[i].time)
             continue;
           set(sound, i, Column("compute_s"), sound.truth[i].time * 0.995);
           row = i;
           right = sound.truth[i].time - sound.truth[i].communication;
           return true;
         }
         return false;
       }},
      {"rate of one worker",
       "time.rate",
       [](SoundTable& sound, std::size_t& row, double& right) {
         bool made = false;
         for (std::size_t i = 0; i < sound.truth.size(); ++i) {
           auto& one = sound.table.rows[i];
           if (one.text("rate_of") != "all" || *one.value("workers") < 2) continue;
           set(sound, i, Column("rate_per_s"), sound.truth[i].rate / *one.value("workers"));
           if (!made) right = sound.truth[i].rate;
           if (!made) row = i;
           made = true;
         }
         return made;
       },
       {"ratio.speedup", "ratio.efficiency"}},
      {"other workers", "size.workers",
       [](SoundTable& sound, std::size_t& row, double& right) {
         for (std::size_t i = 0; i < sound.truth.size(); ++i) {
           auto& one = sound.table.rows[i];
           if (!one.knows("steps") || !one.knows("local_batch")) continue;
           const double n = *one.value("workers") * 3, all = n * *one.value("local_batch");
           const double steps = std::floor(*one.value("train_samples") / all);
           if (steps < 8) continue;  // of so few steps many numbers of workers have as many
           one.set("steps", steps);
           row = i;
           right = n;
           return true;
         }
         return false;
       }},
  };
}

std::vector<Mutation> table_mutations() {
  return {
      {"product",
       "size.product",
       [](SoundTable& sound, std::size_t& row, double& right) {
         auto& one = sound.table.rows.back();
         if (!one.knows("local_batch")) return false;
         right = *one.value("local_batch") * *one.value("workers");
         one.set("global_batch", right * 2);
         row = sound.truth.size() - 1;
         return true;
       },
       {"time.rate", "size.data", "bandwidth.formula", "scaling.mixed", "ratio.speedup", "ratio.efficiency"}},
      {"accuracy of another set", "accuracy.count",
       [](SoundTable& sound, std::size_t& row, double& right) {
         auto& one = sound.table.rows.back();
         if (one.value("test_samples") != 100.0) return false;
         right = (std::floor(*one.value("accuracy") * 100) + 0.4371) / 100;
         one.set("accuracy", fmt::format("{:.6f}", right));
         row = sound.truth.size() - 1;
         return true;
       }},
      {"loss too low", "accuracy.loss-bound",
       [](SoundTable& sound, std::size_t& row, double& right) {
         auto& one = sound.table.rows.back();
         if (!one.knows("accuracy") || *one.value("accuracy") > 0.98) return false;
         const double loss = (1 - *one.value("accuracy")) * 0.3;
         one.set("loss", fmt::format("{:.5f}", loss));
         right = 1 - std::stod(fmt::format("{:.5f}", loss)) / (2 * std::log(2.0));
         row = sound.truth.size() - 1;
         return true;
       }},
      {"other precision", "compare.settings",
       [](SoundTable& sound, std::size_t& row, double&) {
         for (auto& one : sound.table.rows) one.settings["precision"] = "bf16";
         sound.table.rows.front().settings["precision"] = "fp32";
         row = 1;
         return true;
       }},
      {"two times", "compare.conflict",
       [](SoundTable& sound, std::size_t& row, double&) {
         auto copy = sound.table.rows.back();
         for (const Column column :
              {Column("claimed_speedup"), Column("claimed_efficiency"), Column("rate_per_s"),
               Column("compute_s"), Column("communication_s"), Column("claimed_bandwidth")})
           copy.set(column, "");
         copy.set("run", "again");
         copy.set("time_s", printed(sound.truth.back().time * 1.9, sound.digits));
         row = sound.table.rows.size();
         sound.table.rows.push_back(copy);
         return *copy.value("spread_s") < 0.05 * *copy.value("time_s") || !copy.knows("spread_s");
       }},
      {"called weak", "scaling.mixed",
       [](SoundTable& sound, std::size_t& row, double&) {
         if (!sound.is_strong || !sound.table.rows.front().knows("local_batch")) return false;
         if (sound.table.rows[0].text("local_batch") == sound.table.rows[1].text("local_batch")) return false;
         for (auto& one : sound.table.rows) one.set("scaling", "weak");
         row = 1;
         return true;
       }},
  };
}

std::vector<Mutation> mutations() {
  auto all = claim_mutations();
  for (const auto& some : {part_mutations(), table_mutations()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

class Mutations : public testing::TestWithParam<Mutation> {};

TEST_P(Mutations, AreFoundAndNothingElseIs) {
  const auto& mutation = GetParam();
  int made = 0, fired = 0, near = 0, with_figure = 0, others = 0;
  const std::uint64_t most = is_long() ? 20000 : 1500;
  for (std::uint64_t seed = 0; seed < most && made < (is_long() ? 2000 : 200); ++seed) {
    auto sound = draw_table(seed + 1000000, true);
    std::size_t row = 0;
    double right = 0;
    if (!mutation.make(sound, row, right)) continue;
    ++made;
    bool is_found = false;
    const auto result = check_table(sound.table);
    for (const auto& finding : result.findings) {
      if (finding.severity != Severity::error) continue;
      if (finding.rule != mutation.rule) {
        if (!mutation.also.contains(finding.rule) && ++others <= 3)
          ADD_FAILURE() << mutation.name << ", seed " << seed << ": also " << finding.rule << ": "
                        << finding.sentence << "\n"
                        << table::to_csv(sound.table);
        continue;
      }
      if (finding.rows.front() != sound.table.rows[row].name()) continue;
      is_found = true;
      if (right <= 0 || !finding.corrected) continue;
      ++with_figure;
      near += std::abs(finding.corrected->value / right - 1) < 0.03 ||
                      (std::string_view(mutation.rule) == "size.workers" && finding.corrected->low <= right &&
                       right <= finding.corrected->high)
                  ? 1
                  : 0;
    }
    fired += is_found ? 1 : 0;
    if (!is_found && made - fired <= 2) {
      std::string all;
      for (const auto& finding : result.findings) all += finding.rule + ": " + finding.sentence + "\n";
      std::printf("%s, seed %d not found\n%s%s\n", mutation.name, static_cast<int>(seed), all.c_str(),
                  table::to_csv(sound.table).c_str());
    }
  }
  ASSERT_GE(made, 20);
  EXPECT_GE(fired, 0.99 * made) << mutation.name;
  EXPECT_GE(near, 0.95 * with_figure) << mutation.name;
}

INSTANTIATE_TEST_SUITE_P(OfEveryKind, Mutations, testing::ValuesIn(mutations()), [](const auto& info) {
  std::string name;
  for (const char one : std::string_view(info.param.name))
    if (std::isalnum(static_cast<unsigned char>(one)) != 0) name += one;
  return fmt::format("{}_{}", name, info.index);
});

}  // namespace
}  // namespace paceline::analysis::rules
