/// What in a log of metrics is a key, and which numbers before its lines are of ranks.

#include "table/import/metrics_log.h"

#include <gtest/gtest.h>

namespace paceline::table {
namespace {

TEST(MetricLog, KnowsWordsForEpochsAndSteps) {
  for (const char* word : {"epoch", "Epoch", "EPOCH", "train/epoch"})
    EXPECT_EQ(metric_key_of(word), MetricKey::epoch) << word;
  for (const char* word : {"step", "_step", "Global Step", "trainer/global_step", "iter", "Iteration"})
    EXPECT_EQ(metric_key_of(word), MetricKey::step) << word;
  for (const char* word : {"epochs", "epoch time", "steps", "loss", ""})
    EXPECT_FALSE(metric_key_of(word)) << word;
}

TEST(MetricLog, TakesNoLineCountForARank) {
  FirstRank counted("[1] {}\n[2] {}\n[3] {}\n");
  for (const char* prefix : {"[1] ", "[2] ", "[3] "}) EXPECT_TRUE(counted.takes(prefix)) << prefix;
  FirstRank ranks("0: {}\n1: {}\n0: {}\n1: {}\n");
  EXPECT_TRUE(ranks.takes("0: "));
  EXPECT_FALSE(ranks.takes("1: "));
  EXPECT_TRUE(ranks.takes("0: "));
  EXPECT_EQ(counted.note(), "");
  EXPECT_NE(ranks.note(), "");
}

TEST(MetricLog, TakesNoClockForARank) {
  for (const char* prefix :
       {"[rank3]:", "[default3]:", "[1,3]<stdout>:", "[prterun-a@1,3]<stderr>: ", "3: ", "[3] ", " 3: "})
    EXPECT_EQ(rank_in(prefix), 3) << prefix;
  for (const char* prefix : {"", "10:22:33 ", "2025-03-11T10:22:33Z ", "[10:22:33] ", "node-3: ", "> "})
    EXPECT_FALSE(rank_in(prefix)) << prefix;
}

}  // namespace
}  // namespace paceline::table
