/// A training to which the system refuses its nth thread, whichever: one sentence, an exit code, no waiting.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "program.h"

namespace paceline::cli {
namespace {

#ifdef PACELINE_REFUSE_THREAD

TEST(RefusedThread, EndsATrainingWithOneSentenceWhicheverItIs) {
  const Folder folder;
  // Once with all threads: then the kernels are measured, and no run below needs threads for that.
  std::vector<std::string> words{"train",
                                 "--model",
                                 "resnet8-cifar",
                                 "--data",
                                 "synthetic,train=64,test=32",
                                 "--steps",
                                 "2",
                                 "--local-batch",
                                 "8",
                                 "--workers",
                                 "2",
                                 "--threads",
                                 "3",
                                 "--loader-threads",
                                 "2",
                                 "--out",
                                 "o"};
  ASSERT_EQ(run_program(words, {.directory = folder.path()}).code, 0);
  int refused = 0;
  for (int number = 1; number < 60; ++number) {
    SCOPED_TRACE(number);
    words.back() = "o" + std::to_string(number);
    const auto outcome = run_program(words, {.directory = folder.path(), .refused_thread = number});
    if (outcome.code == 0) break;  // it needs no more
    ++refused;
    EXPECT_EQ(outcome.code, 4) << outcome.err;
    EXPECT_TRUE(outcome.err.starts_with("paceline: ")) << outcome.err;
    EXPECT_THAT(outcome.err, testing::HasSubstr("could not be started: "));
    EXPECT_THAT(outcome.err, testing::HasSubstr("ask for fewer"));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  EXPECT_GE(refused, 1 + 2 * (1 + 2 + 2))
      << "Ctrl-C's, and of each worker its own, its helpers', its loader's";
}

#endif

}  // namespace
}  // namespace paceline::cli
