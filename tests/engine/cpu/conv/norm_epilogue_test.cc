// Batch norm's sums, taken by the products that write the rows.

#include "engine/cpu/conv/norm_epilogue.h"

#include <gmock/gmock.h>

#include "engine/cpu/compare.h"
#include "graph/zoo.h"

namespace paceline::engine::cpu {
namespace {

/// A residual block whose convolutions Winograd can compute, behind one whose gradient has two terms.
graph::Graph normalised_blocks(int height = 9, int width = 9) {
  graph::Builder model("blocks");
  constexpr int kChannels = 32;
  int value = model.conv2d(model.input({3, height, width}), "stem", {.channels = kChannels, .padding = 1});
  value = model.relu(model.batch_norm(value, "stem_bn"));
  for (const std::string name : {"a", "b"}) {
    int branch = model.conv2d(value, name + "1", {.channels = kChannels, .padding = 1});
    branch = model.relu(model.batch_norm(branch, name + "1_bn"));
    branch = model.conv2d(branch, name + "2", {.channels = kChannels, .padding = 1});
    value = model.relu(model.add(model.batch_norm(branch, name + "2_bn"), value));
  }
  value = model.batch_norm(model.conv2d(value, "last", {.channels = 24, .kernel = 1}), "last_bn");
  model.loss(model.dense(model.global_average_pool(value), "fc", {.features = 5}), 0);
  return model.finish();
}

TEST(Epilogue, GivesTheReferencesBatchNorms) {
  const auto graph = normalised_blocks();
  for (Variant variant : variants())
    for (const auto& [batch, ghost] : {std::pair{1, 0}, {7, 0}, {16, 0}, {33, 0}, {12, 3}, {12, 4}}) {
      SCOPED_TRACE(testing::Message() << "batch " << batch << ", groups of " << ghost);
      CompileOptions options{.batch = batch};
      if (ghost > 0) {
        options.batch_norm = BatchNormMode::ghost;
        options.ghost_size = ghost;
      }
      expect_like_reference(graph, options, variant,
                            tolerance(variant.precision, variant.precision == Precision::f32 ? 1000 : 40));
    }
}

// They take them band by band; beside the products where rows are long, or short ones of several images; or
// image by image where pixels are computed twice. BatchSplit of five: not alone, with a short one at the end;
// of a group where there are groups.
TEST(Epilogue, OfTilesGivesTheReferencesBatchNorms) {
  for (const auto& graph : {normalised_blocks(), normalised_blocks(5, 16), normalised_blocks(3, 24),
                            normalised_blocks(4, 32), normalised_blocks(9, 8), normalised_blocks(5, 4)})
    for (Variant variant : tile_variants()) {
      const auto allowed = tolerance(variant.precision, 40);
      expect_like_reference(graph, {.batch = 33}, variant, allowed);
      variant.tuning.chunk_samples = 5;
      expect_like_reference(graph, {.batch = 33}, variant, allowed);
      variant.tuning.chunk_samples = 4;
      expect_like_reference(graph, {.batch = 12, .batch_norm = BatchNormMode::ghost, .ghost_size = 4},
                            variant, allowed);
    }
}

TEST(Epilogue, OfStripsIsThoseOfLongRowsAndOfShortOnes) {
  for (const auto& [width, ending] :
       {std::pair{9, ""}, {16, "strips"}, {24, "strips"}, {8, "images"}, {4, "images"}}) {
    const Tuning tiles{.bf16_products = true,
                       .algorithms = units::bf16_algorithms_on(units::Unit::emulated_amx),
                       .chunk_samples = 4};
    const CompileOptions options{.batch = 12, .precision = Precision::bf16};
    int strips = 0;
    for (const KernelChoice& choice : compile(normalised_blocks(5, width), options, tiles)->kernels()) {
      const bool is_block = choice.op.starts_with("a1") || choice.op.starts_with("b2");
      if (is_block && choice.implementation.find("strips") != std::string::npos) {
        EXPECT_TRUE(choice.implementation.ends_with(ending)) << choice.implementation;
        ++strips;
      }
      if (choice.op.starts_with("a1_bn")) {
        EXPECT_THAT(choice.reason,
                    testing::HasSubstr("moments: summed in the convolution before it, sums of the "
                                       "gradient: summed in the convolution after it"))
            << width;
      }
    }
    EXPECT_EQ(strips, width == 9 ? 0 : 4) << width;  // forward and backward data of two convolutions
  }
}

TEST(Epilogue, TakesTheSumsWhereItCanAndSaysSo) {
  const auto graph = normalised_blocks();
  const auto reason = [&](const CompileOptions& options, const Tuning& tuning, const std::string& op) {
    for (const KernelChoice& choice : compile(graph, options, tuning)->kernels())
      if (choice.op.starts_with(op)) return choice.reason;
    return std::string("no such op");
  };
  const CompileOptions options{.batch = 12};
  using testing::HasSubstr;
  for (const char* op : {"stem_bn + relu", "a1_bn + relu", "a2_bn + sum + relu", "b2_bn + sum + relu"})
    EXPECT_THAT(reason(options, {}, op),
                HasSubstr("moments: summed in the convolution before it, sums of the "
                          "gradient: summed in the convolution after it"))
        << op;
  EXPECT_THAT(reason(options, {}, "last_bn"), HasSubstr("sums of the gradient: in a pass of their own"));
  EXPECT_THAT(reason(options, {.fuses_batch_norm_stats = false}, "a1_bn"),
              HasSubstr("moments: in a pass of their own"));
  // BatchSplit that reach over two groups: their sums belong to neither.
  CompileOptions groups{.batch = 12, .batch_norm = BatchNormMode::ghost, .ghost_size = 3};
  EXPECT_THAT(reason(groups, {.chunk_samples = 4}, "a1_bn"), HasSubstr("moments: in a pass of their own"));
  EXPECT_THAT(reason(groups, {.chunk_samples = 3}, "a1_bn"),
              HasSubstr("moments: summed in the convolution before it"));
}

TEST(Epilogue, GivesTheSameBitsForAnyNumberOfThreads) {
  const Tuning floats{.bf16_products = false, .block_bytes = 1 << 17, .chunk_samples = 4};
  const Tuning tiles{.bf16_products = true,
                     .algorithms = units::bf16_algorithms_on(units::Unit::emulated_amx),
                     .chunk_samples = 5};
  using Of = std::tuple<Precision, Tuning, int>;
  for (const auto& [precision, tuning, width] :
       {Of{Precision::f32, floats, 9}, Of{Precision::bf16, floats, 9}, Of{Precision::bf16, tiles, 9},
        Of{Precision::bf16, tiles, 16}, Of{Precision::bf16, tiles, 8}}) {
    const auto graph = normalised_blocks(9, width);
    std::vector<float> first;
    for (const int threads : {1, 2, 3}) {
      auto engine = compile(graph, {.batch = 33, .precision = precision, .threads = threads}, tuning);
      toy::initialise(*engine, 3);
      const toy::Samples samples(graph, 0, 33);
      engine->forward(samples.step(1.0 / 33));
      engine->backward([](std::int64_t) {});
      const std::vector<float> gradients(engine->gradients().host().begin(),
                                         engine->gradients().host().end());
      if (first.empty()) first = gradients;
      EXPECT_EQ(gradients, first) << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace paceline::engine::cpu
