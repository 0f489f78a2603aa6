// Attention on the processor: lengths that break blocks and vectors, heads of any width, and the bits.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/cpu/compare.h"
#include "engine/cpu/program.h"

namespace paceline::engine::cpu {
namespace {

using Builder = graph::OpBuilder;

struct AttentionCase {
  graph::Shape places;  ///< channels: those of the output
  int heads;
  bool token = false;
};

/// An image of as many pixels as there are places -> 1x1 convolution to q, k and v -> attention -> one to few
/// channels -> dense layer, which makes the gradient different at each place.
graph::Graph attending(const AttentionCase& c) {
  Builder model("attending");
  int value = model.input({3, c.places.height, c.places.width});
  value = model.conv2d(value, "before", {.channels = c.places.channels, .kernel = 1, .bias = true});
  if (c.token) value = model.position(model.class_token(value, "token"), "place");
  value = model.conv2d(value, "qkv", {.channels = 3 * c.places.channels, .kernel = 1, .bias = true});
  value = model.attention(value, c.heads);
  value = model.conv2d(value, "out", {.channels = 2, .kernel = 1});
  model.loss(model.dense(value, "after", {.features = 5}), 0.1);
  return model.finish();
}

TEST(Attention, ComputesLikeTheReference) {
  for (const AttentionCase& c :
       {AttentionCase{{8, 1, 1}, 2}, AttentionCase{{1, 1, 2}, 1}, AttentionCase{{24, 17, 1}, 3},
        AttentionCase{{30, 8, 8}, 6}, AttentionCase{{48, 5, 13}, 1}, AttentionCase{{33, 49, 1}, 3, true},
        AttentionCase{{16, 14, 14}, 4, true}, AttentionCase{{70, 3, 4}, 2, true}})
    for (const int batch : {1, 5}) {
      SCOPED_TRACE(testing::Message() << text(c.places) << ", " << c.heads << " heads, batch " << batch);
      const auto graph = attending(c);
      for (const Variant& variant : variants())
        expect_like_reference(graph, {.batch = batch}, variant, tolerance(variant.precision, 100));
    }
}

std::vector<float> trained(const graph::Graph& graph, const CompileOptions& options, const Tuning& tuning) {
  auto engine = compile(graph, options, tuning);
  toy::initialise(*engine, 6);
  for (int step = 0; step < 2; ++step) {
    const toy::Samples samples(graph, options.batch * step, options.batch);
    engine->forward(samples.step(1.0 / options.batch));
    engine->backward([](std::int64_t) {});
    engine->update({}, 0.1, step + 1);
  }
  return toy::copy(engine->weights());
}

// Heads of samples are few, so that rows are divided too.
TEST(Attention, KeepsBitsForAnyNumberOfThreads) {
  const auto graph = attending({{24, 13, 9}, 2, true});
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    const CompileOptions options{.batch = 3, .precision = precision};
    const auto one = trained(graph, options, {.bf16_products = false, .poison = true});
    for (const int threads : {2, 5}) {
      CompileOptions more = options;
      more.threads = threads;
      EXPECT_TRUE(trained(graph, more, {.bf16_products = false, .poison = true}) == one) << threads;
    }
  }
}

TEST(Attention, GivesTheSameBitsOnEveryIsa) {
  const auto graph = attending({{30, 11, 7}, 2, true});
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    std::vector<std::vector<float>> weights;
    for (const Isa isa : isas_here())
      weights.push_back(trained(graph, {.batch = 3, .precision = precision, .threads = 2},
                                {.isa = isa, .bf16_products = false, .poison = true}));
    for (const auto& other : weights) EXPECT_TRUE(other == weights.front());
  }
}

// A row's output does not depend on the samples beside it, nor on how many there are.
TEST(Attention, ComputesASampleAloneAsAmongOthers) {
  const auto graph = attending({{24, 10, 10}, 3, true});
  const toy::Samples samples(graph, 0, 40);
  std::vector<std::vector<double>> logits;
  for (const int batch : {1, 40}) {
    auto engine = compile(graph, {.batch = batch, .threads = 2, .training = false}, {.poison = true});
    toy::initialise(*engine, 6);
    logits.emplace_back(static_cast<std::size_t>(batch) * 5);
    engine->evaluate(samples.images, samples.labels, batch, 1, logits.back());
  }
  for (std::size_t k = 0; k < 5; ++k) EXPECT_NEAR(logits[0][k], logits[1][k], 1e-5);
}

// Two floats for each row of each head, and a packed head for each thread: no square of the places.
TEST(Attention, KeepsNoSquareOfThePlaces) {
  const auto bytes = [](int side, int threads) {
    const auto graph = attending({{16, side, side}, 2});
    const Program program(graph, {.batch = 4, .threads = threads}, {});
    return program.plan().total_bytes();
  };
  const double small = static_cast<double>(bytes(16, 1)), large = static_cast<double>(bytes(32, 1));
  EXPECT_LT(large, 4.4 * small) << "four times as many places";
}

TEST(Attention, LetsNaNThroughInItsSample) {
  const auto graph = attending({{16, 6, 6}, 2});
  toy::Samples samples(graph, 0, 2);
  samples.images[40] = std::numeric_limits<float>::quiet_NaN();
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    auto engine = compile(graph, {.batch = 2, .precision = precision, .training = false}, {});
    toy::initialise(*engine, 6);
    std::vector<double> logits(10);
    engine->evaluate(samples.images, samples.labels, 2, 1, logits);
    EXPECT_TRUE(std::isnan(logits[0]));
    EXPECT_FALSE(std::isnan(logits[5]));
  }
}

}  // namespace
}  // namespace paceline::engine::cpu
