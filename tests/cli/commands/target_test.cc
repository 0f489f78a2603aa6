/// `paceline target` as a user types it.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/simulated_steps.h"
#include "cli/program.h"
#include "golden/records.h"

namespace paceline::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr double kSteps = 400, kCriticalBatch = 800;

Outcome run_target(const Folder& folder, std::vector<std::string> line) {
  line.insert(line.begin(), {"target", "steps", "curve"});
  return run_program(line, {.directory = folder.path()});
}

/// Steps of 20 ms and 1 ms a sample, over a link that takes no time.
void write_steps(const Folder& folder) {
  for (const int workers : {1, 2})
    for (const std::int64_t batch : {32, 64, 128}) {
      const double compute = 1e-3 * static_cast<double>(batch);
      for (auto& record : analysis::simulate({.workers = workers,
                          .local_batch = batch,
                          .forward = compute / 3,
                          .backward = 2 * compute / 3,
                          .data_wait = 0.001,
                          .copy = 0.002,
                          .update = 0.014,
                          .other = 0.003,
                          .run_noise = 1e-4},
                                             3))
        (void)folder.write(fmt::format("steps/{}.json", record.id), measure::to_json(record));
    }
}

/// Trainings to 90 % that follow the curve at the middle one of three rates.
void write_curve(const Folder& folder) {
  for (const std::int64_t batch : {64, 128, 256, 512, 1024})
    for (const double rate : {0.05, 0.1, 0.2})
      for (int seed = 0; seed < 2; ++seed) {
        auto record = golden::make_training({.variant = fmt::format("batch {}, rate {}", batch, rate),
                                             .global_batch = batch,
                                             .seed = seed,
                                             .lr = rate,
                                             .accuracies = {0.5, 0.91}});
        const double spread = seed == 0 ? 1.02 : 1 / 1.02;
        const double slower = rate == 0.1 ? 1 : 1.5;
        const double steps = kSteps * (1 + kCriticalBatch / static_cast<double>(batch));
        record.settings["target"] = "accuracy=0.9";
        record.settings["optimizer"] = "lars";
        record.settings["evaluate-steps"] = "5";
        record.settings["shard"] = "0";  // off, as records have it
        record.target = measure::TargetRecord{
            .quantity = "accuracy", .value = 0.9, .update = std::llround(slower * spread * steps)};
        record.created =
            fmt::format("2026-01-31T12:{:02}:{:02}Z", batch / 32, seed + 10 * std::lround(20 * rate));
        record.id = fmt::format("converge-b{}-lr{}-s{}", batch, rate, seed);
        (void)folder.write(fmt::format("curve/{}.json", record.id), measure::to_json(record));
      }
}

// One worker: 400 (1 + 800 / B) (0.02 + 0.001 B) s is least at B = sqrt(800 x 20) = 126, of 128 it is 430 s.
// Two workers: at B = 179, of which 192 (96 each) is nearest: 240 s.
TEST(Target, AnswersByCurveAndSteps) {
  const Folder folder;
  write_steps(folder);
  write_curve(folder);
  const auto outcome = run_target(folder, {"--accuracy", "0.9", "--workers", "1:2", "--deadline", "5min",
                                           "--budget", "1.3", "--price", "10"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(
      outcome.out,
      AllOf(HasSubstr("resnet18-cifar on cifar10 to accuracy 0.9: 400"),
            HasSubstr("steps, of batches 64 to 1024"), HasSubstr("1 worker    global batch 128 ["),
            HasSubstr("2 workers   global batch 192 ["), HasSubstr("fastest     2 workers"),
            HasSubstr("cheapest    1 worker"), HasSubstr("for 1.3     1 worker"),
            HasSubstr("train       paceline train --model resnet18-cifar --data cifar10:data --workers 2 "
                      "--local-batch 96 --lr 0.1 --target accuracy=0.9"),
            HasSubstr(" --evaluate-steps 5"), HasSubstr(" --optimizer lars"), Not(HasSubstr("--shard"))));
}

TEST(Target, AnswersAboutOneGlobalBatch) {
  const Folder folder;
  write_steps(folder);
  write_curve(folder);
  const auto outcome = run_target(folder, {"--accuracy", "0.9", "--workers", "1:2", "--global-batch", "256"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("2 workers   global batch 256 [256, 256]: 1650 steps"),
                                 HasSubstr("--workers 2 --local-batch 128"), Not(HasSubstr("the end of"))));
}

TEST(Target, FailsIfNothingIsInTime) {
  const Folder folder;
  write_steps(folder);
  write_curve(folder);
  const auto outcome = run_target(folder, {"--accuracy", "0.9", "--workers", "1,2", "--deadline", "10s"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("within 10 s no number of workers"), HasSubstr("Nothing keeps the limit")));
}

TEST(Target, SaysWhatItLacks) {
  const Folder folder;
  write_steps(folder);
  write_curve(folder);
  const auto other = run_target(folder, {"--accuracy", "0.8"});
  EXPECT_EQ(other.code, 3);
  EXPECT_THAT(other.err, HasSubstr("no training of these records was to accuracy 0.8, but to accuracy 0.9"));
  const auto none = run_target(folder, {});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("target needs the accuracy to be reached"));
  const auto unit = run_target(folder, {"--accuracy", "0.9", "--deadline", "2"});
  EXPECT_EQ(unit.code, 2);
  EXPECT_THAT(unit.err, HasSubstr("--deadline must be a time with its unit"));
  const auto word = run_target(folder, {"--accuracy", "0.9", "--deadline", "2hours"});
  EXPECT_THAT(word.err, HasSubstr("such as 30s, 90min, 2h or 1.5d, got '2hours'"));
  const auto alone = run_program({"target", "curve", "--accuracy", "0.9"}, {.directory = folder.path()});
  EXPECT_EQ(alone.code, 3) << alone.err;
}

}  // namespace
}  // namespace paceline::cli
