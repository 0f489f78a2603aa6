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
using testing::AllOf;
using testing::EndsWith;
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
  const struct {
    int driver, built_with;
    const char *versions, *next_step;
  } cases[] = {{12040, 13000,
                "supports CUDA up to 12.4, but this program was built with CUDA 13.0, which needs driver 580",
                "or build with CUDA's toolkit 12.8 or 12.9, whose programs this driver runs "
                "(CUDA_HOME=/usr/local/cuda-12.9 ./x build --all-gpus)"},
               {11080, 13000,
                "supports CUDA up to 11.8, but this program was built with CUDA 13.0, which needs driver 580",
                "install a newer driver"},
               {11080, 12090,
                "supports CUDA up to 11.8, but this program was built with CUDA 12.9, which needs driver 525",
                "install a newer driver"}};
  for (const auto& [driver, built_with, versions, next_step] : cases) {
    FakeCuda cuda;
    cuda.count_status = kCudaErrorInsufficientDriver;
    cuda.driver_version = driver;
    CudaApi api = cuda.api();
    api.built_with = built_with;
    const auto text = refusal([&] { (void)visible_devices(api, visible(nullptr)); });
    EXPECT_THAT(text, HasSubstr(versions));
    EXPECT_THAT(text, EndsWith(next_step));
  }
}

TEST(VisibleDevices, MachinesErrorsSayWhatToDo) {
  const std::pair<CudaStatus, const char*> cases[] = {
      {3, "see whether nvidia-smi works for this user"},
      {34, "take the folder stubs out of LD_LIBRARY_PATH"},
      {46, "nvidia-smi --compute-mode=0"},
      {209, "./x build --all-gpus"},
      {222, "install a newer driver"},
      {802, "systemctl start nvidia-fabricmanager"},
      {803, "of different versions, as after an update: restart the machine"},
      {804, "the package cuda-compat serves GPUs of data centres only"},
      {999, "nvidia-modprobe -u as root"}};
  for (const auto& [status, next_step] : cases) {
    FakeCuda cuda;
    cuda.count_status = status;
    EXPECT_THAT(refused_devices(cuda),
                AllOf(HasSubstr(fmt::format(", {}); ", status)), HasSubstr(next_step)));
  }
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
  cuda.count_status = 998;
  EXPECT_THAT(refused_devices(cuda),
              EndsWith("cudaGetDeviceCount failed: the text of the error (cudaErrorOfThisTest, 998)"));
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
  cuda.capability = 70;
  EXPECT_THAT(refused_device(cuda, 0),
              HasSubstr("Fake H100 has compute capability 7.0, and the kernels need 7.5"));
  for (const int capability : {75, 80, 120}) {
    cuda.capability = capability;
    EXPECT_EQ(check_device(cuda.api(), 0, visible(nullptr)), capability);
  }
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
    EXPECT_NE(find_cudnn({folder}, 0).handle, nullptr);
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("--device cuda: needs cuDNN 9.11 or later"));
    EXPECT_THAT(error.what(), HasSubstr((folder / "libcudnn.so.9").string()));
    EXPECT_THAT(error.what(), HasSubstr("pip install nvidia-cudnn-cu13"));
  }
}

// A cuDNN for CUDA 13 does not start with a driver for CUDA 12; one for CUDA 12 starts with both.
TEST(FindCudnn, TakesTheFirstThatTheDriverRuns) {
  const std::filesystem::path libraries = PACELINE_CUDNN_IMITATIONS;
  const auto for12 = libraries / "cudnn12", for13 = libraries / "cudnn13";
  const struct {
    std::vector<std::filesystem::path> folders;
    std::filesystem::path with_cuda12, with_cuda13;  // what is taken; empty: nothing
  } cases[] = {{{for12}, for12, for12}, {{for13}, {}, for13}, {{for13, for12}, for12, for13}};
  for (const auto& [folders, with_cuda12, with_cuda13] : cases) {
    for (const int driver : {12040, 12080, 13000}) {
      const auto& expected = driver < 13000 ? with_cuda12 : with_cuda13;
      std::string found;
      try {
        found = find_cudnn(folders, driver).path;
      } catch (const base::Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("--device cuda: needs cuDNN 9.11 or later for CUDA 12, "));
        EXPECT_THAT(error.what(), HasSubstr((for13 / "libcudnn.so.9").string() +
                                            ": it is for CUDA 13, and NVIDIA's driver supports CUDA up to " +
                                            cuda_version(driver)));
        EXPECT_THAT(error.what(), EndsWith("pip install nvidia-cudnn-cu12"));
      }
      // Where a cuDNN is installed for the loader, it comes first.
      if (!found.empty() && !found.starts_with(libraries.string())) continue;
      EXPECT_EQ(found, expected.empty() ? "" : (expected / "libcudnn.so.9").string()) << driver;
    }
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
