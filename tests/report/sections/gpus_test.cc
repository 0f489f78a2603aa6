// What a report says of the GPUs of its cells.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden/gpus.h"
#include "report/build.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using golden::make_gpu_record;
using measure::Record;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(GpusSection, HasARowForEachGpu) {
  const auto text = text_of({make_gpu_record({.workers = 2, .jitter = {1, 1, 1, 1}})});
  EXPECT_THAT(text, AllOf(HasSubstr("What did the GPUs do?"), HasSubstr("GPU 0"), HasSubstr("GPU 1"),
                          HasSubstr("90.0 %"), HasSubstr("99.2 %"), HasSubstr("4.00 GB"), HasSubstr("1,940"),
                          HasSubstr("never"), HasSubstr("They differ: utilisation counts any kernel")));
  EXPECT_THAT(text, HasSubstr("scale weak b 128, N 2: 0.350 images per joule, all GPUs together."));
}

TEST(GpusSection, SaysWhyClocksWereHeldBackTheMostFirst) {
  auto record = make_gpu_record({});
  record.gpus->front().held_back =
      std::map<std::string, double>{{"thermal (driver)", 0.02}, {"power cap", 0.35}, {"sync boost", 0}};
  EXPECT_THAT(text_of({record}), HasSubstr("power cap 35.0 %"));
}

TEST(GpusSection, SaysWhereEnergyIsOfPowerReadings) {
  auto record = make_gpu_record({});
  EXPECT_THAT(text_of({record}), Not(HasSubstr("has no counter of energy")));
  record.gpus->front().energy_by = "power";
  EXPECT_THAT(text_of({record}), HasSubstr("has no counter of energy"));
}

TEST(GpusSection, NamesASlowLinkAndWhoElseWasThere) {
  auto record = make_gpu_record({});
  record.gpus->front().pcie = base::PcieLink{.generation = 3, .width = 16};
  record.gpus->front().others = {{.pid = 41, .name = "python3", .share = 0.5}};
  const auto text = text_of({record});
  EXPECT_THAT(text, AllOf(HasSubstr("the link of GPU 0 to the host was PCIe 3 x16 of 5 x16"),
                          HasSubstr("python3 (process 41) was on GPU 0 too")));
}

// As by cores that others kept busy: a quiet repeat is taken, and the report says so on top.
TEST(GpusSection, ARepeatWithAnotherProgramOnItsGpuIsSetAside) {
  std::vector<Record> records{make_gpu_record({.repeat = 0}), make_gpu_record({.repeat = 1})};
  records[0].gpus->front().others = {{.pid = 41, .name = "python3", .share = 1}};
  const auto text = text_of(records);
  EXPECT_THAT(text, HasSubstr("Other programs were at work in 1 of 2 measured windows"));
  EXPECT_THAT(text, HasSubstr("python3 (process 41) was on GPU 0 too in repeat 0"));
}

TEST(GpusSection, ExplainSaysWhatTheGpusOfTheOperatingPointWereAt) {
  const auto said = [](const std::vector<Record>& records) {
    std::string text;
    const auto document = explain(records);
    for (const auto* paragraph : all<Paragraph>(document)) text += paragraph->text + "\n";
    return text;
  };
  auto record = make_gpu_record({.jitter = {1, 1, 1, 1}});
  record.gpus->front().held_back = std::map<std::string, double>{{"power cap", 0.35}};
  EXPECT_THAT(said({record}),
              AllOf(HasSubstr("GPU 0: utilisation 90.0 %, busy by the ledger 99.2 %, 300 W of 700, "),
                    HasSubstr("clocks held back by power cap in 35.0 % of the readings"),
                    HasSubstr("Utilisation is the time in which any kernel ran")));
  EXPECT_THAT(said({golden::make_record({})}), Not(HasSubstr("GPU 0")));
}

TEST(GpusSection, CollectivesAndEvaluationsHaveTheirRowsToo) {
  for (const std::string kind : {"comm", "evaluate"}) {
    Record record;
    record.kind = record.id = kind;
    record.workers = 1;
    record.gpus = {golden::make_gpu(0)};
    if (kind == "comm")
      record.collectives.emplace();
    else
      record.evaluation = {.checkpoint = "c",
                           .samples = 10,
                           .loss = 1,
                           .correct = 9,
                           .correct_in_5 = 10,
                           .classes = {"a", "b"},
                           .confusion = {{5, 0}, {1, 4}},
                           .mistakes = {}};
    EXPECT_THAT(text_of({record}),
                AllOf(HasSubstr("What did the GPUs do?"), HasSubstr("90.0 %"), HasSubstr("300")))
        << kind;
  }
}

TEST(GpusSection, IsAbsentOnTheProcessor) {
  EXPECT_THAT(text_of({golden::make_record({})}), Not(HasSubstr("What did the GPUs do?")));
}

}  // namespace
}  // namespace paceline::report
