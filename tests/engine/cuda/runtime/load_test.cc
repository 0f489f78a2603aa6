#include "engine/cuda/runtime/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "engine/cuda/device/fake_cuda.h"

namespace paceline::engine::cuda {
namespace {

using test::FakeCuda;
using testing::HasSubstr;
using testing::StartsWith;

/// The text of the Error(device) that `run` throws, one sentence.
std::string refusal(const std::function<void()>& run) {
  try {
    run();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::device);
    const std::string text = error.what();
    EXPECT_THAT(text, StartsWith("--device cuda"));
    EXPECT_EQ(text.find('\n'), std::string::npos);
    EXPECT_EQ(text.find(". "), std::string::npos) << "one sentence: " << text;
    return text;
  }
  return "no error";
}

base::EnvironmentLookup visible(const char* devices) {
  return
      [devices](const char* name) { return std::string(name) == "CUDA_VISIBLE_DEVICES" ? devices : nullptr; };
}

std::string refused_devices(FakeCuda& cuda, const char* variable = nullptr) {
  return refusal([&] { (void)visible_devices(cuda.api(), visible(variable)); });
}

std::string refused_device(FakeCuda& cuda, int device, const char* variable = nullptr) {
  return refusal([&] { check_device(cuda.api(), device, visible(variable)); });
}

std::filesystem::path empty_folder(const char* name) {
  const auto folder = std::filesystem::path(testing::TempDir()) / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

TEST(OpenCuda, AModuleThatIsNotBuiltSaysHowToBuildIt) {
  const auto text = refusal([] { (void)open_cuda(empty_folder("cuda_module_absent")); });
  EXPECT_THAT(text, HasSubstr("paceline_cuda.so is not there"));
  EXPECT_THAT(text, HasSubstr("the CUDA toolkit 12.8 or later"));
  EXPECT_THAT(text, HasSubstr("./x build --all-gpus builds it"));
}

TEST(OpenCuda, AModuleOfAnotherBuildIsRefused) {
  FakeCuda cuda;
  CudaApi api = cuda.api();
  check_module(api, "paceline_cuda.so");
  const std::array<std::size_t, 1> none{0};
  api.kernel_bytes = none.data();
  api.kernel_count += 1;
  EXPECT_THAT(refusal([&] { check_module(api, "/lib/paceline_cuda.so"); }),
              HasSubstr("/lib/paceline_cuda.so belongs to another build"));
  api = cuda.api();
  api.table_bytes -= sizeof(void*);
  EXPECT_THAT(refusal([&] { check_module(api, "x"); }), HasSubstr("another build"));
}

TEST(OpenCuda, AKernelOfAnotherSizeIsRefused) {
  FakeCuda cuda;
  CudaApi api = cuda.api();
  std::vector<std::size_t> sizes(api.kernel_bytes, api.kernel_bytes + api.kernel_count);
  ASSERT_FALSE(sizes.empty());
  sizes.back() += 4;
  api.kernel_bytes = sizes.data();
  EXPECT_THAT(refusal([&] { check_module(api, "x"); }), HasSubstr("another build"));
}

TEST(VisibleDevices, AreCounted) {
  FakeCuda cuda;
  EXPECT_EQ(visible_devices(cuda.api(), visible("0,1")), 2);
}

TEST(VisibleDevices, WithoutADriverThatIsSaid) {
  FakeCuda cuda;
  cuda.count_status = kCudaErrorInsufficientDriver;
  cuda.driver_version = 0;
  EXPECT_THAT(refused_devices(cuda), HasSubstr("NVIDIA's driver is not there (libcuda.so.1)"));
}

TEST(VisibleDevices, ADriverThatIsTooOldIsSaidWithBothVersions) {
  FakeCuda cuda;
  cuda.count_status = kCudaErrorInsufficientDriver;
  cuda.driver_version = 12040;
  EXPECT_THAT(refused_devices(cuda),
              HasSubstr("supports CUDA up to 12.4, but this program was built with CUDA 13.0"));
}

TEST(VisibleDevices, TheToolkitsStubIsNoDriver) {
  FakeCuda cuda;
  cuda.count_status = kCudaErrorStubLibrary;
  EXPECT_THAT(refused_devices(cuda), HasSubstr("stub"));
}

TEST(VisibleDevices, ADriverInTwoVersionsIsSaid) {
  FakeCuda cuda;
  cuda.count_status = kCudaErrorSystemDriverMismatch;
  EXPECT_THAT(refused_devices(cuda), HasSubstr("different versions"));
}

TEST(VisibleDevices, NoGpuIsSaidWithTheVariableThatHidesIt) {
  FakeCuda cuda;
  cuda.count_status = kCudaErrorNoDevice;
  EXPECT_THAT(refused_devices(cuda), HasSubstr("driver is installed, but finds no GPU"));
  EXPECT_THAT(refused_devices(cuda, ""), HasSubstr("CUDA_VISIBLE_DEVICES is empty"));
  EXPECT_THAT(refused_devices(cuda, "-1"), HasSubstr("CUDA_VISIBLE_DEVICES=-1 leaves no GPU visible"));
  cuda.count_status = kCudaSuccess;  // some drivers count none without an error
  cuda.devices = 0;
  EXPECT_THAT(refused_devices(cuda), HasSubstr("driver is installed, but finds no GPU"));
}

TEST(VisibleDevices, AnyOtherErrorComesWithCallAndText) {
  FakeCuda cuda;
  cuda.count_status = 999;
  EXPECT_THAT(refused_devices(cuda),
              HasSubstr("cudaGetDeviceCount failed: the text of the error (cudaErrorOfThisTest, 999)"));
}

TEST(CheckDevice, ANumberBeyondThoseVisibleIsRefusedWithWhatThereIs) {
  FakeCuda cuda;
  check_device(cuda.api(), 1, visible(nullptr));
  EXPECT_THAT(
      refused_device(cuda, 2, "4,5"),
      HasSubstr("cuda:2: this process sees 2 GPUs (CUDA_VISIBLE_DEVICES=4,5); give cuda:0 to cuda:1"));
  EXPECT_THAT(refused_device(cuda, -1), HasSubstr("cuda:-1"));
  cuda.devices = 1;
  EXPECT_THAT(refused_device(cuda, 1), HasSubstr("sees one GPU; give cuda:0"));
}

TEST(CheckDevice, AGpuThatIsTooOldIsNamed) {
  FakeCuda cuda;
  cuda.capability = 75;
  EXPECT_THAT(refused_device(cuda, 0), HasSubstr("Fake H100 has compute capability 7.5"));
}

TEST(CheckDevice, EveryCallCanFail) {
  for (int call = 1;; ++call) {
    FakeCuda cuda;
    cuda.failing_call = call;
    const auto text = refused_device(cuda, 0);
    if (!cuda.failed()) {
      EXPECT_EQ(call, 5);  // count, two attributes, the name, and one more that never came
      return;
    }
    EXPECT_THAT(text, HasSubstr(cuda.failed_call() + " failed"));
  }
}

TEST(FindCudnn, ALibraryThatIsNoneOfThatNameIsRefusedWithTheVersionThatIsWanted) {
  const auto folder = empty_folder("no_cudnn");
  std::ofstream(folder / "libcudnn.so.9") << "no library";
  // Where cuDNN is installed for the loader, it is found there.
  try {
    EXPECT_NE(find_cudnn({folder}).handle, nullptr);
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("--device cuda: needs cuDNN 9.11 or later"));
    EXPECT_THAT(error.what(), HasSubstr((folder / "libcudnn.so.9").string()));
    EXPECT_THAT(error.what(), HasSubstr("pip install nvidia-cudnn-cu13"));
  }
}

TEST(DescribeCudaError, AStickyErrorSaysThatTheProcessMustEnd) {
  FakeCuda cuda;
  const auto text =
      describe_cuda_error(cuda.api(), kCudaErrorIllegalAddress, "cudaMemcpyAsync", "on GPU 1, in step 12");
  EXPECT_THAT(text, StartsWith("cudaMemcpyAsync failed on GPU 1, in step 12: the text of the error "
                               "(cudaErrorIllegalAddress, 700)"));
  EXPECT_THAT(text, HasSubstr("which must end"));
  EXPECT_THAT(describe_cuda_error(cuda.api(), kCudaErrorMemoryAllocation, "cudaMalloc", ""),
              testing::Not(HasSubstr("must end")));
}

}  // namespace
}  // namespace paceline::engine::cuda
