/// The file of a reference curve: MLPerf's form, ours beyond it, and what is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/trainings/reference_curve.h"
#include "base/error.h"

namespace paceline::analysis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ReferenceCurve made() {
  ReferenceCurve curve{.target = AccuracyTarget{.accuracy = 0.97, .of_validation = true}, .points = {}};
  for (const std::int64_t batch : {64, 256}) {
    auto& point = curve.points.emplace_back();
    point.benchmark = "mnist-cnn on mnist";
    point.creator = "paceline 1";
    point.when = "2026-01-31";
    point.platform = "2 x Example CPU";
    point.batch = batch;
    point.hyperparameters = {
        {"opt_name", "sgd"}, {"opt_base_learning_rate", 0.05}, {"model_bn_span", std::int64_t{64}}};
    point.epochs = {2, 3, 2.5};
    point.evaluated_every = 0.5;
    point.train_samples = 60000;
    point.test_samples = 10000;
    point.settings = {{"lr", "0.05"}};
  }
  return curve;
}

TEST(ReferenceFile, HasTheFormOfMlperf) {
  const auto json = nlohmann::ordered_json::parse(to_json(made()));
  ASSERT_TRUE(json.contains("mnist-cnn_on_mnist_ref_64"));
  const auto& point = json["mnist-cnn_on_mnist_ref_64"];
  std::vector<std::string> keys;
  for (const auto& [key, value] : point.items()) keys.push_back(key);
  keys.resize(7);
  EXPECT_THAT(keys, ElementsAre("Benchmark", "Creator", "When", "Platform", "BS", "Hyperparams",
                                "Epochs to converge"));
  EXPECT_EQ(point["Hyperparams"]["opt_base_learning_rate"], 0.05);
  EXPECT_EQ(point["Hyperparams"]["model_bn_span"], 64);
  EXPECT_EQ(point["Epochs to converge"], (std::vector<double>{2, 3, 2.5}));
}

TEST(ReferenceFile, IsReadBack) {
  const auto curve = reference_from_json(to_json(made()), "F.json");
  ASSERT_TRUE(curve.target);
  EXPECT_DOUBLE_EQ(curve.target->accuracy, 0.97);
  EXPECT_TRUE(*curve.target->of_validation);
  ASSERT_EQ(curve.points.size(), 2u);
  const auto& point = curve.points[1];
  EXPECT_EQ(point.benchmark, "mnist-cnn on mnist");
  EXPECT_EQ(point.batch, 256);
  EXPECT_THAT(point.epochs, ElementsAre(2, 3, 2.5));
  EXPECT_DOUBLE_EQ(point.evaluated_every, 0.5);
  EXPECT_EQ(point.train_samples, 60000);
  EXPECT_EQ(point.test_samples, 10000);
  EXPECT_EQ(point.settings.at("lr"), "0.05");
}

// Made up, in MLPerf's form: no accuracy, nothing of ours, and batches in no order.
TEST(ReferenceFile, ReadsWhatOthersWrote) {
  const auto curve = reference_from_json(
      R"({"toy_ref_512": {"Benchmark": "toy", "BS": 512, "Hyperparams": {"opt_name": "lars"}, "Epochs to converge": [9, 8]},
          "toy_ref_256": {"Benchmark": "toy", "BS": 256, "Hyperparams": {}, "Epochs to converge": [7, 6]}})",
      "F.json");
  EXPECT_FALSE(curve.target);
  ASSERT_EQ(curve.points.size(), 2u);
  EXPECT_EQ(curve.points[0].batch, 256);
  EXPECT_THAT(curve.points[1].epochs, ElementsAre(9, 8));
  EXPECT_EQ(curve.points[0].evaluated_every, 0);
}

TEST(ReferenceFile, RefusesOtherForms) {
  struct Case {
    const char *text, *why;
  };
  for (
      const auto& [text, why] : std::vector<Case>{
          {"[1, 2]", "F.json: is no reference"},
          {"{", "F.json: is no reference"},
          {R"({"schema": "paceline-record-1"})", "F.json: is no reference: it has no batch"},
          {R"({"a": {"BS": 64}})", "F.json: a: has no batch 'BS' or no numbers of epochs"},
          {R"({"a": {"BS": 64, "Epochs to converge": [3, 0]}})", "no numbers of epochs"},
          {R"({"a": {"BS": "many", "Epochs to converge": [3]}})", "F.json: a: 'BS' has another type"},
          {R"({"a": {"BS": 64, "Epochs to converge": "few"}})", "'Epochs to converge' has another type"},
          {R"({"a": {"BS": 64, "Epochs to converge": [3]}, "b": {"BS": 64, "Epochs to converge": [4]}})",
           "F.json: has batch 64 twice"},
          {R"({"a": {"BS": 64, "Epochs to converge": [3], "Accuracy": 0.9},
                "b": {"BS": 128, "Epochs to converge": [4], "Accuracy": 0.8}})",
           "F.json: b: has another accuracy or another benchmark"},
          {R"({"a": {"BS": 64, "Epochs to converge": [3]}, "b": {"BS": 128, "Epochs to converge": [4], "Accuracy": 0.8}})",
           "another accuracy"}}) {
    try {
      (void)reference_from_json(text, "F.json");
      ADD_FAILURE() << text;
    } catch (const base::Error& error) {
      EXPECT_EQ(error.kind(), base::ErrorKind::data);
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  }
}

}  // namespace
}  // namespace paceline::analysis
