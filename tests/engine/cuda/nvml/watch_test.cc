#include "engine/cuda/nvml/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "base/error.h"
#include "engine/cuda/device/fake_nvml.h"

namespace paceline::engine::cuda {
namespace {

using test::FakeGpu;
using test::FakeNvml;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kNear = "00000000:01:00.0", kFar = "00000000:C1:00.0";

std::vector<FakeGpu> two_gpus() {
  return {{.bus_id = kNear}, {.bus_id = kFar, .processes = {{41, 1'100'000'000, 0, 0}}}};
}

TEST(GpuSource, FindsGpusByWhatCudaCallsThemAndSaysWhoComputesThere) {
  FakeNvml nvml(two_gpus());
  const auto source = open_gpu_source(nvml.api(), {{"0000:c1:00.0", {0, 2}}, {"0000:01:00.0", {1}}});
  ASSERT_EQ(source->gpus().size(), 2U);
  const auto& first = source->gpus()[0];
  EXPECT_EQ(first.index, 1);
  EXPECT_EQ(first.bus_id, kFar);
  EXPECT_EQ(first.uuid, "GPU-4f2a");
  EXPECT_THAT(first.workers, ElementsAre(0, 2));
  EXPECT_EQ(first.watts_limit, 700);
  EXPECT_EQ(first.sm_mhz_most, 1980);
  EXPECT_EQ(first.pcie_most->generation, 5);
  EXPECT_EQ(first.nvlinks, std::nullopt) << "it has none";
  EXPECT_THAT(first.failures, IsEmpty());
  EXPECT_EQ(source->gpus()[1].index, 0);
}

TEST(GpuSource, ReadsWhatTheGpuIsAtEachTime) {
  FakeNvml nvml(two_gpus());
  nvml.process_names[41] = "/usr/bin/python3";
  const auto source = open_gpu_source(nvml.api(), {{kFar, {0}}});
  (void)source->read(0);
  nvml.gpus[1].utilisation = 97;
  nvml.gpus[1].milliwatts = 650'500;
  nvml.gpus[1].millijoules = 9'000'250;
  nvml.gpus[1].sm_mhz = 1755;
  nvml.gpus[1].celsius = 71;
  nvml.gpus[1].reasons = 0x1 | 0x4 | 0x40;
  nvml.gpus[1].generation = 3;
  const auto reading = source->read(0);
  EXPECT_DOUBLE_EQ(reading.utilisation.value(), 0.97);
  EXPECT_DOUBLE_EQ(reading.watts.value(), 650.5);
  EXPECT_DOUBLE_EQ(reading.joules.value(), 9000.25);
  EXPECT_EQ(reading.used_bytes, 1'200'000'000);
  EXPECT_EQ(reading.sm_mhz, 1755);
  EXPECT_EQ(reading.memory_mhz, 2619);
  EXPECT_EQ(reading.celsius, 71);
  EXPECT_EQ(reading.pcie->generation, 3);
  EXPECT_EQ(reading.pcie->width, 16);
  EXPECT_EQ(reading.brakes, bit(base::GpuBrake::power_cap) | bit(base::GpuBrake::thermal_hardware))
      << "idle holds nothing back";
  ASSERT_EQ(reading.processes->size(), 1U);
  EXPECT_EQ(reading.processes->front().pid, 41);
  EXPECT_EQ(reading.processes->front().name, "python3");
  EXPECT_THAT(reading.failures, IsEmpty());
}

TEST(GpuSource, AsksADriverOfBefore535ForItsWordOfTheClocks) {
  FakeNvml nvml(two_gpus());
  auto api = nvml.api();
  api.nvmlDeviceGetCurrentClocksThrottleReasons = api.nvmlDeviceGetCurrentClocksEventReasons;
  api.nvmlDeviceGetCurrentClocksEventReasons = nullptr;
  nvml.gpus[0].reasons = 0x80;
  EXPECT_EQ(open_gpu_source(api, {{kNear, {0}}})->read(0).brakes, bit(base::GpuBrake::power_brake));
}

TEST(GpuSource, TellsXidErrorsOnceToTheGpuThatTheyAreOf) {
  FakeNvml nvml(two_gpus());
  const auto source = open_gpu_source(nvml.api(), {{kNear, {0}}, {kFar, {1}}});
  nvml.xids = {{1, 48}, {0, 79}, {1, 63}};
  EXPECT_THAT(source->read(0).xids, ElementsAre(79));
  EXPECT_THAT(source->read(1).xids, ElementsAre(48, 63));
  EXPECT_THAT(source->read(1).xids, IsEmpty());
}

TEST(GpuSource, EachBitHasOneWord) {
  std::uint32_t all = 0;
  for (const unsigned long long reason : {0x2, 0x4, 0x8, 0x10, 0x20, 0x40, 0x80, 0x100}) {
    const auto brakes = brakes_of(reason);
    EXPECT_EQ(std::popcount(brakes), 1) << reason;
    EXPECT_EQ(all & brakes, 0U) << reason;
    all |= brakes;
  }
  EXPECT_EQ(all, (1U << base::kGpuBrakes.size()) - 1);
  EXPECT_EQ(brakes_of(0x1), 0U);
}

TEST(GpuSource, AGpuThatNvmlDoesNotFindIsListedWithTheReasonAndReadsNothing) {
  FakeNvml nvml(two_gpus());
  const auto source = open_gpu_source(nvml.api(), {{"0000:99:00.0", {0}}});
  ASSERT_EQ(source->gpus().size(), 1U);
  EXPECT_THAT(source->gpus()[0].failures, ElementsAre(HasSubstr("GPU 0000:99:00.0")));
  EXPECT_EQ(source->read(0).utilisation, std::nullopt);
}

TEST(GpuSource, EveryCallThatFailsIsSaidAndTheOthersAreRead) {
  for (int call = 1;; ++call) {
    FakeNvml nvml(two_gpus());
    nvml.failing_call = call;
    std::vector<std::string> said;
    try {
      const auto source = open_gpu_source(nvml.api(), {{kNear, {0}}});
      said = source->gpus()[0].failures;
      const auto reading = source->read(0);
      said.insert(said.end(), reading.failures.begin(), reading.failures.end());
      EXPECT_TRUE(reading.watts || nvml.failed_call() == "nvmlDeviceGetPowerUsage" ||
                  nvml.failed_call() == "nvmlDeviceGetHandleByPciBusId")
          << nvml.failed_call();
    } catch (const base::Error& error) {
      said = {error.what()};
    }
    EXPECT_EQ(nvml.started, nvml.ended) << nvml.failed_call();
    if (!nvml.failed()) {
      EXPECT_GT(call, 20);
      break;
    }
    // Everything was read by then, or a driver without events tells no Xid.
    if (nvml.failed_call() == "nvmlShutdown" || nvml.failed_call().starts_with("nvmlEventSet")) continue;
    EXPECT_THAT(said, ElementsAre(HasSubstr(nvml.failed_call() + ": Unknown Error")));
  }
}

}  // namespace
}  // namespace paceline::engine::cuda
