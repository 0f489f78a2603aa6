#include "base/buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "base/error.h"

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
}  // namespace paceline::base
