// What a resume says of data that are not those of its run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "fixture.h"
#include "measure/record.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/safetensors.h"

namespace paceline::train {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

/// Trainings on folders of small pictures, of which each class has 8 to train and 4 to test.
class ResumedData : public TrainingTest {
 protected:
  ResumedData() {
    for (const char* name : {"blue", "green", "red"}) fill(name);
  }
  void fill(const std::string& name) const {
    for (int i = 0; i < 12; ++i)
      write("set/" + std::string(i < 8 ? "train/" : "test/") + name + "/" + std::to_string(i) + ".ppm",
            std::string(16 * 16 * 3, static_cast<char>(name.front() + 3 * i)));
  }
  void write(const std::string& name, const std::string& pixels) const {
    std::filesystem::create_directories((directory_ / name).parent_path());
    base::write_file(directory_ / name, std::string_view("P6\n16 16\n255\n" + pixels));
  }
  void move(const std::string& from, const std::string& to) const {
    std::filesystem::rename(directory_ / "set" / from, directory_ / "set" / to);
  }
  /// An epoch of 3 steps, to be resumed.
  [[nodiscard]] Options begun(const std::string& out = "o") const {
    Options options = small(out);
    options.data = "folder:" + (directory_ / "set").string() + ",size=16";
    options.global_batch = 8;
    options.steps = 3;
    (void)train(options);
    options.resume = options.out;
    options.steps = 6;
    return options;
  }
  static std::vector<std::string> sentences(const measure::Record& record) {
    std::vector<std::string> said;
    for (const auto& change : record.changes.value()) said.push_back(measure::sentence(change));
    return said;
  }
};

TEST_F(ResumedData, OfOtherClassesIsRefused) {
  const auto options = begun();
  move("train/red", "train/a_red");
  move("test/red", "test/a_red");
  const auto record = base::read_file(options.out / "record.json");
  EXPECT_THAT(
      refusal(options),
      AllOf(HasSubstr("its run had the classes 'blue', 'green', 'red', but this one has 'a_red', 'blue', "
                      "'green': 'red' is missing, 'a_red' is new"),
            HasSubstr("start a new run")));
  EXPECT_EQ(base::read_file(options.out / "record.json"), record);
  EXPECT_THAT([&] { (void)rehearse(options, backend_of("cpu")); },
              testing::ThrowsMessage<base::Error>(HasSubstr("'red' is missing")))
      << "--plan says it too";
  move("train/a_red", "train/reddish");
  move("test/a_red", "test/reddish");
  EXPECT_THAT(refusal(options), HasSubstr("'reddish' is new")) << "also where no label moves";
  move("train/reddish", "train/red");
  move("test/reddish", "test/red");
  fill("yellow");
  EXPECT_THAT(refusal(options), HasSubstr("'yellow' is new")) << "rather than that the layers differ";
}

TEST_F(ResumedData, OfOtherImagesIsSaidAndKept) {
  const auto options = begun();
  write("set/train/red/0.ppm", std::string(16 * 16 * 3 + 1, 'x'));  // replaced
  std::filesystem::remove(directory_ / "set/test/blue/9.ppm");
  const auto record = train(options);
  EXPECT_THAT(
      sentences(record),
      testing::ElementsAre(
          "from update 3 on, --steps is 6; it was 3",
          testing::StartsWith("from update 3 on, the list of training images is another: 24 images ("),
          testing::StartsWith("from update 3 on, the list of test images is another: 11 images (")));
  EXPECT_EQ(record.data.classes.value(), (std::vector<std::string>{"blue", "green", "red"}));
  EXPECT_EQ(record.data.lists_sha256.value().size(), 2u);
  Options again = options;
  again.steps = 9;
  EXPECT_THAT(sentences(train(again)), testing::SizeIs(4)) << "said once, and kept";
}

TEST_F(ResumedData, InAnotherFolderAreNoChange) {
  auto options = begun();
  std::filesystem::rename(directory_ / "set", directory_ / "moved");
  options.data = "folder:" + (directory_ / "moved").string() + ",size=16";
  EXPECT_THAT(sentences(train(options)),
              testing::UnorderedElementsAre(HasSubstr("--data is"), HasSubstr("--steps is 6")));
}

TEST_F(ResumedData, OfAnotherNormalisationIsSaid) {
  auto options = begun();
  options.data += ",std=0.5";
  EXPECT_THAT(train(options).notes,
              Contains(AllOf(HasSubstr("images are of std 0.5:0.5:0.5 from here on"),
                             HasSubstr("they were of std 0.229:0.224:0.225 up to update 3"))));
}

// A checkpoint of before is as good as it was; that nobody knows its classes is said.
TEST_F(ResumedData, OfOlderCheckpointsCannotBeCompared) {
  const auto options = begun();
  const auto path = checkpoint_path(options.out, 3);
  {
    const SafetensorsFile file(path);
    auto metadata = file.metadata();
    for (const char* key : {"classes", "image", "mean", "std", "graph", "train_list_sha256",
                            "test_list_sha256", "test_samples"})
      EXPECT_EQ(metadata.erase(key), 1u) << key;
    metadata["format"] = "paceline-checkpoint-2";
    write_safetensors(directory_ / "older", file.tensors(), metadata);
  }
  std::filesystem::rename(directory_ / "older", path);
  std::filesystem::remove(directory_ / "set/test/blue/9.ppm");
  const auto record = train(options);
  EXPECT_THAT(record.notes, Contains(HasSubstr("checkpoint-00000003.safetensors names no classes")));
  EXPECT_THAT(sentences(record), testing::ElementsAre(HasSubstr("--steps")));
}

}  // namespace
}  // namespace paceline::train
