// The models are the published ones: their names, their parameter counts, their cost.

#include "graph/zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/flops.h"
#include "graph/ops/rules.h"

namespace paceline::graph {
namespace {

using testing::HasSubstr;

struct Count {
  const char* model;
  Shape input;
  int classes;
  std::int64_t elements;
};

class ParameterCount : public testing::TestWithParam<Count> {};

TEST_P(ParameterCount, IsThePublishedFigure) {
  const auto& [model, input, classes, elements] = GetParam();
  const Graph graph = make_model(model, input, classes, 0);
  EXPECT_EQ(graph.trainable_elements(), elements);
  EXPECT_EQ(graph.classes(), classes);
  EXPECT_EQ(graph.input_shape(), input);
}

INSTANTIATE_TEST_SUITE_P(Zoo, ParameterCount,
                         testing::Values(Count{"resnet18-cifar", {3, 32, 32}, 10, 11'173'962},
                                         Count{"resnet18", {3, 224, 224}, 1000, 11'689'512},
                                         Count{"resnet18", {3, 224, 224}, 10, 11'181'642},
                                         Count{"resnet18", {3, 64, 64}, 10, 11'181'642},
                                         Count{"mnist-cnn", {1, 28, 28}, 10, 1'199'882},
                                         Count{"mnist-cnn", {3, 32, 32}, 10, 1'626'442},
                                         Count{"resnet8-cifar", {3, 32, 32}, 10, 78'042}));

TEST(Zoo, EveryModelTakesAnyImageThatMakesSense) {
  for (const std::string& name : model_names())
    for (const Shape input : {Shape{1, 28, 28}, Shape{3, 32, 32}, Shape{3, 33, 17}, Shape{4, 64, 48}})
      EXPECT_EQ(make_model(name, input, 7, 0.1).classes(), 7) << name << " " << text(input);
}

TEST(Zoo, NamesParametersAsTorchvisionDoes) {
  std::vector<std::string> names;
  const Graph graph = make_model("resnet18-cifar", {3, 32, 32}, 10, 0);
  for (const Parameter& parameter : graph.parameters) names.push_back(parameter.name);
  EXPECT_EQ(names.size(), 102u);  // 122 entries of torchvision's state dict less 20 num_batches_tracked
  EXPECT_EQ(names[0], "conv1.weight");
  EXPECT_EQ(names[4], "bn1.running_var");
  for (const char* name :
       {"layer1.0.conv1.weight", "layer1.0.bn1.running_mean", "layer2.0.downsample.0.weight",
        "layer2.0.downsample.1.bias", "layer4.1.conv2.weight", "fc.weight", "fc.bias"})
    EXPECT_THAT(names, testing::Contains(name));
  const auto found = std::ranges::find(graph.parameters, "layer2.0.downsample.0.weight", &Parameter::name);
  EXPECT_EQ(found->shape, (std::vector<std::int64_t>{128, 64, 1, 1}));
}

TEST(Zoo, CountsTheFlopsOfResnet18ForCifar) {
  const Graph graph = make_model("resnet18-cifar", {3, 32, 32}, 10, 0);
  // By hand, multiply-adds: stem 1,769,472; layer1 4 x 37,748,736; each later stage 18,874,368 + 3 x
  // 37,748,736 + 2,097,152 (shortcut); fc 5,120.
  EXPECT_EQ(forward_flops(graph), 2 * 555'422'720LL);
  // Twice more for the two backward products, but nobody needs the stem's d_src.
  EXPECT_EQ(training_flops(graph), 3 * forward_flops(graph) - 2 * 1'769'472LL);
}

TEST(Zoo, AnUnknownNameIsAnsweredWithTheNearest) {
  try {
    (void)make_model("resnet18-cifra", {3, 32, 32}, 10, 0);
    FAIL() << "expected an error";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::usage);
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'resnet18-cifar'"));
  }
}

TEST(Zoo, AnImageTooSmallNamesTheLayerThatCannotTakeIt) {
  try {
    (void)make_model("mnist-cnn", {1, 4, 4}, 10, 0);  // conv1 leaves 2x2
    FAIL() << "expected an error";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("conv2d 'conv2'"));
    EXPECT_THAT(error.what(), HasSubstr("[32,2,2]"));
  }
}

}  // namespace
}  // namespace paceline::graph
