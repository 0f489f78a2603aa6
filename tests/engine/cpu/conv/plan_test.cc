// Weights a tile of weights of outputs at a time: packed, unpacked and updated to the bits of all of them at
// once.

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/cpu/compare.h"
#include "engine/cpu/conv/bf16/on_unit.h"
#include "engine/cpu/conv/bf16/support.h"
#include "engine/cpu/conv/default_table.h"
#include "engine/cpu/conv/kernel_runs.h"
#include "engine/cpu/kernels/bf16/tiles.h"
#include "graph/zoo.h"

namespace paceline::engine::cpu {
namespace {

constexpr Case kCases[] = {
    {64, 96, 3, 5, 3, 1, 1, 2},   // blocks of samples, whole blocks of channels
    {40, 70, 4, 4, 3, 1, 1, 3},   // ... broken ones
    {32, 65, 5, 5, 5, 1, 2, 2},   // many taps
    {64, 64, 6, 16, 3, 1, 1, 1},  // strips
    {64, 64, 8, 8, 3, 1, 1, 3},   // strips of packed images
    {96, 64, 6, 32, 3, 2, 1, 3},  // a gradient by pairs of samples
    {48, 64, 7, 7, 1, 2, 0, 2},   // nothing but a pixel
    {96, 130, 1, 1, 0, 1, 0, 5},  // dense
};

/// Rectangles of one and two blocks, and what is left.
std::vector<Range> parts_in_blocks(std::int64_t channels) {
  std::vector<Range> parts;
  for (std::int64_t first = 0, blocks = 1; first < channels; blocks = 3 - blocks) {
    const std::int64_t end = std::min(channels, first + blocks * kWeightTileChannels);
    parts.push_back({.begin = first, .end = end});
    first = end;
  }
  std::ranges::reverse(parts);  // in any order
  return parts;
}
std::vector<WeightTile> weight_tiles_of(const Case& c) {
  std::vector<WeightTile> weight_tiles;
  for (const Range outs : parts_in_blocks(c.out))
    for (const Range ins : parts_in_blocks(c.in)) weight_tiles.push_back({.outs = outs, .ins = ins});
  return weight_tiles;
}

class WeightSlabs : public OnUnit {
 protected:
  static ConvShape bf16_shape_of(const Case& c) {
    ConvShape shape = shape_of(c);
    shape.type = shape.dst_type = Storage::bf16;
    return shape;
  }
};
INSTANTIATE_TEST_SUITE_P(Units, WeightSlabs, every_unit(), name_of_unit);

TEST_P(WeightSlabs, ArePackedLikeAllWeightsAtOnce) {
  for (const Case& c : kCases)
    for (const Direction direction : {Direction::forward, Direction::backward_data}) {
      SCOPED_TRACE(text_of(c) + ", " + name_of(direction));
      const auto k = make_tile_reader(bf16_shape_of(c), direction, kernels());
      ASSERT_TRUE(k->packs_tiles());
      const Values weights = random_values(shape_of(c).weights(), 1);
      base::Buffer whole = poisoned(k->packed_bytes()), weight_tiles = poisoned(k->packed_bytes());
      k->pack(weights.data(), whole.data());
      for (const WeightTile& tile : weight_tiles_of(c)) {
        k->pack_tile(weights.data(), tile, tile.ins.begin == 0 ? weights.data() : nullptr,
                     weight_tiles.data());
      }
      EXPECT_TRUE(std::ranges::equal(whole.as<std::uint16_t>(), weight_tiles.as<std::uint16_t>()));
    }
}

TEST_P(WeightSlabs, AreUnpackedLikeTheWholeGradient) {
  base::ThreadPool pool(2);
  int by_rows = 0;
  for (const Case& c : kCases) {
    SCOPED_TRACE(text_of(c));
    const auto k = make_tile_wgrad(bf16_shape_of(c), kernels());
    if (k->tile_order().empty()) continue;
    ++by_rows;
    ASSERT_EQ(k->packed_bytes(), 4 * shape_of(c).weights());
    const std::int64_t elements = shape_of(c).weights(), row = elements / c.out;
    const Values packed = random_values(k->packed_bytes() / 4, 2);
    base::Buffer whole = poisoned(4 * elements);
    k->unpack(pool, packed.data(), whole.as<float>().data());
    const std::int64_t taps = row / c.in;
    for (const WeightTile& tile : weight_tiles_of(c))
      for (const std::int64_t shift : {0, 1}) {  // whole lines and broken ones
        const std::int64_t of_row = tile.ins.size() * taps, all = tile.outs.size() * of_row;
        base::Buffer buffer = poisoned(4 * (all + shift + 1));
        float* got = buffer.as<float>().data() + shift;
        k->unpack_tile(packed.data(), tile, got);
        for (std::int64_t out = 0; out < tile.outs.size(); ++out)
          EXPECT_TRUE(
              std::equal(got + out * of_row, got + (out + 1) * of_row,
                         whole.as<float>().data() + (tile.outs.begin + out) * row + tile.ins.begin * taps))
              << "output " << tile.outs.begin + out;
        EXPECT_TRUE(std::isnan(got[all])) << "written behind the tile of weights";
      }
  }
  EXPECT_GE(by_rows, 4);
}

/// In the order of its own, as if all workers had the same.
std::unique_ptr<Engine> compile_in_own_order(const graph::Graph& graph, const Variant& variant,
                                             CompileOptions options) {
  options.all_workers_say = [](std::string_view) { return true; };
  return compile(graph, options_of(variant, options), variant.tuning);
}

/// Weights and state after some steps.
std::vector<std::vector<float>> train(const graph::Graph& graph, const Variant& variant,
                                      const UpdateRule& rule, bool own_order) {
  constexpr int kBatch = 6;
  const CompileOptions options{.batch = kBatch, .rule = rule};
  const auto engine = own_order ? compile_in_own_order(graph, variant, options)
                                : compile(graph, options_of(variant, options), variant.tuning);
  toy::initialise(*engine, 6);
  for (int step = 0; step < 3; ++step) {
    const toy::Samples samples(graph, kBatch * step, kBatch);
    engine->forward(samples.step(1.0 / kBatch));
    engine->backward({});
    engine->update(rule, 0.02, step + 1);
  }
  std::vector<std::vector<float>> arrays{toy::copy(engine->weights())};
  for (int slot = 0; slot < state_slots(rule); ++slot)
    arrays.push_back(toy::copy(engine->optimizer_state(slot)));
  return arrays;
}

TEST(OwnGradientOrder, TrainsToTheSameBits) {
  const auto graph = graph::make_model("resnet8-cifar", {3, 16, 16}, 10, 0.1);
  const UpdateRule rules[] = {{.momentum = 0.9, .nesterov = true, .weight_decay = 5e-4},
                              {.kind = UpdateKind::adamw, .weight_decay = 1e-2}};
  for (const Variant& variant : variants_and_tiles())
    for (const UpdateRule& rule : rules) {
      SCOPED_TRACE(testing::Message() << variant.name << ", rule " << static_cast<int>(rule.kind));
      const auto flat = train(graph, variant, rule, false), own = train(graph, variant, rule, true);
      EXPECT_TRUE(flat == own);
      EXPECT_TRUE(std::ranges::all_of(own.front(), [](float w) { return std::isfinite(w); }));
    }
}

/// The norm of a gradient is a sum, and here in another order.
TEST(OwnGradientOrder, TrainsByNormsOfGradientsToTheSameNumbers) {
  const auto graph = graph::make_model("resnet8-cifar", {3, 16, 16}, 10, 0.1);
  for (const Variant& variant : tile_variants()) {
    const UpdateRule rule{.kind = UpdateKind::lars, .momentum = 0.9, .weight_decay = 1e-2};
    const auto flat = train(graph, variant, rule, false), own = train(graph, variant, rule, true);
    for (std::size_t i = 0; i < flat.front().size(); ++i)
      ASSERT_NEAR(own.front()[i], flat.front()[i], 1e-5) << variant.name << ", weight " << i;
  }
}

/// Convolutions of several blocks of channels, whole and broken ones, and of unlike sizes.
graph::Graph of_many_weight_tiles() {
  graph::Builder model("many-tiles of weights");
  int value = model.input({3, 8, 8});
  for (const int channels : {64, 128, 128, 70, 96, 64, 64}) {
    const std::string number = std::to_string(value);
    value = model.conv2d(value, "conv" + number, {.channels = channels, .padding = 1});
    value = model.relu(model.batch_norm(value, "bn" + number));
  }
  model.loss(model.dense(model.global_average_pool(value), "fc", {.features = 4}), 0);
  return model.finish();
}

TEST(OwnGradientOrder, IsTurnedByManyThreadsAtOnceInRoomOfTheirOwn) {
  const auto graph = of_many_weight_tiles();
  const UpdateRule rule{.momentum = 0.9};
  for (Variant variant : tile_variants()) {
    std::vector<std::vector<float>> weights;
    for (const int threads : {1, 8}) {
      variant.threads = threads;
      const auto engine = compile_in_own_order(graph, variant, {.batch = 2, .rule = rule});
      toy::initialise(*engine, 6);
      const toy::Samples samples(graph, 0, 2);
      engine->forward(samples.step(0.5));
      engine->backward({});
      for (int update = 1; update <= 100; ++update) engine->update(rule, 0.01, update);
      weights.push_back(toy::copy(engine->weights()));
    }
    EXPECT_TRUE(weights[0] == weights[1]) << variant.name;
  }
}

TEST(WeightPasses, LeaveNothingToBePackedAfterAnUpdate) {
  const auto graph = of_many_weight_tiles();
  const UpdateRule rule{.momentum = 0.9};
  for (const Variant& variant : variants_and_tiles()) {
    std::vector<std::vector<float>> gradients;
    for (const bool again : {false, true}) {
      const auto engine = compile_in_own_order(graph, variant, {.batch = 2, .rule = rule});
      toy::initialise(*engine, 6);
      for (int step = 0; step < 2; ++step) {
        const toy::Samples samples(graph, 2 * step, 2);
        engine->forward(samples.step(0.5));
        engine->backward({});
        if (step == 1) break;
        engine->update(rule, 0.1, 1);
        if (again) engine->weights_changed();
      }
      gradients.push_back(toy::copy(engine->gradients()));
    }
    EXPECT_TRUE(gradients[0] == gradients[1]) << variant.name;
  }
}

TEST(OwnGradientOrder, IsThatOfTilesWithWholeBlocksOfChannels) {
  const auto graph = graph::make_model("resnet8-cifar", {3, 16, 16}, 10, 0.1);
  for (const Variant& variant : variants_and_tiles()) {
    std::string orders;
    const auto engine_where = [&](bool others_say_the_same) {
      CompileOptions options{.batch = 6};
      options.all_workers_say = [&, others_say_the_same](std::string_view text) {
        orders = text;
        return others_say_the_same;
      };
      return compile(graph, options_of(variant, options), variant.tuning);
    };
    const auto unlike = engine_where(false), alike = engine_where(true);
    SCOPED_TRACE(variant.name + ": " + orders);
    const bool is_by_tiles =
        variant.tuning.algorithms == units::bf16_algorithms_on(units::Unit::emulated_amx) ||
        variant.tuning.algorithms == units::bf16_algorithms_on(units::Unit::emulated_avx512);
    EXPECT_EQ(orders.find("layer3.0.conv2: tiles\n") != std::string::npos, is_by_tiles);  // 64 channels
    EXPECT_EQ(orders.find("conv1: tiles\nlayer1"), std::string::npos);                    // 3 and 16
    if (!is_by_tiles) continue;
    // The same numbers in another place, and not where they are not.
    const toy::Samples samples(graph, 0, 6);
    std::vector<std::vector<float>> gradients;
    for (Engine* engine : {unlike.get(), alike.get()}) {
      toy::initialise(*engine, 6);
      engine->forward(samples.step(1.0 / 6));
      engine->backward({});
      gradients.push_back(toy::copy(engine->gradients()));
    }
    EXPECT_FALSE(gradients[0] == gradients[1]);
    for (auto& values : gradients) std::ranges::sort(values);
    EXPECT_TRUE(gradients[0] == gradients[1]);
  }
}

}  // namespace
}  // namespace paceline::engine::cpu
