#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <future>
#include <thread>

#include "base/error.h"
#include "measure/fake_gpus.h"
#include "measure/gpu_record_fields.h"
#include "measure/gpu_watch.h"
#include "measure/record.h"

namespace paceline::measure {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A GPU of workers 0 and 1, whose utilisation is `level`, and that counts its readings.
struct Told {
  std::atomic<double> level{0.5};
  std::atomic<int> readings{0};
  [[nodiscard]] OpenGpus open() {
    return [this]() -> std::unique_ptr<base::GpuSource> {
      return std::make_unique<FakeGpus>(std::vector<base::GpuIdentity>{{.index = 2, .workers = {0, 1}}},
                                        [this](std::size_t) {
                                          ++readings;
                                          return base::GpuReading{.utilisation = level.load()};
                                        });
    };
  }
  void wait_until(int number) const {
    while (readings < number) std::this_thread::yield();
  }
  void wait_for(int more) const { wait_until(readings + more); }
};

TEST(GpuWatch, ReadsOverTimeAndAtTheEnd) {
  Told told;
  GpuWatch watch(told.open(), milliseconds(1));
  watch.begin();
  told.wait_for(5);
  const auto report = watch.end(4);
  EXPECT_THAT(report.pids, ElementsAre(::getpid()));
  ASSERT_EQ(report.gpus.size(), 1U);
  EXPECT_EQ(report.gpus[0].index, 2);
  EXPECT_THAT(report.gpus[0].ranks, ElementsAre(4, 5)) << "of the process whose first rank is 4";
  EXPECT_GE(report.gpus[0].readings, 4);
  EXPECT_THAT(report.failures, IsEmpty());
}

TEST(GpuWatch, AShortWindowHasAReadingAtEachEndWhateverThePeriod) {
  Told told;
  GpuWatch watch(told.open(), std::chrono::hours(1));
  told.wait_until(1);
  watch.begin();
  told.wait_until(2);
  EXPECT_GE(watch.end(0).gpus.at(0).readings, 1);
}

TEST(GpuWatch, AWindowForgetsWhatWasBeforeIt) {
  Told told;
  GpuWatch watch(told.open(), milliseconds(1));
  watch.begin();
  told.wait_for(3);
  told.level = 0.25;
  told.wait_for(2);  // the one under way may have the level of before
  watch.begin();
  told.wait_for(3);
  const auto gpu = watch.end(0).gpus.at(0);
  EXPECT_THAT(gpu.course.utilisation, testing::Each(0.25));
}

// The driver tells each once, so a reading that a window does not keep must not take them along.
TEST(GpuWatch, XidErrorsOfReadingsBeforeTheWindowStandInIt) {
  std::atomic<int> readings{0};
  std::atomic<bool> may_end{false};
  GpuWatch watch(
      [&]() -> std::unique_ptr<base::GpuSource> {
        return std::make_unique<FakeGpus>(std::vector<base::GpuIdentity>(1), [&](std::size_t) {
          const int number = ++readings;
          // The second reading begins before the window and ends in it.
          while (number == 2 && !may_end) std::this_thread::yield();
          return number == 1   ? base::GpuReading{.celsius = 10, .xids = {48}}
                 : number == 2 ? base::GpuReading{.celsius = 10, .xids = {63, 79}}
                               : base::GpuReading{.celsius = 50};
        });
      },
      milliseconds(1));
  while (readings < 2) std::this_thread::yield();
  watch.begin();
  may_end = true;
  const auto gpu = watch.end(0).gpus.at(0);
  EXPECT_THAT(gpu.xids.value(), ElementsAre(48, 63, 79));
  EXPECT_THAT(gpu.course.celsius, testing::Each(50)) << "nothing else of them is the window's";
  EXPECT_THAT(watch.end(0).gpus.at(0).xids.value(), ElementsAre(48, 63, 79)) << "each once";
}

TEST(GpuWatch, WhatCannotBeOpenedIsSaidAndNothingElseHappens) {
  GpuWatch watch([]() -> std::unique_ptr<base::GpuSource> {
    base::fail(base::ErrorKind::device, "GPUs: NVIDIA's driver is not there");
  });
  watch.begin();
  const auto report = watch.end(0);
  EXPECT_THAT(report.gpus, IsEmpty());
  EXPECT_THAT(report.failures, ElementsAre("GPUs: NVIDIA's driver is not there"));
}

TEST(GpuWatch, ACallThatFailsEachTimeIsSaidOnce) {
  std::atomic<int> readings{0};
  GpuWatch watch(
      [&]() -> std::unique_ptr<base::GpuSource> {
        return std::make_unique<FakeGpus>(std::vector<base::GpuIdentity>(2), [&](std::size_t) {
          ++readings;
          return base::GpuReading{.failures = {"nvmlDeviceGetPowerUsage: Unknown Error"}};
        });
      },
      milliseconds(1));
  watch.begin();
  while (readings < 10) std::this_thread::yield();
  EXPECT_THAT(watch.end(0).failures, ElementsAre("nvmlDeviceGetPowerUsage: Unknown Error"));
}

TEST(GpuWatch, ASourceThatThrowsEndsTheWatchAndNotTheRun) {
  GpuWatch watch(
      []() -> std::unique_ptr<base::GpuSource> {
        return std::make_unique<FakeGpus>(std::vector<base::GpuIdentity>(1),
                                          [](std::size_t) -> base::GpuReading { throw std::bad_alloc(); });
      },
      milliseconds(1));
  watch.begin();
  EXPECT_THAT(watch.end(0).failures, ElementsAre(HasSubstr("bad_alloc")));
}

// A driver that hangs inside a call, as after a GPU fell off the bus.
TEST(GpuWatch, ACallThatHangsHoldsUpNeitherTheReportNorTheEnd) {
  std::promise<void> released;
  const auto wait = released.get_future().share();
  std::atomic<bool> is_in{false}, is_out{false};
  {
    GpuWatch watch([&, wait]() -> std::unique_ptr<base::GpuSource> {
      return std::make_unique<FakeGpus>(std::vector<base::GpuIdentity>(1), [&, wait](std::size_t) {
        is_in = true;
        wait.wait();
        is_out = true;
        return base::GpuReading{};
      });
    });
    while (!is_in) std::this_thread::yield();
    watch.begin();
    const auto report = watch.end(0);
    EXPECT_THAT(report.gpus, IsEmpty());
    EXPECT_THAT(report.failures, ElementsAre("the driver has not answered for 2 s"));
  }
  EXPECT_FALSE(is_out);
  released.set_value();
  while (!is_out) std::this_thread::yield();  // its thread ends by itself
}

GpuReport report_of(int pid, int index, std::vector<int> ranks, std::vector<GpuProcessRecord> seen,
                    std::optional<std::string> host = std::nullopt) {
  return {
      .pids = {pid},
      .gpus = {
          {.index = index, .ranks = std::move(ranks), .host = std::move(host), .others = std::move(seen)}}};
}

TEST(JoinGpus, TakesOutTheRunsOwnProcesses) {
  const std::vector<GpuProcessRecord> seen{{.pid = 7, .share = 1},
                                           {.pid = 41, .name = "python3", .share = 0.5}};
  const auto gpus = join(std::vector{report_of(7, 0, {0}, seen)});
  ASSERT_EQ(gpus.size(), 1U);
  ASSERT_EQ(gpus[0].others->size(), 1U);
  EXPECT_EQ(gpus[0].others->front().pid, 41);
}

TEST(JoinGpus, ProcessesOfTheRunThatSitOutAreNotOthersEither) {
  const std::vector<GpuProcessRecord> seen{{.pid = 7, .share = 1}, {.pid = 8, .share = 1}, {.pid = 9}};
  auto report = report_of(7, 0, {0}, seen, "a");
  report.pids = {8, 7};
  const auto gpus = join(std::vector{report, report_of(9, 0, {1}, seen, "b")});
  ASSERT_EQ(gpus[0].others->size(), 1U);
  EXPECT_EQ(gpus[0].others->front().pid, 9) << "of another host that is another process";
}

TEST(JoinGpus, TheSameGpuIsThatOfTheSameBusIdWhateverItsNumber) {
  auto first = report_of(7, 0, {0}, {{.pid = 7, .share = 1}}, "a");
  auto second = report_of(8, 1, {1}, {{.pid = 8, .share = 1}}, "a");
  first.gpus[0].bus_id = second.gpus[0].bus_id = "00000000:01:00.0";
  EXPECT_EQ(join(std::vector{first, second}).size(), 1U) << "containers that show other GPUs";
  second.gpus[0].index = 0;
  second.gpus[0].bus_id = "00000000:C1:00.0";
  EXPECT_EQ(join(std::vector{first, second}).size(), 2U) << "each the first of its container";
}

TEST(JoinGpus, AGpuThatProcessesShareStandsOnceWithAllRanks) {
  const std::vector<GpuProcessRecord> seen{{.pid = 7, .share = 1}, {.pid = 8, .share = 1}};
  const auto gpus = join(std::vector{report_of(7, 0, {0}, seen, "a"), report_of(8, 0, {1}, seen, "a"),
                                     report_of(7, 0, {2}, {{.pid = 7, .share = 1}}, "b")});
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_THAT(gpus[0].ranks, ElementsAre(0, 1));
  EXPECT_THAT(*gpus[0].others, IsEmpty());
  EXPECT_THAT(gpus[1].ranks, ElementsAre(2));
  EXPECT_EQ(gpus[1].host, "b");
}

TEST(JoinGpus, InAContainerWhoseNumbersAreOthersTheRunsOwnAreCounted) {
  const auto one = join(std::vector{report_of(7, 0, {0}, {{.pid = 90012, .share = 1}})});
  EXPECT_THAT(*one[0].others, IsEmpty());
  const auto two = join(std::vector{
      report_of(7, 0, {0}, {{.pid = 90001, .name = "", .share = 0.25}, {.pid = 90012, .share = 1}})});
  ASSERT_EQ(two[0].others->size(), 1U);
  EXPECT_EQ(two[0].others->front().pid, 0) << "which of them it is, is not told";
  EXPECT_DOUBLE_EQ(two[0].others->front().share, 0.25);
}

TEST(JoinGpus, WhatIsNotToldStaysUntold) {
  auto report = report_of(7, 0, {0}, {});
  report.gpus[0].others.reset();
  EXPECT_EQ(join(std::vector{report})[0].others, std::nullopt);
  EXPECT_THAT(join({}), IsEmpty());
}

TEST(GpuReport, SurvivesTheWayToAnotherProcess) {
  auto report =
      report_of(7, 3, {4, 5}, {{.pid = 41, .name = "python3", .memory_bytes = 9, .share = 0.5}}, "b");
  report.failures = {"one \"quoted\"", "two"};
  report.gpus[0].energy_j = 12.5;
  report.gpus[0].course.utilisation = {0.5, 1};
  const auto back = base::from_bytes<GpuReport>(base::to_bytes(report));
  EXPECT_EQ(back.gpus[0].energy_j, 12.5);
  EXPECT_EQ(back.gpus[0].host, "b");
  EXPECT_EQ(back.failures, report.failures);
  EXPECT_THAT(back.pids, ElementsAre(7));
  EXPECT_EQ(back.gpus[0].others->front().name, "python3");
  EXPECT_THAT(back.gpus[0].course.utilisation, ElementsAre(0.5, 1));
}

}  // namespace

namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::IsEmpty;

const base::TimePoint kBegin{};

base::TimePoint after(double seconds) {
  return kBegin + std::chrono::duration_cast<base::Clock::duration>(std::chrono::duration<double>(seconds));
}

GpuRecord record_of(const std::vector<base::GpuReading>& readings, std::size_t most_rows = 8) {
  GpuCourse course(kBegin, most_rows);
  for (std::size_t i = 0; i < readings.size(); ++i)
    course.add(readings[i], after(0.5 * static_cast<double>(i)));
  return course.record({.index = 3, .name = "NVIDIA H100", .uuid = "GPU-4f"});
}

TEST(GpuCourse, KeepsEachReadingOfAShortWindow) {
  const auto gpu = record_of({{.utilisation = 0.5, .used_bytes = 7, .celsius = 40},
                              {.utilisation = 1.0, .used_bytes = 9, .celsius = 41}});
  EXPECT_EQ(gpu.index, 3);
  EXPECT_EQ(gpu.uuid, "GPU-4f");
  EXPECT_EQ(gpu.bus_id, std::nullopt);
  EXPECT_EQ(gpu.readings, 2);
  EXPECT_DOUBLE_EQ(gpu.seconds, 0.5);
  EXPECT_EQ(gpu.course.readings_each, 1);
  EXPECT_THAT(gpu.course.at_s, ElementsAre(0, 0.5));
  EXPECT_THAT(gpu.course.utilisation, ElementsAre(0.5, 1.0));
  EXPECT_THAT(gpu.course.memory_bytes, ElementsAre(7, 9));
  EXPECT_THAT(gpu.course.celsius, ElementsAre(40, 41));
  EXPECT_THAT(gpu.course.watts, IsEmpty()) << "nobody told";
  EXPECT_EQ(gpu.held_back, std::nullopt);
  EXPECT_EQ(gpu.others, std::nullopt);
}

TEST(GpuCourse, JoinsNeighboursOfALongWindowAndKeepsMeansAndPeaks) {
  std::vector<base::GpuReading> readings;
  for (int i = 0; i < 11; ++i)
    readings.push_back({.utilisation = i / 10.0, .used_bytes = 100 + i % 3, .sm_mhz = 1000 + i});
  const auto gpu = record_of(readings, 4);
  EXPECT_EQ(gpu.readings, 11);
  EXPECT_EQ(gpu.course.readings_each, 4);
  EXPECT_THAT(gpu.course.at_s, ElementsAre(0, 2, 4));
  EXPECT_THAT(gpu.course.utilisation, ElementsAre(DoubleEq(0.15), DoubleEq(0.55), DoubleEq(0.9)));
  EXPECT_THAT(gpu.course.sm_mhz, ElementsAre(1001.5, 1005.5, 1009));
  EXPECT_THAT(gpu.course.memory_bytes, ElementsAre(102, 102, 102));
}

TEST(GpuCourse, OfAnyLengthItHasFewRowsAndEveryReadingInOne) {
  for (const int count : {1, 7, 8, 9, 100, 1000, 4096}) {
    const auto gpu = record_of(std::vector<base::GpuReading>(static_cast<std::size_t>(count),
                                                             base::GpuReading{.utilisation = 0.25}));
    EXPECT_EQ(gpu.readings, count);
    EXPECT_LE(gpu.course.at_s.size(), 8U);
    const auto rows = static_cast<std::int64_t>(gpu.course.at_s.size());
    EXPECT_GE(rows * gpu.course.readings_each, count);
    EXPECT_LT((rows - 1) * gpu.course.readings_each, count);
    EXPECT_THAT(gpu.course.utilisation, testing::Each(DoubleEq(0.25)));
  }
}

TEST(GpuCourse, TakesEnergyFromTheCounterWhereThereIsOne) {
  const auto gpu =
      record_of({{.watts = 100, .joules = 1000}, {.watts = 100}, {.watts = 300, .joules = 1450}});
  EXPECT_EQ(gpu.energy_by, "counter");
  EXPECT_DOUBLE_EQ(gpu.energy_j.value(), 450);
}

TEST(GpuCourse, ElseFromPowerOverTime) {
  const auto gpu = record_of({{.watts = 100}, {.watts = 200}, {}, {.watts = 400}});
  EXPECT_EQ(gpu.energy_by, "power");
  EXPECT_DOUBLE_EQ(gpu.energy_j.value(), 0.5 * 150 + 1.0 * 300)
      << "trapezoids, over a reading that is missing";
  EXPECT_TRUE(std::isnan(gpu.course.watts[2]));
}

TEST(GpuCourse, ACounterThatWentBackwardsIsNotBelieved) {
  const auto gpu = record_of({{.watts = 100, .joules = 1000}, {.watts = 100, .joules = 3}});
  EXPECT_EQ(gpu.energy_by, "power");
  EXPECT_DOUBLE_EQ(gpu.energy_j.value(), 50);
}

TEST(GpuCourse, EnergyThatDoesNotCoverTheWindowIsNone) {
  EXPECT_EQ(record_of({{.joules = 5}, {.joules = 9}, {}}).energy_j, std::nullopt);
  EXPECT_EQ(record_of({{}, {.watts = 9}, {.watts = 9}}).energy_j, std::nullopt);
  EXPECT_EQ(record_of({{.watts = 9, .joules = 5}}).energy_j, std::nullopt) << "one reading lasts no time";
}

TEST(GpuCourse, SaysHowOftenWhatHeldTheClocksBack) {
  using enum base::GpuBrake;
  const auto gpu = record_of({{.brakes = bit(power_cap)},
                              {.brakes = bit(power_cap) | bit(thermal_software)},
                              {},
                              {.brakes = 0},
                              {.brakes = 0}});
  ASSERT_TRUE(gpu.held_back.has_value());
  EXPECT_THAT(*gpu.held_back,
              ElementsAre(testing::Pair("power cap", 0.5), testing::Pair("thermal (driver)", 0.25)));
  EXPECT_THAT(record_of({{.brakes = 0}}).held_back.value(), IsEmpty());
}

TEST(GpuCourse, TakesTheBestLinkForAnIdleGpuLowersIt) {
  const auto gpu = record_of({{.pcie = {{1, 16}}}, {.pcie = {{5, 8}}}, {.pcie = {{1, 16}}}});
  EXPECT_EQ(gpu.pcie->generation, 5);
  EXPECT_EQ(gpu.pcie->width, 8);
}

TEST(GpuCourse, KeepsXidErrors) {
  EXPECT_THAT(record_of({{.xids = {48}}, {}, {.xids = {63, 48}}}).xids.value(), ElementsAre(48, 63, 48));
  EXPECT_FALSE(record_of({{}}).xids.has_value());
}

TEST(GpuCourse, CountsWhoWasThere) {
  const base::GpuProcessReading own{.pid = 7, .name = "paceline", .memory_bytes = 5};
  const auto gpu = record_of({{.processes = {{own}}},
                              {.processes = {{own, {.pid = 41, .name = "python3", .memory_bytes = 9}}}},
                              {},
                              {.processes = {{own, {.pid = 41, .name = "python3", .memory_bytes = 2}}}},
                              {.processes = {{own}}}});
  ASSERT_EQ(gpu.others->size(), 2U);
  EXPECT_EQ((*gpu.others)[1].name, "python3");
  EXPECT_EQ((*gpu.others)[1].memory_bytes, 9) << "the most";
  EXPECT_DOUBLE_EQ((*gpu.others)[1].share, 0.5);
  EXPECT_DOUBLE_EQ((*gpu.others)[0].share, 1);
}

}  // namespace
}  // namespace paceline::measure
