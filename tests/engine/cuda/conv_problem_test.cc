#include "engine/cuda/conv_problems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "graph/zoo.h"

namespace paceline::engine::cuda {
namespace {

ConvProblem problem() {
  return {.direction = ConvDirection::backward_data,
          .precision = Precision::bf16,
          .samples = 4,
          .channels_in = 16,
          .height_in = 9,
          .width_in = 10,
          .channels_out = 24,
          .height_out = 5,
          .width_out = 5,
          .kernel_height = 3,
          .kernel_width = 3,
          .stride = 2,
          .padding = 1};
}

std::string refusal(const std::function<void(ConvProblem&)>& change) {
  ConvProblem changed = problem();
  change(changed);
  try {
    check(changed);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::device);
    return error.what();
  }
  return "";
}

TEST(ConvShapes, ALayersConvolutionHasItsShapesWithChannelsPaddedToEight) {
  graph::Builder model("m");
  int value =
      model.conv2d(model.input({3, 9, 11}), "conv", {.channels = 20, .kernel = 3, .stride = 2, .padding = 1});
  value = model.dense(value, "fc", {.features = 10});
  model.loss(value, 0);
  const graph::Graph graph = model.finish();
  const std::vector<ConvProblem> problems = conv_problems(graph, 7, Precision::f32);
  ASSERT_EQ(problems.size(), 6u);
  const ConvProblem conv = {.samples = 7,
                            .channels_in = 8,
                            .height_in = 9,
                            .width_in = 11,
                            .channels_out = 24,
                            .height_out = 5,
                            .width_out = 6,
                            .kernel_height = 3,
                            .kernel_width = 3,
                            .stride = 2,
                            .padding = 1};
  EXPECT_EQ(problems[0], conv);
  // The flattened input: 5 x 6 pixels of 24 channels, 4 of which are padding.
  const ConvProblem dense = {.direction = ConvDirection::backward_weights,
                             .samples = 7,
                             .channels_in = 720,
                             .height_in = 1,
                             .width_in = 1,
                             .channels_out = 16,
                             .height_out = 1,
                             .width_out = 1};
  EXPECT_EQ(problems[5], dense);
  EXPECT_EQ(dense.weight_elements(), 16 * 720);
}

TEST(ConvShapes, EveryLayerOfTheZooIsAConvolutionThatIsAccepted) {
  for (const std::string& name : graph::model_names()) {
    const graph::Graph graph = graph::make_model(name, {3, 64, 64}, 10, 0);
    for (const ConvProblem& each : conv_problems(graph, 1, Precision::bf16)) EXPECT_NO_THROW(check(each));
  }
}

TEST(ConvShapes, AProblemIsDescribedInOneLine) {
  EXPECT_EQ(describe(problem()),
            "backward data, bf16, 4x9x10x16 to 4x5x5x24, kernel 3x3, stride 2, padding 1");
  ConvProblem uneven = problem();
  uneven.padding = {0, 1};
  uneven.dilation = 2;
  EXPECT_THAT(describe(uneven), ::testing::EndsWith("kernel 3x3, stride 2, padding 0x1, dilation 2"));
}

TEST(ConvShapes, WhatNoLayerIsIsRefusedByNameOfTheRule) {
  EXPECT_EQ(refusal([](ConvProblem&) {}), "");
  EXPECT_EQ(refusal([](ConvProblem& p) { p.samples = 0; }),
            "convolution (backward data, bf16, 0x9x10x16 to 0x5x5x24, kernel 3x3, stride 2, padding 1): its "
            "number of samples must be at least 1, but is 0");
  EXPECT_THAT(refusal([](ConvProblem& p) { p.channels_in = 12; }),
              ::testing::HasSubstr("its input's channels must be padded to a multiple of 8, but are 12"));
  EXPECT_THAT(refusal([](ConvProblem& p) { p.channels_out = 25; }),
              ::testing::HasSubstr("its output's channels must be padded to a multiple of 8, but are 25"));
  EXPECT_THAT(
      refusal([](ConvProblem& p) { p.height_out = 4; }),
      ::testing::HasSubstr("its output's height must be 5 by input, kernel, stride and padding, but is 4"));
  EXPECT_THAT(refusal([](ConvProblem& p) { p.width_out = 6; }),
              ::testing::HasSubstr("its output's width must be 5"));
  EXPECT_THAT(refusal([](ConvProblem& p) { p.kernel_width = 13; }),
              ::testing::HasSubstr("its kernel's width is 13, and may be at most 12, the padded input's"));
  // Each size in turn is not positive.
  for (int ConvProblem::*size :
       {&ConvProblem::samples, &ConvProblem::channels_in, &ConvProblem::height_in, &ConvProblem::width_in,
        &ConvProblem::channels_out, &ConvProblem::height_out, &ConvProblem::width_out,
        &ConvProblem::kernel_height, &ConvProblem::kernel_width})
    EXPECT_THAT(refusal([size](ConvProblem& p) { p.*size = 0; }), ::testing::HasSubstr("must be at least 1"));
  EXPECT_THAT(refusal([](ConvProblem& p) { p.stride = {2, 0}; }), ::testing::HasSubstr("must be at least 1"));
  EXPECT_THAT(refusal([](ConvProblem& p) { p.dilation = 0; }), ::testing::HasSubstr("must be at least 1"));
  EXPECT_THAT(refusal([](ConvProblem& p) {
                p.dilation = {1, 6};
              }),
              ::testing::HasSubstr("its kernel's width is 13, and may be at most 12, the padded input's"));
  EXPECT_THAT(refusal([](ConvProblem& p) { p.padding = -1; }), ::testing::HasSubstr("must be at least 0"));
}

}  // namespace
}  // namespace paceline::engine::cuda
