#include "comm/failure/failure.h"

#include <gtest/gtest.h>

namespace paceline::comm {
namespace {

TEST(Failure, IsReadAsItWasWritten) {
  for (const auto kind :
       {base::ErrorKind::usage, base::ErrorKind::data, base::ErrorKind::device, base::ErrorKind::comm})
    for (const std::optional<double> detection_s : {std::optional<double>(), std::optional(3.512)}) {
      const Failure read = failure_of(
          line_of({.kind = kind, .text = "rank 3 gave up: the disk  is full", .detection_s = detection_s}));
      EXPECT_EQ(read.kind, kind);
      EXPECT_EQ(read.text, "rank 3 gave up: the disk  is full");
      EXPECT_EQ(read.detection_s.has_value(), detection_s.has_value());
      EXPECT_DOUBLE_EQ(read.detection_s.value_or(0), detection_s.value_or(0));
      EXPECT_FALSE(read.of_first()) << "process 0 says it";
    }
}

TEST(Failure, OfALineThatIsNoneIsALossOfThatText) {
  const Failure read = failure_of("x y the cable");
  EXPECT_EQ(read.kind, base::ErrorKind::comm);
  EXPECT_FALSE(read.detection_s);
  EXPECT_EQ(read.text, "the cable");
  EXPECT_EQ(failure_of("").text, "");
}

}  // namespace
}  // namespace paceline::comm
