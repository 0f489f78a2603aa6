#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "base/poisoned_memory.h"

namespace paceline::base {
namespace {

TEST(Buffer, IsAlignedAndWritableToItsLastByte) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{63}, std::size_t{4096}, std::size_t{9} << 20}) {
    Buffer buffer(bytes);
    EXPECT_EQ(buffer.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
    buffer.fill_zero();
    EXPECT_EQ(buffer.data()[bytes - 1], std::byte{0});
    buffer.data()[bytes - 1] = std::byte{7};
  }
}

TEST(Buffer, ShowsOnlyWholeElements) {
  Buffer buffer(10);
  EXPECT_EQ(buffer.as<float>().size(), 2u);
  EXPECT_EQ(buffer.as<double>().size(), 1u);
  EXPECT_EQ(Buffer().as<float>().size(), 0u);
}

TEST(Buffer, MovesItsMemoryAndLeavesTheOtherValid) {
  Buffer a(100);
  const std::byte* memory = a.data();
  Buffer b(std::move(a));
  EXPECT_EQ(b.data(), memory);
  EXPECT_EQ(b.bytes(), 100u);
  EXPECT_EQ(a.bytes(), 0u);  // NOLINT: moved-from is empty by contract
  a = Buffer(7);
  b = std::move(a);
  EXPECT_EQ(b.bytes(), 7u);
}

TEST(Buffer, RefusedMemoryIsAnErrorThatSaysHowMuch) {
  try {
    Buffer buffer(std::size_t{1} << 60);
    FAIL() << "an exabyte was granted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_THAT(error.what(), testing::HasSubstr("1152921504606.8 MB"));
  }
}

}  // namespace

namespace {

using testing::Each;
using testing::ElementsAre;

TEST(HostMemory, GivesAlignedZerosThatLiveAsLongAsTheirOwner) {
  auto owned = host_memory().allocate(1000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(owned.data.get()) % 64, 0u);
  const auto again = owned;
  owned = {};
  EXPECT_THAT(again.array().host(), Each(0.0f));
  EXPECT_EQ(again.array().host().size(), 1000u);
  EXPECT_EQ(again.array().bytes(), 4000u);
  EXPECT_TRUE(host_memory().allocate(0).array().host().empty());
}

TEST(HostMemory, FillsCopiesAndAddsInPlace) {
  std::vector<float> a{1, 2, 3}, b{10, 20, 30}, sum(3);
  const auto& memory = host_memory();
  memory.add(host_array(a), host_array(b), host_array(sum));
  EXPECT_THAT(sum, ElementsAre(11, 22, 33));
  memory.add(host_array(a), host_array(sum), host_array(sum));
  EXPECT_THAT(sum, ElementsAre(12, 24, 36));
  memory.copy(host_array(sum).subarray(1, 2), host_array(b).subarray(0, 2));
  EXPECT_THAT(b, ElementsAre(24, 36, 30));
  memory.fill(host_array(a).subarray(1, 1), -1);
  EXPECT_THAT(a, ElementsAre(1, -1, 3));
  std::vector<float> read(2);
  memory.read(host_array(a).subarray(1, 2), read);
  EXPECT_THAT(read, ElementsAre(-1, 3));
  memory.write(read, host_array(b).subarray(0, 2));
  EXPECT_THAT(b, ElementsAre(-1, 3, 30));
}

TEST(HostMemory, TakesAnArrayFromWhoeverHasIt) {
  Buffer buffer(10);
  const auto* const place = buffer.data();
  const auto owned = host_array(std::move(buffer));
  EXPECT_EQ(reinterpret_cast<std::byte*>(owned.data.get()), place);
  EXPECT_EQ(owned.size, 2u);
}

TEST(ArrayDeathTest, OfADeviceIsNoSpan) {
  const PoisonedMemory device;
  const auto owned = device.allocate(4);
  EXPECT_DEATH((void)owned.array().host(), "it lies on the host");
  EXPECT_DEATH(*owned.array().data = 1, "");
  EXPECT_DEATH((void)owned.array().subarray(3, 2), "lies inside");
}

TEST(PoisonedMemory, DoesWhatTheHostsDoes) {
  const PoisonedMemory device;
  const auto a = device.allocate(3), b = device.allocate(3);
  const std::vector<float> values{1, 2, 3};
  device.write(values, a.array());
  device.fill(b.array(), 0.5);
  device.add(a.array(), b.array(), b.array());
  device.copy(b.array().subarray(0, 1), a.array().subarray(2, 1));
  std::vector<float> read(3);
  device.read(b.array(), read);
  EXPECT_THAT(read, ElementsAre(1.5, 2.5, 3.5));
  device.read(a.array(), read);
  EXPECT_THAT(read, ElementsAre(1, 2, 1.5));
}

}  // namespace
}  // namespace paceline::base
