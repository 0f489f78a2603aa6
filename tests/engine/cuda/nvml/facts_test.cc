#include "engine/cuda/nvml/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/cuda/device/fake_nvml.h"

namespace paceline::engine::cuda {
namespace {

using test::FakeGpu;
using test::FakeNvml;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kFirst = "00000000:01:00.0", kSecond = "00000000:C1:00.0", kThird = "00000000:C2:00.0";

std::vector<FakeGpu> three_gpus() {
  return {{.bus_id = kFirst,
           .nvlinks = {kSecond, "", kSecond},
           .processes = {{41, 1'100'000'000, 0, 0}, {42, ~0ULL, 0, 0}}},
          {.bus_id = kSecond, .nvlinks = {kFirst, kFirst}},
          {.name = "NVIDIA L4", .bus_id = kThird}};
}

std::vector<std::string> lines(const std::vector<TextRow>& rows) {
  std::vector<std::string> result;
  for (const auto& row : rows) result.push_back(row.label + "| " + row.text);
  return result;
}

TEST(ListGpus, NamesMemoryLinksAndProcesses) {
  FakeNvml nvml(three_gpus());
  nvml.process_names[41] = "/usr/bin/python3";
  const auto list = list_gpus(nvml.api());
  EXPECT_EQ(list.driver, "580.65.06");
  EXPECT_EQ(list.cuda_version, 13000);
  ASSERT_EQ(list.gpus.size(), 3U);
  const auto& gpu = list.gpus[0];
  EXPECT_EQ(gpu.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(gpu.memory_bytes, 85'899'345'920);
  EXPECT_EQ(gpu.used_memory_bytes, 1'200'000'000);
  EXPECT_EQ(gpu.compute_capability, 90);
  EXPECT_EQ(gpu.fan_percent, 30);
  EXPECT_EQ(gpu.performance_state, 2);
  EXPECT_EQ(gpu.ecc, true);
  EXPECT_EQ(gpu.mig, false);  // the mode now, not the one after the next start
  EXPECT_EQ(gpu.drives_display, false);
  EXPECT_EQ(gpu.compute_mode, "exclusive process");
  EXPECT_THAT(gpu.links.nvlinks, ElementsAre(testing::Pair(1, 2)));
  EXPECT_THAT(gpu.links.pcie, ElementsAre(std::pair(2, std::string("through the PCIe host bridge"))));
  ASSERT_EQ(gpu.processes.size(), 2U);
  EXPECT_EQ(gpu.processes[0].name, "python3");
  EXPECT_EQ(gpu.processes[0].memory_bytes, 1'100'000'000);
  EXPECT_EQ(gpu.processes[1].name, "");
  EXPECT_EQ(gpu.processes[1].memory_bytes, std::nullopt);
  EXPECT_THAT(list.gpus[2].links.nvlinks, testing::IsEmpty());
  EXPECT_THAT(gpu.unknown, testing::IsEmpty());
  EXPECT_EQ(nvml.started, nvml.ended);
}

TEST(ListGpus, LinksToASwitchAreCounted) {
  FakeNvml nvml({{.bus_id = kFirst, .nvlinks = std::vector<std::string>(18, "switch")}, {.bus_id = kSecond}});
  const auto list = list_gpus(nvml.api());
  EXPECT_EQ(list.gpus[0].links.to_switch, 18);
  EXPECT_THAT(list.gpus[0].links.pcie, testing::IsEmpty());
}

TEST(ListGpus, NvlinksHaveALimitWhereTheirGenerationIsKnown) {
  GpuList list{.gpus = {{.compute_capability = 90, .links = {.to_switch = 18}},
                        {.compute_capability = 90, .links = {.nvlinks = {{0, 2}, {2, 2}}}}}};
  const auto limit = nvlink_one_way(list);
  ASSERT_TRUE(limit.has_value());
  EXPECT_EQ(limit->bytes_per_s, 100e9) << "of the GPU with the fewest";
  EXPECT_EQ(limit->made_of, "4 links of 25 GB/s, by NVIDIA's data sheets");
  list.gpus[0].compute_capability = 89;
  EXPECT_FALSE(nvlink_one_way(list).has_value());
  EXPECT_FALSE(nvlink_one_way(GpuList{}).has_value());
}

TEST(ListGpus, MoreProcessesThanExpectedAreAllListed) {
  FakeNvml nvml({{.bus_id = kFirst, .processes = std::vector<NvmlProcess>(100, {7, 1, 0, 0})}});
  EXPECT_EQ(list_gpus(nvml.api()).gpus[0].processes.size(), 100U);
}

TEST(ListGpus, AnOldDriverWithoutMostFunctionsStillLists) {
  FakeNvml nvml(three_gpus());
  NvmlApi api;
  const auto full = nvml.api();
  api.nvmlInit_v2 = full.nvmlInit_v2;
  api.nvmlShutdown = full.nvmlShutdown;
  api.nvmlErrorString = full.nvmlErrorString;
  api.nvmlDeviceGetCount_v2 = full.nvmlDeviceGetCount_v2;
  api.nvmlDeviceGetHandleByIndex_v2 = full.nvmlDeviceGetHandleByIndex_v2;
  api.nvmlDeviceGetName = full.nvmlDeviceGetName;
  const auto list = list_gpus(api);
  ASSERT_EQ(list.gpus.size(), 3U);
  EXPECT_EQ(list.gpus[2].name, "NVIDIA L4");
  EXPECT_EQ(list.gpus[2].watts, std::nullopt);
  EXPECT_EQ(list.gpus[2].ecc, std::nullopt);
  EXPECT_THAT(list.gpus[2].unknown, testing::IsEmpty());
}

TEST(ListGpus, EveryCallThatFailsIsSaidAndTheRestIsListed) {
  for (int call = 1;; ++call) {
    FakeNvml nvml(three_gpus());
    nvml.failing_call = call;
    std::string said;
    std::size_t listed = 0;
    try {
      const auto list = list_gpus(nvml.api());
      listed = list.gpus.size();
      for (const auto& row : describe_gpus(list, {})) said += row.text + "\n";
    } catch (const base::Error& error) {
      EXPECT_EQ(error.kind(), base::ErrorKind::device);
      said = error.what();
      EXPECT_EQ(said.find('\n'), std::string::npos);
    }
    EXPECT_EQ(nvml.started, nvml.ended) << nvml.failed_call();
    if (!nvml.failed()) {
      EXPECT_GT(call, 40);
      break;
    }
    if (nvml.failed_call() == "nvmlShutdown") continue;  // everything has been told then
    EXPECT_THAT(said, HasSubstr(nvml.failed_call() + ": Unknown Error"));
    const bool counted = nvml.failed_call() != "nvmlInit" && nvml.failed_call() != "nvmlDeviceGetCount";
    EXPECT_EQ(listed, counted ? 3U : 0U) << nvml.failed_call();
  }
}

TEST(ListGpus, WithoutADriverTheReasonIsNvmls) {
  FakeNvml nvml({});
  nvml.failing_call = 1;
  nvml.failing_status = NVML_ERROR_DRIVER_NOT_LOADED;
  try {
    (void)list_gpus(nvml.api());
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_STREQ(error.what(), "NVML: nvmlInit: Driver Not Loaded");
  }
}

TEST(DescribeGpus, RowsAGpuWithItsNumberInCuda) {
  FakeNvml nvml(three_gpus());
  nvml.process_names[41] = "/usr/bin/python3";
  const std::string facts = "compute capability 9.0, 1.2 of 85.9 GB used, 3 % busy, 71 of 700 W, 35 °C";
  const std::string state =
      ", performance state P2, fan 30 %, ECC on, MIG off, compute mode exclusive process";
  EXPECT_THAT(
      lines(describe_gpus(list_gpus(nvml.api()), {"0000:c1:00.0", "0000:01:00.0"})),
      ElementsAre("driver| 580.65.06, for CUDA up to 13.0", "GPU 0| cuda:1, NVIDIA H100 80GB HBM3, " + facts,
                  "| bus " + kFirst + state, "| 2 NVLinks to GPU 1; to GPU 2 through the PCIe host bridge",
                  "| process 41 python3, 1.1 GB", "| process 42",
                  "GPU 1| cuda:0, NVIDIA H100 80GB HBM3, " + facts, "| bus " + kSecond + state,
                  "| 2 NVLinks to GPU 0; to GPU 2 through the PCIe host bridge",
                  "GPU 2| hidden from --device cuda, NVIDIA L4, " + facts, "| bus " + kThird + state,
                  "| to GPU 0 through the PCIe host bridge; to GPU 1 through the PCIe host bridge"));
}

TEST(DescribeGpus, AGpuThatIsLostIsARowWithTheReason) {
  FakeNvml nvml({{.bus_id = kFirst, .lost = true}});
  EXPECT_THAT(lines(describe_gpus(list_gpus(nvml.api()), {})),
              ElementsAre("driver| 580.65.06, for CUDA up to 13.0", "GPU 0| name unknown",
                          "| not told: nvmlDeviceGetHandleByIndex: GPU is lost"));
}

TEST(DescribeGpus, NoGpuIsARow) {
  FakeNvml nvml({});
  EXPECT_THAT(lines(describe_gpus(list_gpus(nvml.api()), {})),
              testing::Contains(HasSubstr("knows of no GPU")));
}

TEST(DescribeGpus, OnAnyMachineItSaysSomethingAndThrowsNothing) {
  const auto rows = describe_gpus();
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows.back().label, "--device cuda");
  for (const auto& row : rows) {
    EXPECT_FALSE(row.text.empty());
    EXPECT_EQ(row.text.find('\n'), std::string::npos) << row.text;
  }
}

TEST(DescribeVisibility, MentionsTheVariable) {
  const auto visible = [](const char* value) { return [value](const char*) { return value; }; };
  EXPECT_FALSE(describe_visibility(visible(nullptr)).has_value());
  EXPECT_THAT(describe_visibility(visible(""))->text, HasSubstr("hides every GPU"));
  EXPECT_THAT(describe_visibility(visible("2,3"))->text, testing::StartsWith("2,3 (set in the environment"));
}

TEST(SameBusId, ComparesWhatCudaAndNvmlWrite) {
  EXPECT_TRUE(same_bus_id("0000:c1:00.0", "00000000:C1:00.0"));
  EXPECT_FALSE(same_bus_id("0000:c1:00.0", "00000000:C2:00.0"));
  EXPECT_FALSE(same_bus_id("", ""));
}

}  // namespace
}  // namespace paceline::engine::cuda
