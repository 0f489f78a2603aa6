// What the first screen says, held against the records themselves and not against the document.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "golden/records.h"
#include "report/build.h"
#include "report/study_records.h"
#include "report/terminal_text.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using golden::make_record;
using measure::Record;
using testing::HasSubstr;
using testing::Not;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// The highest images/s over sweep and scale, by workers and batch, of what may be advised.
double highest_rate(const std::vector<Record>& records) {
  std::map<std::tuple<std::string, int, std::int64_t>, std::vector<double>> steps;
  for (const Record& record : records) {
    if (record.kind != "sweep" && record.kind != "scale") continue;
    if (record.status != "complete" || record.oversubscribed) continue;
    auto& all = steps[{record.kind, record.workers, record.global_batch}];
    for (std::size_t step = 0; step < record.ranks[0].step_s.size(); ++step) {
      double sum = 0;
      for (const auto& rank : record.ranks) sum += rank.step_s[step];
      all.push_back(sum / static_cast<double>(record.ranks.size()));
    }
  }
  double best = 0;
  for (const auto& [key, all] : steps)
    best = std::max(best, static_cast<double>(std::get<2>(key)) / median(all));
  return best;
}

const Answer* answer(const Document& document, const std::string& id) {
  for (const Answer* one : all<Answer>(document))
    if (one->id == id) return one;
  return nullptr;
}

/// Words; numbers beside intervals, which count as none.
struct Size {
  int words = 0, numbers = 0;
};
Size size_of(const std::string& sentence) {
  Size size;
  bool inside = false;
  std::istringstream words(sentence);
  for (std::string word; words >> word;) {
    if (word.starts_with("[")) inside = true;
    if (!inside) {
      ++size.words;
      size.numbers += std::isdigit(static_cast<unsigned char>(word[0])) != 0 ? 1 : 0;
    }
    if (word.find(']') != std::string::npos) inside = false;
  }
  return size;
}

std::vector<std::string> sentences_of(const std::string& text) {
  std::vector<std::string> sentences;
  std::string sentence;
  for (std::size_t i = 0; i < text.size(); ++i) {
    sentence += text[i];
    const bool ends = (text[i] == '.' || text[i] == ';') && (i + 1 == text.size() || text[i + 1] == ' ');
    if (ends) sentences.push_back(std::exchange(sentence, ""));
  }
  if (!sentence.empty()) sentences.push_back(sentence);
  return sentences;
}

void expect_short(const Document& document) {
  int words = 0;
  for (const Answer* one : all<Answer>(document)) {
    for (const std::string* text : {&one->figure, &one->sentence, &one->question, &one->unit, &one->chip}) {
      words += size_of(*text).words;
      for (const std::string& sentence : sentences_of(*text)) {
        EXPECT_LE(size_of(sentence).words, 20) << sentence;
        EXPECT_LE(size_of(sentence).numbers, 3) << sentence;
      }
    }
    EXPECT_LE(size_of(one->sentence).words, 30) << one->sentence;
  }
  EXPECT_LE(words, 160);
}

TEST(Answers, AdviseTheFastestCellOfTheRecords) {
  const auto records = study();
  const Document document = build(records);
  const Answer* best = answer(document, "best");
  ASSERT_NE(best, nullptr);
  EXPECT_NEAR(*best->value, highest_rate(records), 1e-9 * *best->value);
  EXPECT_THAT(best->figure, HasSubstr(number(highest_rate(records)) + " images/s"));
  EXPECT_THAT(best->command, HasSubstr("paceline train --model resnet18-cifar --data cifar10:data"));
  EXPECT_THAT(best->command, HasSubstr("--workers 2 --local-batch 128"));
}

// 200 studies with random speeds, disturbances and shared cores.
TEST(Answers, AdviseNothingBelowAMeasuredRate) {
  std::mt19937 random(4);
  const auto pick = [&](int below) { return std::uniform_int_distribution<int>(0, below - 1)(random); };
  for (int round = 0; round < 200; ++round) {
    std::vector<Record> records;
    for (const int workers : {1, 2, 4})
      for (const int batch : {16, 64, 256}) {
        golden::Run run{.scaling = "weak", .workers = workers, .local_batch = batch};
        run.forward = batch * (0.001 + 0.0001 * pick(20));
        run.oversubscribed = workers == 4;
        auto record = make_record(run);
        const int state = pick(3);
        if (state < 2) record.window.others_cores = state == 0 ? 0.0 : 1.2;
        records.push_back(std::move(record));
      }
    const double want = highest_rate(records);
    const Document document = build(records);
    const Answer* best = answer(document, "best");
    ASSERT_NE(best, nullptr);
    if (want == 0)
      EXPECT_FALSE(best->value) << round;
    else
      ASSERT_NEAR(best->value.value_or(0), want, 1e-9 * want) << round;
    expect_short(document);
  }
}

TEST(Answers, NameWhatTheAdvisedBatchLoses) {
  auto records = study();
  EXPECT_THAT(answer(build(records), "best")->sentence, Not(HasSubstr("accuracy")));
  golden::Run large{.scaling = "weak", .workers = 2, .local_batch = 1024};
  large.forward = 0.1;  // the fastest of all
  records.push_back(make_record(large));
  EXPECT_THAT(answer(build(records), "best")->sentence,
              HasSubstr("Global batch 2,048 cost 27 points of accuracy."));
}

TEST(Answers, AreShort) { expect_short(build(study())); }

// The fastest cell of two workers does not reach the best, a noisier one does: the number is open.
TEST(Answers, LeaveTheWorkersOpenWhereAnyCellOfAnotherNumberReachesTheBest) {
  golden::Run one{.kind = "sweep", .workers = 1, .local_batch = 64};
  golden::Run two{.scaling = "weak", .workers = 2, .local_batch = 64};
  one.forward = 0.1;
  one.jitter = two.jitter = {1, 1, 1, 1, 1, 1};
  two.forward = 2.0;
  golden::Run noisy = two;
  noisy.local_batch = 32;
  noisy.jitter = {0.1, 1, 1, 1, 1, 1};
  const Document decided = build(std::vector{make_record(one), make_record(two)});
  const Document open = build(std::vector{make_record(one), make_record(two), make_record(noisy)});
  EXPECT_NE(answer(decided, "workers")->certainty, Certainty::not_decided);
  EXPECT_EQ(answer(open, "best")->value, answer(decided, "best")->value);
  EXPECT_EQ(answer(open, "workers")->certainty, Certainty::not_decided);
}

TEST(Answers, AreTheSameInEveryForm) {
  const Document document = build(study());
  const std::string terminal = to_terminal(document, 500), markdown = to_markdown(document);
  const auto json = nlohmann::json::parse(to_json(document));
  const auto& blocks = json["sections"][0]["blocks"];
  int answers = 0;
  for (const auto& block : blocks) {
    if (block["type"] != "answer") continue;
    ++answers;
    for (const char* field : {"figure", "sentence"}) {
      EXPECT_THAT(terminal, HasSubstr(block[field].get<std::string>()));
      EXPECT_THAT(markdown, HasSubstr(block[field].get<std::string>()));
    }
    const Answer* one = answer(document, block["id"]);
    ASSERT_NE(one, nullptr);
    EXPECT_EQ(block["figure"], one->figure);
  }
  EXPECT_EQ(answers, 6);
}

TEST(Answers, FitTheLast25LinesOfATerminal) {
  Document document = build(study());
  std::erase_if(document.sections, [](const Section& section) { return !is_answer(section); });
  document.facts.clear();
  for (const int width : {100, 110, 140}) {
    const std::string text = to_terminal(document, width);
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 25) << text;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(display_width(line), static_cast<std::size_t>(width)) << line;
  }
}

TEST(Answers, CallSlowerOnlyBeyondAnInterval) {
  const auto sentence = [](const std::vector<double>& jitter) {
    golden::Run small{.kind = "sweep", .local_batch = 16}, large{.kind = "sweep", .local_batch = 64};
    small.forward = 0.2;
    large.forward = 0.3;
    small.jitter = large.jitter = jitter;
    return answer(build(std::vector{make_record(small), make_record(large)}), "batch")->sentence;
  };
  EXPECT_THAT(sentence(golden::Run().jitter), HasSubstr("16 is 73 % slower."));
  EXPECT_THAT(sentence({1, 1.01, 0.99}),
              HasSubstr("16 was 73 % slower, in a window too short for an interval."));
}

TEST(Answers, StateNoRatioWithinNoise) {
  const auto sentence = [](const std::vector<double>& jitter) {
    std::vector<Record> records;
    for (const int workers : {1, 2}) {
      golden::Run run{.scaling = "weak", .workers = workers};
      run.jitter = jitter;
      records.push_back(make_record(run));
      records.back().window.others_cores = 1.0;
    }
    return answer(build(records), "best")->sentence;
  };
  EXPECT_THAT(sentence(golden::Run().jitter),
              testing::AllOf(HasSubstr("2.00 times one core"), HasSubstr("For the machine as it is")));
  EXPECT_THAT(sentence({0.3, 2.5, 0.4, 3.1, 0.3, 2.8, 0.5, 2.2}),
              testing::AllOf(Not(HasSubstr("times one core")), HasSubstr("For the machine as it is")));
}

TEST(Answers, CountThreadsBesideWorkers) {
  std::vector<Record> records;
  for (const int workers : {1, 2}) records.push_back(make_record({.scaling = "weak", .workers = workers}));
  EXPECT_EQ(answer(build(records), "workers")->unit, "of 2 cores");
  records[0].threads_per_worker = 2;
  records[1].oversubscribed = true;
  records.push_back(make_record({.scaling = "weak", .workers = 2, .forward = 4}));
  EXPECT_EQ(answer(build(records), "workers")->figure, "1");
  EXPECT_EQ(answer(build(records), "workers")->unit, "with 2 threads on 2 cores");
}

TEST(Answers, SayCarefulWhereNobodyKnowsOfOthers) {
  auto records = study();
  for (Record& record : records) record.window.others_cores.reset();
  EXPECT_EQ(answer(build(records), "limit")->certainty, Certainty::careful);
  for (Record& record : records) record.window.others_cores = 0.0;
  EXPECT_EQ(answer(build(records), "limit")->certainty, Certainty::decided);
}

TEST(Answers, SayWhatWasNotMeasuredWithTheCommandThatMeasuresIt) {
  const Document document = build(std::vector{make_record({.kind = "sweep", .local_batch = 64})});
  for (const char* id : {"batch", "workers", "network", "accuracy"}) {
    const Answer* one = answer(document, id);
    ASSERT_NE(one, nullptr);
    EXPECT_EQ(one->certainty, Certainty::not_measured) << id;
    EXPECT_THAT(one->command, HasSubstr("paceline ")) << id;
    EXPECT_THAT(one->command, HasSubstr("--model resnet18-cifar")) << id;
  }
}

TEST(Answers, CarryTheOptionsThatWereTyped) {
  auto record = make_record({.kind = "sweep", .local_batch = 64});
  record.command = "paceline sweep --batches 32,64 --loader-threads 2 --bn=ghost --out x --lr 0.3";
  const Answer best = *answer(build(std::vector{record}), "best");
  EXPECT_THAT(best.command,
              HasSubstr(" --loader-threads 2 --bn=ghost --lr 0.3 --workers 1 --local-batch 64"));
  EXPECT_THAT(best.command, Not(HasSubstr("--out")));
  EXPECT_THAT(best.command, Not(HasSubstr("--batches")));
}

TEST(Answers, OfSeveralModelsAreOneSectionEach) {
  auto other = make_record({.kind = "sweep", .local_batch = 64});
  other.model.name = "mnist-cnn";
  other.settings["model"] = "mnist-cnn";
  const Document document = build(std::vector{make_record({.kind = "sweep", .local_batch = 64}), other});
  EXPECT_EQ(document.sections[0].id, "answer");
  EXPECT_EQ(document.sections[1].id, "answer-2");
  EXPECT_EQ(document.sections[1].title, "Answer: mnist-cnn");
}

TEST(Answers, HaveAWaterfallThatAddsUp) {
  const Document document = build(study());
  ASSERT_EQ(all<Waterfall>(document).size(), 1U);
  for (const Waterfall* one : all<Waterfall>(document)) {
    double sum = one->from;
    for (const auto& change : one->changes) sum += change.seconds;
    EXPECT_NEAR(sum, one->to, 1e-12);
  }
}

// What may be chance is not told as a cause.
TEST(Answers, NameNoPartOfTheLossThatIsWithinNoise) {
  auto records = study();
  for (Record& record : records) {
    if (record.workers != 2 || record.kind != "scale") continue;
    const double more =
        0.5 * (record.repeat - 1);  // of three repeats: computing takes half to one and a half
    record.window.wall_s +=
        more * record.ranks.front().phases[static_cast<std::size_t>(measure::Phase::forward)];
    for (auto& rank : record.ranks) {
      double& forward = rank.phases[static_cast<std::size_t>(measure::Phase::forward)];
      for (double& seconds : rank.step_s) seconds += more * forward / static_cast<double>(rank.step_s.size());
      rank.wall_s += more * forward;
      forward *= 1 + more;
    }
  }
  const Document sound = build(study()), scattered = build(records);
  ASSERT_EQ(all<Waterfall>(sound).size(), 1U);
  EXPECT_THAT(all<Waterfall>(sound).front()->finding, HasSubstr("sharing memory and caches costs 5.5 %"));
  ASSERT_EQ(all<Waterfall>(scattered).size(), 1U);
  const Waterfall& one = *all<Waterfall>(scattered).front();
  EXPECT_THAT(one.finding, Not(HasSubstr("sharing memory and caches costs"))) << "whose interval holds 0";
  EXPECT_THAT(one.finding,
              testing::AnyOf(HasSubstr("the rest may be noise"), HasSubstr("no part of it is beyond noise")));
}

TEST(Answers, SayWhatHollowCellsAre) {
  auto records = study();
  for (Record& record : records) record.window.others_cores = 0.0;
  EXPECT_THAT(find<Figure>(build(records), "hero")->note, Not(HasSubstr("Hollow")));
  for (Record& record : records)
    if (record.workers == 1) record.window.others_cores = 1.2;
  EXPECT_NE(find<Figure>(build(records), "hero")->note.find("Hollow cells were disturbed"),
            std::string::npos);
}

TEST(Answers, DrawEachCellOfTheHeroOnce) {
  const Document document = build(study());
  const Figure* hero = find<Figure>(document, "hero");
  ASSERT_NE(hero, nullptr);
  int best = 0;
  for (const Series& series : hero->views[0].series) {
    EXPECT_EQ(series.hidden, series.name == "4 workers on 2 cores") << series.name;
    for (const Point& point : series.points) best += point.mark == "best" ? 1 : 0;
  }
  EXPECT_EQ(best, 1);
}

}  // namespace
}  // namespace paceline::report
