#include "graph/traffic.h"

#include <gtest/gtest.h>

#include "graph/builder.h"
#include "graph/layout.h"
#include "graph/zoo.h"

namespace paceline::graph {
namespace {

// input 2x4x4 (32) -> conv 3 (48) -> relu (48) -> pool (3) -> dense 10 -> loss
TEST(Traffic, CountsWhatEachOpReadsAndWrites) {
  Builder model("small");
  int value = model.conv2d(model.input({2, 4, 4}), "conv", {.channels = 3, .padding = 1});
  value = model.relu(value);
  value = model.global_average_pool(value);
  value = model.dense(value, "fc", {.features = 10});
  const int logits = value;
  model.loss(logits, 0);
  const Graph graph = model.finish();
  const std::int64_t loss = graph.nodes.back().shape.elements();
  // Forward: inputs + output. Backward: what was kept, the output's gradient, and that of an input which
  // needs one.
  const std::int64_t conv = (32 + 48) + (32 + 48);       // the image takes no gradient
  const std::int64_t relu = (48 + 48) + (48 + 48 + 48);  // keeps its output
  const std::int64_t pool = (48 + 3) + (3 + 48);
  const std::int64_t fc = (3 + 10) + (3 + 10 + 3);
  const Traffic fp32 = training_traffic(graph, 4, 1), bf16 = training_traffic(graph, 2, 1);
  const std::int64_t known = 4 * (conv + relu + pool + fc);
  EXPECT_GE(fp32.bytes_a_sample, known);
  EXPECT_LE(fp32.bytes_a_sample, known + 4 * (3 * 10 + 3 * loss));
  EXPECT_EQ(2 * bf16.bytes_a_sample, fp32.bytes_a_sample);
  EXPECT_EQ(bf16.bytes_a_step, fp32.bytes_a_step);
  EXPECT_EQ(fp32.bytes_a_step, 4 * 8 * flat_layout(graph).elements);
  EXPECT_EQ(training_traffic(graph, 4, 2).bytes_a_step, 4 * 10 * flat_layout(graph).elements);
}

}  // namespace
}  // namespace paceline::graph
