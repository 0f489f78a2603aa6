#include "train/step/momentum_correction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/reference/optimizer/update.h"
#include "graph/builder.h"
#include "graph/layout.h"

namespace paceline::train {
namespace {

constexpr Length kLength{.updates = 40, .updates_per_epoch = 10};

Options lars(bool corrected) {
  Options options;
  options.rule = {.kind = engine::UpdateKind::lars, .momentum = 0.9, .weight_decay = 0};
  options.schedule = {.kind = ScheduleKind::step, .warmup_epochs = 1, .step_epochs = 2, .step_factor = 0.1};
  options.momentum_correction = corrected;
  return options;
}

TEST(MomentumCorrection, FollowsTheRatioOfTheRates) {
  const auto momentum = [](const Options& options, std::int64_t update) {
    return rule_of_update(options, 2, update, kLength).momentum;
  };
  EXPECT_DOUBLE_EQ(momentum(lars(true), 0), 0.9);         // nothing before
  EXPECT_DOUBLE_EQ(momentum(lars(true), 1), 0.9 * 2);     // warm-up: twice the first rate
  EXPECT_DOUBLE_EQ(momentum(lars(true), 15), 0.9);        // no change
  EXPECT_DOUBLE_EQ(momentum(lars(true), 20), 0.9 * 0.1);  // the step
  EXPECT_DOUBLE_EQ(momentum(lars(false), 20), 0.9);
  Options sgd = lars(true);
  sgd.rule.kind = engine::UpdateKind::sgd;
  EXPECT_DOUBLE_EQ(momentum(sgd, 20), 0.9);
}

/// Trains one bias of a dense layer by `options` on the gradients 1, 2, 3, ...
std::vector<double> trained(const Options& options, double peak) {
  graph::Builder model("one");
  model.loss(model.dense(model.input({1, 1, 1}), "fc", {.features = 2}), 0);
  const graph::Graph graph = model.finish();
  const auto layout = graph::flat_layout(graph);
  const auto size = static_cast<std::size_t>(layout.elements);
  std::vector<double> weights(size, 0.5), velocity(size, 0), gradients(size, 0), seen;
  const std::span<double> state(velocity);
  for (std::int64_t update = 0; update < kLength.updates; ++update) {
    for (std::size_t i = 0; i < size; ++i) gradients[i] = std::sin(static_cast<double>(update) + 1);
    const auto rule = rule_of_update(options, peak, update, kLength);
    engine::reference::apply_update<double>(graph, layout, rule,
                                            learning_rate(options.schedule, peak, update, kLength),
                                            update + 1, weights, gradients, {state});
    // A bias: LARS has no factor of its own there, so that its formula is the plain v = m v + lr g.
    for (const auto& slot : layout.slots)
      if (graph.parameters[static_cast<std::size_t>(slot.parameter)].role == graph::Role::bias)
        seen.push_back(weights[static_cast<std::size_t>(slot.offset)]);
  }
  return seen;
}

// Goyal et al.'s remark 2: their form (10) with the correction is their form (9), in which SGD is written
// here.
TEST(MomentumCorrection, MakesBothFormsOfMomentumOne) {
  Options sgd = lars(false);
  sgd.rule.kind = engine::UpdateKind::sgd;
  const auto exact = trained(sgd, 0.2), corrected = trained(lars(true), 0.2),
             plain = trained(lars(false), 0.2);
  ASSERT_EQ(exact.size(), 40u);
  double apart = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    EXPECT_NEAR(corrected[i], exact[i], 1e-12) << i;
    apart = std::max(apart, std::abs(plain[i] - exact[i]));
  }
  EXPECT_GT(apart, 1e-3);  // without it they part
}

}  // namespace
}  // namespace paceline::train
