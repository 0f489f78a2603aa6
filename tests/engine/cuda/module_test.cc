/// The module paceline_cuda.so itself, where the toolkit was there to build it. It needs no GPU to open.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/cuda/runtime/load.h"

namespace paceline::engine::cuda {
namespace {

TEST(CudaModule, OpensWithoutAGpuAndSaysWhatIsMissing) {
  const std::string_view module = PACELINE_CUDA_MODULE;
  if (module.empty()) GTEST_SKIP() << "there was no CUDA toolkit to build the module with";
  const CudaApi& api = open_cuda(std::filesystem::path(module).parent_path());
  EXPECT_GE(api.built_with, 12080);
  int version = 0;
  EXPECT_EQ(api.cudaRuntimeGetVersion(&version), kCudaSuccess);
  EXPECT_EQ(version / 1000, api.built_with / 1000);
  EXPECT_STREQ(api.cudaGetErrorName(kCudaErrorIllegalAddress), "cudaErrorIllegalAddress");
  EXPECT_STREQ(api.cudaGetErrorName(kCudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  try {
    EXPECT_GE(visible_devices(api, base::process_environment()), 1);
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), testing::StartsWith("--device cuda: "));
  }
}

TEST(CudaModule, AllOfItsTableIsFilled) {
  const std::string_view module = PACELINE_CUDA_MODULE;
  if (module.empty()) GTEST_SKIP() << "there was no CUDA toolkit to build the module with";
  const CudaApi& api = open_cuda(std::filesystem::path(module).parent_path());
  // Behind what it was built from there are only functions.
  const auto* words = reinterpret_cast<void* const*>(&api.cudaDriverGetVersion);
  const auto* end = reinterpret_cast<void* const*>(&api + 1);
  EXPECT_GT(end - words, 25);
  for (const auto* word = words; word != end; ++word) EXPECT_NE(*word, nullptr) << word - words;
}

}  // namespace
}  // namespace paceline::engine::cuda
