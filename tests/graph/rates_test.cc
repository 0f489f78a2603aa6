#include "graph/rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "graph/ops.h"
#include "graph/zoo.h"

namespace paceline::graph {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class Rates : public testing::Test {
 protected:
  /// Factors of the parameters that have another than 1, by name.
  std::map<std::string, double> after(const std::vector<RateRule>& rules) {
    graph_ = make_model("resnet8-cifar", {3, 32, 32}, 10, 0);
    EXPECT_EQ(set_rates(graph_, rules), "");
    std::map<std::string, double> rates;
    for (const Parameter& parameter : graph_.parameters)
      if (is_trainable(parameter.role) && parameter.rate != 1) rates[parameter.name] = parameter.rate;
    return rates;
  }
  bool is_frozen(const std::string& name) {
    for (const Node& node : graph_.nodes)
      if (node.name == name) return node.as<BatchNorm>()->is_frozen;
    return false;
  }
  Graph graph_;
};

TEST_F(Rates, ArePatternsOfModulesAndParameters) {
  const auto module = after(frozen_rules("layer1"));
  EXPECT_EQ(module.size(), 6u);  // two convolutions, two batch norms with weight and bias
  EXPECT_EQ(module.at("layer1.0.conv1.weight"), 0);
  EXPECT_TRUE(is_frozen("layer1.0.bn2"));
  EXPECT_FALSE(is_frozen("bn1"));
  EXPECT_THAT(after(frozen_rules("conv1")), testing::SizeIs(1));  // not layer1.0.conv1
  EXPECT_THAT(after(frozen_rules("*.conv1")), testing::SizeIs(3));
  EXPECT_THAT(after(frozen_rules("fc.bias")), testing::ElementsAre(testing::Pair("fc.bias", 0)));
}

TEST_F(Rates, FreezeABatchNormAsAWhole) {
  (void)after(frozen_rules("bn1.weight"));
  EXPECT_FALSE(is_frozen("bn1"));
  (void)after(frozen_rules("conv1,bn1.weight,bn1.bias"));
  EXPECT_TRUE(is_frozen("bn1"));
  EXPECT_FALSE(needs_gradient(graph_)[2]);  // nothing before it learns, and it has nothing to send
}

TEST_F(Rates, LastRuleThatMatchesCounts) {
  const auto body = after(frozen_rules("all-but-last"));
  EXPECT_FALSE(body.contains("fc.weight"));
  EXPECT_TRUE(body.contains("conv1.weight"));
  EXPECT_EQ(after(frozen_rules("*,!fc")), body);
  EXPECT_EQ(after(frozen_rules("!fc,*")).size(), body.size() + 2);
  const auto factors = after(factor_rules("*=0.5,fc=10"));
  EXPECT_EQ(factors.at("fc.weight"), 10);
  EXPECT_EQ(factors.at("conv1.weight"), 0.5);
  EXPECT_EQ(set_rates(graph_, frozen_rules("fc")), "");  // on top of what is there
  EXPECT_EQ(set_rates(graph_, factor_rules("fc=10")), "");
  EXPECT_TRUE(graph_.parameters.back().is_frozen());
}

TEST_F(Rates, NameWhatDoesNotExist) {
  graph_ = make_model("resnet8-cifar", {3, 32, 32}, 10, 0);
  EXPECT_EQ(set_rates(graph_, frozen_rules("layer1,head")), "head");
  EXPECT_EQ(set_rates(graph_, frozen_rules("*,!head")), "head");
  EXPECT_THAT([] { (void)frozen_rules("fc,,bn1"); },
              ThrowsMessage<base::Error>(HasSubstr("something between the commas")));
  EXPECT_THAT([] { (void)factor_rules("fc=10,layer1"); },
              ThrowsMessage<base::Error>(HasSubstr("but has 'layer1'")));
  EXPECT_THAT([] { (void)factor_rules("fc=0"); }, ThrowsMessage<base::Error>(HasSubstr("above 0")));
}

}  // namespace
}  // namespace paceline::graph
