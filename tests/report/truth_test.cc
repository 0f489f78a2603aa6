// Random sets of records: no answer denies what the records hold, and each figure is the same wherever it
// stands.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>

#include "analysis/compare/consistency.h"
#include "analysis/compare/operating_point.h"
#include "golden/records.h"
#include "report/answers/answers.h"
#include "report/build.h"
#include "report/conclusions.h"
#include "report/study_records.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using golden::make_record;
using golden::make_training;
using measure::Record;

/// What may have happened to a set of runs.
class Chance {
 public:
  explicit Chance(unsigned seed) : random_(seed) {}

  double real(double low, double high) { return std::uniform_real_distribution<>(low, high)(random_); }
  std::size_t below(std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_);
  }
  bool with(double probability) { return real(0, 1) < probability; }
  template <typename Value>
  Value one_of(std::initializer_list<Value> values) {
    return values.begin()[below(values.size())];
  }

 private:
  std::mt19937 random_;
};

/// A run of a sweep or of scaling: any size, load, length and end.
Record timed(Chance& chance, int repeat) {
  const bool is_sweep = chance.with(0.4);
  const int workers = is_sweep ? 1 : chance.one_of({1, 1, 2, 2, 4});
  golden::Run run{.kind = is_sweep ? "sweep" : "scale",
                  .scaling = chance.one_of({"weak", "strong"}),
                  .workers = workers,
                  .local_batch = chance.one_of({16, 32, 64, 128}),
                  .repeat = repeat};
  const double slower = (0.3 + static_cast<double>(run.local_batch) / 128) * chance.real(0.9, 1.3);
  run.forward *= slower;
  run.backward *= slower;
  if (workers > 1) {
    run.exposed_transfer = chance.real(0, 0.1);
    run.exposed_wait = chance.real(0, 0.1);
    run.transfer = run.exposed_transfer + chance.real(0.001, 0.1);
    run.communication = run.transfer + run.exposed_wait;
  }
  run.data_wait = chance.with(0.1) ? chance.real(0, 3) : 0.005;
  run.jitter.resize(1 + chance.below(chance.one_of<std::size_t>({1, 4, 30})));
  for (double& factor : run.jitter) factor = chance.real(0.95, 1.1);
  run.oversubscribed = workers > 2;
  return make_record(run);
}

Record of_epochs(Chance& chance, int repeat) {
  std::vector<double> accuracies(chance.below(5));
  for (double& accuracy : accuracies) accuracy = chance.real(0.1, 0.99);
  auto record = make_training({.variant = chance.one_of({"", "baseline", "large batch", "+ linear scaling"}),
                               .workers = chance.one_of({1, 2}),
                               .global_batch = chance.one_of({64, 512}),
                               .seed = repeat,
                               .accuracies = std::move(accuracies)});
  record.settings["epochs"] = "4";  // alike in all, so that their batches may be compared
  if (chance.with(0.2))
    for (auto& epoch : record.epochs) epoch.test_accuracy.reset();
  return record;
}

void befall(Record& record, Chance& chance) {
  record.window.others_cores =
      chance.one_of<std::optional<double>>({0.01, 0.02, 0.3, 0.9, 1.4, std::nullopt});
  if (chance.with(0.7)) return;
  record.status = chance.one_of({"complete", "interrupted", "failed", "skipped", "running"});
  if (record.status != "complete") record.reason = "made so by the test";
  if (record.status == "skipped" || record.status == "failed" || chance.with(0.1)) {
    record.ranks.clear();
    record.buckets.clear();
    record.window = {};
  }
  if (chance.with(0.1)) record.environment.build = "Debug";
  if (chance.with(0.1)) record.data.synthetic = true;
  if (chance.with(0.05) && !record.ranks.empty()) record.ranks.front().wall_s *= 2;  // contradicts itself
}

std::vector<Record> records_of(unsigned seed) {
  Chance chance(seed);
  const double trainings = chance.one_of({0.0, 0.3, 1.0});
  std::vector<Record> records(1 + chance.below(14));
  for (std::size_t i = 0; i < records.size(); ++i) {
    const int repeat = static_cast<int>(chance.below(3));
    records[i] = chance.with(trainings) ? of_epochs(chance, repeat) : timed(chance, repeat);
    records[i].id += "-" + std::to_string(i);
    befall(records[i], chance);
  }
  return records;
}

/// Whether steps were timed and may be used.
bool is_timed(const Record& record) {
  return !record.ranks.empty() && !record.ranks.front().step_s.empty() && !analysis::contradiction(record) &&
         (record.status == "complete" || record.status == "interrupted" || record.status == "running");
}

/// Sentences that deny something, and whether a record shows that it is there.
struct Denial {
  const char* sentence;
  bool (*is_there)(const Record&);
};
const Denial kDenials[] = {
    {"No run gave a figure", is_timed},
    {"No step was measured", is_timed},
    {"nothing was measured", is_timed},
    {"One worker sends nothing", [](const Record& one) { return is_timed(one) && one.workers > 1; }},
    {"no transfer was timed",
     [](const Record& one) {
       return is_timed(one) && std::ranges::any_of(one.buckets, [](const auto& bucket) {
                return !bucket.transfer_s.empty() && bucket.transfer_s.front() > 0;
              });
     }},
    {"trained no epoch", [](const Record& one) { return !one.epochs.empty(); }},
    {"No training ran to its end",
     [](const Record& one) { return one.status == "complete" && !one.epochs.empty(); }},
    {"no epoch was tested",
     [](const Record& one) {
       return std::ranges::any_of(one.epochs,
                                  [](const auto& epoch) { return epoch.test_accuracy.has_value(); });
     }},
};

void expect_no_denial(const Document& document, const std::vector<Record>& records) {
  for (const Answer* answer : all<Answer>(document)) {
    const std::string said = answer->figure + " " + answer->sentence;
    for (const auto& [sentence, is_there] : kDenials) {
      if (said.find(sentence) == std::string::npos) continue;
      EXPECT_TRUE(std::ranges::none_of(records, is_there)) << answer->id << ": " << said;
    }
    EXPECT_FALSE(answer->certainty == Certainty::not_measured && answer->sentence.empty()) << answer->id;
    EXPECT_THAT(said + answer->chip,
                testing::Not(testing::ContainsRegex(R"(\b(nan|inf)\b|-?[0-9]\.[0-9]+e[-+][0-9])")))
        << answer->id << ": " << said;
  }
}

/// "Only 32 was measured in this way", "Only 1 worker was measured": no record may show another.
void expect_only_what_is_alone(const std::vector<Record>& records) {
  const auto conclusions = conclude(records);
  for (const auto& cells : conclusions.subjects) {
    const Subject subject = subject_of(conclusions, cells);
    if (subject.best() == nullptr) continue;
    const auto& best = *subject.best();
    const auto is_other = [&](const analysis::Cell* cell, bool same_workers) {
      return cell->is_measured() && cell->is_timed() == best.is_timed() && cell->status == "complete" &&
             !cell->oversubscribed && (cell->workers == best.workers) == same_workers &&
             (!same_workers || (cell->local_batch != best.local_batch &&
                                cell->debug_build == best.debug_build && cell->synthetic == best.synthetic));
    };
    const auto any = [&](bool same_workers) {
      return std::ranges::any_of(cells.cells, [&](const auto* cell) { return is_other(cell, same_workers); });
    };
    for (const Answer& answer : {batch_answer(subject), workers_answer(subject)}) {
      const bool denies = answer.sentence.starts_with("Only ");
      EXPECT_FALSE(denies && any(answer.id == "batch")) << answer.id << ": " << answer.sentence;
    }
  }
}

/// The best rate stands in the answer, its curve, the table of all cells, `explain` and `runs show` alike.
void expect_one_best(const Document& document, const std::vector<Record>& records) {
  const auto best = analysis::best_cell(records);
  const Answer* answer = nullptr;
  for (const Answer* one : all<Answer>(document))
    if (one->id == "best" && one->evidence == "hero" && answer == nullptr && one->unit.empty()) answer = one;
  if (answer == nullptr || !answer->value || answer->figure.find("Train with") == std::string::npos) return;
  if (!best) {  // `runs show` names no training
    EXPECT_TRUE(std::ranges::none_of(records, [](const Record& one) {
      return one.status == "complete" && (one.kind == "sweep" || one.kind == "scale") && is_timed(one);
    }));
    return;
  }
  EXPECT_NEAR(best->images_per_s, *answer->value, 1e-9 * best->images_per_s);
  EXPECT_THAT(answer->figure, testing::HasSubstr(number(*answer->value)));
  if (const auto* hero = find<Figure>(document, "hero"))
    for (const auto& series : hero->views.front().series)
      for (const Point& point : series.points) {
        const double is = point.mark.starts_with("best") ? point.y : *answer->value;
        EXPECT_NEAR(is, *answer->value, 1e-9 * is);
      }
  const auto* table = find<Table>(document, "every-cell");
  ASSERT_NE(table, nullptr);
  const auto rate = std::ranges::find(table->columns, "rate", &Column::key) - table->columns.begin();
  EXPECT_TRUE(std::ranges::any_of(table->rows, [&](const auto& row) {
    const auto& value = row[static_cast<std::size_t>(rate)].value;
    return value && std::abs(*value - *answer->value) < 1e-9 * *value;
  }));
}

/// Terminal, Markdown, JSON and explain say what the document says.
void expect_one_text(const Document& document, const std::vector<Record>& records) {
  const std::string terminal = to_terminal(document, 2000), json = to_json(document);
  const std::string explained = to_terminal(explain(records), 4000), markdown = to_markdown(document);
  for (const Answer* answer : all<Answer>(document)) {
    for (const auto* text : {&answer->figure, &answer->sentence}) {
      EXPECT_NE(terminal.find(*text), std::string::npos) << answer->id << ": " << *text;
      EXPECT_NE(json.find(*text), std::string::npos) << answer->id << ": " << *text;
    }
    const bool has_markup = answer->sentence.find_first_of("~*_<[|`") != std::string::npos;
    EXPECT_TRUE(has_markup || markdown.find(answer->sentence) != std::string::npos)
        << answer->id << ": " << answer->sentence;
    EXPECT_NE(explained.find(answer->sentence), std::string::npos) << answer->id << ": " << answer->sentence;
  }
}

TEST(Truth, HoldsForRandomRecords) {
  const unsigned sets = std::getenv("PACELINE_LONG") != nullptr ? 10'000 : 600;
  for (unsigned seed = 0; seed < sets && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto records = records_of(seed);
    const Document document = build(records);
    expect_no_denial(document, records);
    expect_only_what_is_alone(records);
    expect_one_best(document, records);
    expect_one_text(document, records);
  }
}

}  // namespace
}  // namespace paceline::report
