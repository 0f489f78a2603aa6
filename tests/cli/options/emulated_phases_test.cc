#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "cli/options/option_rows.h"
#include "engine/ghost/phases.h"
#include "golden/records.h"

namespace paceline::cli {
namespace {

using engine::ghost::parse_phases;
using testing::HasSubstr;

/// The phases that are read from the file of `record`.
std::string phases_of(const measure::Record& record) {
  const auto file = std::filesystem::temp_directory_path() /
                    ("paceline-emulated-phases-" + std::to_string(::getpid()) + ".json");
  measure::write_record(file, record);
  struct Removal {
    std::filesystem::path file;
    ~Removal() { std::filesystem::remove(file); }
  } const removal{file};
  return emulated_phases(file.string());
}

TEST(EmulatedPhases, AreThoseOfTheRecord) {
  auto record = golden::make_record({.local_batch = 32, .forward = 0.4, .backward = 0.8, .update = 0.01});
  record.buckets = {{.bytes = 4000, .ready_s = std::vector{0.3, 0.1, 0.2}},
                    {.bytes = 8032, .ready_s = std::vector{0.9, 0.9, 0.9}}};
  record.communication.vote_bytes = 32;
  const auto phases = parse_phases(phases_of(record));
  // The record's steps are longer by their jitter, 0.25 % on average.
  EXPECT_NEAR(phases.forward_s, 0.401, 1e-6);
  EXPECT_NEAR(phases.backward_s, 0.802, 1e-6);
  EXPECT_NEAR(phases.update_s, 0.010025, 1e-6);
  EXPECT_GT(phases.spread, 0.005);
  EXPECT_LT(phases.spread, 0.02) << "of factors from 0.99 to 1.02";
  EXPECT_EQ(phases.batch, 32);
  EXPECT_EQ(phases.ready, (std::vector<engine::ghost::ReadyAt>{{4000, 0.2}, {12000, phases.backward_s}}))
      << "the second is ready no later than backward ends";
}

TEST(EmulatedPhases, HaveReadyTimesOnlyWhereRecordsDo) {
  const auto text = phases_of(golden::make_record({.local_batch = 32}));
  EXPECT_THAT(text, HasSubstr("forward=401ms,backward=802ms,update=10.025ms,spread="));
  EXPECT_THAT(text, testing::EndsWith(",batch=32"));
}

TEST(EmulatedPhases, AreRefusedWithoutTimedSteps) {
  auto record = golden::make_record({});
  record.ranks.clear();
  EXPECT_THROW((void)phases_of(record), base::Error);
  EXPECT_THROW((void)phases_of(golden::make_record({.backward = 8})), base::Error) << "8 s are too long";
}

TEST(EmulatedPhases, AreTextWithoutSuchAFile) {
  EXPECT_EQ(emulated_phases("forward=80ms,backward=0.16s"), "forward=80ms,backward=0.16s");
  try {
    (void)emulated_phases("no-such.json");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("got 'no-such.json'"));
  }
}

}  // namespace
}  // namespace paceline::cli
