#include "engine/cuda/runtime/device_side_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/error.h"
#include "base/summation_tree.h"
#include "engine/cuda/device/fake_cuda.h"
#include "engine/cuda/kernels/host.h"

namespace paceline::engine::cuda {
namespace {

using test::FakeCuda;
using testing::AllOf;
using testing::HasSubstr;

constexpr int kParts = 5;
constexpr std::size_t kCount = 7, kStride = 9;

/// Uses every function of a side stream on GPU 1; what five parts were added up to.
std::vector<float> use_everything(const FakeCuda& cuda, CudaStreamHandle engine) {
  DeviceSideStream stream(cuda.api(), 1, engine);
  EXPECT_EQ(stream.device(), "0000:02:00.0");
  EXPECT_EQ(stream.uuid(), cuda.has_uuids ? "202122232425262728292a2b2c2d2e2f" : "");
  EXPECT_NE(stream.native(), nullptr);
  stream.enter();
  EXPECT_EQ(cuda.current_device, 1);
  const int begin = stream.make_mark(), end = stream.make_mark();
  EXPECT_TRUE(stream.is_done(end)) << "it was never set";
  stream.follow_engine();
  stream.set(begin);
  std::vector<float> parts(kParts * kStride), sum(kCount);
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = 0.1f * static_cast<float>(i * i);
  stream.tree_sum(parts.data(), kParts, kStride, kCount, sum.data());
  stream.tree_sum(parts.data(), kParts, kStride, 0, sum.data());
  stream.set(end);
  stream.engine_follows(end);
  EXPECT_TRUE(stream.is_done(end));
  stream.wait(end);
  for (const int mark : {begin, end}) {
    const auto done = stream.done_at(mark);  // an anchor of now, less the millisecond of the fake
    EXPECT_LE(done, base::Clock::now());
  }
  return sum;
}

class SideStreamOfAGpu : public testing::Test {
 protected:
  SideStreamOfAGpu() {
    cuda_.run_kernel = [](int kernel, const void* arguments, const Grid& grid) {
      run_on_host(kernel, arguments, grid);
    };
    EXPECT_EQ(cuda_.api().cudaStreamCreateWithPriority(&engine_, 0, 0), kCudaSuccess);
    cuda_.calls.clear();
  }
  ~SideStreamOfAGpu() override { (void)cuda_.api().cudaStreamDestroy(engine_); }
  FakeCuda cuda_;
  CudaStreamHandle engine_ = nullptr;
};

TEST_F(SideStreamOfAGpu, AddsInTheTreeAndGivesEverythingBack) {
  const auto sum = use_everything(cuda_, engine_);
  std::vector<float> values(kParts * kStride), expected(kCount);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.1f * static_cast<float>(i * i);
  std::vector<const float*> parts;
  for (int part = 0; part < kParts; ++part)
    parts.push_back(&values[static_cast<std::size_t>(part) * kStride]);
  base::tree_sum<float>(parts, expected.data(), kCount);
  EXPECT_EQ(sum, expected);
  EXPECT_EQ(cuda_.misuse, "");
  EXPECT_EQ(cuda_.events.size(), 0u);
  EXPECT_EQ(cuda_.streams.size(), 1u) << "the engine's";
}

TEST_F(SideStreamOfAGpu, EachCallThatFailsIsNamedAndNothingStays) {
  (void)use_everything(cuda_, engine_);
  const int calls = static_cast<int>(cuda_.calls.size());
  int failures = 0;
  for (int call = 1; call <= calls; ++call) {
    cuda_.calls.clear();
    cuda_.failing_call = call;
    cuda_.failing_status = kCudaErrorInvalidValue;  // after which others go on
    try {
      (void)use_everything(cuda_, engine_);  // what is given back at the end may fail without a word
    } catch (const base::Error& error) {
      ++failures;
      EXPECT_EQ(error.kind(), base::ErrorKind::device);
      EXPECT_THAT(error.what(), AllOf(HasSubstr("on GPU 1"), HasSubstr("the text of the error")));
    }
    EXPECT_EQ(cuda_.events.size(), 0u) << "call " << call;
    EXPECT_EQ(cuda_.streams.size(), 1u) << "call " << call;
    EXPECT_EQ(cuda_.misuse, "") << "call " << call;
  }
  EXPECT_GE(failures, 25);
}

}  // namespace
}  // namespace paceline::engine::cuda
