#include "base/protobuf.h"

#include <gtest/gtest.h>

namespace paceline::base::protobuf {
namespace {

using namespace std::string_literals;

// The examples of protobuf's description of its encoding, and the ends of the ranges.

TEST(Protobuf, WritesWholeNumbersSevenBitsAByte) {
  for (const auto& [value, bytes] :
       {std::pair{std::int64_t{0}, "\x08\x00"s}, std::pair{std::int64_t{1}, "\x08\x01"s},
        std::pair{std::int64_t{127}, "\x08\x7f"s}, std::pair{std::int64_t{128}, "\x08\x80\x01"s},
        std::pair{std::int64_t{150}, "\x08\x96\x01"s},
        std::pair{std::int64_t{-1}, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s}}) {
    std::string message;
    add_whole_number(message, 1, value);
    EXPECT_EQ(message, bytes) << value;
  }
}

TEST(Protobuf, WritesNumbersTextsAndMessages) {
  std::string inner, message;
  add_whole_number(inner, 1, 150);
  add_bytes(message, 2, "testing");
  add_bytes(message, 3, inner);
  EXPECT_EQ(message, "\x12\x07testing\x1a\x03\x08\x96\x01"s);
  std::string numbers;
  add_float(numbers, 2, 1.0F);
  add_double(numbers, 20, -2.0);
  EXPECT_EQ(numbers, "\x15\x00\x00\x80\x3f\xa1\x01\x00\x00\x00\x00\x00\x00\x00\xc0"s);
}

}  // namespace
}  // namespace paceline::base::protobuf
