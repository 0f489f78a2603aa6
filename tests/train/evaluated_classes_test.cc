// Checkpoints evaluated on sets whose classes are not quite theirs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "base/file.h"
#include "fixture.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/safetensors.h"
#include "train/evaluate_checkpoint.h"

namespace paceline::train {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

/// A checkpoint of a folder of three classes, evaluated on others.
class EvaluatedClasses : public TrainingTest {
 protected:
  EvaluatedClasses() {
    for (const char* name : {"blue", "green", "red"})
      for (int i = 0; i < 14; ++i)
        write(std::string(i < 8 ? "train/" : "test/") + name + "/" + std::to_string(i) + ".ppm", name, i);
    options_.data = "folder:" + (directory_ / "set").string() + ",size=16";
    options_.global_batch = 8;
    options_.steps = 6;
    options_.out = directory_ / "o";
    (void)train(options_);
    options_.local_batch = std::exchange(options_.global_batch, 0);
  }
  void write(const std::string& place, const std::string& name, int i) const {
    std::string pixels;
    for (int p = 0; p < 16 * 16; ++p)
      for (const char* channel : {"red", "green", "blue"})
        pixels += static_cast<char>(channel == name ? 150 + i : (13 * p + 29 * i) % 90);
    std::filesystem::create_directories((directory_ / "set" / place).parent_path());
    base::write_file(directory_ / "set" / place, std::string_view("P6\n16 16\n255\n" + pixels));
  }
  void rename(const std::string& from, const std::string& to) const {
    for (const char* part : {"train/", "test/"})
      std::filesystem::rename(directory_ / "set" / (part + from), directory_ / "set" / (part + to));
  }
  [[nodiscard]] measure::Record evaluated() const {
    return evaluate_checkpoint(options_, {.checkpoint = options_.out}, backend_of(options_.device), {}, {});
  }
  [[nodiscard]] std::string refused() const {
    try {
      (void)evaluated();
    } catch (const base::Error& error) {
      return error.what();
    }
    return "accepted";
  }
  Options options_ = small();
};

TEST_F(EvaluatedClasses, GoByTheirNames) {
  const auto whole = evaluated();
  EXPECT_THAT(whole.notes, Not(Contains(HasSubstr("classes go by their names"))));
  for (const char* part : {"train/green", "test/green"})
    std::filesystem::remove_all(directory_ / "set" / part);
  const auto without = evaluated();
  const auto &all = whole.evaluation.value(), &some = without.evaluation.value();
  EXPECT_EQ(some.classes, all.classes);
  EXPECT_EQ(some.confusion[0], all.confusion[0]);
  EXPECT_EQ(some.confusion[2], all.confusion[2]) << "red is the third class, and the second folder";
  EXPECT_EQ(some.confusion[1], (std::vector<std::int64_t>{0, 0, 0}));
  EXPECT_EQ(some.samples, 12);
  EXPECT_THAT(without.notes,
              IsSupersetOf(
                  {HasSubstr("has 'blue', 'red'; 'green' is missing"),
                   HasSubstr("the list of test images is another than in the training: 12 here, 18 there")}));
}

TEST_F(EvaluatedClasses, ThatItDoesNotKnowAreRefused) {
  rename("red", "a_red");
  EXPECT_THAT(refused(), AllOf(HasSubstr("it knows the classes 'blue', 'green', 'red'"),
                               HasSubstr("has 'a_red', 'blue', 'green': 'red' is missing, 'a_red' is new"),
                               HasSubstr("rename these folders")));
  rename("a_red", "red");
  write("train/yellow/1.ppm", "yellow", 1);
  EXPECT_THAT(refused(), HasSubstr("'yellow' is new"));
}

TEST_F(EvaluatedClasses, AreUnknownOfOlderOnes) {
  const auto path = checkpoints_in(options_.out).front();
  {
    const SafetensorsFile file(path);
    auto metadata = file.metadata();
    metadata.erase("classes");
    metadata["format"] = "paceline-checkpoint-2";
    write_safetensors(directory_ / "older", file.tensors(), metadata);
  }
  std::filesystem::rename(directory_ / "older", path);
  EXPECT_THAT(evaluated().notes, Contains(HasSubstr("names no classes")));
}

TEST_F(EvaluatedClasses, SeeImagesOfOneSize) {
  options_.data += ",mean=0.5";
  EXPECT_THAT(evaluated().notes, Contains(HasSubstr("images are of mean 0.5:0.5:0.5 here; they were of "
                                                    "mean 0.485:0.456:0.406 in the training")));
}

}  // namespace
}  // namespace paceline::train
