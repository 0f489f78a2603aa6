// The contract of engine.h, held by the reference: what any engine must do.

#include "engine/reference/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/make.h"
#include "engine/reference/double_engine.h"
#include "engine/reference/program.h"
#include "engine/reference/toy.h"
#include "graph/all_ops.h"
#include "graph/ops.h"
#include "graph/zoo.h"

namespace paceline::engine::reference {
namespace {

using testing::HasSubstr;

// Much is tested with this graph alone: also that the fast engines compute the op as the reference does.
TEST(ToyGraph, HasEveryOp) {
  std::set<std::string_view> there;
  for (const graph::Node& node : toy::every_op().nodes) there.insert(graph::rule_of(node.op).kind);
  for (const graph::Attributes& op : graph::all_ops())
    EXPECT_TRUE(there.contains(graph::rule_of(op).kind))
        << "toy::every_op() has no " << graph::rule_of(op).kind << ": add it there";
}

TEST(ReferenceEngine, FloatAndDoubleAgreeToRounding) {
  const graph::Graph graph = toy::every_op();
  const CompileOptions options{.batch = 5, .seed = 9};
  const auto single = compile(graph, options), exact = compile_double(graph, options);
  const toy::Samples samples(graph, 0, 5);
  for (Engine* engine : {single.get(), exact.get()}) {
    toy::initialise(*engine, 2);
    const LossSums sums = engine->forward(samples.step(0.2));
    EXPECT_EQ(sums.samples, 5);
    engine->backward({});
  }
  for (std::size_t i = 0; i < single->gradients().host().size(); ++i)
    EXPECT_NEAR(single->gradients().host()[i], exact->gradients().host()[i], 2e-6)
        << i;  // |gradient| is about 0.1
}

TEST(ReferenceEngine, TheSameRunTwiceGivesTheSameBits) {
  const graph::Graph graph = toy::every_op();
  std::vector<std::vector<float>> weights;
  for (int run = 0; run < 2; ++run) {
    const UpdateRule rule{.momentum = 0.9, .nesterov = true, .weight_decay = 1e-3};
    const auto engine = compile(graph, {.batch = 4, .rule = rule, .seed = 9});
    toy::initialise(*engine, 2);
    for (std::uint64_t step = 0; step < 5; ++step) {
      engine->forward(toy::Samples(graph, static_cast<std::int64_t>(step) * 4, 4).step(0.25, step));
      engine->backward({});
      engine->update(rule, 0.1, static_cast<std::int64_t>(step) + 1);
    }
    weights.push_back(toy::copy(engine->weights()));
  }
  EXPECT_EQ(weights[0], weights[1]);
}

TEST(ReferenceEngine, SaysReadyInLayoutOrderUpToTheEnd) {
  const graph::Graph graph = toy::every_op();
  const auto engine = compile(graph, {.batch = 3});
  toy::initialise(*engine, 2);
  const toy::Samples samples(graph, 0, 3);
  engine->forward(samples.step(1.0 / 3));
  engine->backward({});
  const std::vector<float> final = toy::copy(engine->gradients());

  std::ranges::fill(engine->gradients().host(), std::numeric_limits<float>::quiet_NaN());
  std::vector<std::int64_t> marks;
  engine->forward(samples.step(1.0 / 3));
  engine->backward([&](std::int64_t ready) {
    marks.push_back(ready);
    // What is called ready is final, padding included.
    EXPECT_TRUE(std::equal(final.begin(), final.begin() + ready, engine->gradients().host().begin()))
        << ready;
  });
  EXPECT_TRUE(std::ranges::is_sorted(marks));
  EXPECT_GE(marks.size(), 5u);
  EXPECT_EQ(marks.back(), engine->layout().elements);
}

TEST(ReferenceEngine, ObserverSeesEveryOpBeginAndEnd) {
  const graph::Graph graph = toy::every_op();
  const auto engine = compile(graph, {.batch = 2});
  toy::initialise(*engine, 2);
  std::vector<int> forward(graph.nodes.size()), backward(graph.nodes.size());
  int open = 0;
  engine->observe([&](int node, Pass pass, bool begin) {
    open += begin ? 1 : -1;
    if (!begin) ++(pass == Pass::forward ? forward : backward)[static_cast<std::size_t>(node)];
  });
  engine->forward(toy::Samples(graph, 0, 2).step(0.5));
  engine->backward({});
  EXPECT_EQ(open, 0);
  EXPECT_THAT(forward, testing::Each(1));
  EXPECT_THAT(backward, testing::Each(1));
}

TEST(ReferenceEngine, EvaluatesPartOfABatchAsItEvaluatesEachSample) {
  const graph::Graph graph = toy::every_op(0.5);
  const auto engine = compile(graph, {.batch = 8});
  const auto alone = compile(graph, {.batch = 1, .training = false});
  toy::initialise(*engine, 2);
  toy::initialise(*alone, 2);
  for (const int count : {0, 1, 5, 8}) {
    const toy::Samples samples(graph, 100, count);
    const LossSums together = engine->evaluate(samples.images, samples.labels, count);
    LossSums apart;
    for (int n = 0; n < count; ++n) {
      const toy::Samples one(graph, 100 + n, 1);
      apart += alone->evaluate(one.images, one.labels, 1);
    }
    EXPECT_EQ(together.samples, count);
    EXPECT_EQ(together.correct, apart.correct);
    EXPECT_EQ(together.loss, apart.loss) << "rounded losses add up without error, whatever the split";
  }
}

TEST(ReferenceEngine, LossesAreMultiplesOfTheirQuantum) {
  const graph::Graph graph = toy::every_op();
  const auto engine = compile(graph, {.batch = 3});
  toy::initialise(*engine, 2);
  const double scaled = engine->forward(toy::Samples(graph, 0, 3).step(1)).loss * 0x1p24;
  EXPECT_EQ(scaled, std::floor(scaled));
  EXPECT_GT(scaled, 0);
}

TEST(ReferenceEngine, ALossThatIsNoNumberStaysVisible) {
  const graph::Graph graph = toy::every_op(0);
  const auto engine = compile(graph, {.batch = 2});
  toy::initialise(*engine, 2);
  toy::Samples samples(graph, 0, 2);
  samples.images[5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(engine->forward(samples.step(0.5)).loss));
}

/// Shards of one global batch as separate micro-batches: their gradients add up to the whole, dropout
/// included.
TEST(ReferenceEngine, GradientsOfPartsAddUpToTheWhole) {
  graph::Builder model("no-norm");
  int value = model.conv2d(model.input({3, 9, 7}), "conv", {.channels = 6, .bias = true});
  value = model.dropout(model.relu(value), {.probability = 0.3});
  model.loss(model.dense(value, "fc", {.features = 4}), 0);
  const graph::Graph graph = model.finish();

  const auto whole = compile_double(graph, {.batch = 6, .seed = 4});
  const auto part = compile_double(graph, {.batch = 2, .seed = 4});
  toy::initialise(*whole, 2);
  toy::initialise(*part, 2);
  const LossSums sums = whole->forward(toy::Samples(graph, 0, 6).step(1.0 / 6, 3, 12));
  whole->backward({});

  LossSums part_sums;
  std::vector<double> gradients(whole->gradients().host().size());
  for (int shard = 0; shard < 3; ++shard) {
    part_sums += part->forward(toy::Samples(graph, shard * 2, 2).step(1.0 / 6, 3, 12 + shard * 2));
    part->backward({});
    for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] += part->gradients().host()[i];
  }
  EXPECT_EQ(sums.loss, part_sums.loss);
  EXPECT_EQ(sums.correct, part_sums.correct);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    EXPECT_NEAR(whole->gradients().host()[i], gradients[i], 1e-7);
}

TEST(ReferenceEngine, PlansWhatItAllocates) {
  const graph::Graph graph = toy::every_op();
  const CompileOptions options{.batch = 4, .rule = {.kind = UpdateKind::adam}};
  const auto engine = compile(graph, options);
  EXPECT_EQ(engine->plan().total_bytes(), plan(graph, options).total_bytes());
  const auto flat = static_cast<std::int64_t>(engine->weights().size_bytes());
  const auto bytes = [](const graph::MemoryPlan& plan, const std::string& purpose) {
    const auto found = std::ranges::find(plan.lines, purpose, &graph::MemoryPlan::Line::purpose);
    return found != plan.lines.end() ? found->bytes : 0;
  };
  EXPECT_EQ(bytes(engine->plan(), "weights"), flat);
  EXPECT_EQ(bytes(engine->plan(), "gradients"), flat);
  EXPECT_EQ(bytes(engine->plan(), "optimizer state"), 2 * flat);
  EXPECT_EQ(bytes(engine->plan(), "activations"), 4 * bytes(plan(graph, {.batch = 1}), "activations"));

  CompileOptions evaluation = options;
  evaluation.training = false;
  EXPECT_EQ(bytes(plan(graph, evaluation), "gradients"), 0);
  EXPECT_EQ(bytes(plan(graph, evaluation), "optimizer state"), 0);
  EXPECT_LT(bytes(plan(graph, evaluation), "activations"), bytes(engine->plan(), "activations"));
}

TEST(ReferenceEngine, RefusesWhatItDoesNotCompute) {
  const graph::Graph graph = toy::every_op();
  const auto sentence = [&](const CompileOptions& options) -> std::string {
    try {
      (void)compile(graph, options);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.kind(), base::ErrorKind::usage);
      return error.what();
    }
    return "nothing";
  };
  EXPECT_THAT(sentence({.batch = 2, .precision = Precision::bf16}), HasSubstr("--device cpu"));
  EXPECT_THAT(sentence({.batch = 0}), HasSubstr("at least 1"));
  EXPECT_THAT(sentence({.batch = 6, .batch_norm = BatchNormMode::ghost, .ghost_size = 4}),
              HasSubstr("divide"));
}

TEST(Make, KnowsEveryEngineByName) {
  const graph::Graph graph = toy::every_op();
  EXPECT_EQ(engine::compile("cpu", graph, {.batch = 1})->name(), "cpu");
  EXPECT_EQ(engine::compile("reference", graph, {.batch = 1})->name(), "reference");
  EXPECT_EQ(auto_precision("reference").precision, Precision::f32);
  try {
    (void)engine::plan("referense", graph, {.batch = 1});
    FAIL() << "expected an error";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'reference'"));
  }
}

TEST(ReferenceEngine, JudgesViewsByTheMeanOfTheirLogits) {
  const auto graph = toy::every_op();
  const auto layout = graph::flat_layout(graph);
  Program<double> program(graph, layout, {.batch = 6});
  std::vector<float> start(static_cast<std::size_t>(layout.elements));
  graph::initialise(graph, layout, 3, start);
  const std::vector<double> weights(start.begin(), start.end());
  const toy::Samples samples(graph, 0, 6);
  program.evaluate(samples.images, samples.labels, 6, 1, weights);
  const auto logits = program.value(graph.logits());
  double want = 0;
  int correct = 0;
  for (std::size_t n = 0; n < 2; ++n) {
    std::vector<double> mean(4);
    for (std::size_t view = 0; view < 3; ++view)
      for (std::size_t k = 0; k < 4; ++k) mean[k] += logits[(3 * n + view) * 4 + k] / 3;
    double total = 0, sum = 0;
    for (const double logit : mean) total += std::exp(logit), sum += logit;
    const auto label = static_cast<std::size_t>(samples.labels[n]);
    want += std::log(total) - 0.9 * mean[label] - 0.1 * sum / 4;  // label smoothing 0.1
    correct += std::ranges::max_element(mean) - mean.begin() == static_cast<std::ptrdiff_t>(label);
  }
  const LossSums got = program.evaluate(samples.images, samples.labels, 2, 3, weights);
  EXPECT_NEAR(program.exact_loss(), want, 1e-12);
  EXPECT_EQ(got.correct, correct);
  EXPECT_EQ(got.samples, 2);
}

TEST(ReferenceEngine, WeighsClassesAsPyTorchDoes) {
  // F.cross_entropy(logits, labels, weight=w, label_smoothing=0.1, reduction="sum") and its gradient, by the
  // formula of its documentation: each class's target times its weight.
  const std::vector<double> weights{0.5, 2, 1.5}, logits{0.3, -1, 2, 1, 0.25, -0.5};
  const std::vector<std::int32_t> labels{1, 0};
  const double smoothing = 0.1;
  const OpShapes shapes{.batch = 2, .src = {3, 1, 1}, .dst = {1, 1, 1}};
  const graph::SoftmaxCrossEntropy op{.label_smoothing = smoothing, .class_weights = weights};
  std::vector<double> probabilities(6), d_logits(6, 0.0);
  double got = 0, want = 0;
  (void)softmax_cross_entropy_forward(shapes, op, logits.data(), std::span(labels), probabilities.data(),
                                      &got);
  softmax_cross_entropy_backward(shapes, op, probabilities.data(), std::span(labels), 0.5, d_logits.data());
  for (std::size_t n = 0; n < 2; ++n) {
    double total = 0, of_targets = 0;
    std::vector<double> target(3);
    for (std::size_t k = 0; k < 3; ++k) {
      total += std::exp(logits[3 * n + k]);
      target[k] =
          weights[k] * (smoothing / 3 + (static_cast<std::size_t>(labels[n]) == k ? 1 - smoothing : 0));
      of_targets += target[k];
    }
    for (std::size_t k = 0; k < 3; ++k) {
      const double p = std::exp(logits[3 * n + k]) / total;
      want -= target[k] * std::log(p);
      EXPECT_NEAR(d_logits[3 * n + k], 0.5 * (of_targets * p - target[k]), 1e-15) << n << " " << k;
    }
  }
  EXPECT_NEAR(got, want, 1e-14);
}

TEST(ReferenceEngine, MixesLabelsAsPyTorchDoes) {
  // F.cross_entropy(logits, t, weight=w, label_smoothing=0.1, reduction="sum") of the probabilities
  // t = (1 - weight) on the label and weight on the second.
  const std::vector<double> weights{0.5, 2, 1.5}, logits{0.3, -1, 2, 1, 0.25, -0.5, 0.1, 0.2, 0.3};
  const std::vector<std::int32_t> labels{1, 0, 2};
  const std::vector<base::SecondLabel> second{{2, 0.75f}, {1, 0.25f}, {2, 0.5f}};
  const OpShapes shapes{.batch = 3, .src = {3, 1, 1}, .dst = {1, 1, 1}};
  for (const double smoothing : {0.0, 0.1})
    for (const bool is_weighted : {false, true}) {
      const graph::SoftmaxCrossEntropy op{.label_smoothing = smoothing,
                                          .class_weights = is_weighted ? weights : std::vector<double>{}};
      std::vector<double> probabilities(9);
      double got = 0, want = 0;
      const auto sums = softmax_cross_entropy_forward(shapes, op, logits.data(), std::span(labels),
                                                      probabilities.data(), &got, std::span(second));
      for (std::size_t n = 0; n < 3; ++n)
        for (std::size_t k = 0; k < 3; ++k) {
          const auto share = static_cast<double>(second[n].weight);
          const double target = (static_cast<std::size_t>(labels[n]) == k ? 1 - share : 0) +
                                (static_cast<std::size_t>(second[n].label) == k ? share : 0);
          want -= (is_weighted ? weights[k] : 1) * ((1 - smoothing) * target + smoothing / 3) *
                  std::log(probabilities[3 * n + k]);
        }
      EXPECT_NEAR(got, want, 1e-14);
      EXPECT_EQ(sums.correct, 3) << "the heavier labels are 2, 0 and 2";
    }
}

}  // namespace
}  // namespace paceline::engine::reference
