// Update rules against closed forms and against their definitions, in double.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "engine/reference/engine.h"
#include "engine/reference/toy.h"
#include "graph/layout.h"

namespace paceline::engine::reference {
namespace {

/// One dense layer of 2 x 3 with bias, behind a batch norm: every role is there.
class Update : public testing::Test {
 protected:
  Update() {
    graph::Builder model("tiny");
    const int norm = model.batch_norm(model.input({3, 1, 1}), "bn");
    model.loss(model.dense(norm, "fc", {.features = 2}), 0);
    graph_ = model.finish();
    layout_ = graph::flat_layout(graph_);
    weights_.assign(static_cast<std::size_t>(layout_.elements), 0.0);
    gradients_ = weights_;
    for (auto& state : state_) state = weights_;
  }
  void step(const UpdateRule& rule, double lr, std::int64_t update) {
    std::vector<std::span<double>> state;
    for (int i = 0; i < state_slots(rule); ++i) state.emplace_back(state_[static_cast<std::size_t>(i)]);
    apply_update<double>(graph_, layout_, rule, lr, update, weights_, gradients_, state);
  }
  /// First element of a parameter by name, in one of the flat arrays.
  double& at(std::vector<double>& array, const std::string& name, std::size_t element = 0) {
    const auto found = std::ranges::find(graph_.parameters, name, &graph::Parameter::name);
    const auto slot = layout_.slot_of_parameter[static_cast<std::size_t>(found - graph_.parameters.begin())];
    return array[static_cast<std::size_t>(layout_.slots[static_cast<std::size_t>(slot)].offset) + element];
  }
  graph::Graph graph_;
  graph::Layout layout_;
  std::vector<double> weights_, gradients_;
  std::array<std::vector<double>, 2> state_;
};

TEST_F(Update, SgdSubtractsTheGradient) {
  at(weights_, "fc.weight") = 2;
  at(gradients_, "fc.weight") = 3;
  step({}, 0.1, 1);
  step({}, 0.1, 2);
  EXPECT_DOUBLE_EQ(at(weights_, "fc.weight"), 2 - 2 * 0.3);
}

TEST_F(Update, MomentumSumsAGeometricSeries) {
  // Constant gradient 1: velocity after k steps is (1 - m^k) / (1 - m); the weight is minus lr times their
  // sum.
  at(gradients_, "fc.weight") = 1;
  const double m = 0.9, lr = 0.5;
  for (int k = 1; k <= 6; ++k) step({.momentum = m}, lr, k);
  double sum = 0;
  for (int k = 1; k <= 6; ++k) sum += (1 - std::pow(m, k)) / (1 - m);
  EXPECT_NEAR(at(weights_, "fc.weight"), -lr * sum, 1e-14);
  EXPECT_NEAR(at(state_[0], "fc.weight"), (1 - std::pow(m, 6)) / (1 - m), 1e-14);
}

TEST_F(Update, ARateScalesTheStepButNotTheDecayAndZeroFreezes) {
  // PyTorch's parameter groups with lr * rate and weight_decay / rate.
  for (const UpdateKind kind : {UpdateKind::sgd, UpdateKind::lars, UpdateKind::adam, UpdateKind::adamw,
                                UpdateKind::rmsprop, UpdateKind::adadelta, UpdateKind::lamb}) {
    const UpdateRule rule{.kind = kind, .momentum = kind == UpdateKind::sgd ? 0.9 : 0, .weight_decay = 0.02};
    const auto after = [&](const UpdateRule& used, double lr, double rate) {
      for (auto& parameter : graph_.parameters)
        if (parameter.name == "fc.weight") parameter.rate = rate;
      std::ranges::fill(weights_, 0.0);
      for (auto& state : state_) std::ranges::fill(state, 0.0);
      at(weights_, "fc.weight") = 2;
      at(gradients_, "fc.weight") = 3;
      for (int k = 1; k <= 3; ++k) step(used, lr, k);
      return at(weights_, "fc.weight");
    };
    UpdateRule divided = rule;
    divided.weight_decay /= 4;
    EXPECT_NEAR(after(rule, 0.1, 4), after(divided, 0.4, 1), 1e-14);
    EXPECT_EQ(after(rule, 0.1, 0), 2);
  }
}

TEST_F(Update, NesterovLooksOneStepAhead) {
  at(gradients_, "fc.weight") = 1;
  const double m = 0.9;
  for (int k = 1; k <= 3; ++k) step({.momentum = m, .nesterov = true}, 1, k);
  // Each step takes g + m v_k = v_(k+1) of the constant gradient.
  EXPECT_NEAR(at(weights_, "fc.weight"), -((1 + m) + (1 + m + m * m) + (1 + m + m * m + m * m * m)), 1e-14);
}

TEST_F(Update, WeightDecayAloneShrinksGeometrically) {
  at(weights_, "fc.weight") = 5;
  for (int k = 1; k <= 4; ++k) step({.weight_decay = 0.5}, 0.1, k);
  EXPECT_NEAR(at(weights_, "fc.weight"), 5 * std::pow(0.95, 4), 1e-14);
}

TEST_F(Update, DecayCanSpareNormAndBias) {
  for (const bool all : {true, false}) {
    for (const char* name : {"fc.weight", "fc.bias", "bn.weight", "bn.bias"}) at(weights_, name) = 1;
    step({.weight_decay = 0.5, .decay_norm_and_bias = all}, 0.1, 1);
    EXPECT_DOUBLE_EQ(at(weights_, "fc.weight"), 0.95);
    for (const char* name : {"fc.bias", "bn.weight", "bn.bias"})
      EXPECT_DOUBLE_EQ(at(weights_, name), all ? 0.95 : 1) << name;
  }
}

TEST_F(Update, AdamsFirstStepsAreTheSignOfAConstantGradient) {
  // With a constant gradient both corrected moments are exactly g and g^2: each step is lr * g / (|g| + eps).
  for (const auto kind : {UpdateKind::adam, UpdateKind::adamw}) {
    at(weights_, "fc.weight") = 0;
    at(gradients_, "fc.weight") = -4;
    for (auto& state : state_) std::ranges::fill(state, 0.0);
    for (int k = 1; k <= 5; ++k) step({.kind = kind, .epsilon = 1}, 0.1, k);
    EXPECT_NEAR(at(weights_, "fc.weight"), 5 * 0.1 * 4 / (4 + 1), 1e-12);
  }
}

TEST_F(Update, AdamDecaysThroughTheGradientAndAdamWBesideIt) {
  at(weights_, "fc.weight") = at(weights_, "fc.bias") = 10;
  step({.kind = UpdateKind::adam, .weight_decay = 0.1}, 0.01, 1);
  EXPECT_NEAR(at(weights_, "fc.weight"), 10 - 0.01, 1e-9);  // g = 1 from the decay: one step of lr
  for (auto& state : state_) std::ranges::fill(state, 0.0);
  at(weights_, "fc.weight") = 10;
  step({.kind = UpdateKind::adamw, .weight_decay = 0.1}, 0.01, 1);
  EXPECT_NEAR(at(weights_, "fc.weight"), 10 * (1 - 0.001), 1e-12);  // no gradient: only the decay
}

TEST_F(Update, RmspropDividesByTheRunningRoot) {
  at(gradients_, "fc.weight") = 2;
  const double alpha = 0.9;
  double expected = 0;
  for (int k = 1; k <= 4; ++k) {
    step({.kind = UpdateKind::rmsprop, .alpha = alpha, .epsilon = 0.5}, 0.1, k);
    expected -= 0.1 * 2 / (2 * std::sqrt(1 - std::pow(alpha, k)) + 0.5);  // mean square is g^2 (1 - alpha^k)
  }
  EXPECT_NEAR(at(weights_, "fc.weight"), expected, 1e-13);
}

TEST_F(Update, RmspropWithMomentumKeepsAVelocity) {
  at(gradients_, "fc.weight") = 2;
  // alpha = 0: the mean square is g^2 at once, each scaled step is g / |g| = 1, the velocity a geometric
  // series.
  for (int k = 1; k <= 3; ++k)
    step({.kind = UpdateKind::rmsprop, .momentum = 0.5, .alpha = 0, .epsilon = 0}, 0.1, k);
  EXPECT_NEAR(at(weights_, "fc.weight"), -0.1 * (1 + 1.5 + 1.75), 1e-14);
}

TEST_F(Update, AdadeltaFollowsZeilersRecurrence) {
  at(gradients_, "fc.weight") = 3;
  const double rho = 0.8, epsilon = 0.01;
  double square = 0, changes = 0, w = 0;
  for (int k = 1; k <= 4; ++k) {
    step({.kind = UpdateKind::adadelta, .rho = rho, .epsilon = epsilon}, 0.7, k);
    square = rho * square + (1 - rho) * 9;
    const double change = std::sqrt((changes + epsilon) / (square + epsilon)) * 3;
    changes = rho * changes + (1 - rho) * change * change;
    w -= 0.7 * change;
  }
  EXPECT_NEAR(at(weights_, "fc.weight"), w, 1e-13);
}

TEST_F(Update, LarsStepsByThePartOfTheWeightNorm) {
  // fc.weight = (3, 4, 0...), gradient (0, 0, 10, ...): |w| = 5, |g| = 10.
  at(weights_, "fc.weight", 0) = 3;
  at(weights_, "fc.weight", 1) = 4;
  at(gradients_, "fc.weight", 2) = 10;
  at(weights_, "fc.bias") = 1;
  at(gradients_, "fc.bias") = 2;
  const UpdateRule rule{.kind = UpdateKind::lars, .momentum = 0.9, .weight_decay = 0.2, .trust = 0.1};
  step(rule, 0.5, 1);
  const double local_lr = 0.1 * 5 / (10 + 0.2 * 5);
  EXPECT_NEAR(at(weights_, "fc.weight", 2), -0.5 * local_lr * 10, 1e-14);
  EXPECT_NEAR(at(weights_, "fc.weight", 0), 3 - 0.5 * local_lr * 0.2 * 3, 1e-14);
  EXPECT_NEAR(at(weights_, "fc.bias"), 1 - 0.5 * 2, 1e-14) << "no trust, no decay on a bias";
  // A new lr scales the new gradient only: the velocity already holds the old one (You et al., algorithm 1).
  at(gradients_, "fc.bias") = 0;
  step(rule, 0.001, 2);
  EXPECT_NEAR(at(weights_, "fc.bias"), 0 - 0.9 * 1, 1e-14);
}

TEST_F(Update, LambStepsByTheWeightNorm) {
  // fc.weight = (3, 4, 0...): |w| = 5. Without bias corrections' effect at step 1: m / sqrt(v) is the sign.
  at(weights_, "fc.weight", 0) = 3;
  at(weights_, "fc.weight", 1) = 4;
  at(gradients_, "fc.weight", 2) = -10;
  at(weights_, "fc.bias") = 1;
  at(gradients_, "fc.bias") = 2;
  const UpdateRule rule{.kind = UpdateKind::lamb, .weight_decay = 0.2, .epsilon = 1e-12};
  step(rule, 0.5, 1);
  // u = (0.6, 0.8, -1, 0...).
  const double local_lr = 5 / std::sqrt(0.36 + 0.64 + 1);
  EXPECT_NEAR(at(weights_, "fc.weight", 2), 0.5 * local_lr, 1e-10);
  EXPECT_NEAR(at(weights_, "fc.weight", 0), 3 - 0.5 * local_lr * 0.6, 1e-10);
  EXPECT_NEAR(at(weights_, "fc.bias"), 1 - 0.5, 1e-10) << "no local rate, no decay on a bias";
}

TEST_F(Update, LambOfZerosIsFinite) {
  at(weights_, "fc.weight") = 1;
  step({.kind = UpdateKind::lamb}, 0.5, 1);
  EXPECT_DOUBLE_EQ(at(weights_, "fc.weight"), 1) << "no gradient";
  std::ranges::fill(weights_, 0.0);
  at(gradients_, "fc.weight") = 1;
  step({.kind = UpdateKind::lamb, .epsilon = 1e-12}, 0.5, 1);
  EXPECT_NEAR(at(weights_, "fc.weight"), -0.5, 1e-10) << "no weight: the rate is 1";
}

TEST_F(Update, ClippingScalesTheWholeGradient) {
  // (3, 4, 12) in three parameters: 13 long. The mean that a batch norm keeps is no gradient.
  const auto gradient = [&] {
    at(gradients_, "fc.weight", 5) = 3;
    at(gradients_, "fc.bias") = 4;
    at(gradients_, "bn.weight") = 12;
    at(gradients_, "bn.running_mean") = 1000;
  };
  for (const double most : {6.5, 20.0}) {
    std::ranges::fill(weights_, 0.0);
    gradient();
    step({.clip_norm = most}, 0.1, 1);
    const double factor = most < 13 ? most / (13 + 1e-6) : 1;
    EXPECT_DOUBLE_EQ(at(weights_, "fc.weight", 5), -0.1 * factor * 3) << most;
    EXPECT_DOUBLE_EQ(at(weights_, "bn.weight"), -0.1 * factor * 12) << most;
    EXPECT_DOUBLE_EQ(at(weights_, "bn.running_mean"), 0.1 * 1000) << most;
  }
  // A parameter that does not learn does not count.
  for (auto& parameter : graph_.parameters)
    if (parameter.name == "bn.weight") parameter.rate = 0;
  std::ranges::fill(weights_, 0.0);
  step({.clip_norm = 1}, 0.1, 1);
  EXPECT_NEAR(at(weights_, "fc.bias"), -0.1 * 4 / 5, 1e-6);
}

TEST_F(Update, LarsOfAZeroGradientIsFinite) {
  at(weights_, "fc.weight") = 1;
  step({.kind = UpdateKind::lars, .momentum = 0.9}, 0.5, 1);
  EXPECT_DOUBLE_EQ(at(weights_, "fc.weight"), 1);
}

TEST_F(Update, RunningValuesAreFoldedNotTrained) {
  at(weights_, "bn.running_mean") = 2;
  at(gradients_, "bn.running_mean") = 12;
  step({.momentum = 0.9, .weight_decay = 0.5}, 100, 1);
  EXPECT_DOUBLE_EQ(at(weights_, "bn.running_mean"), 0.9 * 2 + 0.1 * 12);
}

TEST_F(Update, PaddingStaysZeroUnderEveryRule) {
  std::vector<bool> used(weights_.size());
  for (const auto& slot : layout_.slots)
    for (std::int64_t i = 0; i < slot.elements; ++i) used[static_cast<std::size_t>(slot.offset + i)] = true;
  for (const auto kind : {UpdateKind::sgd, UpdateKind::adam, UpdateKind::adamw, UpdateKind::rmsprop,
                          UpdateKind::adadelta, UpdateKind::lars}) {
    step({.kind = kind, .momentum = 0.9, .weight_decay = 0.1}, 0.1, 1);
    for (std::size_t i = 0; i < used.size(); ++i) EXPECT_TRUE(used[i] || weights_[i] == 0) << i;
  }
}

TEST(StateSlots, AreWhatEachRuleKeeps) {
  EXPECT_EQ(state_slots({}), 0);
  EXPECT_EQ(state_slots({.momentum = 0.9}), 1);
  EXPECT_EQ(state_slots({.kind = UpdateKind::lars}), 1);
  EXPECT_EQ(state_slots({.kind = UpdateKind::adam}), 2);
  EXPECT_EQ(state_slots({.kind = UpdateKind::adamw}), 2);
  EXPECT_EQ(state_slots({.kind = UpdateKind::rmsprop}), 1);
  EXPECT_EQ(state_slots({.kind = UpdateKind::rmsprop, .momentum = 0.9}), 2);
  EXPECT_EQ(state_slots({.kind = UpdateKind::adadelta}), 2);
}

}  // namespace
}  // namespace paceline::engine::reference
