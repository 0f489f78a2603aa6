// Layer norm, group norm, learned factors and dense layers at each place, over the shapes that break kernels,
// against the reference engine; then what is promised of their bits.

#include <gmock/gmock.h>

#include <thread>

#include "base/rng.h"
#include "engine/cpu/compare.h"

namespace paceline::engine::cpu {
namespace {

using Builder = graph::OpBuilder;

/// input [3, size, size] -> 1x1 convolution -> `op` -> dense -> loss.
graph::Graph around(int channels, int size, const std::function<int(Builder&, int)>& op) {
  Builder model("around");
  int value =
      model.conv2d(model.input({3, size, size}), "before", {.channels = channels, .kernel = 1, .bias = true});
  value = model.dense(op(model, value), "after", {.features = 5});
  model.loss(value, 0.1);
  return model.finish();
}

void expect_all_like_reference(const graph::Graph& graph, int batch, double length) {
  for (const Variant& variant : variants())
    expect_like_reference(graph, {.batch = batch}, variant, tolerance(variant.precision, length));
}

TEST(CpuEngine, NormalisesEachPlaceLikeTheReference) {
  for (const int channels : {1, 8, 16, 17, 24, 40, 130})
    for (const int size : {1, 5})
      for (const int batch : {1, 7}) {
        SCOPED_TRACE(testing::Message() << channels << " channels, size " << size << ", batch " << batch);
        const auto norm = [](Builder& model, int src) { return model.layer_norm(src, "op"); };
        expect_all_like_reference(around(channels, size, norm), batch, 60);
      }
}

TEST(CpuEngine, NormalisesChannelGroupsLikeTheReference) {
  for (const auto& [channels, groups] : {std::pair{3, 1}, {3, 3}, {17, 1}, {24, 4}, {40, 8}, {32, 32}})
    for (const int size : {1, 5})
      for (const int batch : {1, 7}) {
        if (channels / groups * size == 1) continue;  // the norm of one number is its bias
        SCOPED_TRACE(testing::Message() << channels << " channels in " << groups << ", size " << size);
        const auto norm = [groups = groups](Builder& model, int src) {
          return model.group_norm(src, "op", {.groups = groups});
        };
        expect_all_like_reference(around(channels, size, norm), batch, 60);
      }
}

TEST(CpuEngine, ScalesChannelsLikeTheReference) {
  for (const int channels : {1, 3, 24, 40})
    for (const int size : {1, 5}) {
      SCOPED_TRACE(testing::Message() << channels << " channels, size " << size);
      const auto scale = [](Builder& model, int src) { return model.scale(src, "op", {.initial = 1.5}); };
      expect_all_like_reference(around(channels, size, scale), 7, 60);
    }
}

TEST(CpuEngine, MultipliesEachPlaceLikeTheReference) {
  for (const auto& [channels, features] : {std::pair{3, 16}, {24, 5}, {32, 64}})
    for (const int size : {1, 5})
      for (const bool relu : {false, true}) {
        SCOPED_TRACE(testing::Message() << channels << " to " << features << ", size " << size);
        const auto graph = around(channels, size, [features = features, relu](Builder& model, int src) {
          const int value = model.dense(src, "op", {.features = features, .bias = !relu, .flatten = false});
          return relu ? model.relu(value) : model.gelu(value);
        });
        for (const Variant& variant : variants_and_tiles())
          expect_like_reference(graph, {.batch = 7}, variant, tolerance(variant.precision, 100));
      }
}

// A value that two ops read, whose gradient has two terms; frozen parameters, and nothing that learns before.
TEST(CpuEngine, NormalisesSharedAndFrozenValues) {
  const graph::Rates frozen{0, 0};
  const auto graph = around(24, 4, [&](Builder& model, int src) {
    const int norm = model.layer_norm(src, "n1");
    const int sum = model.add(model.scale(norm, "s1", {.weight_rate = 0}), norm);
    const int group = model.group_norm(sum, "n2", {.groups = 3, .rates = frozen});
    return model.add(model.layer_norm(group, "n3", {.rates = frozen}), group);
  });
  expect_all_like_reference(graph, 7, 100);
  Builder model("frozen prefix");
  int value = model.layer_norm(model.input({3, 5, 4}), "n1", {.epsilon = 0.1, .rates = frozen});
  value = model.group_norm(model.scale(value, "s", {.weight_rate = 0}), "n2", {.rates = frozen});
  value = model.group_norm(model.layer_norm(value, "n3"), "n4", {.groups = 3});
  model.loss(model.dense(value, "fc", {.features = 4}), 0);
  expect_all_like_reference(model.finish(), 5, 100);
}

TEST(CpuEngine, TrainsBlocksLikeTheReference) {
  for (const int channels : {8, 21})
    for (const Variant& variant : variants())
      expect_like_reference(toy::sample_norms(channels), {.batch = 6, .seed = 11}, variant,
                            tolerance(variant.precision, 300));
}

std::vector<float> gradients_of(const graph::Graph& graph, const CompileOptions& options,
                                const Tuning& tuning, int first, int of_all) {
  auto engine = compile(graph, options, tuning);
  toy::initialise(*engine, 4);
  const toy::Samples own(graph, first, options.batch);
  engine->forward(own.step(1.0 / of_all, 0, first));
  engine->backward([](std::int64_t) {});
  return toy::copy(engine->gradients());
}

// One engine with 4 shards of 3 samples, two with 2 each, four with one each.
TEST(CpuEngine, NormalisesShardsLikeEnginesOfTheirOwn) {
  const auto graph = toy::sample_norms();
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    std::vector<std::vector<float>> sums;
    for (const int workers : {1, 2, 4}) {
      std::vector<std::vector<float>> parts;
      for (int rank = 0; rank < workers; ++rank)
        parts.push_back(gradients_of(
            graph,
            options_of(
                variant,
                {.batch = 12 / workers, .batch_norm = BatchNormMode::synchronised, .shard = 3, .seed = 11}),
            variant.tuning, rank * 12 / workers, 12));
      base::join_as_tree(workers, [&](int into, int from) {
        auto& sum = parts[static_cast<std::size_t>(into)];
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += parts[static_cast<std::size_t>(from)][i];
      });
      sums.push_back(parts[0]);
    }
    EXPECT_TRUE(sums[0] == sums[1]) << "1 and 2 workers";
    EXPECT_TRUE(sums[0] == sums[2]) << "1 and 4 workers";
    EXPECT_GT(length(sums[0]), 0);
  }
}

TEST(CpuEngine, NormalisesToTheSameBitsAnywhere) {
  for (const int channels : {21, 40})
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      const auto graph = toy::sample_norms(channels);
      std::vector<std::vector<float>> all;
      for (const Isa isa : isas_here())
        for (const int threads : {1, 2, 5})
          all.push_back(gradients_of(graph,
                                     {.batch = 23, .precision = precision, .threads = threads, .seed = 11},
                                     {.isa = isa, .bf16_products = false, .poison = true}, 0, 23));
      for (const auto& other : all) EXPECT_TRUE(other == all.front()) << channels << " channels";
    }
}

// Mean 1000, deviation 1: the sum of squares around zero would lose everything.
TEST(Kernels, NormaliseRowsFarFromZero) {
  constexpr int kRows = 3;
  for (const Isa isa : isas_here())
    for (const int channels : {2, 15, 16, 17, 33, 100, 768}) {
      base::Rng rng(5, base::Purpose::test);
      const auto count = static_cast<std::size_t>(kRows * channels);
      std::vector<float> x(count), y(count + 1, 42.0f), statistics(2 * kRows);
      for (float& value : x) value = 1000 + rng.normal();
      const std::vector<float> weight(static_cast<std::size_t>(channels), 2.0f);
      const std::vector<float> bias(static_cast<std::size_t>(channels), 0.5f);
      kernels_for(isa).f32.layer_norm({.src = x.data(),
                                       .dst = y.data(),
                                       .weight = weight.data(),
                                       .bias = bias.data(),
                                       .epsilon = 1e-5f,
                                       .statistics = statistics.data()},
                                      kRows, channels);
      for (std::size_t row = 0; row < kRows; ++row) {
        const auto at = [&](int c) {
          return row * static_cast<std::size_t>(channels) + static_cast<std::size_t>(c);
        };
        double mean = 0, squares = 0;
        for (int c = 0; c < channels; ++c) mean += static_cast<double>(x[at(c)]) / channels;
        for (int c = 0; c < channels; ++c) squares += std::pow(static_cast<double>(x[at(c)]) - mean, 2);
        const double inverse = 1 / std::sqrt(squares / channels + 1e-5);
        EXPECT_NEAR(static_cast<double>(statistics[2 * row]), mean, 1e-6 * mean);
        for (int c = 0; c < channels; ++c)  // the mean has six digits, and a difference to it three
          EXPECT_NEAR(static_cast<double>(y[at(c)]),
                      (static_cast<double>(x[at(c)]) - mean) * inverse * 2 + 0.5, 1e-3 * inverse)
              << name_of(isa) << " " << channels;
      }
      EXPECT_EQ(y[count], 42.0f) << "nothing is written behind the end";
    }
}

}  // namespace
}  // namespace paceline::engine::cpu
