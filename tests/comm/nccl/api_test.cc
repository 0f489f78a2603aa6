#include "comm/nccl/api.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/side_stream.h"
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

namespace paceline::comm::nccl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

#if __has_include(<nccl.h>)
static_assert(kSuccess == ncclSuccess);
static_assert(kUnhandledCudaError == ncclUnhandledCudaError);
static_assert(kInProgress == ncclInProgress);
static_assert(kFloat32 == ncclFloat32);
static_assert(kSum == ncclSum);
static_assert(kOldest == NCCL_VERSION(2, 18, 0));
static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId));
static_assert(sizeof(Config) <= sizeof(ncclConfig_t));
static_assert(offsetof(Config, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(Config, cga_cluster_size) == offsetof(ncclConfig_t, cgaClusterSize));
static_assert(offsetof(Config, max_ctas) == offsetof(ncclConfig_t, maxCTAs));
static_assert(offsetof(Config, net_name) == offsetof(ncclConfig_t, netName));
static_assert(offsetof(Config, split_share) == offsetof(ncclConfig_t, splitShare));
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 26, 0)
static_assert(offsetof(Config, traffic_class) == offsetof(ncclConfig_t, trafficClass));
#endif

TEST(NcclApi, AConfigIsThatOfItsHeader) {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const Config ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_EQ(ours.min_ctas, theirs.minCTAs);
  EXPECT_EQ(ours.max_ctas, theirs.maxCTAs);
  EXPECT_EQ(ours.split_share, theirs.splitShare);
  EXPECT_EQ(ours.net_name, theirs.netName);
}
#endif

TEST(NcclApi, VersionsAreReadable) {
  EXPECT_EQ(version_text(22809), "2.28.9");
  EXPECT_EQ(version_text(kOldest), "2.18.0");
}

TEST(NcclApi, TheAdviceFollowsTheDriver) {
  for (const auto& [driver, command] : {std::pair(0, "pip install nvidia-nccl-cu13"),
                                        {12080, "pip install nvidia-nccl-cu12"},
                                        {12090, "pip install nvidia-nccl-cu12"},
                                        {13000, "pip install nvidia-nccl-cu13"}})
    EXPECT_STREQ(install_command(driver), command) << driver;
}

TEST(NcclApi, BlocksIfTheEnvironmentSaysSo) {
  const auto asked = [](const char* value) {
    return is_blocking([value](const char* name) {
      return std::string_view(name) == "NCCL_COMM_BLOCKING" ? value : nullptr;
    });
  };
  EXPECT_FALSE(asked(nullptr));
  EXPECT_FALSE(asked("0"));
  EXPECT_TRUE(asked("1"));
}

TEST(NcclApi, DeterministicLeavesWhatTheUserHasSet) {
  ::setenv("NCCL_ALGO", "Tree", 1);
  EXPECT_EQ(make_deterministic(),
            "--deterministic: GPUs add up with NCCL_ALGO=Tree, NCCL_PROTO=Simple, NCCL_NVLS_ENABLE=0");
  EXPECT_STREQ(std::getenv("NCCL_PROTO"), "Simple");
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO", "NCCL_NVLS_ENABLE"}) ::unsetenv(name);
}

TEST(NcclApi, ALibraryThatLacksAFunctionIsNamed) {
  const base::SharedLibrary none{.handle = ::dlopen(nullptr, RTLD_NOW), .path = "libnccl.so.2"};
  try {
    (void)nccl_api(none);
    FAIL() << "it was accepted";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("libnccl.so.2 has no ncclGetVersion"), HasSubstr("install")));
    EXPECT_EQ(error.kind(), base::ErrorKind::device);
  }
}

/// Where NCCL is: it gives ids without a GPU.
TEST(NcclApi, TheLibraryOfThisMachineOpens) {
  try {
    const Api& api = open_nccl();
    int version = 0;
    ASSERT_EQ(api.ncclGetVersion(&version), kSuccess);
    EXPECT_GE(version, kOldest);
    UniqueId id{};
    EXPECT_EQ(api.ncclGetUniqueId(&id), kSuccess);
    EXPECT_STRNE(api.ncclGetErrorString(kUnhandledCudaError), "");
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("needs NCCL 2.18 or later"));
    GTEST_SKIP() << error.what();
  }
}

}  // namespace
}  // namespace paceline::comm::nccl
