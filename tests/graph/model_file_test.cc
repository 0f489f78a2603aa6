#include "graph/zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <variant>

#include "base/error.h"
#include "base/file.h"
#include "graph/all_ops.h"
#include "graph/layout.h"
#include "graph/ops.h"

namespace paceline::graph {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kResidual = R"(
name = "tiny"
[[layer]]
op = "conv2d"
name = "stem"
channels = 8
padding = 1
[[layer]]
op = "batch_norm"
name = "norm"
momentum = 0.2
[[layer]]
op = "relu"
name = "trunk"
[[layer]]
op = "conv2d"
name = "branch"
channels = 8
kernel = 1
bias = true
[[layer]]
op = "add"
inputs = ["branch", "trunk"]
[[layer]]
op = "max_pool"
kernel = 3
[[layer]]
op = "dense"
name = "fc"
features = "classes"
)";

constexpr const char* kRates = R"(
[[layer]]
op = "conv2d"
name = "white"
channels = 12
kernel = 2
bias = true
init = "whiten"
weight_rate = 0
[[layer]]
op = "batch_norm"
name = "norm"
weight_rate = 0
bias_rate = 64
[[layer]]
op = "dense"
name = "fc"
features = "classes"
init = "zero"
weight_rate = 0.5
)";

TEST(ModelFile, TakesFirstWeightsAndRates) {
  const Graph graph = parse_model(kRates, "rates.toml", {3, 3, 3}, 5, 0);
  EXPECT_EQ(graph.nodes[1].as<Conv2d>()->init, Init::whiten);
  EXPECT_EQ(graph.nodes[3].as<Dense>()->init, Init::zero);
  std::map<std::string, double> rates;
  for (const Parameter& parameter : graph.parameters) rates[parameter.name] = parameter.rate;
  EXPECT_EQ(rates["white.weight"], 0);
  EXPECT_EQ(rates["white.bias"], 1);
  EXPECT_EQ(rates["norm.weight"], 0);
  EXPECT_EQ(rates["norm.bias"], 64);
  EXPECT_EQ(rates["fc.weight"], 0.5);
  EXPECT_EQ(graph.trainable_elements(), 12 + 12 + 5 * 48 + 5);  // what is frozen does not count
}

TEST(ModelFile, BuildsGroupsGatesAndJoins) {
  const Graph graph = parse_model(R"(
[[layer]]
op = "conv2d"
name = "depthwise"
channels = 6
padding = 1
groups = 3
[[layer]]
op = "global_average_pool"
[[layer]]
op = "sigmoid"
name = "gate"
[[layer]]
op = "mul"
name = "gated"
inputs = ["depthwise", "gate"]
[[layer]]
op = "slice"
name = "front"
channels = 2
[[layer]]
op = "concat"
inputs = ["gated", "front"]
[[layer]]
op = "channel_shuffle"
[[layer]]
op = "stochastic_depth"
probability = 0.1
[[layer]]
op = "dense"
name = "fc"
features = "classes"
)",
                                  "gates.toml", {3, 5, 5}, 4, 0);
  EXPECT_EQ(graph.parameters[0].shape, (std::vector<std::int64_t>{6, 1, 3, 3}));
  EXPECT_EQ(multiply_adds(graph, 1), 6 * 25 * 9);
  EXPECT_EQ(graph.nodes[6].shape, (Shape{8, 5, 5}));
  EXPECT_EQ(graph.nodes[8].as<StochasticDepth>()->probability, 0.1);
  EXPECT_EQ(graph.trainable_elements(), 6 * 9 + 4 * 8 * 25 + 4);
}

TEST(ModelFile, BuildsUnevenWindows) {
  const Graph graph = parse_model(R"(
[[layer]]
op = "conv2d"
name = "wide"
channels = 6
kernel = [1, 7]
padding = [0, 3]
dilation = [4, 1]
stride = 2
[[layer]]
op = "max_pool"
kernel = [3, 2]
ceil = true
[[layer]]
op = "average_pool"
kernel = 3
stride = [2, 1]
padding = 1
count_padding = false
[[layer]]
op = "pad"
top = 1
right = -2
back = 3
[[layer]]
op = "adaptive_average_pool"
size = [2, 3]
[[layer]]
op = "dense"
name = "fc"
features = "classes"
)",
                                  "uneven.toml", {3, 16, 9}, 4, 0);
  EXPECT_EQ(graph.parameters[0].shape, (std::vector<std::int64_t>{6, 3, 1, 7}));
  EXPECT_EQ(graph.nodes[1].as<Conv2d>()->dilation, Pair(4, 1));
  EXPECT_EQ(graph.nodes[1].shape, (Shape{6, 8, 5}));
  EXPECT_EQ(multiply_adds(graph, 1), 6 * 8 * 5 * 3 * 7);
  EXPECT_EQ(graph.nodes[2].as<MaxPool>()->stride, Pair(3, 2)) << "a pool's stride is its kernel unless said";
  EXPECT_EQ(graph.nodes[2].shape, (Shape{6, 3, 3}));
  EXPECT_FALSE(graph.nodes[3].as<AveragePool>()->count_padding);
  EXPECT_EQ(graph.nodes[4].shape, (Shape{9, 3, 1}));
  EXPECT_EQ(graph.nodes[5].shape, (Shape{9, 2, 3}));
}

TEST(ModelFile, RefusesWrongFirstWeightsAndRates) {
  const auto refusal = [](const std::string& from, const std::string& to) -> std::string {
    std::string text = kRates;
    text.replace(text.find(from), from.size(), to);
    try {
      (void)parse_model(text, "rates.toml", {3, 3, 3}, 5, 0);
    } catch (const base::Error& error) {
      return error.what();
    }
    return "taken";
  };
  EXPECT_THAT(refusal("\"whiten\"", "\"whitened\""),
              testing::AllOf(StartsWith("rates.toml:8: "), HasSubstr("did you mean 'whiten'?")));
  EXPECT_THAT(refusal("bias_rate = 64", "bias_rate = -1"), HasSubstr("factors of the learning rate"));
  EXPECT_THAT(refusal("bias_rate = 64", "rate = 64"), HasSubstr("has no key 'rate'"));
  EXPECT_THAT(refusal("init = \"zero\"", "init = \"dirac\""), HasSubstr("are for conv2d"));
  EXPECT_THAT(refusal("channels = 12", "channels = 11"), HasSubstr("an even number of channels, at most 24"));
}

// An op that no model file can ask for was forgotten in layer_kinds.cc or in the page that explains them.
TEST(ModelFile, HasAWordForEveryOp) {
  const std::string page = base::read_file(std::string(PACELINE_SOURCE_DIR) + "/docs/models.md");
  for (const Attributes& op : all_ops()) {
    if (std::holds_alternative<Input>(op) || std::holds_alternative<SoftmaxCrossEntropy>(op)) continue;
    const std::string kind(rule_of(op).kind);
    try {
      (void)parse_model("[[layer]]\nop = \"" + kind + "\"\n", "one.toml", {3, 8, 8}, 10, 0);
    } catch (const base::Error& error) {  // one layer is no model, but the op is not what is wrong with it
      EXPECT_THAT(error.what(), Not(HasSubstr("is not known"))) << "layer_kinds() has no row for it";
    }
    EXPECT_NE(page.find("`" + kind + "`"), std::string::npos) << "docs/models.md has no row for " << kind;
  }
}

TEST(ModelFile, BuildsABranchByName) {
  const Graph graph = parse_model(kResidual, "tiny.toml", {3, 9, 9}, 5, 0.1);
  EXPECT_EQ(graph.name, "tiny");
  EXPECT_EQ(graph.classes(), 5);
  // stem 8*3*9, norm 2*8, branch 8*8 + 8, fc 5*8*3*3 + 5
  EXPECT_EQ(graph.trainable_elements(), 216 + 16 + 72 + 365);
  const Node& add = graph.nodes[5];
  ASSERT_NE(add.as<Add>(), nullptr);
  EXPECT_EQ(graph.nodes[static_cast<std::size_t>(add.inputs[0])].name, "branch");
  EXPECT_EQ(graph.nodes[static_cast<std::size_t>(add.inputs[1])].name, "trunk");
  EXPECT_DOUBLE_EQ(graph.nodes[2].as<BatchNorm>()->momentum, 0.2);
  EXPECT_EQ(graph.nodes[6].as<MaxPool>()->stride, 3) << "a pool's stride is its kernel unless said";
  EXPECT_DOUBLE_EQ(graph.nodes.back().as<SoftmaxCrossEntropy>()->label_smoothing, 0.1);
}

TEST(ModelFile, TheExampleInTheRecipesBuildsForEveryDataSet) {
  const std::string file = std::string(PACELINE_SOURCE_DIR) + "/recipes/models/small-cnn.toml";
  for (const Shape input : {Shape{1, 28, 28}, Shape{3, 32, 32}}) {
    const Graph graph = make_model(file, input, 10, 0);
    EXPECT_EQ(graph.name, "small-cnn");
    EXPECT_EQ(graph.classes(), 10);
  }
}

TEST(ModelFile, NamesParametersAsItIsTold) {
  constexpr const char* kFile = R"(
[[layer]]
op = "conv2d"
channels = 3
weight = "encoder.patches"
[[layer]]
op = "dense"
name = "qkv"
features = 6
weight = "attention.in_proj_weight"
bias = "attention.in_proj_bias"
[[layer]]
op = "batch_norm"
name = "n"
bias = "n.beta"
[[layer]]
op = "dense"
name = "attention.out_proj"
features = "classes"
weight = "attention.out"
)";
  const Graph graph = parse_model(kFile, "names.toml", {3, 4, 4}, 5, 0);
  std::vector<std::string> names;
  for (const Parameter& parameter : graph.parameters) names.push_back(parameter.name);
  EXPECT_THAT(names, testing::ElementsAre("encoder.patches", "attention.in_proj_weight",
                                          "attention.in_proj_bias", "n.weight", "n.beta", "n.running_mean",
                                          "n.running_var", "attention.out", "attention.out_proj.bias"));
  const auto text = canonical_text(graph);
  EXPECT_THAT(text, HasSubstr("features 6, bias true, weight \"attention.in_proj_weight\", bias "
                              "\"attention.in_proj_bias\"; [6,1,1]"));
  const Graph read = graph_from_text(text, "names", "here");
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(read.parameters[i].name, names[i]);
}

TEST(ModelFile, RefusesParameterNamesThatCannotBe) {
  const auto refusal = [](const std::string& layers) {
    try {
      (void)parse_model(layers + "[[layer]]\nop = \"dense\"\nfeatures = 5\nname = \"fc\"\n", "my.toml",
                        {3, 4, 4}, 5, 0);
    } catch (const base::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string place = "[[layer]]\nop = \"conv2d\"\nchannels = 3\n";
  EXPECT_EQ(refusal(place + "weight = \"a.b_c-9\"\n"), "");
  EXPECT_THAT(refusal(place + "weight = \"a b\"\n"),
              HasSubstr("of letters, digits, '.', '_' and '-', but is"));
  EXPECT_THAT(refusal(place + "weight = 5\n"), HasSubstr("my.toml:4: 'weight' must be a text in quotes"));
  EXPECT_EQ(refusal(place + "bias = \"b\"\n"), "") << "it has a bias then";
  EXPECT_THAT(refusal(place + "weight = \"ema.x\"\n"), HasSubstr("names that begin with 'ema.'"));
  EXPECT_THAT(refusal(place + "weight = \"fc.bias\"\n"), HasSubstr("but an earlier op has 'fc.bias'"));
  for (const char* key : {"weight", "bias"})
    EXPECT_THAT(refusal(std::string("[[layer]]\nop = \"relu\"\n") + key + " = \"w\"\n"),
                HasSubstr(std::string("'") + key + "' names a parameter, but it has none of that kind"));
}
struct WrongFile {
  std::string name;
  std::string file;
  std::string begins;  ///< place
  std::string has;     ///< reason or suggestion
};

class ModelFileError : public testing::TestWithParam<WrongFile> {};

TEST_P(ModelFileError, SaysFileLineAndWhat) {
  try {
    (void)parse_model(GetParam().file, "my.toml", {3, 8, 8}, 10, 0);
    FAIL() << "expected an error";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::usage);
    EXPECT_THAT(error.what(), StartsWith(GetParam().begins));
    EXPECT_THAT(error.what(), HasSubstr(GetParam().has));
  }
}

const std::string kFc = "[[layer]]\nop = \"dense\"\nname = \"fc\"\nfeatures = \"classes\"\n";

INSTANTIATE_TEST_SUITE_P(
    ModelFile, ModelFileError,
    testing::Values(
        WrongFile{"NoToml", "name = \"x\"\n[[layer]\n", "my.toml:2:", "not valid TOML"},
        WrongFile{"Empty", "", "my.toml:", "[[layer]]"},
        WrongFile{"LayerIsNoTable", "layer = [1, 2]\n",
                  "my.toml:1:", "must be [[layer]] tables, but is a list"},
        WrongFile{"NoLayers", "layer = []\n", "my.toml:1:", "must be [[layer]] tables, but is a list"},
        WrongFile{"NameOfTheFile", "name = 5\n" + kFc,
                  "my.toml:1:", "'name' must be a text in quotes, but is 5;"},
        WrongFile{"KeyOfTheFile", "nam = \"x\"\n" + kFc, "my.toml:1:", "did you mean 'name'"},
        WrongFile{"KindOfLayer", "[[layer]]\nop = \"conv2\"\n", "my.toml:2:", "did you mean 'conv2d'"},
        WrongFile{"NoKind", "\n[[layer]]\nname = \"x\"\n", "my.toml:2:", "known are conv2d"},
        WrongFile{"KeyOfTheLayer", "[[layer]]\nop = \"conv2d\"\nchannel = 8\n",
                  "my.toml:3:", "did you mean 'channels'"},
        WrongFile{"KeyOfAnotherLayer", "[[layer]]\nop = \"relu\"\nkernel = 3\n",
                  "my.toml:3:", "no key 'kernel'"},
        WrongFile{"KeyMissing", "[[layer]]\nop = \"dense\"\n", "my.toml:1:", "needs 'features'"},
        WrongFile{"TypeOfAValue", "[[layer]]\nop = \"conv2d\"\nchannels = \"many\"\n",
                  "my.toml:3:", "'channels' must be a whole number, but is the text \"many\""},
        WrongFile{"TypeOfAFlag", "[[layer]]\nop = \"conv2d\"\nchannels = 8\nbias = 1\n",
                  "my.toml:4:", "'bias' must be true or false, but is 1;"},
        WrongFile{"TypeOfAKernel", "[[layer]]\nop = \"conv2d\"\nchannels = 8\nkernel = 3.0\n",
                  "my.toml:4:", "'kernel' must be a whole number, but is 3.0;"},
        WrongFile{"ListOfThreeForAKernel", "[[layer]]\nop = \"conv2d\"\nchannels = 8\nkernel = [3, 3, 3]\n",
                  "my.toml:4:", "'kernel' must be a whole number, or a list of two, [height, width], but is"},
        WrongFile{"TextsForAKernel", "[[layer]]\nop = \"conv2d\"\nchannels = 8\nkernel = [\"3\", 3]\n",
                  "my.toml:4:", "or a list of two, [height, width], but is another list;"},
        WrongFile{"NegativeInAList", "[[layer]]\nop = \"conv2d\"\nchannels = 8\npadding = [0, -1]\n",
                  "my.toml:4:", "'padding' must be from 0 to 1048576, but is -1"},
        WrongFile{"ListOfChannels", "[[layer]]\nop = \"conv2d\"\nchannels = [8, 8]\n",
                  "my.toml:3:", "'channels' must be a whole number, but is a list;"},
        WrongFile{"PadThatKeepsNothing", "[[layer]]\nop = \"pad\"\ntop = -5\nbottom = -3\n",
                  "my.toml:1:", "must keep some of its input's 8 rows, but adds -5 and -3;"},
        WrongFile{"PadBeyondAllNumbers", "[[layer]]\nop = \"pad\"\ntop = -9223372036854775808\n",
                  "my.toml:3:", "'top' must be"},
        WrongFile{"TypeOfCeil", "[[layer]]\nop = \"max_pool\"\nceil = 1\n",
                  "my.toml:3:", "'ceil' must be true or false, but is 1;"},
        WrongFile{"MaximumCountsNoPadding", "[[layer]]\nop = \"max_pool\"\ncount_padding = true\n",
                  "my.toml:3:", "a max_pool layer has no key 'count_padding'"},
        WrongFile{"TypeOfANumber", "[[layer]]\nop = \"dropout\"\nprobability = true\n",
                  "my.toml:3:", "'probability' must be a number, but is true;"},
        WrongFile{"TypeOfAText", "[[layer]]\nop = 2020-01-01\n",
                  "my.toml:2:", "'op' must be a text in quotes, but is a date or a time;"},
        WrongFile{"InputsIsNoList", "[[layer]]\nop = \"add\"\ninputs = \"a\"\n",
                  "my.toml:3:", "'inputs' must be a list of layer names, but is the text \"a\";"},
        WrongFile{"Negative", "[[layer]]\nop = \"conv2d\"\nchannels = 8\npadding = -1\n", "my.toml:4:", "-1"},
        WrongFile{"Huge", "[[layer]]\nop = \"conv2d\"\nchannels = 99999999999\n",
                  "my.toml:3:", "99999999999"},
        WrongFile{"UnknownInput",
                  "[[layer]]\nop = \"relu\"\nname = \"trunk\"\n[[layer]]\nop = \"relu\"\ninput = \"trnuk\"\n",
                  "my.toml:6:", "did you mean 'trunk'"},
        WrongFile{"InputIsNoName", "[[layer]]\nop = \"relu\"\ninput = 3\n",
                  "my.toml:3:", "in quotes, but is 3;"},
        WrongFile{"OneInputForAdd", "[[layer]]\nop = \"add\"\n", "my.toml:1:", "takes 2 inputs, but has 1"},
        WrongFile{"TwoInputsForRelu", "[[layer]]\nop = \"relu\"\ninputs = [\"input\", \"input\"]\n",
                  "my.toml:1:", "takes 1 input, but has 2"},
        WrongFile{"BothInputs", "[[layer]]\nop = \"relu\"\ninput = \"input\"\ninputs = [\"input\"]\n",
                  "my.toml:1:", "both"},
        WrongFile{"ReservedName", "[[layer]]\nop = \"relu\"\nname = \"input\"\n",
                  "my.toml:3:", "choose another"},
        WrongFile{"ShapeError", "[[layer]]\nop = \"conv2d\"\nname = \"c\"\nchannels = 8\nkernel = 9\n",
                  "my.toml:1:", "conv2d 'c'"},
        WrongFile{"DropoutOutOfRange", "[[layer]]\nop = \"dropout\"\nprobability = 1\n",
                  "my.toml:1:", "[0, 1)"},
        WrongFile{"OneInputForConcat", "[[layer]]\nop = \"concat\"\n",
                  "my.toml:1:", "takes two or more inputs, but has 1"},
        WrongFile{"SliceBeyondItsInput", "[[layer]]\nop = \"slice\"\nbegin = 2\nchannels = 2\n",
                  "my.toml:1:", "must lie within the 3 channels of its input, but are 2 and 2"},
        WrongFile{"GroupsThatDoNotDivide", "[[layer]]\nop = \"conv2d\"\nchannels = 8\ngroups = 3\n",
                  "my.toml:1:", "groups must divide its input's 3 channels and its own 8, but is 3"},
        WrongFile{"ShuffleThatDoesNotDivide", "[[layer]]\nop = \"channel_shuffle\"\n",
                  "my.toml:1:", "groups must divide the 3 channels of its input, but is 2"},
        WrongFile{
            "MulOfOtherShapes",
            "[[layer]]\nop = \"max_pool\"\nname = \"half\"\n[[layer]]\nop = \"mul\"\ninputs = [\"input\", "
            "\"half\"]\n",
            "my.toml:4:", "must have the first one's shape [3,8,8], or be [3,1,1]"},
        WrongFile{"ConcatOfOtherSizes",
                  "[[layer]]\nop = \"max_pool\"\nname = \"half\"\n[[layer]]\nop = \"concat\"\ninputs = "
                  "[\"input\", \"half\"]\n",
                  "my.toml:4:", "one height and width, but the first is [3,8,8] and another [3,4,4]"},
        WrongFile{"NoClassifier", "[[layer]]\nop = \"relu\"\n", "my.toml:1:", "10 classes"},
        WrongFile{"UnusedLayer", "[[layer]]\nop = \"relu\"\nname = \"lost\"\n" + kFc + "input = \"input\"\n",
                  "my.toml:4:", "no op uses 'lost'"}),
    [](const auto& info) { return info.param.name; });

TEST(ModelFile, AMissingFileIsADataError) {
  try {
    (void)make_model("no/such/model.toml", {3, 8, 8}, 10, 0);
    FAIL() << "expected an error";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::data);
    EXPECT_THAT(error.what(), HasSubstr("no/such/model.toml"));
  }
}

}  // namespace
}  // namespace paceline::graph
