#include "base/pci_locality.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace paceline::base {
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

TEST(ParseCoreList, TakesNumbersAndRanges) {
  EXPECT_THAT(parse_core_list("0-3,8").value(), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(parse_core_list("5").value(), ElementsAre(5));
  EXPECT_THAT(parse_core_list("").value(), IsEmpty());
  for (const char* wrong : {"3-1", "a", "1,", ",1", "1-", "1 2", "0-99999999", "-1"})
    EXPECT_FALSE(parse_core_list(wrong).has_value()) << wrong;
}

}  // namespace
}  // namespace paceline::base
