#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "cluster/make_backend.h"

namespace paceline::cluster {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(NoteOfOtherKernels, NamesTheFirstProcessesAndCountsTheRest) {
  EXPECT_EQ(note_of_other_kernels({}, 24), "");
  std::vector<OtherKernels> others;
  for (int process = 1; process <= 6; ++process) others.push_back({process, "b", 3});
  const auto note = note_of_other_kernels(others, 24);
  EXPECT_THAT(note, HasSubstr("process 1 on b (3 of 24 problems), process 2 on b (3 of 24 problems)"));
  EXPECT_THAT(note, HasSubstr("process 4 on b (3 of 24 problems) and 2 more;"));
  EXPECT_THAT(note, Not(HasSubstr("process 5")));
}

}  // namespace
}  // namespace paceline::cluster
