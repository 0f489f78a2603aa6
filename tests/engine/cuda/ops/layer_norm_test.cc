// Layer norm, group norm, learned factors and dense layers at each place on the CUDA engine, against the
// reference engine; and the bits of their shards.

#include "base/summation_tree.h"
#include "engine/cuda/compare.h"

namespace paceline::engine::cuda {
namespace {

using Builder = graph::OpBuilder;

TEST(CudaEngine, NormalisesEachPlaceLikeTheReference) {
  for (const int channels : {1, 8, 17, 40, 300})
    for (const int size : {1, 5}) {
      SCOPED_TRACE(testing::Message() << channels << " channels, size " << size);
      const auto norm = [](Builder& model, int src) { return model.layer_norm(src, "op"); };
      expect_like_reference(sandwich(channels, size, norm), {.batch = 7}, 60);
    }
}

TEST(CudaEngine, NormalisesChannelGroupsLikeTheReference) {
  for (const auto& [channels, groups] : {std::pair{3, 1}, {3, 3}, {17, 1}, {24, 4}, {40, 8}, {72, 72}})
    for (const int size : {1, 5}) {
      if (channels / groups * size == 1) continue;  // the norm of one number is its bias
      SCOPED_TRACE(testing::Message() << channels << " channels in " << groups << ", size " << size);
      const auto norm = [groups = groups](Builder& model, int src) {
        return model.group_norm(src, "op", {.groups = groups});
      };
      expect_like_reference(sandwich(channels, size, norm), {.batch = 7}, 60);
    }
}

TEST(CudaEngine, ScalesChannelsLikeTheReference) {
  for (const int channels : {1, 3, 24, 72}) {
    SCOPED_TRACE(testing::Message() << channels << " channels");
    const auto scale = [](Builder& model, int src) { return model.scale(src, "op", {.initial = 1.5}); };
    expect_like_reference(sandwich(channels, 5, scale), {.batch = 7}, 60);
  }
}

TEST(CudaEngine, MultipliesEachPlaceLikeTheReference) {
  for (const auto& [channels, features] : {std::pair{3, 16}, {24, 5}, {32, 64}})
    for (const int size : {1, 5})
      for (const bool relu : {false, true}) {
        SCOPED_TRACE(testing::Message() << channels << " to " << features << ", size " << size);
        const auto graph = sandwich(channels, size, [features = features, relu](Builder& model, int src) {
          const int value = model.dense(src, "op", {.features = features, .bias = !relu, .flatten = false});
          return relu ? model.relu(value) : model.gelu(value);
        });
        expect_like_reference(graph, {.batch = 7}, 100);
      }
}

TEST(CudaEngine, NormalisesSharedAndFrozenValues) {
  const graph::Rates frozen{0, 0};
  const auto graph = sandwich(24, 4, [&](Builder& model, int src) {
    const int norm = model.layer_norm(src, "n1");
    const int sum = model.add(model.scale(norm, "s1", {.weight_rate = 0}), norm);
    const int group = model.group_norm(sum, "n2", {.groups = 3, .rates = frozen});
    return model.add(model.layer_norm(group, "n3", {.rates = frozen}), group);
  });
  expect_like_reference(graph, {.batch = 7}, 100);
  Builder model("frozen prefix");
  int value = model.layer_norm(model.input({3, 5, 4}), "n1", {.epsilon = 0.1, .rates = frozen});
  value = model.group_norm(model.scale(value, "s", {.weight_rate = 0}), "n2", {.rates = frozen});
  value = model.group_norm(model.layer_norm(value, "n3"), "n4", {.groups = 3});
  model.loss(model.dense(value, "fc", {.features = 4}), 0);
  expect_like_reference(model.finish(), {.batch = 5}, 100);
}

TEST(CudaEngine, TrainsBlocksLikeTheReference) {
  for (const int channels : {8, 21})
    expect_like_reference(toy::sample_norms(channels), {.batch = 6, .seed = 11}, 300);
}

// One engine with 4 shards of 3 samples, two with 2 each, four with one each.
TEST(CudaEngine, NormalisesShardsLikeEnginesOfTheirOwn) {
  const auto graph = toy::sample_norms();
  for (const Precision precision : kPrecisions) {
    SCOPED_TRACE(name_of(precision));
    std::vector<std::vector<float>> sums;
    for (const int workers : {1, 2, 4}) {
      std::vector<std::vector<float>> parts;
      for (int rank = 0; rank < workers; ++rank) {
        const int batch = 12 / workers;
        const auto engine = compile_on_host(graph, {.batch = batch,
                                                    .precision = precision,
                                                    .batch_norm = BatchNormMode::synchronised,
                                                    .shard = 3,
                                                    .seed = 11});
        toy::initialise(*engine, 4);
        const toy::Samples own(graph, rank * batch, batch);
        engine->forward(own.step(1.0 / 12, 0, rank * batch));
        engine->backward([](std::int64_t) {});
        parts.push_back(toy::copy(engine->gradients()));
      }
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

}  // namespace
}  // namespace paceline::engine::cuda
