#include "measure/gpu_course.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace paceline::measure {
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
