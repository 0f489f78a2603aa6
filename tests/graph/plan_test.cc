#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "graph/all_ops.h"
#include "graph/layout.h"
#include "graph/ops.h"
#include "graph/plan.h"
#include "graph/zoo.h"

namespace paceline::graph {
namespace {

bool live_together(const BufferRequest& a, const BufferRequest& b) {
  return a.first_use <= b.last_use && b.first_use <= a.last_use;
}

void expect_valid(const std::vector<BufferRequest>& requests, const Placement& placement) {
  ASSERT_EQ(placement.offsets.size(), requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(placement.offsets[i] % 64, 0);
    EXPECT_LE(placement.offsets[i] + requests[i].bytes, placement.bytes);
    for (std::size_t j = 0; j < i; ++j) {
      if (!live_together(requests[i], requests[j]) || requests[i].bytes == 0 || requests[j].bytes == 0)
        continue;
      EXPECT_TRUE(placement.offsets[i] + requests[i].bytes <= placement.offsets[j] ||
                  placement.offsets[j] + requests[j].bytes <= placement.offsets[i])
          << "requests " << i << " and " << j << " overlap in time and place";
    }
  }
  EXPECT_GE(placement.bytes, peak_bytes(requests));
}

/// Values and gradients of a training step, as an engine asks for them: node i forward at i, backward at
/// 2n-1-i.
std::vector<BufferRequest> training_requests(const Graph& graph, std::int64_t batch) {
  const int nodes = static_cast<int>(graph.nodes.size());
  const std::vector<bool> kept = kept_for_backward(graph);
  std::vector<BufferRequest> values, gradients;
  for (int i = 0; i < nodes; ++i) {
    const auto bytes = batch * graph.nodes[static_cast<std::size_t>(i)].shape.elements() * 4;
    values.push_back({bytes, i, i});
    gradients.push_back({bytes, 2 * nodes - 1 - i, 2 * nodes - 1 - i});
  }
  for (int i = 0; i < nodes; ++i) {
    const Saved saved = rule_of(graph.nodes[static_cast<std::size_t>(i)].op).saved;
    if (saved.dst) values[static_cast<std::size_t>(i)].last_use = 2 * nodes - 1 - i;
    for (const int input : graph.nodes[static_cast<std::size_t>(i)].inputs) {
      auto& value = values[static_cast<std::size_t>(input)];
      value.last_use = std::max(value.last_use, saved.src ? 2 * nodes - 1 - i : i);
      auto& gradient = gradients[static_cast<std::size_t>(input)];
      gradient.first_use = std::min(gradient.first_use, 2 * nodes - 1 - i);
    }
  }
  values.insert(values.end(), gradients.begin(), gradients.end());
  return values;
}

TEST(Place, GivesNothingForNothing) {
  EXPECT_EQ(place({}).bytes, 0);
  EXPECT_EQ(peak_bytes({}), 0);
  EXPECT_EQ(place({{.bytes = 0, .first_use = 3, .last_use = 3}}).bytes, 0);
}

TEST(Place, ReusesWhatHasDied) {
  const std::vector<BufferRequest> requests = {{640, 0, 1}, {640, 2, 3}, {640, 4, 4}};
  expect_valid(requests, place(requests));
  EXPECT_EQ(place(requests).bytes, 640);
}

TEST(Place, KeepsApartWhatTouchesAtOnePoint) {
  const std::vector<BufferRequest> requests = {{640, 0, 2}, {640, 2, 3}};
  expect_valid(requests, place(requests));
  EXPECT_EQ(place(requests).bytes, 1280);
  EXPECT_EQ(peak_bytes(requests), 1280);
}

TEST(Place, NeverOverlapsRandomRequests) {
  for (std::uint64_t round = 0; round < 50; ++round) {
    base::Rng rng(round, base::Purpose::test);
    std::vector<BufferRequest> requests;
    for (int i = 0; i < 60; ++i) {
      const int first = static_cast<int>(rng.below(40)) - 5;
      requests.push_back({rng.below(5000), first, first + static_cast<int>(rng.below(12))});
    }
    expect_valid(requests, place(requests));
  }
}

TEST(Place, ComesWithinAFewPerCentOfThePeakOnEveryModel) {
  for (const std::string& name : model_names()) {
    const Graph graph = make_model(name, {3, 64, 64}, 10, 0);
    const auto requests = training_requests(graph, 32);
    const Placement placement = place(requests);
    expect_valid(requests, placement);
    const double over = static_cast<double>(placement.bytes) / static_cast<double>(peak_bytes(requests));
    EXPECT_LT(over, 1.05) << name;
    RecordProperty(name, std::to_string(over));
  }
}

TEST(MemoryPlan, SumsItsLines) {
  EXPECT_EQ((MemoryPlan{{{"weights", 3}, {"activations", 4}}}).total_bytes(), 7);
}

}  // namespace

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
