#include "train/checkpoint/given_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <cstring>
#include <map>

#include "base/dtype.h"
#include "base/error.h"
#include "graph/initialise.h"
#include "graph/zoo.h"
#include "train/checkpoint/safetensors.h"

namespace paceline::train {
namespace tests {
namespace {

using base::DType;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

graph::Graph small_model(int classes) {
  graph::Builder model("small");
  int value = model.conv2d(model.input({2, 4, 4}), "conv", {.channels = 3, .padding = 1});
  value = model.relu(model.batch_norm(value, "bn"));
  model.loss(model.dense(value, "fc", {.features = classes}), 0);
  return model.finish();
}

template <typename T>
std::vector<std::byte> bytes_of(std::int64_t count, T (*convert)(float)) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * sizeof(T));
  for (std::int64_t i = 0; i < count; ++i) {
    const T value = convert(0.25f * static_cast<float>(i + 1));
    std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
  }
  return bytes;
}

/// A file with every array of a model: 0.25, 0.5, .. in each, of one type.
class GivenWeights : public testing::Test {
 protected:
  struct Array {
    std::vector<std::int64_t> shape;
    DType type;
    std::vector<std::byte> bytes;
  };

  static std::filesystem::path folder() {
    const auto folder = std::filesystem::path(testing::TempDir()) / ("given-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    return folder;
  }

  explicit GivenWeights(int classes = 5) : graph_(small_model(classes)) { fill(DType::f32); }

  void fill(DType type) {
    for (const auto& parameter : graph_.parameters) set(parameter.name, parameter.shape, type);
  }
  void set(const std::string& name, std::vector<std::int64_t> shape, DType type = DType::f32) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    auto bytes = type == DType::f64 ? bytes_of<double>(count, [](float x) { return static_cast<double>(x); })
                 : type == DType::f16
                     ? bytes_of<_Float16>(count, [](float x) { return static_cast<_Float16>(x); })
                 : type == DType::bf16 ? bytes_of<base::BFloat16>(count, base::to_bf16)
                                       : bytes_of<float>(count, [](float x) { return x; });
    arrays_[name] = {std::move(shape), type, std::move(bytes)};
  }
  void write() {
    std::vector<Tensor> tensors;
    for (const auto& [name, array] : arrays_) tensors.push_back({name, array.type, array.shape, array.bytes});
    write_safetensors(path_, tensors);
  }
  std::vector<float> read(const graph::Graph& graph) {
    write();
    layout_ = graph::flat_layout(graph);
    std::vector<float> weights(static_cast<std::size_t>(layout_.elements), -7);
    given_ = read_given_weights({path_, by_order_}, graph, layout_, weights);
    return weights;
  }
  /// Element `at` of the parameter with this name.
  float element(const graph::Graph& graph, const std::vector<float>& weights, const std::string& name,
                int at) {
    for (std::size_t i = 0; i < graph.parameters.size(); ++i)
      if (graph.parameters[i].name == name) {
        const auto slot = static_cast<std::size_t>(layout_.slot_of_parameter[i]);
        return weights[static_cast<std::size_t>(layout_.slots[slot].offset + at)];
      }
    return NAN;
  }
  auto reading(const graph::Graph& graph) {
    write();
    return [this, &graph] { (void)check_given_weights({path_, by_order_}, graph); };
  }

  ~GivenWeights() override { std::filesystem::remove_all(path_.parent_path()); }

  std::filesystem::path path_ = folder() / "given.safetensors";
  bool by_order_ = false;
  graph::Graph graph_;
  std::map<std::string, Array> arrays_;
  graph::Layout layout_;
  train::GivenWeights given_;
};

TEST_F(GivenWeights, IsReadInEachType) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    fill(type);
    const auto weights = read(graph_);
    EXPECT_EQ(element(graph_, weights, "conv.weight", 0), 0.25f);
    EXPECT_EQ(element(graph_, weights, "conv.weight", 53), 13.5f);
    EXPECT_EQ(element(graph_, weights, "bn.running_var", 2), 0.75f);
    EXPECT_EQ(element(graph_, weights, "fc.bias", 4), 1.25f);
    EXPECT_EQ(given_.sentence, "weights from given.safetensors: 7 arrays");
  }
}

TEST_F(GivenWeights, LeavesALastLayerOfOtherClasses) {
  const graph::Graph other = small_model(3);
  const auto weights = read(other);
  EXPECT_EQ(element(other, weights, "conv.weight", 0), 0.25f);
  EXPECT_EQ(element(other, weights, "fc.weight", 0), -7);
  EXPECT_EQ(element(other, weights, "fc.bias", 2), -7);
  EXPECT_THAT(given_.drawn, ElementsAre("fc.weight", "fc.bias"));
  EXPECT_EQ(
      given_.sentence,
      "weights from given.safetensors: 5 arrays; fc.weight and fc.bias drawn anew, because the file has 5 "
      "outputs there and the data 3 classes");
}

TEST_F(GivenWeights, LeavesOutWhatTheModelLacks) {
  set("aux.weight", {2, 2});
  set("bn.num_batches_tracked", {});
  set("optimizer.momentum_buffer.fc.weight", {5, 48});  // a checkpoint's
  (void)read(graph_);
  EXPECT_THAT(given_.left_out, ElementsAre("aux.weight"));
  EXPECT_THAT(given_.sentence,
              HasSubstr("1 array of the file that the model does not have is left out, aux.weight first"));
}

TEST_F(GivenWeights, RefusesWhatDoesNotFit) {
  arrays_.erase("bn.weight");
  set("bn.weigth", {3});
  EXPECT_THAT(
      reading(graph_),
      ThrowsMessage<base::Error>(HasSubstr(
          "needs an array 'bn.weight' of shape [3], but the file has none; did you mean 'bn.weigth'?")));
  set("bn.weight", {4});
  EXPECT_THAT(reading(graph_), ThrowsMessage<base::Error>(HasSubstr(
                                   "'bn.weight' must have the shape [3] of model 'small', but has [4]")));
  set("bn.weight", {3}, DType::f32);
  set("fc.weight", {48, 5});
  EXPECT_THAT(reading(graph_),
              ThrowsMessage<base::Error>(HasSubstr("it is transposed; save it in PyTorch's order")));
  // Another number of classes only in the last layer.
  fill(DType::f32);
  set("conv.weight", {4, 2, 3, 3});
  EXPECT_THAT(reading(graph_),
              ThrowsMessage<base::Error>(HasSubstr("'conv.weight' must have the shape [3,2,3,3]")));
}

TEST_F(GivenWeights, AreNotThoseOfAnotherModel) {
  arrays_.clear();
  set("stem.0.weight", {3, 2, 3, 3});
  set("head.weight", {5, 48});
  EXPECT_THAT(
      reading(graph_),
      ThrowsMessage<base::Error>(HasSubstr(
          "but the file has none; it has 2 arrays, head.weight first: take the weights of this model")));
}

TEST_F(GivenWeights, MayAllHaveOnePrefix) {
  std::map<std::string, Array> wrapped;
  for (auto& [name, array] : arrays_) wrapped["module." + name] = array;
  arrays_ = std::move(wrapped);
  const auto weights = read(graph_);
  EXPECT_EQ(element(graph_, weights, "conv.weight", 53), 13.5f);
  EXPECT_EQ(given_.sentence, "weights from given.safetensors: 7 arrays, whose names begin with 'module.'");
  arrays_.erase("module.bn.bias");
  EXPECT_THAT(reading(graph_), ThrowsMessage<base::Error>(HasSubstr("needs an array 'bn.bias'")));
}

TEST_F(GivenWeights, ByOrderNeedNoName) {
  // The file has its arrays in the order of their names here.
  const graph::Graph other = [] {
    graph::Builder model("renamed");
    int value = model.batch_norm(model.input({2, 4, 4}), "norm");
    model.loss(model.dense(value, "head", {.features = 3}), 0);
    return model.finish();
  }();
  arrays_.clear();
  const char* names[] = {"a.gamma", "a.beta", "a.mean", "a.var", "b.kernel", "b.offset"};
  for (std::size_t i = 0; i < other.parameters.size(); ++i)
    set(std::to_string(i) + names[i], other.parameters[i].shape);
  EXPECT_THAT(reading(other), ThrowsMessage<base::Error>(HasSubstr("--weights-by order takes them")));
  by_order_ = true;
  const auto weights = read(other);
  EXPECT_EQ(element(other, weights, "norm.running_var", 1), 0.5f);
  EXPECT_EQ(element(other, weights, "head.weight", 95), 24.0f);
  EXPECT_EQ(given_.sentence,
            "weights from given.safetensors: 6 arrays in their order, 0a.gamma for norm.weight first");
  set("3a.var", {3});
  EXPECT_THAT(reading(other),
              ThrowsMessage<base::Error>(HasSubstr(
                  "'3a.var' must have the shape [2] of 'norm.running_var', the model's next, but has [3]")));
  arrays_.erase("3a.var");
  EXPECT_THAT(reading(other),
              ThrowsMessage<base::Error>(HasSubstr("model 'renamed' has 6 arrays, but the file has 5")));
}

TEST_F(GivenWeights, RefusesNumbersThatAreNone) {
  const float nan = NAN;
  std::memcpy(arrays_["conv.weight"].bytes.data() + 8, &nan, sizeof nan);
  EXPECT_THAT(
      [&] { (void)read(graph_); },
      ThrowsMessage<base::Error>(HasSubstr("'conv.weight' must have finite numbers, but element 2 is nan")));
  fill(DType::f32);
  arrays_["conv.weight"].type = DType::i32;
  EXPECT_THAT(reading(graph_),
              ThrowsMessage<base::Error>(HasSubstr("must have numbers of type F32, F16, BF16 or F64")));
}

}  // namespace
}  // namespace tests
}  // namespace paceline::train
