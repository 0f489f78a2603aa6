/// `paceline model export` as a user types it. tests/parity/onnx_export.py runs what it writes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/commands/small_model.h"
#include "cli/program.h"

namespace paceline::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// A network "t" that was trained for a few steps, with averages.
class ModelExport : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new Folder;
    (void)folder_->write("m.toml", kSmallModel);
    for (const bool has_ema : {true, false}) {
      std::vector<std::string> words{"train",
                                     "--model",
                                     "m.toml",
                                     "--data",
                                     "synthetic,train=96,test=50",
                                     "--local-batch",
                                     "16",
                                     "--precision",
                                     "fp32",
                                     "--epochs",
                                     "1",
                                     "--out",
                                     has_ema ? "t" : "plain"};
      if (has_ema) words.insert(words.end(), {"--ema", "0.9"});
      const auto trained = run(words);
      ASSERT_EQ(trained.code, 0) << trained.err;
    }
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static Outcome run(const std::vector<std::string>& words) {
    return run_program(words, {.directory = folder_->path()});
  }
  static Outcome export_to(const std::string& file, std::vector<std::string> more = {},
                           const std::string& checkpoint = "t") {
    more.insert(more.begin(), {"model", "export", checkpoint, "--onnx", file});
    return run(more);
  }
  static std::string bytes_of(const std::string& file) { return base::read_file(folder_->path() / file); }
  static Folder* folder_;
};
Folder* ModelExport::folder_ = nullptr;

TEST_F(ModelExport, WritesWhatTheCheckpointKnows) {
  const auto said = export_to("m.onnx");
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, AllOf(HasSubstr("m.onnx: m, update 6, ONNX with opset 9, "),
                              HasSubstr("input: float [N,3,32,32], RGB, pixels / 255, from 0 to 1"),
                              HasSubstr("logits: float [N,10]"), Not(HasSubstr("rounding"))));
  const auto bytes = bytes_of("m.onnx");
  EXPECT_THAT(bytes, AllOf(HasSubstr("Paceline"), HasSubstr("BatchNormalization"), HasSubstr("fc.weight"),
                           HasSubstr("variance"), HasSubstr("[\"striped red-yellow disc\",")));
  const auto json = nlohmann::json::parse(export_to("again.onnx", {"--json"}).out);
  EXPECT_EQ(json.at("opset"), 9);
  EXPECT_EQ(json.at("classes").size(), 10u);
  EXPECT_EQ(json.at("bytes"), bytes.size());
  EXPECT_EQ(bytes_of("again.onnx"), bytes) << "the same checkpoint gives the same file";
}

TEST_F(ModelExport, LeavesTheNormalisationOutIfAsked) {
  ASSERT_EQ(export_to("raw.onnx", {"--raw-input"}).code, 0);
  EXPECT_THAT(bytes_of("raw.onnx"),
              AllOf(Not(HasSubstr("variance")), HasSubstr("less the mean, over the standard deviation")));
}

TEST_F(ModelExport, TakesTheAverageIfAsked) {
  const auto averaged = export_to("averaged.onnx", {"--use-ema"});
  ASSERT_EQ(averaged.code, 0) << averaged.err;
  EXPECT_THAT(averaged.out, HasSubstr("averaged weights of update 6"));
  const auto none = export_to("none.onnx", {"--use-ema"}, "plain");
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.err, HasSubstr("leave --use-ema out"));
}

TEST_F(ModelExport, ReplacesNoFile) {
  (void)folder_->write("there.onnx", "mine");
  const auto refused = export_to("there.onnx");
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, HasSubstr("--onnx there.onnx: is there already, and an export replaces nothing"));
  EXPECT_EQ(bytes_of("there.onnx"), "mine");
  EXPECT_EQ(export_to("no/such/folder.onnx").code, 3);
}

TEST_F(ModelExport, SaysWhatIsNoCheckpoint) {
  for (const char* other : {"m.toml", "nothing", "t/record.json"}) {
    const auto refused = export_to("never.onnx", {}, other);
    EXPECT_EQ(refused.code, 3) << other;
    EXPECT_THAT(refused.err, HasSubstr(other));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_->path() / "never.onnx"));
}

TEST_F(ModelExport, RefusesOptionsOfOtherActions) {
  EXPECT_THAT(run({"model", "export", "t"}).err, HasSubstr("paceline model export t --onnx model.onnx"));
  EXPECT_THAT(run({"model", "export"}).err, HasSubstr("export CHECKPOINT --onnx FILE"));
  EXPECT_THAT(export_to("x.onnx", {"--classes", "3"}).err, HasSubstr("--classes is of model show"));
  for (const std::vector<std::string>& option :
       std::vector<std::vector<std::string>>{{"--onnx", "x.onnx"}, {"--raw-input"}, {"--use-ema"}}) {
    std::vector<std::string> words{"model", "show", "mnist-cnn"};
    words.insert(words.end(), option.begin(), option.end());
    const auto refused = run(words);
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, HasSubstr("is for a checkpoint: paceline model export CHECKPOINT --onnx FILE"));
  }
}

}  // namespace
}  // namespace paceline::cli
