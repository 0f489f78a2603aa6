#include "engine/cuda/kernels/update.h"

#include "engine/cuda/kernels/kernel_runs.h"
#include "engine/cuda/kernels/lars.h"
#include "engine/cuda/kernels/update_tables.h"
#include "engine/reference/optimizer/update.h"
#include "graph/builder.h"

namespace paceline::engine::cuda {
namespace {

/// Weights longer than a chunk, lengths that are no multiple of 4, a frozen and a slow parameter, a batch
/// norm.
graph::Graph model() {
  graph::Builder builder("update");
  int x = builder.input({.channels = 3, .height = 8, .width = 8});
  x = builder.conv2d(x, "conv1", {.channels = 70, .padding = 1, .rates = {.weight = 0.25, .bias = 1}});
  x = builder.batch_norm(x, "norm", {.momentum = 0.3});
  x = builder.conv2d(x, "conv2",
                     {.channels = 13, .stride = 4, .bias = true, .rates = {.weight = 1, .bias = 0}});
  x = builder.dense(x, "fc", {.features = 7});
  builder.loss(x, 0);
  return builder.finish();
}

struct Arrays {
  std::vector<float> weights, gradients;
  std::vector<std::vector<float>> state;
};

class CudaUpdate : public ::testing::Test {
 protected:
  Arrays random_arrays(int slots) {
    const auto elements = static_cast<std::size_t>(layout_.elements);
    Arrays arrays{std::vector<float>(elements), std::vector<float>(elements), {}};
    std::normal_distribution<float> draw;
    for (const graph::Slot& slot : layout_.slots)
      for (std::int64_t i = slot.offset; i < slot.offset + slot.elements; ++i) {
        arrays.weights[static_cast<std::size_t>(i)] = draw(generator_);
        arrays.gradients[static_cast<std::size_t>(i)] = 0.1f * draw(generator_);
      }
    arrays.state.assign(static_cast<std::size_t>(slots), std::vector<float>(elements));
    return arrays;
  }

  void run_rule(const UpdateRule& rule, double lr, std::int64_t update, Arrays& arrays) {
    const std::vector<UpdateNumbers> numbers = update_numbers(graph_, layout_, rule, lr, update);
    std::vector<double> rates(layout_.slots.size(), kNan), partial(2 * tables_.chunks.size(), kNan);
    const auto chunks = static_cast<int>(tables_.chunks.size());
    if (rule.kind == UpdateKind::lars) {
      run(LarsNorms{tables_.chunks.data(), chunks, arrays.weights.data(), arrays.gradients.data(),
                    partial.data()},
          {output(partial)});
      run(LarsRates{tables_.first_chunk.data(), static_cast<int>(rates.size()), numbers.data(),
                    partial.data(), rates.data()},
          {output(rates)});
    }
    const auto launch = [&]<typename Rule>(Rule) {
      std::vector<Output> outputs{output(arrays.weights)};
      for (auto& state : arrays.state) outputs.push_back(output(state));
      const auto state = [&](std::size_t i) {
        return i < arrays.state.size() ? arrays.state[i].data() : nullptr;
      };
      run(Update<Rule>{tables_.chunks.data(), chunks, numbers.data(), rates.data(), arrays.weights.data(),
                       arrays.gradients.data(), state(0), state(1)},
          outputs);
    };
    switch (rule.kind) {
      case UpdateKind::sgd:
        launch(SgdRule{});
        break;
      case UpdateKind::adam:
        launch(AdamRule<false>{});
        break;
      case UpdateKind::adamw:
        launch(AdamRule<true>{});
        break;
      case UpdateKind::rmsprop:
        launch(RmspropRule{});
        break;
      case UpdateKind::adadelta:
        launch(AdadeltaRule{});
        break;
      case UpdateKind::lars:
        launch(LarsRule{});
        break;
    }
    run(RunningStatistics{tables_.running.data(), static_cast<int>(tables_.running.size()),
                          arrays.weights.data(), arrays.gradients.data()},
        {output(arrays.weights)});
  }

  /// Three updates beside the reference in float's storage and double arithmetic.
  void compare(const UpdateRule& rule, double lr) {
    SCOPED_TRACE(::testing::Message() << "rule " << static_cast<int>(rule.kind));
    Arrays got = random_arrays(state_slots(rule)), expected = got;
    for (std::int64_t update = 1; update <= 3; ++update) {
      std::vector<std::span<float>> state(expected.state.begin(), expected.state.end());
      reference::apply_update<float>(graph_, layout_, rule, lr, update, expected.weights,
                                     std::span<const float>(expected.gradients), state);
      run_rule(rule, lr, update, got);
      for (std::size_t i = 0; i < got.weights.size(); ++i) {
        ASSERT_NEAR(got.weights[i], expected.weights[i], 2e-6 * (1 + std::abs(expected.weights[i])))
            << "weight " << i << " after update " << update;
        for (std::size_t s = 0; s < got.state.size(); ++s) {
          // rmsprop's momentum adds steps of up to 1 / sqrt(1 - alpha) = 10, which cancel.
          const double terms = rule.kind == UpdateKind::rmsprop && s == 1 ? 10 : 1e-2;
          ASSERT_NEAR(got.state[s][i], expected.state[s][i], 2e-6 * (terms + std::abs(expected.state[s][i])))
              << "state " << s << " at " << i;
        }
      }
    }
  }

  const graph::Graph graph_ = model();
  const graph::Layout layout_ = graph::flat_layout(graph_);
  const UpdateTables tables_ = update_tables(graph_, layout_);
  std::mt19937 generator_{23};
};

TEST_F(CudaUpdate, EveryUsualRuleIsTheReference) {
  for (const UpdateRuleRow& row : update_rules()) compare(row.usual, 0.05 * row.usual_lr);
}

TEST_F(CudaUpdate, OptionsOfRulesAreTheReferences) {
  compare({.kind = UpdateKind::sgd, .momentum = 0.9, .nesterov = true, .weight_decay = 1e-2}, 0.1);
  compare({.kind = UpdateKind::sgd, .weight_decay = 1e-2, .decay_norm_and_bias = false}, 0.1);
  // Little decay: where it and the gradient cancel, the quotient of the rest and its root has few digits.
  compare({.kind = UpdateKind::rmsprop, .momentum = 0.9, .weight_decay = 1e-4}, 1e-2);
  compare({.kind = UpdateKind::adam, .weight_decay = 1e-2}, 1e-2);
  compare({.kind = UpdateKind::adadelta, .weight_decay = 1e-2, .epsilon = 1e-6}, 1);
}

TEST_F(CudaUpdate, LarsLeavesARateOfOneWhereANormIsZero) {
  const UpdateRule rule{.kind = UpdateKind::lars, .momentum = 0.9, .weight_decay = 5e-4};
  Arrays arrays = random_arrays(1);
  std::ranges::fill(arrays.gradients, 0.0f);
  Arrays expected = arrays;
  std::vector<std::span<float>> state(expected.state.begin(), expected.state.end());
  reference::apply_update<float>(graph_, layout_, rule, 0.5, 1, expected.weights,
                                 std::span<const float>(expected.gradients), state);
  run_rule(rule, 0.5, 1, arrays);
  for (std::size_t i = 0; i < arrays.weights.size(); ++i)
    ASSERT_NEAR(arrays.weights[i], expected.weights[i], 1e-6 * (1 + std::abs(expected.weights[i])));
}

TEST_F(CudaUpdate, PaddingAndFrozenParametersStay) {
  Arrays arrays = random_arrays(2);
  const Arrays before = arrays;
  run_rule({.kind = UpdateKind::adamw, .weight_decay = 1e-2}, 0.1, 1, arrays);
  std::vector<bool> learns(arrays.weights.size(), false);
  for (const graph::Slot& slot : layout_.slots)
    if (!graph_.parameters[static_cast<std::size_t>(slot.parameter)].is_frozen())
      std::fill_n(learns.begin() + slot.offset, slot.elements, true);
  int changed = 0;
  for (std::size_t i = 0; i < learns.size(); ++i) {
    if (!learns[i]) {
      EXPECT_EQ(arrays.weights[i], before.weights[i]) << i;
    }
    changed += arrays.weights[i] != before.weights[i] ? 1 : 0;
  }
  EXPECT_GT(changed, 8000);
}

}  // namespace
}  // namespace paceline::engine::cuda
