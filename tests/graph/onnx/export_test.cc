#include "graph/onnx/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "graph/onnx/graph_writer.h"
#include "graph/op_builder.h"
#include "graph/zoo.h"

// That other programs read these files, and compute the same logits, is shown by tests/parity/onnx_export.py.

namespace paceline::graph::onnx {
namespace {

using Builder = OpBuilder;

using testing::ElementsAre;
using testing::HasSubstr;

/// A message of protobuf: texts and numbers by their field.
struct Message {
  std::multimap<int, std::string> texts;
  std::multimap<int, std::int64_t> numbers;

  explicit Message(std::string_view bytes) {
    const auto varint = [&bytes] {
      std::uint64_t value = 0;
      for (int shift = 0;; shift += 7) {
        const auto byte = static_cast<unsigned char>(bytes.front());
        bytes.remove_prefix(1);
        value |= std::uint64_t{byte & 0x7fU} << shift;
        if (byte < 0x80) return value;
      }
    };
    while (!bytes.empty()) {
      const auto key = varint();
      const int field = static_cast<int>(key >> 3);
      if ((key & 7) == 0) {
        numbers.emplace(field, static_cast<std::int64_t>(varint()));
        continue;
      }
      const auto size = (key & 7) == 5 ? 4 : varint();
      texts.emplace(field, bytes.substr(0, size));
      bytes.remove_prefix(size);
    }
  }
  [[nodiscard]] std::vector<std::string> all(int field) const {
    std::vector<std::string> found;
    for (auto [at, end] = texts.equal_range(field); at != end; ++at) found.push_back(at->second);
    return found;
  }
  [[nodiscard]] std::string text(int field) const { return texts.find(field)->second; }
  [[nodiscard]] std::vector<std::int64_t> whole(int field) const {
    std::vector<std::int64_t> found;
    for (auto [at, end] = numbers.equal_range(field); at != end; ++at) found.push_back(at->second);
    return found;
  }
};

struct Read {
  explicit Read(const Graph& exported, const ModelFacts& facts = {})
      : model(bytes_of(exported, facts)), graph(model.text(7)) {
    for (const auto& node : graph.all(1)) {
      nodes.emplace_back(node);
      ops.push_back(nodes.back().text(4));
    }
  }
  /// The whole numbers of an attribute of the first node of an op.
  [[nodiscard]] std::vector<std::int64_t> attribute(const std::string& op, const std::string& name) const {
    for (const auto& node : nodes) {
      if (node.text(4) != op) continue;
      for (const auto& bytes : node.all(5))
        if (const Message attribute(bytes); attribute.text(1) == name) return attribute.whole(8);
    }
    return {};
  }

  Message model, graph;
  std::vector<Message> nodes;
  std::vector<std::string> ops;

 private:
  static std::string bytes_of(const Graph& exported, const ModelFacts& facts) {
    const auto layout = flat_layout(exported);
    const std::vector<float> weights(static_cast<std::size_t>(layout.elements), 0.5F);
    return export_model(exported, layout, weights, facts);
  }
};

/// Pools an image of `length` x 8, and classifies.
template <typename Add>
Graph pooled(int length, Add add) {
  Builder model("pooled");
  int value = add(model, model.input({2, length, 8}));
  model.loss(model.dense(value, "fc", {.features = 3}), 0);
  return model.finish();
}

TEST(Export, NamesWhatItIs) {
  const Read read(pooled(8, [](Builder& model, int src) { return model.relu(src, "r"); }),
                  {.version = "7.7", .description = "what", .metadata = {{"classes", "[]"}}});
  EXPECT_EQ(read.model.text(2), "Paceline");
  EXPECT_EQ(read.model.text(3), "7.7");
  EXPECT_EQ(read.model.text(6), "what");
  EXPECT_EQ(Message(read.model.text(14)).text(2), "[]");
  EXPECT_THAT(Message(read.model.text(8)).whole(2), ElementsAre(kOpset));
  EXPECT_THAT(read.ops, ElementsAre("Relu", "Flatten", "Gemm"));
  EXPECT_EQ(Message(read.graph.text(11)).text(1), "input");
  EXPECT_EQ(Message(read.graph.text(12)).text(1), "logits");
  EXPECT_EQ(read.nodes.back().text(2), "logits");
}

TEST(Export, NormalisesFirstIfItKnowsHow) {
  const auto graph = pooled(8, [](Builder& model, int src) { return model.relu(src); });
  const Read read(graph, {.mean = {0.4F, 0.5F}, .stddev = {0.2F, 0.25F}});
  EXPECT_THAT(read.ops, ElementsAre("BatchNormalization", "Relu", "Flatten", "Gemm"));
  const auto constants = read.graph.all(5);
  for (const auto& [at, name, value] : {std::tuple{2U, "mean", 0.5F}, std::tuple{3U, "variance", 0.0625F}}) {
    const Message array(constants.at(at));
    EXPECT_EQ(array.text(8), name);
    EXPECT_THAT(array.whole(1), ElementsAre(2));
    float second = 0;
    std::memcpy(&second, array.text(9).data() + 4, 4);
    EXPECT_EQ(second, value);
  }
}

TEST(Export, KeepsNamesApartAndWeightsByTheirs) {
  Builder model("names");
  int value = model.conv2d(model.input({3, 4, 4}), "logits", {.channels = 4, .kernel = 3, .bias = true});
  value = model.relu(model.batch_norm(value, "mean"), "logits.weight");
  model.loss(model.dense(value, "fc", {.features = 2, .bias = false}), 0);
  const Read read(model.finish(), {.mean = {0, 0, 0}, .stddev = {1, 1, 1}});
  std::set<std::string> names{"input"};
  for (const auto& constant : read.graph.all(5)) EXPECT_TRUE(names.insert(Message(constant).text(8)).second);
  EXPECT_TRUE(names.contains("fc.weight"));
  EXPECT_TRUE(names.contains("mean.running_var"));
  for (const auto& node : read.nodes) {
    for (const auto& input : node.all(1)) EXPECT_TRUE(names.contains(input)) << input;  // made before
    EXPECT_TRUE(names.insert(node.text(2)).second) << node.text(2);
  }
  EXPECT_EQ(read.nodes.back().text(2), "logits");
}

TEST(Export, RoundsPoolsUpByPadding) {
  struct Case {
    int length;
    bool ceil;
    Pair padding;
    std::vector<std::int64_t> pads;
  };
  for (const auto& [length, ceil, padding, pads] : std::vector<Case>{
           {8, false, 0, {0, 0, 0, 0}},
           {8, true, 0, {0, 0, 1, 1}},  // windows at 0, 2, 4, 6 end at 9
           {7, true, 0, {0, 0, 0, 1}},  // fits in its height
           {8, true, 1, {1, 1, 2, 2}},  // windows at -1, 1, 3, 5, 7 end at 10
       }) {
    const Read read(pooled(length, [&](Builder& model, int src) {
      return model.max_pool(src, {.kernel = 3, .stride = 2, .padding = padding, .ceil = ceil});
    }));
    EXPECT_EQ(read.attribute("MaxPool", "pads"), pads) << length << ceil;
  }
}

TEST(Export, CountsPaddingAsZerosBeforeThePool) {
  for (const bool counts : {true, false}) {
    const Read read(pooled(8, [&](Builder& model, int src) {
      return model.average_pool(src, {.kernel = 3, .stride = 1, .padding = 1, .count_padding = counts});
    }));
    EXPECT_EQ(read.ops.front(), counts ? "Pad" : "AveragePool");
    EXPECT_EQ(read.ops[1], counts ? "Reshape" : "Flatten") << "ONNX Runtime would merge pad and pool";
    EXPECT_THAT(read.attribute("AveragePool", "pads"),
                counts ? ElementsAre(0, 0, 0, 0) : ElementsAre(1, 1, 1, 1));
  }
}

TEST(Export, PoolsEvenWindowsAndMultipliesOthers) {
  const auto of = [](int length, int count) {
    return Read(pooled(length, [&](Builder& model, int src) {
      return model.adaptive_average_pool(src, {count, 4});
    }));
  };
  EXPECT_THAT(of(9, 3).attribute("AveragePool", "kernel_shape"), ElementsAre(3, 2));
  EXPECT_THAT(of(13, 6).attribute("AveragePool", "kernel_shape"), ElementsAre(3, 2));  // they overlap
  EXPECT_THAT(of(13, 6).attribute("AveragePool", "strides"), ElementsAre(2, 2));
  for (const auto& [length, count] : {std::pair{5, 3}, std::pair{3, 7}})
    EXPECT_THAT(of(length, count).ops,
                ElementsAre("MatMul", "Transpose", "MatMul", "Transpose", "Flatten", "Gemm"));
}

TEST(Export, LeavesOutWhatEvaluationDoes) {
  const Read read(pooled(8, [](Builder& model, int src) {
    return model.dropout(model.stochastic_depth(src, {.probability = 0.5}), {.probability = 0.5});
  }));
  EXPECT_THAT(read.ops, ElementsAre("Flatten", "Gemm"));
}

TEST(Export, RefusesMoreThanAFileHolds) {
  Builder model("vast");
  model.loss(model.dense(model.input({30, 32, 32}), "fc", {.features = 20'000}), 0);
  const auto graph = model.finish();
  try {
    require_exportable(graph);
    FAIL() << "2.5 GB were taken";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::data);
    EXPECT_THAT(error.what(),
                HasSubstr("vast: its weights have 2.5 GB, but an ONNX file must have less than 2 GiB"));
  }
}

}  // namespace
}  // namespace paceline::graph::onnx
