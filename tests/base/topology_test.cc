#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include "base/topology.h"

namespace paceline::base {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Two packages of `physical` cores each with two hardware threads, numbered as Linux does: first all first
/// threads, then all second ones.
Topology two_packages(int physical) {
  Topology topology;
  for (int core = 0; core < 2 * physical; ++core)
    for (int sibling = 0; sibling < 2; ++sibling)
      topology.cores.push_back({.number = core + sibling * 2 * physical,
                                .physical = core,
                                .sibling = sibling,
                                .package = core / physical,
                                .numa = core / physical});
  return topology;
}

TEST(PlanCores, GivesEachWorkerNeighbouringPhysicalCores) {
  const auto plan = plan_cores(two_packages(4), 2, 4);
  EXPECT_THAT(plan.cores, ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7)));
  EXPECT_FALSE(plan.oversubscribed);
}

TEST(PlanCores, UsesSecondHardwareThreadsOnlyWhenTheFirstAreUsedUp) {
  const auto half = plan_cores(two_packages(2), 4, 1);
  EXPECT_THAT(half.cores, ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2), ElementsAre(3)));
  EXPECT_THAT(half.note, testing::Not(HasSubstr("second hardware")));
  const auto full = plan_cores(two_packages(2), 8, 1);
  EXPECT_EQ(full.cores[4], std::vector<int>{4});
  EXPECT_THAT(full.note, HasSubstr("second hardware threads"));
  EXPECT_FALSE(full.oversubscribed);
}

TEST(PlanCores, NeverGivesACoreTwice) {
  for (int workers = 1; workers <= 16; ++workers)
    for (int threads = 1; workers * threads <= 16; ++threads) {
      const auto plan = plan_cores(two_packages(4), workers, threads);
      std::set<int> seen;
      for (const auto& cores : plan.cores) {
        EXPECT_EQ(cores.size(), static_cast<std::size_t>(threads));
        for (const int core : cores) EXPECT_TRUE(seen.insert(core).second);
      }
    }
}

TEST(PlanCores, MoreThreadsThanCoresAreMarkedAndNotPinned) {
  const auto plan = plan_cores(two_packages(1), 5, 1);
  EXPECT_TRUE(plan.oversubscribed);
  ASSERT_EQ(plan.cores.size(), 5u);
  EXPECT_THAT(plan.cores, testing::Each(IsEmpty()));
  EXPECT_THAT(plan.note, HasSubstr("5 worker threads share 4 cores"));
}

TEST(PlanCores, AQuotaOfTimeLimitsTheThreadsButNamesNoCores) {
  auto topology = two_packages(4);
  topology.quota = 2.5;
  EXPECT_EQ(topology.usable(), 3);
  const auto fits = plan_cores(topology, 3, 1);
  EXPECT_FALSE(fits.oversubscribed);
  EXPECT_THAT(fits.cores, testing::Each(IsEmpty()));
  EXPECT_THAT(fits.note, HasSubstr("2.5 of 16 cores"));
  EXPECT_TRUE(plan_cores(topology, 4, 1).oversubscribed);
}

/// The cores of package `package` of two_packages(physical).
std::vector<int> cores_of(int package, int physical) {
  std::vector<int> cores;
  for (const Core& core : two_packages(physical).cores)
    if (core.package == package) cores.push_back(core.number);
  return cores;
}

// Four GPUs, of which the first two hang on the second package.
TEST(PlanCores, GivesEachWorkerCoresNearItsGpu) {
  const auto near = cores_of(0, 4), far = cores_of(1, 4);
  const auto plan = plan_cores(two_packages(4), 4, 2, std::vector{far, far, near, near});
  EXPECT_THAT(plan.cores,
              ElementsAre(ElementsAre(4, 5), ElementsAre(6, 7), ElementsAre(0, 1), ElementsAre(2, 3)));
  EXPECT_EQ(plan.note, "4 workers pinned to 2 cores each, near their GPUs");
  EXPECT_EQ(plan_cores(two_packages(4), 1, 2, std::vector<std::vector<int>>{far}).note,
            "1 worker pinned to 2 cores, near its GPU");
}

TEST(PlanCores, FillsUpFromTheOtherPackageAndSaysWho) {
  const auto near = cores_of(0, 2), far = cores_of(1, 2);
  const auto plan = plan_cores(two_packages(2), 3, 2, std::vector{near, near, near});
  EXPECT_THAT(plan.cores, ElementsAre(ElementsAre(0, 1), ElementsAre(4, 5), ElementsAre(2, 3)));
  EXPECT_THAT(plan.note, HasSubstr("; 1 of 3 workers has cores far from its GPU"));
  EXPECT_THAT(plan_cores(two_packages(2), 2, 4, std::vector{near, near}).note,
              HasSubstr("; 1 of 2 workers has cores far from its GPU"));
  EXPECT_THAT(plan_cores(two_packages(2), 1, 8, std::vector<std::vector<int>>{far}).note,
              HasSubstr("; 1 of 1 worker has cores far from its GPU"));
}

TEST(PlanCores, AFarPhysicalCoreComesBeforeASecondHardwareThreadNearTheGpu) {
  const auto near = cores_of(0, 2), far = cores_of(1, 2);
  const auto one = plan_cores(two_packages(2), 1, 3, std::vector<std::vector<int>>{far});
  EXPECT_THAT(one.cores, ElementsAre(ElementsAre(2, 3, 0)));
  EXPECT_THAT(one.note, testing::Not(HasSubstr("second hardware")));
  EXPECT_THAT(one.note, HasSubstr("; 1 of 1 worker has cores far from its GPU"));
  // More threads than physical cores: those near the GPU whose cores are in use anyway.
  EXPECT_THAT(plan_cores(two_packages(2), 1, 5, std::vector<std::vector<int>>{far}).cores,
              ElementsAre(ElementsAre(2, 3, 6, 0, 1)));
  EXPECT_THAT(plan_cores(two_packages(2), 2, 4, std::vector{far, near}).cores,
              ElementsAre(ElementsAre(2, 3, 6, 7), ElementsAre(0, 1, 4, 5)));
}

TEST(PlanCores, AWorkerWithoutAWishTakesNobodysNearCores) {
  const auto near = cores_of(0, 2);
  const auto plan = plan_cores(two_packages(2), 2, 2, std::vector<std::vector<int>>{{}, near});
  EXPECT_THAT(plan.cores, ElementsAre(ElementsAre(2, 3), ElementsAre(0, 1)));
}

TEST(PlanCores, NeverGivesACoreTwiceWithWishesEither) {
  for (int workers = 1; workers <= 16; ++workers)
    for (int threads = 1; workers * threads <= 16; ++threads) {
      std::vector<std::vector<int>> near;
      for (int worker = 0; worker < workers; ++worker) near.push_back(cores_of(worker % 3 == 0 ? 1 : 0, 4));
      std::set<int> seen;
      for (const auto& cores : plan_cores(two_packages(4), workers, threads, near).cores) {
        EXPECT_EQ(cores.size(), static_cast<std::size_t>(threads));
        for (const int core : cores) EXPECT_TRUE(seen.insert(core).second);
      }
    }
}

TEST(Topology, ShowsTheCoresOfTheAffinityMaskAndNoOther) {
  const auto machine = topology();
  std::vector<int> numbers;
  for (const Core& core : machine.cores) numbers.push_back(core.number);
  EXPECT_THAT(numbers, testing::UnorderedElementsAreArray(current_affinity()));
  EXPECT_GE(machine.physical_cores(), 1);
  EXPECT_EQ(machine.usable(), usable_cores());
}

TEST(Topology, ThreadThatIsBoundRunsThereAndSoDoItsChildren) {
  const int core = current_affinity().back();
  std::thread([&] {
    const auto refused = bind_current_thread({core});
    if (refused) {
      std::printf("not checked: the system refuses to bind a thread: %s\n", refused->c_str());
      return;
    }
    EXPECT_THAT(current_affinity(), ElementsAre(core));
    EXPECT_EQ(usable_cores(), 1);
    std::thread([&] { EXPECT_THAT(current_affinity(), ElementsAre(core)); }).join();
  }).join();
}

TEST(Topology, BindingToACoreThatIsNotThereIsRefusedWithAReason) {
  std::thread([&] {
    const auto before = current_affinity();
    const auto refused = bind_current_thread({8000});
    ASSERT_TRUE(refused.has_value());
    EXPECT_FALSE(refused->empty());
    EXPECT_EQ(current_affinity(), before);
    EXPECT_FALSE(bind_current_thread({}).has_value());
  }).join();
}

}  // namespace

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// The kernel's files for one device.
class PciLocalityTest : public testing::Test {
 protected:
  PciLocalityTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "paceline-test-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
  }
  ~PciLocalityTest() override { std::filesystem::remove_all(root_); }
  void add(const std::string& device, const std::string& cores, const std::string& node) const {
    std::filesystem::create_directories(root_ / device);
    std::ofstream(root_ / device / "local_cpulist") << cores << '\n';
    std::ofstream(root_ / device / "numa_node") << node << '\n';
  }
  std::filesystem::path root_;
};

TEST_F(PciLocalityTest, FindsADeviceAsNvmlAndCudaWriteIt) {
  add("0000:c1:00.0", "16-19,48-51", "1");
  for (const char* name : {"00000000:C1:00.0", "0000:c1:00.0"}) {
    const auto found = pci_locality(name, root_);
    ASSERT_TRUE(found.has_value()) << name;
    EXPECT_THAT(found->cores, ElementsAre(16, 17, 18, 19, 48, 49, 50, 51));
    EXPECT_EQ(found->numa, 1);
  }
}

TEST_F(PciLocalityTest, OfAMachineWithOneNodeTheNodeIsNotSaid) {
  add("0000:01:00.0", "0-7", "-1");
  const auto found = pci_locality("0000:01:00.0", root_);
  EXPECT_EQ(found->cores.size(), 8U);
  EXPECT_EQ(found->numa, std::nullopt);
}

TEST_F(PciLocalityTest, SaysNothingOfWhatTheKernelDoesNotKnow) {
  add("0000:01:00.0", "", "0");
  add("0000:02:00.0", "zero", "0");
  for (const char* name : {"0000:01:00.0", "0000:02:00.0", "0000:03:00.0", "", "../../etc/x.0"})
    EXPECT_FALSE(pci_locality(name, root_).has_value()) << name;
}

TEST(Topology, CpuInfoTakesTheWholeKey) {
#ifdef __x86_64__
  EXPECT_NE((" " + cpu_info("flags") + " ").find(" fpu "), std::string::npos) << cpu_info("flags");
  const auto model = cpu_info("model");  // not "model name", which stands behind it
  EXPECT_FALSE(model.empty());
  EXPECT_EQ(model.find_first_not_of("0123456789"), std::string::npos) << model;
#endif
  EXPECT_EQ(cpu_info("no such key"), "");
  EXPECT_EQ(cpu_info("mode"), "");
}

TEST(ParseCoreList, TakesNumbersAndRanges) {
  EXPECT_THAT(parse_core_list("0-3,8").value(), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(parse_core_list("5").value(), ElementsAre(5));
  EXPECT_THAT(parse_core_list("").value(), IsEmpty());
  for (const char* wrong : {"3-1", "a", "1,", ",1", "1-", "1 2", "0-99999999", "-1"})
    EXPECT_FALSE(parse_core_list(wrong).has_value()) << wrong;
}

}  // namespace
}  // namespace paceline::base
