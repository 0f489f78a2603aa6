#include "engine/ghost/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "engine/make.h"
#include "graph/zoo.h"

namespace paceline::engine::ghost {
namespace {

using testing::Each;
using testing::HasSubstr;

graph::Graph small_graph() { return graph::make_model("mnist-cnn", {1, 28, 28}, 10, 0); }

CompileOptions sleeping(const char* phases, int batch = 4) {
  return {.batch = batch, .emulated_compute = phases};
}

std::string refusal(const CompileOptions& options) {
  try {
    (void)engine::compile("cpu", small_graph(), options);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::usage);
    return error.what();
  }
  return "accepted";
}

TEST(Engine, StandsInForDevicesOfTheHost) {
  const auto graph = small_graph();
  const auto options = sleeping("forward=1ms,backward=1ms");
  const auto ghost = engine::compile("cpu", graph, options),
             real = engine::compile("cpu", graph, {.batch = 4});
  EXPECT_EQ(ghost->name(), "ghost");
  EXPECT_EQ(ghost->gradients().size, real->gradients().size);
  EXPECT_EQ(ghost->weights().size(), real->weights().size());
  EXPECT_EQ(engine::prepare("cpu", graph, options, {}).algorithms, nullptr);
  std::int64_t planned = 0;
  for (const auto& line : engine::plan("cpu", graph, options).lines) planned += line.bytes;
  EXPECT_EQ(planned, 2 * static_cast<std::int64_t>(real->gradients().bytes()));
}

TEST(Engine, TakesItsPhasesAndLearnsNothing) {
  const auto engine =
      engine::compile("cpu", small_graph(), sleeping("forward=20ms,backward=40ms,update=10ms"));
  for (auto& weight : engine->weights()) weight = 0.5f;
  engine->weights_changed();
  const auto begin = base::Clock::now();
  const auto sums = engine->forward({.step = 3});
  EXPECT_GE(base::seconds_since(begin), 0.02);
  EXPECT_EQ(sums.samples, 4);
  EXPECT_DOUBLE_EQ(sums.loss, 4 * std::log(10.0));
  EXPECT_EQ(sums.correct, 0);
  std::vector<std::int64_t> ready;
  engine->backward([&](std::int64_t elements) { ready.push_back(elements); });
  EXPECT_GE(base::seconds_since(begin), 0.06);
  EXPECT_TRUE(std::is_sorted(ready.begin(), ready.end()));
  EXPECT_EQ(ready.back(), engine->layout().elements);
  engine->update({}, 0.1, 1);
  EXPECT_GE(base::seconds_since(begin), 0.07);
  EXPECT_THAT(engine->weights(), Each(0.5f));
  EXPECT_THAT(engine->gradients().host(), Each(0.0f));
}

TEST(Engine, SaysReadyWhereItIsAsked) {
  const auto engine = engine::compile("cpu", small_graph(), sleeping("forward=1ms,backward=1ms"));
  const std::vector<std::int64_t> ends{engine->layout().slots[2].offset, engine->layout().elements};
  engine->cut_backward(ends);
  std::vector<std::int64_t> ready;
  (void)engine->forward({});
  engine->backward([&](std::int64_t elements) { ready.push_back(elements); });
  EXPECT_EQ(ready, ends);
}

TEST(Engine, IsReadyByLayersOrByRecord) {
  const auto graph = small_graph();
  const auto layout = graph::flat_layout(graph);
  std::vector<std::int64_t> ends;
  for (std::size_t i = 1; i < layout.slots.size(); ++i) ends.push_back(layout.slots[i].offset);
  ends.push_back(layout.elements);
  const auto by_layers = ready_times({.forward_s = 1, .backward_s = 2}, graph, layout, ends);
  EXPECT_TRUE(std::is_sorted(by_layers.begin(), by_layers.end()));
  EXPECT_GT(by_layers.front(), 0);
  EXPECT_LT(by_layers.front(), 1) << "the last dense layer is a small part of the work";
  EXPECT_DOUBLE_EQ(by_layers.back(), 2);

  const std::int64_t bytes = 4 * layout.elements;
  const Phases measured{.forward_s = 1, .backward_s = 2, .ready = {{bytes / 2, 0.5}, {bytes, 1.5}}};
  const auto by_record = ready_times(measured, graph, layout,
                                     std::vector{layout.elements / 4, layout.elements / 2, layout.elements});
  EXPECT_NEAR(by_record[0], 0.25, 1e-5);
  EXPECT_NEAR(by_record[1], 0.5, 1e-5);
  EXPECT_DOUBLE_EQ(by_record[2], 1.5);
}

TEST(Engine, RefusesPhasesOfAnotherBatchOrModel) {
  EXPECT_THAT(refusal(sleeping("forward=1ms,backward=1ms,batch=8")),
              HasSubstr("its phases are of batches of 8, and a worker has 4"));
  EXPECT_EQ(refusal(sleeping("forward=1ms,backward=1ms,batch=8", 8)), "accepted");
  EXPECT_THAT(refusal(sleeping("forward=1ms,backward=1ms,ready=4000:1ms")),
              HasSubstr("its ready times are of a gradient of 4000 bytes, and that of model 'mnist-cnn'"));
}

}  // namespace
}  // namespace paceline::engine::ghost
