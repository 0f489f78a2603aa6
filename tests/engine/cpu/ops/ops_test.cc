// Each op between a 1x1 convolution (whose weight gradient shows d_src) and a dense layer (whose weights make
// the gradient different at every position), over the shapes that break kernels.

#include <gmock/gmock.h>

#include "base/error.h"
#include "engine/cpu/compare.h"
#include "engine/cpu/program.h"

namespace paceline::engine::cpu {
namespace {

using Builder = graph::OpBuilder;

/// input [channels, size, size] -> 1x1 convolution -> `op` -> dense -> loss.
graph::Graph sandwich(int channels, int size, const std::function<int(Builder&, int)>& op,
                      int image_channels = 3) {
  Builder model("sandwich");
  int value = model.conv2d(model.input({image_channels, size, size}), "before",
                           {.channels = channels, .kernel = 1, .bias = true});
  value = op(model, value);
  value = model.dense(value, "after", {.features = 5});
  model.loss(value, 0.1);
  return model.finish();
}

double root(double x) { return std::sqrt(x); }

TEST(CpuEngine, ConvolvesLikeTheReference) {
  struct Case {
    int in, out, size, kernel, stride, padding, batch;
    bool bias;
  };
  for (const Case& c : {Case{1, 16, 5, 3, 1, 1, 7, true}, Case{3, 24, 8, 3, 2, 1, 2, false},
                        Case{16, 32, 4, 1, 2, 0, 16, false}, Case{24, 40, 7, 3, 1, 1, 1, true},
                        Case{32, 3, 11, 5, 2, 2, 2, true}, Case{40, 16, 8, 7, 2, 3, 7, false},
                        Case{16, 16, 1, 1, 1, 0, 33, true}, Case{64, 64, 4, 3, 1, 1, 16, false},
                        Case{3, 24, 8, 2, 1, 0, 5, false}, Case{24, 64, 15, 3, 1, 1, 3, false},
                        Case{24, 16, 6, 2, 1, 0, 7, true}}) {
    SCOPED_TRACE(testing::Message() << c.in << "->" << c.out << " size " << c.size << " kernel " << c.kernel
                                    << " stride " << c.stride << " batch " << c.batch);
    const auto graph = sandwich(c.in, c.size, [&](Builder& model, int src) {
      return model.conv2d(
          src, "conv",
          {.channels = c.out, .kernel = c.kernel, .stride = c.stride, .padding = c.padding, .bias = c.bias});
    });
    const double reduction = std::max({1.0 * c.in * c.kernel * c.kernel, 1.0 * c.batch * c.size * c.size});
    for (const Variant& variant : variants_and_tiles())
      expect_like_reference(graph, {.batch = c.batch}, variant,
                            tolerance(variant.precision, 3 * root(reduction) + 8));
  }
}

// A frozen layer in front of all that learns (no gradient reaches it), one in the middle (one passes
// through), and rates in every rule.
TEST(CpuEngine, TreatsRatesLikeTheReference) {
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
  for (const Variant& variant : variants_and_tiles())
    for (const UpdateRule& rule :
         {UpdateRule{.momentum = 0.85, .nesterov = true, .weight_decay = 1e-3},
          UpdateRule{.kind = UpdateKind::lars, .momentum = 0.9, .weight_decay = 1e-2},
          UpdateRule{.kind = UpdateKind::adamw, .weight_decay = 1e-2}}) {
      if (rule.kind == UpdateKind::adamw && variant.precision == Precision::bf16)
        continue;  // its first steps are signs of gradients, which rounding may turn
      expect_like_reference(graph, {.batch = 7, .rule = rule}, variant, tolerance(variant.precision, 60));
    }
  auto engine = compile(graph, {.batch = 7, .rule = {.momentum = 0.85}});
  toy::initialise(*engine, 3);
  const auto before = toy::copy(engine->weights());
  const toy::Samples samples(graph, 0, 7);
  engine->forward(samples.step(1.0 / 7));
  engine->backward({});
  engine->update({.momentum = 0.85}, 0.1, 1);
  for (const graph::Slot& slot : engine->layout().slots) {
    const auto& parameter = graph.parameters[static_cast<std::size_t>(slot.parameter)];
    const auto begin = static_cast<std::size_t>(slot.offset), count = static_cast<std::size_t>(slot.elements);
    const bool same = std::ranges::equal(engine->weights().subspan(begin, count),
                                         std::span<const float>(before).subspan(begin, count));
    EXPECT_EQ(same, parameter.is_frozen()) << parameter.name;
  }
}

TEST(CpuEngine, JudgesViewsByTheMeanOfTheirLogits) {
  const auto graph = toy::every_op();
  for (const Variant& variant : variants()) {
    auto engine = compile(graph, options_of(variant, {.batch = 7}), variant.tuning);
    auto reference = reference::compile_double(graph, {.batch = 7});
    toy::initialise(*engine, 3);
    toy::initialise(*reference, 3);
    const toy::Samples samples(graph, 50, 7);
    for (const auto& [count, views] : {std::pair{3, 2}, {1, 7}, {2, 3}, {7, 1}}) {
      const LossSums got = engine->evaluate(samples.images, samples.labels, count, views);
      const LossSums want = reference->evaluate(samples.images, samples.labels, count, views);
      EXPECT_EQ(got.samples, count);
      const Tolerance allowed = tolerance(variant.precision, 60);
      EXPECT_NEAR(got.loss, want.loss, count * (allowed.relative * want.loss / count + allowed.absolute));
    }
  }
}

TEST(CpuEngine, ConvolvesImagesOfOneAndThreeChannels) {
  for (const int channels : {1, 3})
    for (const int kernel : {3, 5, 7}) {
      Builder model("stem");
      int value =
          model.conv2d(model.input({channels, 11, 11}), "conv",
                       {.channels = 16, .kernel = kernel, .stride = 2, .padding = kernel / 2, .bias = true});
      value = model.dense(model.relu(value), "fc", {.features = 4});
      model.loss(value, 0);
      const auto graph = model.finish();
      for (const Variant& variant : variants_and_tiles())
        expect_like_reference(graph, {.batch = 5}, variant, tolerance(variant.precision, 40));
    }
}

TEST(CpuEngine, NormalisesLikeTheReference) {
  for (const int channels : {1, 3, 16, 24, 40})
    for (const int size : {1, 4, 5})
      for (const int batch : {2, 7, 33}) {
        if (batch == 2 && size == 1)
          continue;  // two rows: the result is a sign, and its gradient a difference of equals
        SCOPED_TRACE(testing::Message() << channels << " channels, size " << size << ", batch " << batch);
        const auto graph =
            sandwich(channels, size, [](Builder& model, int src) { return model.batch_norm(src, "bn"); });
        for (const Variant& variant : variants())
          expect_like_reference(graph, {.batch = batch}, variant, tolerance(variant.precision, 60));
      }
}

TEST(CpuEngine, NormalisesGroupsOfTheBatch) {
  const auto graph =
      sandwich(24, 4, [](Builder& model, int src) { return model.relu(model.batch_norm(src, "bn")); });
  for (const Variant& variant : variants())
    for (const int ghost : {1, 2, 4, 8})
      expect_like_reference(graph, {.batch = 8, .batch_norm = BatchNormMode::ghost, .ghost_size = ghost},
                            variant, tolerance(variant.precision, 60));
}

TEST(CpuEngine, NormalisesByRunningStatisticsWhereFrozen) {
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
  // Up to a place all is frozen: no gradient goes further.
  graph::Graph prefix = graph::make_model("resnet8-cifar", {3, 16, 16}, 10, 0.1);
  EXPECT_EQ(graph::set_rates(prefix, graph::frozen_rules("conv1,bn1,layer1,layer2.0.bn1")), "");
  for (const Variant& variant : variants()) {
    expect_like_reference(prefix, {.batch = 4}, variant, tolerance(variant.precision, 400));
    expect_like_reference(graph, {.batch = 7}, variant, tolerance(variant.precision, 200));
    expect_like_reference(graph, {.batch = 8, .batch_norm = BatchNormMode::ghost, .ghost_size = 2}, variant,
                          tolerance(variant.precision, 200));
  }
}

TEST(CpuEngine, FusesResidualBlocksWithoutChangingThem) {
  for (const int channels : {16, 24}) {
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
    for (const Variant& variant : variants())
      expect_like_reference(graph, {.batch = 7}, variant, tolerance(variant.precision, 200));
  }
}

TEST(CpuEngine, ComputesElementwiseOpsLikeTheReference) {
  for (const int channels : {1, 3, 24, 32}) {
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
    for (const auto& [name, op] : ops)
      for (const int size : {1, 5}) {
        SCOPED_TRACE(testing::Message() << name << ", " << channels << " channels, size " << size);
        const auto graph = sandwich(channels, size, op);
        for (const Variant& variant : variants())
          expect_like_reference(graph, {.batch = 7, .seed = 11}, variant, tolerance(variant.precision, 60));
      }
  }
}

TEST(CpuEngine, ConvolvesGroupsLikeTheReference) {
  for (const graph::Conv2d& conv :
       {graph::Conv2d{.channels = 24, .padding = 1, .groups = 24},
        {.channels = 24, .kernel = 5, .stride = 2, .padding = 2, .groups = 24, .bias = true},
        {.channels = 48, .padding = 1, .groups = 24},
        {.channels = 12, .padding = 1, .groups = 3, .bias = true},
        {.channels = 32, .kernel = 1, .groups = 2}})
    for (const int batch : {1, 7})
      for (const bool relu : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << conv.groups << " groups, kernel " << text(conv.kernel) << ", batch " << batch);
        const auto graph = sandwich(24, 9, [&](Builder& model, int src) {
          const int value = model.conv2d(src, "grouped", conv);
          return relu ? model.relu(value) : model.batch_norm(value, "bn");
        });
        for (const Variant& variant : variants())
          expect_like_reference(graph, {.batch = batch}, variant, tolerance(variant.precision, 100));
      }
}

// Kernels that are not square, strides and paddings of each axis, gaps between taps; also in groups.
TEST(CpuEngine, ConvolvesUnevenWindowsLikeTheReference) {
  for (const graph::Conv2d& conv :
       {graph::Conv2d{.channels = 16, .kernel = {1, 7}, .padding = {0, 3}, .bias = true},
        {.channels = 40, .kernel = {5, 1}, .stride = {2, 1}, .padding = {2, 0}},
        {.channels = 16, .kernel = {2, 3}, .stride = {1, 2}, .padding = {0, 1}, .bias = true},
        {.channels = 16, .padding = 2, .dilation = 2},
        {.channels = 3, .kernel = {3, 2}, .stride = 2, .padding = {3, 0}, .dilation = {3, 4}},
        {.channels = 24, .kernel = {3, 5}, .padding = {2, 2}, .dilation = {2, 1}, .groups = 24}})
    for (const int batch : {1, 7})
      for (const bool relu : {false, true}) {
        SCOPED_TRACE(testing::Message() << "kernel " << text(conv.kernel) << ", dilation "
                                        << text(conv.dilation) << ", batch " << batch);
        const auto graph = sandwich(24, 9, [&](Builder& model, int src) {
          const int value = model.conv2d(src, "uneven", conv);
          return relu ? model.relu(value) : model.batch_norm(value, "bn");
        });
        for (const Variant& variant : variants())
          expect_like_reference(graph, {.batch = batch}, variant, tolerance(variant.precision, 100));
      }
}

TEST(CpuEngine, PoolsLikeTheReference) {
  struct Case {
    int size;
    graph::Pair kernel, stride, padding;
    bool ceil = false, count_padding = true;
  };
  for (const Case& c : {Case{4, 2, 2, 0}, Case{11, 3, 2, 1}, Case{5, 3, 1, 1}, Case{7, 2, 3, 0},
                        Case{8, 5, 2, 2}, Case{8, 3, 2, 0, true}, Case{2, 3, 2, 0, true},
                        Case{6, 3, 2, 1, true}, Case{5, 3, 1, 1, false, false}, Case{8, 3, 2, 1, true, false},
                        Case{7, {1, 3}, {1, 2}, {0, 1}, true}, Case{9, {4, 2}, {3, 1}, {2, 0}, false, false}})
    for (const int channels : {3, 16, 40}) {
      SCOPED_TRACE(testing::Message() << "size " << c.size << " kernel " << text(c.kernel) << " stride "
                                      << text(c.stride) << " ceil " << c.ceil);
      const auto max = sandwich(channels, c.size, [&](Builder& model, int src) {
        return model.max_pool(src, {c.kernel, c.stride, c.padding, c.ceil});
      });
      const auto average = sandwich(channels, c.size, [&](Builder& model, int src) {
        return model.average_pool(src, {c.kernel, c.stride, c.padding, c.ceil, c.count_padding});
      });
      for (const Variant& variant : variants()) {
        // Rounded to bf16, two values of a window may tie and another one win: only float is compared.
        if (variant.precision == Precision::f32)
          expect_like_reference(max, {.batch = 3}, variant, tolerance(variant.precision, 60));
        expect_like_reference(average, {.batch = 3}, variant, tolerance(variant.precision, 60));
      }
    }
}

// 17 x 15 pixels are the most beside the number of no winner.
TEST(CpuEngine, RefusesMaximaOfMoreThan256Pixels) {
  const auto pool = [](graph::Pair kernel) {
    return sandwich(8, 33, [&](Builder& model, int src) {
      return model.max_pool(model.relu(src), {.kernel = kernel, .stride = 5});
    });
  };
  for (const graph::Pair kernel : {graph::Pair(17, 15), graph::Pair(8, 32)})
    expect_like_reference(pool(kernel), {.batch = 3}, variants().front(), tolerance(Precision::f32, 60));
  EXPECT_THAT(
      [&] {
        expect_like_reference(pool({33, 8}), {.batch = 3}, variants().front(), {});
      },
      testing::ThrowsMessage<base::Error>(
          testing::HasSubstr("at most 256 pixels, 16 x 16, on the cpu engine, but is 33x8")));
}

TEST(CpuEngine, PoolsToASizeLikeTheReference) {
  for (const int channels : {3, 16, 40})
    for (const int size : {1, 5, 8})
      for (const graph::Pair to : {graph::Pair(1), graph::Pair(3, 2), graph::Pair(2, 11), graph::Pair(8)}) {
        SCOPED_TRACE(testing::Message() << channels << " channels, size " << size << " to " << text(to));
        const auto graph = sandwich(channels, size, [&](Builder& model, int src) {
          return model.adaptive_average_pool(model.relu(src), to);
        });
        for (const Variant& variant : variants())
          expect_like_reference(graph, {.batch = 3}, variant, tolerance(variant.precision, 60));
      }
}

// The ReLU behind a convolution is taken by its own chunks, and its mask by whoever writes the gradient: each
// op that may, and a value that is read twice, whose gradient has two terms.
TEST(CpuEngine, TakesAReluBesideTheProducts) {
  const std::vector<std::pair<const char*, std::function<int(Builder&, int)>>> ops = {
      {"3x3", [](Builder& m, int src) { return m.conv2d(src, "next", {.channels = 32, .padding = 1}); }},
      {"1x1", [](Builder& m, int src) { return m.conv2d(src, "next", {.channels = 5, .kernel = 1}); }},
      {"max pool", [](Builder& m, int src) { return m.max_pool(src, {}); }},
      {"overlapping max pool",
       [](Builder& m, int src) { return m.max_pool(src, {.kernel = 3, .stride = 2, .padding = 1}); }},
      // Its last tap has the number of no winner: over channels that are zero everywhere, by a negative
      // weight.
      {"the widest max pool",
       [](Builder& m, int src) {
         const int one = m.relu(m.conv2d(src, "one", {.channels = 1, .kernel = 1}));
         const int signs = m.relu(m.conv2d(one, "signs", {.channels = 32, .kernel = 1}));
         return m.max_pool(signs, {.kernel = 16, .stride = 3, .padding = 8});
       }},
      {"average pool", [](Builder& m, int src) { return m.average_pool(src, {.kernel = 3, .stride = 2}); }},
      {"global pool", [](Builder& m, int src) { return m.global_average_pool(src); }},
      {"dropout", [](Builder& m, int src) { return m.dropout(src, {.probability = 0.4}); }},
      {"dense", [](Builder& m, int src) { return m.relu(m.dense(src, "next", {.features = 24})); }},
      {"gelu, which does not", [](Builder& m, int src) { return m.gelu(src); }},
      {"two readers",
       [](Builder& m, int src) { return m.add(m.conv2d(src, "next", {.channels = 32, .padding = 1}), src); }},
      {"two readers, of which the first to write masks and the other does not", [](Builder& m, int src) {
         const int other = m.gelu(src);
         return m.add(other, m.conv2d(src, "next", {.channels = 32, .padding = 1}));
       }}};
  for (const auto& [name, op] : ops)
    for (const int batch : {1, 7}) {
      SCOPED_TRACE(testing::Message() << name << ", batch " << batch);
      const auto graph = sandwich(24, 9, [&](Builder& model, int src) {
        const int conv = model.conv2d(src, "conv", {.channels = 32, .padding = 1, .bias = true});
        return op(model, model.relu(conv));
      });
      for (const Variant& variant : variants_and_tiles()) {
        // Rounded to bf16, two values of a window may tie and another one win.
        if (variant.precision == Precision::bf16 && std::string(name).find("max") != std::string::npos)
          continue;
        expect_like_reference(graph, {.batch = batch, .seed = 11}, variant,
                              tolerance(variant.precision, 150));
      }
    }
}

// The bytes say who reads what for a mask, and that a ReLU beside its product reads nothing.
TEST(CpuEngine, CountsTheMasksBytesWhereTheyAreRead) {
  const auto graph = sandwich(16, 8, [](Builder& model, int src) {
    const int conv = model.conv2d(src, "conv", {.channels = 32, .padding = 1, .bias = true});
    return model.max_pool(model.relu(model.conv2d(model.relu(conv), "next", {.channels = 32, .padding = 1})),
                          {});
  });
  const Program program(graph, {.batch = 8}, {.algorithms = {find_algorithm("onednn")}, .chunk_samples = 4});
  const std::int64_t image = 4 * 8 * 32 * 64, narrow = image / 2,
                     pooled = image / 4;  // of the batch, in bytes
  const auto traffic = [&](const char* name) {
    for (int step = 0; step < static_cast<int>(program.ops().size()); ++step)
      if (graph.nodes[static_cast<std::size_t>(program.ops()[static_cast<std::size_t>(step)].group.node)]
              .name == name)
        return program.traffic(step);
    throw std::runtime_error("no such op");
  };
  EXPECT_EQ(traffic("conv").forward, narrow + image) << "the ReLU is in it";
  EXPECT_EQ(traffic("conv").d_weight, narrow + image) << "masked before";
  EXPECT_EQ(traffic("next").backward, 2 * image + image) << "reads conv's values for their mask";
  EXPECT_EQ(traffic("next").d_weight, 2 * image);
  EXPECT_EQ(traffic("max_pool1").backward, pooled + image) << "knows the mask from the winners";
}

TEST(CpuEngine, FlattensInChannelHeightWidthOrder) {
  for (const int channels : {1, 3, 16, 40}) {
    const auto graph = sandwich(channels, 4, [](Builder& model, int src) {
      return model.relu(model.dense(src, "fc1", {.features = 24}));
    });
    for (const Variant& variant : variants_and_tiles())
      for (const int batch : {1, 2, 16})
        expect_like_reference(graph, {.batch = batch}, variant, tolerance(variant.precision, 100));
  }
}

TEST(CpuEngine, LetsNaNThroughToTheLoss) {
  const auto graph = toy::every_op(0);
  for (const Variant& variant : variants_and_tiles()) {
    SCOPED_TRACE(variant.name);
    auto engine = compile(graph, options_of(variant, {.batch = 4}), variant.tuning);
    toy::initialise(*engine, 1);
    toy::Samples samples(graph, 0, 4);
    samples.images[17] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_FALSE(std::isfinite(engine->forward(samples.step(0.25)).loss));
    EXPECT_FALSE(std::isfinite(engine->evaluate(samples.images, samples.labels, 4).loss));
  }
}

}  // namespace
}  // namespace paceline::engine::cpu
