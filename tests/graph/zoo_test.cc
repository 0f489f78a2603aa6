// The models are the published ones: their names, their parameter counts, their cost.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "graph/all_ops.h"
#include "graph/op_builder.h"
#include "graph/ops.h"
#include "graph/plan.h"
#include "graph/zoo.h"

namespace paceline::graph {
namespace {

using Builder = OpBuilder;

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
                                         Count{"resnet8-cifar", {3, 32, 32}, 10, 78'042},
                                         Count{"convnext-cifar", {3, 32, 32}, 10, 908'890}));

TEST(Zoo, EveryModelTakesAnyImageThatMakesSense) {
  for (const std::string& name : models_in_code())
    for (const Shape input : {Shape{1, 28, 28}, Shape{3, 32, 32}, Shape{3, 33, 17}, Shape{4, 64, 48}})
      EXPECT_EQ(make_model(name, input, 7, 0.1).classes(), 7) << name << " " << text(input);
}

TEST(Zoo, KnowsTheUsualImageOfEachModel) {
  const auto usual = [](const char* model) { return text(usual_input(model)); };
  EXPECT_EQ(usual("mnist-cnn"), "[1,28,28]");
  for (const char* model : {"resnet18-cifar", "small-cnn", "wide-resnet-28-10"})
    EXPECT_EQ(usual(model), "[3,32,32]") << model;
  for (const char* model : {"resnet18", "mobilenet_v2", "wide_resnet50_2"})
    EXPECT_EQ(usual(model), "[3,224,224]") << model;
}

TEST(Zoo, AFileSaysForWhichImages) {
  const auto input = [](const std::string& text) { return recorded_input(text, "mine.toml"); };
  EXPECT_EQ(input("name = 'mine'"), std::nullopt);
  EXPECT_EQ(input("image = [3, 64, 48]"), (Shape{3, 64, 48}));
  for (const char* wrong : {"[3, 64]", "'3x64x64'", "[0, 64, 64]", "[3, 64, 64.5]", "[3, 64, 65537]", "64"})
    try {
      input(std::string("image = ") + wrong);
      ADD_FAILURE() << wrong;
    } catch (const base::Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("mine.toml:1: 'image' must be [channels, height, width], such as"));
    }
}

TEST(Zoo, FilesHaveTheParametersOfTheirModels) {
  // torchvision's numbers, with 1,000 classes.
  const std::map<std::string, std::int64_t> parameters{
      {"resnet34", 21'797'672},          {"resnet50", 25'557'032},        {"resnet101", 44'549'160},
      {"resnet152", 60'192'808},         {"wide_resnet50_2", 68'883'240}, {"resnext50_32x4d", 25'028'904},
      {"vgg16_bn", 138'365'992},         {"mobilenet_v2", 3'504'872},     {"mobilenet_v3_small", 2'542'856},
      {"efficientnet_b0", 5'288'548},    {"regnet_y_400mf", 4'344'144},   {"densenet121", 7'978'856},
      {"shufflenet_v2_x1_0", 2'278'604}, {"convnext_tiny", 28'589'128},   {"vit_b_16", 86'567'656}};
  for (const auto& [name, count] : parameters)
    EXPECT_EQ(make_model(name, {3, 224, 224}, 1000, 0).trainable_elements(), count) << name;
  // 64 patches of 3x4x4 and the class token; 9 blocks of two layer norms, attention and two dense layers.
  const std::int64_t block = 4 * 192 + (3 * 192 + 192) * (192 + 1) + 384 * (192 + 1) + 192 * (384 + 1);
  EXPECT_EQ(make_model("vit-cifar", {3, 32, 32}, 10, 0).trainable_elements(),
            192 * (48 + 1) + (65 + 1) * 192 + 9 * block + 2 * 192 + 10 * (192 + 1));
  for (const ModelText& file : zoo_files())
    EXPECT_EQ(make_model(std::string(file.name), {3, 64, 64}, 7, 0).classes(), 7) << file.name;
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

// What makes no sense is refused where it is asked for, with the names and shapes at fault.

namespace {

using testing::HasSubstr;

struct Wrong {
  std::string name;
  std::function<void(Builder&, int)> build;
  std::vector<std::string> parts;  ///< that the sentence must have
};

class BuilderError : public testing::TestWithParam<Wrong> {};

TEST_P(BuilderError, NamesTheOpAndTheActualValue) {
  Builder model("test");
  const int image = model.input({3, 8, 8});
  try {
    GetParam().build(model, image);
    FAIL() << "expected an error";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::usage);
    for (const std::string& part : GetParam().parts) EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Builder, BuilderError,
    testing::Values(
        Wrong{"KernelLargerThanItsInput",
              [](Builder& model, int value) { model.conv2d(value, "wide", {.channels = 4, .kernel = 9}); },
              {"conv2d 'wide'", "9", "[3,8,8]"}},
        Wrong{"ConvolutionWithoutChannels",
              [](Builder& model, int value) { model.conv2d(value, "c", {}); },
              {"conv2d 'c'", "channels", "0"}},
        Wrong{"StrideZero",
              [](Builder& model, int value) { model.conv2d(value, "c", {.channels = 1, .stride = 0}); },
              {"stride", "0"}},
        Wrong{"PaddingAsWideAsTheKernel",
              [](Builder& model, int value) {
                model.conv2d(value, "c", {.channels = 1, .kernel = 3, .padding = 3});
              },
              {"padding", "2", "3"}},
        Wrong{"KernelWithGapsLargerThanItsInput",
              [](Builder& model, int value) {
                model.conv2d(value, "wide", {.channels = 4, .kernel = {1, 3}, .dilation = {1, 4}});
              },
              {"conv2d 'wide'", "the kernel 1x3 with dilation 1x4 must fit", "[3,8,8]"}},
        Wrong{"HugeKernelWithHugeGaps",
              [](Builder& model, int value) {
                model.conv2d(value, "wide", {.channels = 4, .kernel = 1 << 20, .dilation = 1 << 20});
              },
              {"conv2d 'wide'", "must fit"}},
        Wrong{"PaddingAsWideAsTheDilatedKernel",
              [](Builder& model, int value) {
                model.conv2d(value, "c", {.channels = 1, .padding = {4, 5}, .dilation = 2});
              },
              {"from 0 to dilation * (kernel - 1) = 4, but is 4x5;"}},
        Wrong{"DilationZero",
              [](Builder& model, int value) {
                model.conv2d(value, "c", {.channels = 1, .dilation = {1, 0}});
              },
              {"dilation must be at least 1, but is 1x0"}},
        Wrong{"RoundedUpPoolThatDoesNotFit",
              [](Builder& model, int value) {
                model.max_pool(value, {.kernel = 10, .stride = 2, .ceil = true});
              },
              {"the kernel 10 must fit"}},
        Wrong{"AdaptivePoolToNothing",
              [](Builder& model, int value) {
                model.adaptive_average_pool(value, {0, 2}, "a");
              },
              {"adaptive_average_pool 'a': size must be at least 1, but is 0x2"}},
        Wrong{"WhiteningByAnUnevenKernel",
              [](Builder& model, int value) {
                model.conv2d(value, "c", {.channels = 6, .kernel = {1, 3}, .init = Init::whiten});
              },
              {"\"whiten\" is for a square kernel", "1x3"}},
        Wrong{"PoolWithTooMuchPadding",
              [](Builder& model, int value) {
                model.max_pool(value, {.kernel = 3, .stride = 1, .padding = 2});
              },
              {"max_pool 'max_pool1'", "half"}},
        Wrong{"DenseWithoutFeatures",
              [](Builder& model, int value) { model.dense(value, "d", {}); },
              {"dense 'd'"}},
        Wrong{"AddOfTwoShapes",
              [](Builder& model, int value) { model.add(value, model.max_pool(value, {}), "sum"); },
              {"add 'sum'", "[3,8,8]", "[3,4,4]", "1x1 convolution"}},
        Wrong{"DropoutOfEverything",
              [](Builder& model, int value) { model.dropout(value, {.probability = 1}); },
              {"dropout", "[0, 1)", "1"}},
        Wrong{"DropoutThatIsNoNumber",
              [](Builder& model, int value) {
                model.dropout(value, {.probability = std::numeric_limits<double>::quiet_NaN()});
              },
              {"dropout", "nan"}},
        Wrong{"BatchNormWithoutEpsilon",
              [](Builder& model, int value) { model.batch_norm(value, "n", {.epsilon = 0}); },
              {"batch_norm 'n'", "epsilon"}},
        Wrong{"LossOverAnImage",
              [](Builder& model, int value) { model.loss(value, 0); },
              {"loss", "[3,8,8]", "dense"}},
        Wrong{"SmoothingOfOne",
              [](Builder& model, int value) { model.loss(model.dense(value, "d", {.features = 2}), 1.0); },
              {"label smoothing", "1"}},
        Wrong{"NameTwice",
              [](Builder& model, int value) {
                model.conv2d(model.conv2d(value, "same", {.channels = 1}), "same", {.channels = 1});
              },
              {"conv2d 'same'", "once"}},
        Wrong{"NoLoss",
              [](Builder& model, int value) {
                model.relu(value);
                (void)model.finish();
              },
              {"loss", "'relu1'"}},
        Wrong{"ABranchThatLeadsNowhere",
              [](Builder& model, int value) {
                model.relu(value, "lost");
                model.loss(model.dense(value, "d", {.features = 2}), 0);
                (void)model.finish();
              },
              {"no op uses 'lost'"}}),
    [](const auto& info) { return info.param.name; });

// Names that a checkpoint has for other arrays ended a training at its first checkpoint.
TEST(Builder, RefusesTheNamesOfTheOptimizersArrays) {
  for (const char* name : {"optimizer.momentum_buffer.dense1", "lookahead.conv1"}) {
    Builder builder("m");
    const int x = builder.input({3, 8, 8});
    try {
      builder.dense(x, name, {.features = 10});
      FAIL() << name;
    } catch (const base::Error& error) {
      EXPECT_THAT(error.what(), testing::AllOf(HasSubstr(name), HasSubstr("choose another")));
    }
  }
}

TEST(Builder, RefusesWhatFitsNoMachine) {
  Builder builder("m");
  int x = builder.input({3, 8, 8});
  const Conv2d wide{.channels = 1 << 20, .kernel = 3, .padding = 1};
  x = builder.conv2d(x, "c1", wide);
  try {
    builder.conv2d(x, "c2", wide);
    FAIL() << "2^40 weights";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(HasSubstr("up to 'c2' it has 9.9e+12 weights"), HasSubstr("take fewer")));
  }
}

TEST(Builder, NamesOpsOfAKindByTheirNumberHoweverManyThereAre) {
  Builder builder("m");
  int x = builder.input({3, 8, 8});
  x = builder.relu(x, "relu2");
  for (int i = 0; i < 5000; ++i) x = builder.relu(x);
  builder.loss(builder.dense(x, "fc", {.features = 10}), 0);
  const auto graph = builder.finish();
  EXPECT_EQ(graph.nodes[2].name, "relu1");
  EXPECT_EQ(graph.nodes[3].name, "relu3");
  EXPECT_EQ(graph.nodes[5001].name, "relu5001");
}

TEST(Builder, SizesConvolutionsAndPoolsAsPyTorchDoes) {
  Builder model("test");
  const int image = model.input({3, 33, 17});
  EXPECT_EQ(model.shape_of(model.conv2d(image, "a", {.channels = 5, .kernel = 7, .stride = 2, .padding = 3})),
            (Shape{5, 17, 9}));
  EXPECT_EQ(model.shape_of(model.max_pool(image, {.kernel = 3, .stride = 2, .padding = 1})),
            (Shape{3, 17, 9}));
  EXPECT_EQ(model.shape_of(model.average_pool(image, {.kernel = 2, .stride = 2})), (Shape{3, 16, 8}));
  EXPECT_EQ(model.shape_of(model.global_average_pool(image)), (Shape{3, 1, 1}));
  EXPECT_EQ(model.shape_of(model.adaptive_average_pool(image, {7, 40})), (Shape{3, 7, 40}));
  const Conv2d uneven{
      .channels = 5, .kernel = {1, 7}, .stride = {2, 1}, .padding = {0, 3}, .dilation = {9, 2}};
  EXPECT_EQ(model.shape_of(model.conv2d(image, "b", uneven)), (Shape{5, 17, 11}));
}

// torch.nn.functional.max_pool2d(ceil_mode=True) of PyTorch 1.13 makes these: the last window must begin
// inside the image or the padding before it.
TEST(Builder, RoundsPoolsUpAsPyTorchDoes) {
  struct {
    int size, kernel, stride, padding, expected;
  } cases[] = {{8, 3, 2, 0, 4}, {7, 3, 2, 0, 3}, {2, 3, 2, 0, 1}, {5, 2, 2, 1, 3}, {6, 2, 2, 1, 4},
               {7, 2, 3, 1, 3}, {6, 2, 5, 0, 2}, {5, 2, 5, 0, 1}, {4, 2, 6, 1, 1}, {9, 4, 3, 2, 4}};
  for (const auto& c : cases) {
    Builder model("test");
    const int image = model.input({1, c.size, 4});
    const int pool = model.max_pool(
        image, {.kernel = {c.kernel, 1}, .stride = {c.stride, 1}, .padding = {c.padding, 0}, .ceil = true});
    EXPECT_EQ(model.shape_of(pool), (Shape{1, c.expected, 4})) << c.size << " by " << c.kernel;
  }
}

TEST(Rules, TellUnevenWindowsApartInAttributes) {
  EXPECT_EQ(attributes_text(Conv2d{.channels = 8, .padding = 1}),
            "channels 8, kernel 3, stride 1, padding 1, bias false");  // checkpoints hold it
  EXPECT_EQ(
      attributes_text(Conv2d{.channels = 8, .kernel = {1, 7}, .padding = {0, 3}, .dilation = 2, .groups = 2}),
      "channels 8, kernel [1,7], stride 1, padding [0,3], bias false, groups 2, dilation 2");
  EXPECT_EQ(attributes_text(AveragePool{}), "kernel 2, stride 2, padding 0");
  EXPECT_EQ(attributes_text(AveragePool{.ceil = true, .count_padding = false}),
            "kernel 2, stride 2, padding 0, ceil true, count_padding false");
  EXPECT_EQ(attributes_text(AdaptiveAveragePool{{3, 2}}), "size [3,2]");
}

TEST(Rules, NameEveryOpOnce) {
  std::set<std::string_view> kinds;
  for (const Attributes& op : all_ops()) {
    const OpRule& rule = rule_of(op);
    EXPECT_TRUE(kinds.insert(rule.kind).second) << "'" << rule.kind << "' is the name of another op";
    EXPECT_NE(rule.shape, nullptr) << rule.kind;
  }
  EXPECT_FALSE(kinds.contains(""));
  EXPECT_EQ(rule_of(MaxPool{}).kind, "max_pool") << "each op has its own rule";
}

TEST(Rules, KeepForBackwardWhatTheGradientsRead) {
  Builder model("test");
  const int image = model.input({3, 8, 8});
  const int conv = model.conv2d(image, "conv", {.channels = 4});
  const int norm = model.batch_norm(conv, "norm");
  const int relu = model.relu(norm);
  const int pool = model.average_pool(relu, {});
  model.loss(model.dense(pool, "fc", {.features = 2}), 0);
  const Graph graph = model.finish();
  // The image for conv's weights, conv for the norm, relu for itself, pool for fc's weights, the loss for
  // itself.
  EXPECT_THAT(kept_for_backward(graph), testing::ElementsAre(true, true, false, true, true, false, true));
  EXPECT_THAT(needs_gradient(graph), testing::ElementsAre(false, true, true, true, true, true, true));
}

}  // namespace
}  // namespace paceline::graph
