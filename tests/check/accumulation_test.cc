/// Gradients that are added up over several passes: sound tables may print the local batch of one pass and
/// the steps, rates and bandwidths of updates.

#include <gtest/gtest.h>

#include "check/check.h"

namespace paceline::check {
namespace {

std::vector<std::string> said_of(const std::string& csv) {
  std::vector<std::string> rules;
  for (const auto& one : check_table(table::read_table(csv, "t.csv")).findings)
    if (one.severity != Severity::note) rules.push_back(one.rule);
  return rules;
}

using Rules = std::vector<std::string>;

TEST(Accumulation, StepsMayBeUpdatesOrPasses) {
  const std::string head =
      "run,workers,local_batch,setting.grad_accum,train_samples,steps,time_s,time_of,rate_per_s,rate_of\n";
  EXPECT_EQ(said_of(head + "a,8,16,4,51200,100,50.0,epoch,1024,all\n"), Rules{});
  EXPECT_EQ(said_of(head + "a,8,16,4,51200,400,50.0,epoch,1024,all\n"), Rules{});
  EXPECT_EQ(said_of(head + "a,8,16,4,51200,800,50.0,epoch,1024,all\n"), Rules{"size.workers"});
}

TEST(Accumulation, TheTimeOfAStepMayBeThatOfAllPasses) {
  const std::string head = "run,workers,local_batch,setting.grad_accum,time_s,time_of,rate_per_s,rate_of\n";
  EXPECT_EQ(said_of(head + "a,8,16,4,0.500,step,1024,all\n"), Rules{});
  EXPECT_EQ(said_of(head + "a,8,16,4,0.500,step,128,worker\n"), Rules{});
  EXPECT_EQ(said_of(head + "a,8,16,4,0.500,step,700,all\n"), Rules{"time.rate"});
}

TEST(Accumulation, OnlyTheLastPassMayReduce) {
  const std::string head =
      "run,workers,local_batch,setting.grad_accum,train_samples,communication_s,time_of,parameters,element_bytes,"
      "claimed_bandwidth,bandwidth_unit,bandwidth_is\n";
  EXPECT_EQ(said_of(head + "a,8,16,4,51200,10.0,epoch,11173962,4,0.782,GB/s,busbw\n"), Rules{});
  EXPECT_EQ(said_of(head + "a,8,16,4,51200,10.0,epoch,11173962,4,3.129,GB/s,busbw\n"), Rules{});
  EXPECT_EQ(said_of(head + "a,8,16,4,51200,10.0,epoch,11173962,4,25.03,GB/s,busbw\n"),
            Rules{"bandwidth.formula"});
}

}  // namespace
}  // namespace paceline::check
