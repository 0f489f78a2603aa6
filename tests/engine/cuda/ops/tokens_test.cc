// Ops on tokens of the CUDA engine against the reference engine: places and heads that break tiles, padding,
// shards.

#include <gmock/gmock.h>

#include "base/summation_tree.h"
#include "engine/cuda/compare.h"

namespace paceline::engine::cuda {
namespace {

using Builder = graph::OpBuilder;

graph::Graph vit_of(graph::Shape image, int heads, bool token) {
  Builder model("vit");
  int value = model.conv2d(model.input({3, image.height, image.width}), "before",
                           {.channels = image.channels, .kernel = 1, .bias = true});
  if (token) value = model.class_token(value, "token");
  value = model.position(value, "place");
  const int qkv = model.conv2d(value, "qkv", {.channels = 3 * image.channels, .kernel = 1, .bias = true});
  value = model.add(model.attention(qkv, heads), value);
  value = model.conv2d(value, "out", {.channels = 2, .kernel = 1});
  value = model.add(model.dense(model.first_place(value), "of first", {.features = 5}),
                    model.dense(value, "of all", {.features = 5}));
  model.loss(value, 0.1);
  return model.finish();
}

TEST(CudaEngine, ComputesTokensLikeTheReference) {
  struct Case {
    graph::Shape image;
    int heads;
    bool token;
  };
  for (const Case& c : {Case{{8, 1, 1}, 2, false}, Case{{1, 1, 2}, 1, false}, Case{{24, 17, 1}, 3, false},
                        Case{{30, 8, 8}, 6, true}, Case{{72, 5, 3}, 1, true}, Case{{33, 11, 4}, 3, true},
                        Case{{16, 14, 14}, 2, true}, Case{{144, 3, 4}, 1, false}})
    for (const int batch : {1, 4}) {
      SCOPED_TRACE(testing::Message() << text(c.image) << ", " << c.heads << " heads, batch " << batch);
      expect_like_reference(vit_of(c.image, c.heads, c.token), {.batch = batch}, 100);
    }
}

TEST(CudaEngine, LearnsTokensBehindAFrozenBeginning) {
  graph::Graph graph = vit_of({16, 4, 4}, 2, true);
  EXPECT_EQ(graph::set_rates(graph, graph::frozen_rules("before,token")), "");
  expect_like_reference(graph, {.batch = 5}, 100);
  EXPECT_EQ(graph::set_rates(graph, graph::frozen_rules("place,qkv")), "");
  expect_like_reference(graph, {.batch = 5}, 100);
}

TEST(CudaEngine, JoinsTokensOfShardsLikeTheTree) {
  constexpr int kShard = 3, kAll = 12;
  const auto graph = vit_of({24, 5, 3}, 2, true);
  for (const Precision precision : kPrecisions) {
    std::vector<std::vector<float>> sums;
    for (const int workers : {1, 2, 4}) {
      std::vector<std::vector<float>> gradients;
      const int batch = kAll / workers;
      for (int rank = 0; rank < workers; ++rank) {
        auto engine = compile_on_host(graph, {.batch = batch,
                                              .precision = precision,
                                              .batch_norm = BatchNormMode::synchronised,
                                              .shard = kShard,
                                              .reduce_statistics = [](std::span<double>) {},
                                              .world_size = workers});
        toy::initialise(*engine, 4);
        engine->forward(toy::Samples(graph, rank * batch, batch).step(1.0 / kAll, 0, rank * batch));
        engine->backward([](std::int64_t) {});
        gradients.push_back(toy::copy(engine->gradients()));
      }
      base::join_as_tree(workers, [&](int into, int from) {
        auto& sum = gradients[static_cast<std::size_t>(into)];
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradients[static_cast<std::size_t>(from)][i];
      });
      sums.push_back(gradients.front());
    }
    EXPECT_TRUE(sums[0] == sums[1]) << "1 and 2 engines";
    EXPECT_TRUE(sums[0] == sums[2]) << "1 and 4 engines";
  }
}

TEST(CudaEngine, RefusesHeadsThatSharedMemoryCannotHold) {
  EXPECT_THAT(
      [] {
        expect_like_reference(vit_of({1040, 1, 1}, 1, false), {.batch = 1}, 100);
      },
      testing::ThrowsMessage<base::Error>(
          testing::HasSubstr("a head must have at most 1024 channels on the cuda engine, but has 1040")));
}

}  // namespace
}  // namespace paceline::engine::cuda
