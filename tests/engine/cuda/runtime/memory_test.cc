// base::Memory on a device.

#include "engine/cuda/runtime/memory.h"

#include <numeric>

#include "engine/cuda/compare.h"

namespace paceline::engine::cuda {
namespace {

TEST(DeviceMemory, DoesWithArraysWhatTheHostDoes) {
  for (const Device& device : devices()) {
    const auto runtime = device.make();
    const DeviceMemory memory(*runtime, runtime->make_stream(), "cuda:0");
    EXPECT_FALSE(memory.is_host());
    // More than the staging buffer holds, and no whole number of it.
    const std::size_t size = DeviceMemory::kStagingBytes / sizeof(float) * 2 + 7;
    const base::OwnedArray left = memory.allocate(size), right = memory.allocate(size);
    std::vector<float> values(size), got(size, 1);
    memory.read(left.array(), got);
    EXPECT_EQ(got, std::vector<float>(size, 0.0f));
    std::iota(values.begin(), values.end(), 0.0f);
    memory.write(values, left.array());
    std::ranges::fill(values, -1.0f);  // it was copied
    memory.fill(right.array(), 0.5f);
    memory.add(left.array(), right.array(), right.array());
    memory.read(right.array(), got);
    EXPECT_EQ(got[0], 0.5f);
    EXPECT_EQ(got[size - 1], static_cast<float>(size - 1) + 0.5f);
    memory.copy(left.array().subarray(3, 5), right.array().subarray(0, 5));
    memory.read(right.array(), got);
    EXPECT_EQ(std::vector<float>(got.begin(), got.begin() + 6), (std::vector<float>{3, 4, 5, 6, 7, 5.5f}));
  }
}

}  // namespace
}  // namespace paceline::engine::cuda
