// Every kernel on a GPU beside the same kernel on the host: the same bits, but for exp, log, erf and NaN. And
// the same comparison without a GPU, over CUDA's functions made up, so that it is known to work and to find
// errors.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/cuda/device/fake_cuda.h"
#include "engine/cuda/kernels/kernel_cases.h"
#include "engine/cuda/runtime/device_runtime.h"
#include "engine/cuda/runtime/devices.h"
#include "engine/cuda/test_gpu.h"

namespace paceline::engine::cuda {
namespace {

constexpr std::size_t kMemory = std::size_t{20} << 20;

/// Runs cases on a runtime and on the host.
class BothSides {
 public:
  explicit BothSides(Runtime& runtime)
      : runtime_(runtime),
        stream_(runtime.make_stream()),
        device_(runtime.allocate(kMemory)),
        pinned_(runtime.allocate_pinned(kMemory)),
        host_(std::make_unique_for_overwrite<Unit[]>(kMemory / sizeof(Unit))) {}

  void run(const KernelCase& of) {
    KernelArrays host_arrays(host());
    arrays_ = KernelArrays(device_);
    const KernelCase::Launch on_host = of.make(host_arrays), on_device = of.make(arrays_);
    const std::size_t bytes = arrays_.contents().size();
    ASSERT_LE(bytes, kMemory);
    std::memcpy(host(), host_arrays.contents().data(), bytes);
    run_on_host(of.kernel, on_host.arguments.data(), on_host.grid);

    std::memcpy(pinned_, arrays_.contents().data(), bytes);
    runtime_.copy_to_device(stream_, device_, pinned_, bytes);
    runtime_.launch(stream_, of.kernel, on_device.arguments.data(), on_device.arguments.size(),
                    on_device.grid);
    runtime_.copy_to_host(stream_, pinned_, device_, bytes);
    runtime_.synchronize(stream_);
  }

  /// Where the device's arrays differ from the host's after a run; empty: nowhere.
  [[nodiscard]] std::string differences() const {
    std::string found;
    std::size_t from = 0;  // what lies between outputs must be as it was
    for (const KernelArrays::Output& output : arrays_.outputs()) {
      found += changed(from, output.begin) + different(output);
      from = output.end;
    }
    return found + changed(from, arrays_.contents().size());
  }
  [[nodiscard]] const std::vector<KernelArrays::Output>& outputs() const { return arrays_.outputs(); }
  /// All arrays, as they came from the device.
  [[nodiscard]] std::byte* from_device() { return pinned_; }

 private:
  struct alignas(256) Unit {
    std::byte bytes[256];
  };
  [[nodiscard]] std::byte* host() const { return host_.get()->bytes; }

  [[nodiscard]] std::string changed(std::size_t begin, std::size_t end) const {
    if (std::memcmp(pinned_ + begin, arrays_.contents().data() + begin, end - begin) == 0) return "";
    return "the device wrote beside its outputs; ";
  }
  [[nodiscard]] std::string different(const KernelArrays::Output& output) const {
    const std::byte *const got = pinned_ + output.begin, *const expected = host() + output.begin;
    const std::size_t bytes = output.end - output.begin;
    if (std::memcmp(got, expected, bytes) == 0) return "";
    for (std::size_t at = 0; at < bytes; at += output.element) {
      if (output.is_near(got + at, expected + at)) continue;
      return "element " + std::to_string(at / output.element) + " of the array at " +
             std::to_string(output.begin) + " is " + hexadecimal(got + at, output.element) +
             " on the device, " + hexadecimal(expected + at, output.element) + " on the host; ";
    }
    return "";
  }
  static std::string hexadecimal(const std::byte* bytes, std::size_t count) {
    std::string text = "0x";
    for (std::size_t i = count; i-- > 0;) {
      text += "0123456789abcdef"[std::to_integer<int>(bytes[i] >> 4)];
      text += "0123456789abcdef"[std::to_integer<int>(bytes[i] & std::byte{15})];
    }
    return text;
  }

  Runtime& runtime_;
  Stream stream_;
  std::byte *device_, *pinned_;
  std::unique_ptr<Unit[]> host_;
  KernelArrays arrays_{nullptr};
};

struct SizedFamily {
  KernelFamily family;
  CaseSize size;
  friend std::ostream& operator<<(std::ostream& out, const SizedFamily& of) { return out << of.name(); }
  [[nodiscard]] std::string name() const { return family.name + (size == CaseSize::small ? "Small" : ""); }
};

std::vector<SizedFamily> all_families() {
  std::vector<SizedFamily> all;
  for (const KernelFamily& family : kernel_families())
    for (const CaseSize size : {CaseSize::small, CaseSize::usual}) all.push_back({family, size});
  return all;
}

/// The first GPU, opened once for all tests.
class CudaKernelsOnDevice : public ::testing::TestWithParam<SizedFamily> {
 protected:
  static void SetUpTestSuite() {
    try {
      gpu_ = open_device_runtime(0);
      sides_ = std::make_unique<BothSides>(*gpu_);
    } catch (const base::Error& error) {
      why_not_ = error.what();
    }
  }
  static void TearDownTestSuite() {
    sides_.reset();
    gpu_.reset();
  }
  void SetUp() override {
    if (sides_ != nullptr)
      print_device(*gpu_);
    else if (gpu_is_required())
      FAIL() << why_not_;
    else
      GTEST_SKIP() << why_not_;
  }

  static inline std::unique_ptr<Runtime> gpu_;
  static inline std::unique_ptr<BothSides> sides_;
  static inline std::string why_not_;
};

TEST_P(CudaKernelsOnDevice, TheHostsBits) {
  for (const KernelCase& of : GetParam().family.cases(GetParam().size)) {
    sides_->run(of);
    EXPECT_EQ(sides_->differences(), "") << of.name;
  }
}

// Without a prefix, so that the tests' names begin with the suite's.
INSTANTIATE_TEST_SUITE_P(, CudaKernelsOnDevice, ::testing::ValuesIn(all_families()),
                         [](const auto& info) { return info.param.name(); });

using Launched = std::function<void(int kernel, const void* arguments, const Grid& grid)>;

/// Calls visit(sides) after each case, which a device that runs kernels by `launched` has computed.
template <typename Visit>
void on_fake_device(const Launched& launched, const std::vector<KernelCase>& cases, const Visit& visit) {
  test::FakeCuda cuda;
  cuda.fresh_byte = 0;  // the arrays bring their own poison
  cuda.run_kernel = launched;
  DeviceRuntime runtime(cuda.api(), 0,
                        [](const NativeStream&) { return std::unique_ptr<ConvolutionLibrary>(); });
  BothSides sides(runtime);
  for (const KernelCase& of : cases) {
    SCOPED_TRACE(of.name);
    sides.run(of);
    visit(sides);
  }
}

class CudaKernelsOverFakeCuda : public ::testing::TestWithParam<SizedFamily> {
 protected:
  [[nodiscard]] static std::vector<KernelCase> cases() { return GetParam().family.cases(GetParam().size); }
};
INSTANTIATE_TEST_SUITE_P(, CudaKernelsOverFakeCuda, ::testing::ValuesIn(all_families()),
                         [](const auto& info) { return info.param.name(); });

/// The device visits threads in the other order. Then each output is altered: the comparison sees it.
TEST_P(CudaKernelsOverFakeCuda, TheHostsBitsAndNoOthers) {
  const auto other_order = [](int kernel, const void* arguments, const Grid& grid) {
    run_on_host(kernel, arguments, grid, HostOrder::descending);
  };
  on_fake_device(other_order, cases(), [](BothSides& sides) {
    EXPECT_EQ(sides.differences(), "");
    EXPECT_FALSE(sides.outputs().empty());
    for (const KernelArrays::Output& output : sides.outputs()) {
      std::byte& last = sides.from_device()[output.end - 1];
      last ^= std::byte{1};  // of an exponent, or of an integer
      EXPECT_TRUE(sides.differences().starts_with("element ")) << "the array at " << output.begin;
      last ^= std::byte{1};
      sides.from_device()[output.end] ^= std::byte{1};
      EXPECT_EQ(sides.differences(), "the device wrote beside its outputs; ");
      sides.from_device()[output.end] ^= std::byte{1};
    }
  });
}

/// So each output is one that the kernel writes.
TEST(CudaKernelComparison, WithoutTheKernelEachOutputDiffers) {
  for (const KernelFamily& family : kernel_families())
    on_fake_device({}, family.cases(CaseSize::small), [](BothSides& sides) {
      std::size_t count = 0;
      const std::string found = sides.differences();
      for (std::size_t at = 0; (at = found.find("element ", at)) != std::string::npos; ++at) ++count;
      EXPECT_EQ(count, sides.outputs().size()) << found;
    });
}

/// What is found in Relu and Gelu where the device's dst is altered.
std::vector<std::string> relu_and_gelu(const std::function<void(float* dst)>& alter) {
  std::vector<KernelCase> cases = kernel_families()[0].cases(CaseSize::small);
  std::erase_if(cases,
                [](const KernelCase& one) { return one.name != "Relu f32" && one.name != "Gelu f32"; });
  std::vector<std::string> found;
  on_fake_device(
      [&](int kernel, const void* arguments, const Grid& grid) {
        run_on_host(kernel, arguments, grid);
        alter(static_cast<const Relu<float>*>(arguments)->dst);  // Gelu has the same members
      },
      cases, [&](const BothSides& sides) { found.push_back(sides.differences()); });
  return found;
}

TEST(CudaKernelComparison, OneBitShowsWhereExpLogAndErfHaveNoPart) {
  const auto found = relu_and_gelu([](float* dst) { dst[5] = std::nextafter(dst[5], 1e9f); });
  EXPECT_TRUE(found[0].starts_with("element 5 of the array at 768 is 0x")) << found[0];
  EXPECT_EQ(found[1], "");
}

TEST(CudaKernelComparison, AnErrorOfFiveDigitsShowsInGelu) {
  const auto found = relu_and_gelu([](float* dst) { dst[5] += 1e-5f; });
  EXPECT_TRUE(found[1].starts_with("element 5 of the array at 768 is 0x")) << found[1];
}

TEST(CudaKernelComparison, AnyTwoNaNsAreEqualAndNoOtherBitsAre) {
  constexpr auto bytes_of = [](auto& value) { return reinterpret_cast<std::byte*>(&value); };
  const auto with_payload = [](std::uint64_t payload) {
    return std::bit_cast<double>(std::uint64_t{0x7ff8} << 48 | payload);
  };
  double here = with_payload(1), there = with_payload(2);
  EXPECT_TRUE(has_same_bits<double>(bytes_of(here), bytes_of(there)));
  there = 1;
  EXPECT_FALSE(has_same_bits<double>(bytes_of(here), bytes_of(there)));
  EXPECT_FALSE(has_same_bits<double>(bytes_of(there), bytes_of(here)));

  StepReport host{.local = {.loss = with_payload(1), .correct = 4}, .votes = {}, .is_left_out = 0};
  StepReport device = host;
  device.local.loss = with_payload(2);
  EXPECT_TRUE(has_same_bits<StepReport>(bytes_of(device), bytes_of(host)));
  device.local.correct = 5;
  EXPECT_FALSE(has_same_bits<StepReport>(bytes_of(device), bytes_of(host)));

  // As a vote of a NaN loss comes from a GPU: the default NaN where x86 keeps the operand's payload.
  const auto softmax = std::ranges::find(kernel_families(), "Softmax", &KernelFamily::name);
  std::vector<KernelCase> cases = softmax->cases(CaseSize::small);
  std::erase_if(cases, [](const KernelCase& of) { return of.name != "WriteVotes"; });
  int nans = 0;
  on_fake_device(
      [&](int kernel, const void* arguments, const Grid& grid) {
        run_on_host(kernel, arguments, grid);
        double& loss = static_cast<const WriteVotes*>(arguments)->report->local.loss;
        nans += std::isnan(loss);
        if (std::isnan(loss)) loss = std::bit_cast<double>(std::uint64_t{0x7fffffff} << 32 | 0xffffffff);
      },
      cases, [](const BothSides& sides) { EXPECT_EQ(sides.differences(), ""); });
  EXPECT_EQ(nans, 2);  // of a first pass and of a later one
}

/// A kernel that somebody adds to table.h and not to the cases would never be compared.
TEST(CudaKernelCases, EveryKernelOfTheTableHasCasesOfBothSizes) {
  for (const CaseSize size : {CaseSize::small, CaseSize::usual}) {
    std::array<bool, kKernelCount> has_case{};
    for (const KernelFamily& family : kernel_families())
      for (const KernelCase& of : family.cases(size)) has_case.at(static_cast<std::size_t>(of.kernel)) = true;
    for (int kernel = 0; kernel < kKernelCount; ++kernel)
      EXPECT_TRUE(has_case[static_cast<std::size_t>(kernel)])
          << "kernel " << kernel << " of table.h has no " << (size == CaseSize::small ? "small " : "")
          << "case in kernel_cases.h";
  }
}

}  // namespace
}  // namespace paceline::engine::cuda
