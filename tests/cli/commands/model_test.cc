/// `paceline model` as a user types it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "graph/zoo.h"

namespace paceline::cli {
namespace {

using testing::HasSubstr;

TEST(Model, ListsEveryNameThatTrainTakes) {
  const auto listed = run_program({"model", "list"});
  ASSERT_EQ(listed.code, 0) << listed.err;
  for (const auto& name : graph::model_names()) EXPECT_THAT(listed.out, HasSubstr("\n" + name + " "));
  const auto models =
      nlohmann::json::parse(run_program({"model", "list", "--json", "--classes", "1000"}).out);
  ASSERT_EQ(models.size(), graph::model_names().size());
  for (const auto& model : models)
    if (model.at("model") == "resnet50") {  // torchvision's
      EXPECT_EQ(model.at("parameters"), 25'557'032);
      EXPECT_EQ(model.at("multiply_adds"), 4'089'184'256);
    }
}

TEST(Model, ShowsLayersAndMemory) {
  const auto shown =
      run_program({"model", "show", "mobilenet_v2", "--local-batch", "8", "--precision", "fp32"});
  ASSERT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("features.1.conv.0.0"));
  EXPECT_THAT(shown.out, HasSubstr("[32,112,112]"));
  EXPECT_THAT(shown.out, HasSubstr("Training with 8 images at a time in fp32 needs"));
  const auto of = [](const char* batch) {
    return nlohmann::json::parse(run_program({"model", "show", "mobilenet_v2", "--local-batch", batch,
                                              "--precision", "fp32", "--json"})
                                     .out);
  };
  const auto small = of("8"), large = of("16");
  EXPECT_EQ(small.at("layers").size(), 154u);  // with the image and the loss
  EXPECT_GT(large.at("memory").at("activations").get<double>(),
            1.9 * small.at("memory").at("activations").get<double>());
  EXPECT_EQ(large.at("memory").at("weights"), small.at("memory").at("weights"));
}

TEST(Model, SaysWhatIsNoModel) {
  const auto unknown = run_program({"model", "show", "resnet-50"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'resnet50'?"));
  EXPECT_THAT(run_program({"model", "shwo", "resnet50"}).err, HasSubstr("did you mean 'show'?"));
  EXPECT_THAT(run_program({"model", "show", "vgg16_bn", "--input", "3x224"}).err,
              HasSubstr("such as 3x224x224"));
  EXPECT_THAT(run_program({"model", "show", "vgg16_bn", "--input", "3x8x8"}).err, HasSubstr("vgg16_bn"));
}

}  // namespace
}  // namespace paceline::cli
