// Position, class token and first place on the processor.

#include <gtest/gtest.h>

#include <thread>

#include "engine/cpu/compare.h"

namespace paceline::engine::cpu {
namespace {

using Builder = graph::OpBuilder;

struct TokenCase {
  graph::Shape image;  ///< of the tokens
  bool is_frozen = false;
};

graph::Graph of_tokens(const TokenCase& c) {
  Builder model("tokens");
  int value = model.input({3, c.image.height, c.image.width});
  value = model.conv2d(value, "before", {.channels = c.image.channels, .kernel = 1, .bias = true});
  const graph::Rates rates{.weight = c.is_frozen ? 0.0 : 1.0};
  value = model.append(graph::Position{rates}, {value}, "place");
  value = model.append(graph::ClassToken{rates}, {value}, "token");
  value = model.append(graph::Position{rates}, {model.gelu(value)}, "later");  // two readers follow
  value = model.concat({value, model.tanh(value)});
  const int first = model.first_place(value);
  value = model.add(model.dense(first, "of first", {.features = 5}),
                    model.dense(value, "of all", {.features = 5}));
  model.loss(value, 0.1);
  return model.finish();
}

TEST(Tokens, ComputeLikeTheReference) {
  for (const TokenCase& c : {TokenCase{{1, 1, 1}}, TokenCase{{5, 1, 2}}, TokenCase{{16, 4, 4}},
                             TokenCase{{40, 13, 5}}, TokenCase{{24, 14, 14}}, TokenCase{{24, 3, 5}, true}})
    for (const int batch : {1, 7}) {
      SCOPED_TRACE(testing::Message() << text(c.image) << ", batch " << batch << ", frozen " << c.is_frozen);
      for (const Variant& variant : variants())
        expect_like_reference(of_tokens(c), {.batch = batch}, variant, tolerance(variant.precision, 100));
    }
}

// Where nothing before them learns, they get a gradient and pass none on.
TEST(Tokens, LearnBehindAFrozenBeginning) {
  graph::Graph graph = of_tokens({{16, 4, 4}});
  EXPECT_EQ(graph::set_rates(graph, graph::frozen_rules("before,place")), "");
  for (const Variant& variant : variants())
    expect_like_reference(graph, {.batch = 5}, variant, tolerance(variant.precision, 100));
}

// Sums over samples are joined as shards are: one engine with 4 shards, two with 2, four with 1.
TEST(Tokens, JoinShardsLikeEnginesOfTheirOwn) {
  constexpr int kShard = 3, kAll = 12;
  const auto graph = of_tokens({{24, 9, 11}});
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    std::vector<std::vector<float>> sums;
    for (const int workers : {1, 2, 4}) {
      std::vector<std::vector<float>> gradients;
      const int batch = kAll / workers;
      for (int rank = 0; rank < workers; ++rank) {
        auto engine = compile(graph,
                              {.batch = batch,
                               .precision = precision,
                               .threads = 2,
                               .batch_norm = BatchNormMode::synchronised,
                               .shard = kShard,
                               .reduce_statistics = [](std::span<double>) {},
                               .world_size = workers},
                              {.poison = true});
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

}  // namespace
}  // namespace paceline::engine::cpu
