// Each op of the CUDA engine, over the shapes that break kernels, against the reference engine.

#include <gmock/gmock.h>

#include "engine/cuda/compare.h"

namespace paceline::engine::cuda {
namespace {

using Builder = graph::OpBuilder;

double root(double x) { return std::sqrt(x); }

TEST(CudaEngine, ConvolvesLikeTheReference) {
  struct Case {
    int in, out, size, kernel, stride, padding, batch;
    bool bias;
  };
  for (const Case& c : {Case{1, 16, 5, 3, 1, 1, 7, true}, Case{3, 24, 8, 3, 2, 1, 2, false},
                        Case{16, 32, 4, 1, 2, 0, 16, false}, Case{24, 40, 7, 3, 1, 1, 1, true},
                        Case{32, 3, 11, 5, 2, 2, 2, true}, Case{40, 16, 8, 7, 2, 3, 7, false},
                        Case{16, 16, 1, 1, 1, 0, 33, true}, Case{3, 24, 8, 2, 1, 0, 5, false},
                        Case{24, 16, 6, 2, 1, 0, 7, true}}) {
    SCOPED_TRACE(testing::Message() << c.in << "->" << c.out << " size " << c.size << " kernel " << c.kernel
                                    << " stride " << c.stride << " batch " << c.batch);
    const auto graph = sandwich(c.in, c.size, [&](Builder& model, int src) {
      return model.conv2d(
          src, "conv",
          {.channels = c.out, .kernel = c.kernel, .stride = c.stride, .padding = c.padding, .bias = c.bias});
    });
    const double reduction = std::max({1.0 * c.in * c.kernel * c.kernel, 1.0 * c.batch * c.size * c.size});
    expect_like_reference(graph, {.batch = c.batch}, 3 * root(reduction) + 8);
  }
}

TEST(CudaEngine, ConvolvesImagesOfOneAndThreeChannels) {
  for (const int channels : {1, 3})
    for (const int kernel : {3, 5, 7}) {
      Builder model("stem");
      int value =
          model.conv2d(model.input({channels, 11, 11}), "conv",
                       {.channels = 16, .kernel = kernel, .stride = 2, .padding = kernel / 2, .bias = true});
      value = model.dense(model.relu(value), "fc", {.features = 4});
      model.loss(value, 0);
      expect_like_reference(model.finish(), {.batch = 5}, 40);
    }
}

// A frozen layer in front of all that learns (no gradient reaches it), one in the middle (one passes
// through), and rates in every rule.
TEST(CudaEngine, TreatsRatesLikeTheReference) {
  Builder model("rates");
  int value = model.conv2d(model.input({3, 7, 7}), "white",
                           {.channels = 24, .kernel = 2, .bias = true, .rates = {0, 0}});
  value = model.conv2d(model.relu(model.gelu(value)), "learning",
                       {.channels = 16, .padding = 1, .rates = {0.5, 1}});
  value =
      model.gelu(model.batch_norm(model.max_pool(value, {}), "norm", {.momentum = 0.4, .rates = {0, 16}}));
  value = model.conv2d(value, "frozen", {.channels = 16, .padding = 1, .bias = true, .rates = {0, 0}});
  value = model.dense(model.relu(value), "bias only", {.features = 8, .rates = {0, 2}});
  model.loss(model.dense(value, "head",
                         {.features = 5, .bias = false, .init = graph::Init::usual, .rates = {0.1, 1}}),
             0.2);
  const auto graph = model.finish();
  for (const UpdateRule& rule : {UpdateRule{.momentum = 0.85, .nesterov = true, .weight_decay = 1e-3},
                                 UpdateRule{.kind = UpdateKind::lars, .momentum = 0.9, .weight_decay = 1e-2}})
    expect_like_reference(graph, {.batch = 7, .rule = rule}, 60);
  // In bf16 its first steps are signs of gradients, which rounding may turn.
  expect_like_reference(graph, {.batch = 7, .rule = {.kind = UpdateKind::adamw, .weight_decay = 1e-2}}, 60,
                        {Precision::f32});
  for (const Device& device : devices()) {
    auto engine = compile_on(device, graph, {.batch = 7, .rule = {.momentum = 0.85}});
    toy::initialise(*engine, 3);
    const auto before = toy::copy(engine->weights());
    const toy::Samples samples(graph, 0, 7);
    engine->forward(samples.step(1.0 / 7));
    engine->backward({});
    engine->update({.momentum = 0.85}, 0.1, 1);
    engine->fetch();
    for (const graph::Slot& slot : engine->layout().slots) {
      const auto& parameter = graph.parameters[static_cast<std::size_t>(slot.parameter)];
      const auto begin = static_cast<std::size_t>(slot.offset),
                 count = static_cast<std::size_t>(slot.elements);
      const bool same = std::ranges::equal(engine->weights().subspan(begin, count),
                                           std::span<const float>(before).subspan(begin, count));
      EXPECT_EQ(same, parameter.is_frozen()) << parameter.name;
    }
  }
}

TEST(CudaEngine, JudgesViewsByTheMeanOfTheirLogits) {
  const auto graph = toy::every_op();
  auto reference = reference::compile_double(graph, {.batch = 7});
  toy::initialise(*reference, 3);
  const toy::Samples samples(graph, 50, 7);
  for (const Device& device : devices())
    for (const Precision precision : device.precisions) {
      auto engine = compile_on(device, graph, {.batch = 7, .precision = precision});
      toy::initialise(*engine, 3);
      for (const auto& [count, views] : {std::pair{3, 2}, {1, 7}, {2, 3}, {7, 1}}) {
        const LossSums got = engine->evaluate(samples.images, samples.labels, count, views);
        const LossSums want = reference->evaluate(samples.images, samples.labels, count, views);
        EXPECT_EQ(got.samples, count);
        const Tolerance allowed = tolerance(precision, 60);
        EXPECT_NEAR(got.loss, want.loss, count * (allowed.relative * want.loss / count + allowed.absolute));
      }
    }
}

TEST(CudaEngine, NormalisesLikeTheReference) {
  for (const int channels : {1, 3, 16, 40, 72})
    for (const int size : {1, 4, 5})
      for (const int batch : {2, 7, 33}) {
        if (batch == 2 && size == 1)
          continue;  // two rows: the result is a sign, and its gradient a difference of equals
        SCOPED_TRACE(testing::Message() << channels << " channels, size " << size << ", batch " << batch);
        const auto graph =
            sandwich(channels, size, [](Builder& model, int src) { return model.batch_norm(src, "bn"); });
        expect_like_reference(graph, {.batch = batch}, 60);
      }
}

TEST(CudaEngine, NormalisesGroupsOfTheBatch) {
  const auto graph =
      sandwich(24, 4, [](Builder& model, int src) { return model.relu(model.batch_norm(src, "bn")); });
  for (const int ghost : {1, 2, 4, 8})
    expect_like_reference(graph, {.batch = 8, .batch_norm = BatchNormMode::ghost, .ghost_size = ghost}, 60);
}

TEST(CudaEngine, NormalisesByRunningStatisticsWhereFrozen) {
  // Beside one that moves; with a residual, ReLUs and two readers; its weight and bias learn. The large
  // epsilon makes it more than the identity, which its first statistics are.
  const graph::BatchNorm frozen{.epsilon = 0.5, .is_frozen = true};
  const auto graph = sandwich(24, 4, [&](Builder& model, int src) {
    const int first = model.relu(model.batch_norm(src, "n1", frozen));
    const int branch =
        model.batch_norm(model.conv2d(first, "a", {.channels = 24, .padding = 1}), "n2", frozen);
    const int sum = model.relu(model.add(branch, first));
    return model.batch_norm(model.conv2d(sum, "b", {.channels = 24, .kernel = 1}), "n3");
  });
  expect_like_reference(graph, {.batch = 7}, 200);
  expect_like_reference(graph, {.batch = 8, .batch_norm = BatchNormMode::ghost, .ghost_size = 2}, 200);
  // Up to a place all is frozen: no gradient goes further.
  graph::Graph prefix = graph::make_model("resnet8-cifar", {3, 16, 16}, 10, 0.1);
  EXPECT_EQ(graph::set_rates(prefix, graph::frozen_rules("conv1,bn1,layer1,layer2.0.bn1")), "");
  expect_like_reference(prefix, {.batch = 4}, 400);
}

TEST(CudaEngine, FusesResidualBlocksWithoutChangingThem) {
  for (const int channels : {16, 20}) {
    const auto graph = sandwich(channels, 5, [&](Builder& model, int src) {
      // An identity block, a block whose shortcut has a batch norm of its own, a plain sum, a value read
      // thrice.
      int branch =
          model.relu(model.batch_norm(model.conv2d(src, "a1", {.channels = channels, .padding = 1}), "n1"));
      branch = model.batch_norm(model.conv2d(branch, "a2", {.channels = channels, .padding = 1}), "n2");
      const int first = model.relu(model.add(branch, src));
      branch = model.batch_norm(model.conv2d(first, "b1", {.channels = channels, .padding = 1}), "n3");
      const int shortcut =
          model.batch_norm(model.conv2d(first, "b2", {.channels = channels, .kernel = 1}), "n4");
      const int second = model.relu(model.add(branch, shortcut));
      const int third = model.add(model.relu(second), second);
      return model.relu(model.add(third, second));
    });
    expect_like_reference(graph, {.batch = 7}, 200);
  }
}

TEST(CudaEngine, AddsTheGradientsOfAllReadersOfABatchNorm) {
  const auto graph = sandwich(16, 4, [](Builder& model, int src) {
    const int norm = model.relu(model.batch_norm(src, "bn"));
    const int first = model.add(model.gelu(norm), norm);
    return model.add(first, model.conv2d(norm, "conv", {.channels = 16, .padding = 1}));
  });
  expect_like_reference(graph, {.batch = 5}, 100);
}

TEST(CudaEngine, ComputesElementwiseOpsLikeTheReference) {
  const std::vector<std::pair<const char*, std::function<int(Builder&, int)>>> ops = {
#define PACELINE_CASE(Op, name) {#name, [](Builder& m, int src) { return m.name(src); }},
      PACELINE_ELEMENTWISE_OPS(PACELINE_CASE)
#undef PACELINE_CASE
          {"relu of gelu", [](Builder& m, int src) { return m.relu(m.gelu(src)); }},
      {"twice", [](Builder& m, int src) { return m.add(src, src); }},
      {"add", [](Builder& m, int src) { return m.add(m.gelu(src), m.relu(src)); }},
      {"product", [](Builder& m, int src) { return m.mul(m.gelu(src), src); }},
      {"product by channels",
       [](Builder& m, int src) { return m.mul(src, m.sigmoid(m.global_average_pool(src))); }},
      {"square", [](Builder& m, int src) { return m.mul(src, src); }},
      {"concat",
       [](Builder& m, int src) {
         return m.concat({m.gelu(src), src, m.slice(src, {.channels = 1})});
       }},
      {"shuffle",
       [](Builder& m, int src) {
         return m.channel_shuffle(m.concat({src, m.tanh(src)}), 2);
       }},
      {"pad", [](Builder& m, int src) { return m.pad(src, {.top = 2, .bottom = 1, .right = 3}); }},
      {"pad and cut",
       [](Builder& m, int src) {
         const int cut = m.shape_of(src).width > 1 ? -1 : 1;
         const int five = m.pad(m.relu(src), {.top = 2, .left = 4, .right = cut, .front = 3, .back = 1});
         return m.pad(five, {.top = -1, .right = 1, .front = -2});
       }},
      {"slices",
       [](Builder& m, int src) {
         const int channels = m.shape_of(src).channels;
         return m.add(m.slice(src, {.begin = channels / 2, .channels = 1}), m.slice(src, {.channels = 1}));
       }},
      {"depth", [](Builder& m, int src) { return m.stochastic_depth(src, {.probability = 0.4}); }},
      {"dropout", [](Builder& m, int src) { return m.dropout(src, {.probability = 0.4}); }},
      {"dropout, dropout",
       [](Builder& m, int src) {
         return m.dropout(m.dropout(m.relu(src), {.probability = 0.2}), {.probability = 0.4});
       }},
      {"global", [](Builder& m, int src) { return m.global_average_pool(src); }},
  };
  for (const int channels : {1, 3, 24})
    for (const auto& [name, op] : ops)
      for (const int size : {1, 4, 5}) {
        SCOPED_TRACE(testing::Message() << name << ", " << channels << " channels, size " << size);
        expect_like_reference(sandwich(channels, size, op), {.batch = 7, .seed = 11}, 60);
      }
}

TEST(CudaEngine, ConvolvesGroupsLikeTheReference) {
  for (const graph::Conv2d& conv :
       {graph::Conv2d{.channels = 16, .padding = 1, .groups = 16},
        {.channels = 16, .kernel = 5, .stride = 2, .padding = 2, .groups = 16, .bias = true},
        {.channels = 32, .padding = 1, .groups = 2},
        {.channels = 16, .padding = 1, .groups = 4, .bias = true}})
    for (const int channels : {16, 13}) {
      graph::Conv2d own = conv;
      if (channels == 13 && conv.groups != 16) continue;  // padding would cut the groups
      if (channels == 13) own.channels = own.groups = 13;
      SCOPED_TRACE(testing::Message() << own.groups << " groups, kernel " << text(own.kernel));
      const auto graph = sandwich(channels, 7, [&](Builder& model, int src) {
        return model.relu(model.batch_norm(model.conv2d(src, "grouped", own), "bn"));
      });
      expect_like_reference(graph, {.batch = 5}, 150);
    }
}

TEST(CudaEngine, RefusesGroupsThatPaddingWouldCut) {
  const auto graph = sandwich(12, 7, [&](Builder& model, int src) {
    return model.conv2d(src, "grouped", {.channels = 12, .padding = 1, .groups = 3});
  });
  EXPECT_THAT(
      [&] { expect_like_reference(graph, {.batch = 5}, 150); },
      testing::ThrowsMessage<base::Error>(testing::HasSubstr("multiples of 8, but they are 12 and 12")));
}

// Kernels that are not square, strides and paddings of each axis, gaps between taps; also in groups.
TEST(CudaEngine, ConvolvesUnevenWindowsLikeTheReference) {
  for (const graph::Conv2d& conv :
       {graph::Conv2d{.channels = 16, .kernel = {1, 7}, .padding = {0, 3}, .bias = true},
        {.channels = 40, .kernel = {5, 1}, .stride = {2, 1}, .padding = {2, 0}},
        {.channels = 16, .kernel = {2, 3}, .stride = {1, 2}, .padding = {0, 1}, .bias = true},
        {.channels = 16, .padding = 2, .dilation = 2},
        {.channels = 3, .kernel = {3, 2}, .stride = 2, .padding = {3, 0}, .dilation = {3, 4}},
        {.channels = 16, .kernel = {3, 5}, .padding = {2, 2}, .dilation = {2, 1}, .groups = 16}})
    for (const int batch : {1, 7})
      for (const bool relu : {false, true}) {
        SCOPED_TRACE(testing::Message() << "kernel " << text(conv.kernel) << ", dilation "
                                        << text(conv.dilation) << ", batch " << batch);
        const auto graph = sandwich(16, 9, [&](Builder& model, int src) {
          const int value = model.conv2d(src, "uneven", conv);
          return relu ? model.relu(value) : model.batch_norm(value, "bn");
        });
        expect_like_reference(graph, {.batch = batch}, 150);
      }
}

TEST(CudaEngine, PoolsLikeTheReference) {
  struct Case {
    int size;
    graph::Pair kernel, stride, padding;
    bool ceil = false, count_padding = true;
  };
  for (const Case& c : {Case{4, 2, 2, 0}, Case{11, 3, 2, 1}, Case{5, 3, 1, 1}, Case{7, 2, 3, 0},
                        Case{8, 5, 2, 2}, Case{8, 3, 2, 0, true}, Case{2, 3, 2, 0, true},
                        Case{6, 3, 2, 1, true}, Case{5, 3, 1, 1, false, false}, Case{8, 3, 2, 1, true, false},
                        Case{7, {1, 3}, {1, 2}, {0, 1}, true}, Case{9, {4, 2}, {3, 1}, {2, 0}, false, false}})
    for (const int channels : {3, 16}) {
      SCOPED_TRACE(testing::Message() << "size " << c.size << " kernel " << text(c.kernel) << " stride "
                                      << text(c.stride) << " ceil " << c.ceil);
      const auto max = sandwich(channels, c.size, [&](Builder& model, int src) {
        return model.max_pool(src, {c.kernel, c.stride, c.padding, c.ceil});
      });
      const auto average = sandwich(channels, c.size, [&](Builder& model, int src) {
        return model.average_pool(src, {c.kernel, c.stride, c.padding, c.ceil, c.count_padding});
      });
      // Rounded to bf16, two values of a window may tie and another one win: only float is compared.
      expect_like_reference(max, {.batch = 3}, 60, {Precision::f32});
      expect_like_reference(average, {.batch = 3}, 60);
    }
}

TEST(CudaEngine, PoolsToASizeLikeTheReference) {
  for (const int channels : {3, 16})
    for (const int size : {1, 5, 8})
      for (const graph::Pair to : {graph::Pair(1), graph::Pair(3, 2), graph::Pair(2, 11), graph::Pair(8)}) {
        SCOPED_TRACE(testing::Message() << channels << " channels, size " << size << " to " << text(to));
        const auto graph = sandwich(channels, size, [&](Builder& model, int src) {
          return model.adaptive_average_pool(model.relu(src), to);
        });
        // A ReLU that rounding flips is an error of its own size, which bf16's tolerance has room for.
        expect_like_reference(graph, {.batch = 3}, 60, {Precision::f32, Precision::bf16});
      }
}

TEST(CudaEngine, TakesAReluBehindEachLayerThatHasOne) {
  const std::vector<std::pair<const char*, std::function<int(Builder&, int)>>> ops = {
      {"3x3 without bias",
       [](Builder& m, int src) { return m.relu(m.conv2d(src, "next", {.channels = 32, .padding = 1})); }},
      {"dense", [](Builder& m, int src) { return m.relu(m.dense(src, "next", {.features = 24})); }},
      {"sum", [](Builder& m, int src) { return m.relu(m.add(m.gelu(src), src)); }},
      {"two readers",
       [](Builder& m, int src) { return m.add(m.conv2d(src, "next", {.channels = 32, .padding = 1}), src); }},
      {"frozen bias", [](Builder& m, int src) {
         return m.relu(m.conv2d(src, "next", {.channels = 32, .padding = 1, .bias = true, .rates = {0, 0}}));
       }}};
  for (const auto& [name, op] : ops)
    for (const int batch : {1, 7}) {
      SCOPED_TRACE(testing::Message() << name << ", batch " << batch);
      const auto graph = sandwich(24, 6, [&](Builder& model, int src) {
        const int conv = model.conv2d(src, "conv", {.channels = 32, .padding = 1, .bias = true});
        return op(model, model.relu(conv));
      });
      expect_like_reference(graph, {.batch = batch, .seed = 11}, 150);
    }
}

TEST(CudaEngine, FlattensInChannelHeightWidthOrder) {
  for (const int channels : {1, 3, 16, 40})
    for (const int batch : {1, 2, 16}) {
      const auto graph = sandwich(channels, 4, [](Builder& model, int src) {
        return model.relu(model.dense(src, "fc1", {.features = 24}));
      });
      expect_like_reference(graph, {.batch = batch}, 100);
    }
}

TEST(CudaEngine, LetsNaNThroughToTheLoss) {
  const auto graph = toy::every_op(0);
  for (const Device& device : devices())
    for (const Precision precision : device.precisions) {
      auto engine = compile_on(device, graph, {.batch = 4, .precision = precision});
      toy::initialise(*engine, 1);
      toy::Samples samples(graph, 0, 4);
      samples.images[17] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_FALSE(std::isfinite(engine->forward(samples.step(0.25)).loss));
      EXPECT_FALSE(std::isfinite(engine->evaluate(samples.images, samples.labels, 4).loss));
    }
}

}  // namespace
}  // namespace paceline::engine::cuda
