#include "engine/cuda/kernels/update.h"

#include <cstring>

#include "engine/cuda/kernels/clip.h"
#include "engine/cuda/kernels/kernel_runs.h"
#include "engine/cuda/kernels/update_tables.h"
#include "engine/reference/engine.h"
#include "graph/zoo.h"

namespace paceline::engine::cuda {
namespace {

/// Weights longer than a tile, rows longer than one, lengths that are no multiple of 4, a frozen and a slow
/// parameter, a batch norm.
graph::Graph model() {
  graph::Builder builder("update");
  int x = builder.input({.channels = 3, .height = 8, .width = 8});
  x = builder.conv2d(x, "conv1", {.channels = 470, .padding = 1, .rates = {.weight = 0.25, .bias = 1}});
  x = builder.batch_norm(x, "norm", {.momentum = 0.3});
  x = builder.conv2d(x, "conv2",
                     {.channels = 13, .stride = 4, .bias = true, .rates = {.weight = 1, .bias = 0}});
  x = builder.dense(x, "fc", {.features = 7});
  builder.loss(x, 0);
  return builder.finish();
}

WeightShape shape_of(int outs, int ins, int taps) {
  const auto padded = [](int channels) { return (channels + 7) / 8 * 8; };
  return {.outs = outs, .padded_outs = padded(outs), .ins = ins, .padded_ins = padded(ins), .taps = taps};
}

/// The weights of model(), by number of the layer.
std::vector<LayerWeight> packed_places(const graph::Graph& graph, const graph::Layout& layout) {
  std::vector<LayerWeight> places;
  const std::vector<std::pair<std::string, WeightShape>> weights = {
      {"conv1", shape_of(470, 3, 9)}, {"conv2", shape_of(13, 470, 9)}, {"fc", shape_of(7, 13, 4)}};
  for (const graph::Node& node : graph.nodes)
    for (const auto& [name, shape] : weights)
      if (node.name == name) {
        const int slot = layout.slot_of_parameter[static_cast<std::size_t>(node.parameters.front())];
        places.push_back({.offset = layout.slots[static_cast<std::size_t>(slot)].offset, .shape = shape});
      }
  return places;
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

  /// Packed copies of the layers' weights.
  template <typename T>
  struct Copies {
    std::vector<PackedWeight<T>> layers;
    std::vector<Stored<T>> values;
    int blocks = 0;

    explicit Copies(const std::vector<LayerWeight>& places) {
      for (const LayerWeight& place : places) {
        values.emplace_back(static_cast<std::size_t>(place.shape.padded_elements()));
        layers.push_back({place.offset, values.back().data(), place.shape, blocks});
        blocks += PackedWeight<T>::blocks_of(place.shape);
      }
    }
    /// All of them, by a pass of its own.
    void pack(const std::vector<float>& weights) {
      std::vector<Output> outputs;
      for (auto& one : values) outputs.push_back(one.output());
      run(PackWeights<T>{weights.data(), layers.data(), static_cast<int>(layers.size()), blocks}, outputs);
    }
  };

  /// `copies`: null where nothing is packed.
  template <typename T = float>
  void run_rule(const UpdateRule& rule, double lr, std::int64_t update, Arrays& arrays,
                Copies<T>* copies = nullptr) {
    const std::vector<UpdateNumbers> numbers = update_numbers(graph_, layout_, rule, lr, update);
    std::vector<double> rates(layout_.slots.size(), kNan), partial(2 * tables_.lars_chunks.size(), kNan);
    if (rule.clips()) clip(rule, arrays, partial);
    const auto chunks = static_cast<int>(tables_.lars_chunks.size());
    if (rule.kind == UpdateKind::lars)
      run(LarsNorms{tables_.lars_chunks.data(), chunks, arrays.weights.data(), arrays.gradients.data(),
                    partial.data()},
          {output(partial)});
    if (rule.kind == UpdateKind::lamb)
      run(LambNorms{tables_.lars_chunks.data(), chunks, numbers.data(), arrays.weights.data(),
                    arrays.gradients.data(), arrays.state[0].data(), arrays.state[1].data(), partial.data()},
          {output(partial)});
    if (rule.has_layer_rates()) {
      run(LarsRates{tables_.first_lars_chunk.data(), static_cast<int>(rates.size()), numbers.data(),
                    partial.data(), rates.data()},
          {output(rates)});
    }
    const auto launch = [&]<typename Rule>(Rule) {
      std::vector<Output> outputs{output(arrays.weights)};
      if (copies != nullptr)
        for (auto& one : copies->values) outputs.push_back(one.output());
      for (auto& state : arrays.state) outputs.push_back(output(state));
      const auto state = [&](std::size_t i) {
        return i < arrays.state.size() ? arrays.state[i].data() : nullptr;
      };
      const UpdateTables& tables = copies != nullptr ? tables_ : plain_;
      run(Update<Rule, T>{.tiles = tables.tiles.data(),
                          .tile_count = static_cast<int>(tables.tiles.size()),
                          .elements = tables.elements,
                          .numbers = numbers.data(),
                          .lars_rates = rates.data(),
                          .weights = arrays.weights.data(),
                          .gradients = arrays.gradients.data(),
                          .first = state(0),
                          .second = state(1),
                          .layers = copies != nullptr ? copies->layers.data() : nullptr},
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
      case UpdateKind::lamb:
        launch(LambRule{});
        break;
    }
    run(RunningStatistics{tables_.running.data(), static_cast<int>(tables_.running.size()),
                          arrays.weights.data(), arrays.gradients.data()},
        {output(arrays.weights)});
  }

  void clip(const UpdateRule& rule, Arrays& arrays, std::vector<double>& partial) {
    const auto chunks = static_cast<int>(tables_.lars_chunks.size());
    const StepNumbers not_queued{};
    StepReport report{};
    float factor = 0;
    run(GradientSquares{tables_.lars_chunks.data(), chunks, arrays.gradients.data(), partial.data()},
        {output(partial)});
    run(ClipFactor{partial.data(), chunks, rule.clip_norm, &not_queued, &report, &factor},
        {std::as_writable_bytes(std::span(&report, 1)), std::as_writable_bytes(std::span(&factor, 1))});
    EXPECT_FLOAT_EQ(factor, static_cast<float>(rule.clip_factor(report.gradient_norm)));
    run(ClipGradients{tables_.lars_chunks.data(), chunks, &factor, arrays.gradients.data()},
        {output(arrays.gradients)});
  }

  /// Three updates beside the reference in float's storage and double arithmetic.
  void compare(const UpdateRule& rule, double lr) {
    SCOPED_TRACE(::testing::Message() << "rule " << static_cast<int>(rule.kind));
    Arrays got = random_arrays(state_slots(rule)), expected = got;
    for (std::int64_t update = 1; update <= 3; ++update) {
      std::vector<std::span<float>> state(expected.state.begin(), expected.state.end());
      reference::apply_update<float>(graph_, layout_, rule, lr, update, expected.weights,
                                     std::span<const float>(expected.gradients), state);
      got.gradients = expected.gradients;  // clipped in place
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
  const std::vector<LayerWeight> places_ = packed_places(graph_, layout_);
  const UpdateTables tables_ = update_tables(graph_, layout_, places_);
  const UpdateTables plain_ = update_tables(graph_, layout_, {});  ///< that packs nothing
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
  for (const double most : {1.0, 1e6}) {
    compare({.kind = UpdateKind::sgd, .momentum = 0.9, .weight_decay = 1e-2, .clip_norm = most}, 0.1);
    compare({.kind = UpdateKind::lars, .momentum = 0.9, .weight_decay = 1e-2, .clip_norm = most}, 0.1);
  }
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

TEST_F(CudaUpdate, TilesHoldEachElementThatLearnsOnceAndFitIntoSharedMemory) {
  std::vector<int> visits(static_cast<std::size_t>(layout_.elements));
  int parts_of_rows = 0;
  for (const UpdateTile& tile : tables_.tiles) {
    EXPECT_GE(tile.count, 1);
    EXPECT_LE(tile.count, UpdateTile::kMost);
    for (std::int64_t i = tile.begin; i < tile.begin + tile.count; ++i) ++visits[static_cast<std::size_t>(i)];
    parts_of_rows += tile.layer >= 0 && tile.ins < places_[static_cast<std::size_t>(tile.layer)].shape.ins;
  }
  EXPECT_GE(parts_of_rows, 2 * 13) << "a row of 470 x 9 is longer than a tile";
  std::int64_t learning = 0;
  for (std::size_t number = 0; number < layout_.slots.size(); ++number) {
    const graph::Slot& slot = layout_.slots[number];
    const graph::Parameter& parameter = graph_.parameters[static_cast<std::size_t>(slot.parameter)];
    const bool learns = graph::is_trainable(parameter.role) && !parameter.is_frozen();
    learning += learns ? slot.elements : 0;
    for (std::int64_t i = slot.offset; i < slot.offset + slot.elements; ++i)
      ASSERT_EQ(visits[static_cast<std::size_t>(i)], learns ? 1 : 0) << "element " << i;
  }
  EXPECT_EQ(tables_.elements, learning);
}

TEST_F(CudaUpdate, AWeightOfMorePixelsThanATileHoldsIsLeftToThePackingAfterwards) {
  EXPECT_TRUE(fits_update_tiles(shape_of(10, 3, 1024)));
  EXPECT_TRUE(fits_update_tiles(shape_of(10, 64, 512)));
  EXPECT_FALSE(fits_update_tiles(shape_of(10, 64, 513)));
  EXPECT_FALSE(fits_update_tiles(shape_of(10, 3, 224 * 224)));
}

template <typename T>
class CudaUpdateInOnePass : public CudaUpdate {};
TYPED_TEST_SUITE(CudaUpdateInOnePass, Storages);

// Weights, state and copies: those of an update that packs nothing, and of a packing of its own behind it.
TYPED_TEST(CudaUpdateInOnePass, HasTheBitsOfTwo) {
  using Packed = CudaUpdate::Copies<TypeParam>;
  for (const UpdateRuleRow& row : update_rules()) {
    SCOPED_TRACE(row.name);
    UpdateRule rule = row.usual;
    rule.weight_decay = 1e-3;
    Arrays one = this->random_arrays(state_slots(rule)), two = one;
    Packed packed(this->places_), apart(this->places_);
    packed.pack(one.weights);  // the padding is never written again
    for (std::int64_t update = 1; update <= 3; ++update) {
      this->template run_rule<TypeParam>(rule, 0.05 * row.usual_lr, update, one, &packed);
      this->run_rule(rule, 0.05 * row.usual_lr, update, two);
      apart.pack(two.weights);
      EXPECT_EQ(one.weights, two.weights);
      EXPECT_EQ(one.state, two.state);
      for (std::size_t layer = 0; layer < this->places_.size(); ++layer) {
        const auto &got = packed.values[layer], &want = apart.values[layer];
        ASSERT_EQ(got.size(), want.size());
        for (std::size_t i = 0; i < got.size(); ++i)
          ASSERT_EQ(got[i], want[i]) << "layer " << layer << ", element " << i;
      }
    }
  }
}

TYPED_TEST(CudaUpdateInOnePass, ThatIsLeftOutChangesNothing) {
  using Packed = CudaUpdate::Copies<TypeParam>;
  Arrays arrays = this->random_arrays(1);
  const Arrays before = arrays;
  Packed copies(this->places_);
  copies.pack(arrays.weights);
  const auto first = copies.values.front()[0];
  const std::vector<UpdateNumbers> numbers =
      update_numbers(this->graph_, this->layout_, {.momentum = 0.9}, 0.1, 1);
  const std::int32_t is_halted = 1;
  run(Update<SgdRule, TypeParam>{.tiles = this->tables_.tiles.data(),
                                 .tile_count = static_cast<int>(this->tables_.tiles.size()),
                                 .elements = this->tables_.elements,
                                 .numbers = numbers.data(),
                                 .lars_rates = nullptr,
                                 .weights = arrays.weights.data(),
                                 .gradients = arrays.gradients.data(),
                                 .first = arrays.state[0].data(),
                                 .second = nullptr,
                                 .layers = copies.layers.data(),
                                 .is_halted = &is_halted},
      {output(arrays.weights), output(arrays.state[0]), copies.values.front().output()});
  EXPECT_EQ(arrays.weights, before.weights);
  EXPECT_EQ(arrays.state, before.state);
  EXPECT_EQ(copies.values.front()[0], first);
}

}  // namespace
}  // namespace paceline::engine::cuda
