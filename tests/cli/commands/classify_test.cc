/// `paceline classify` as a user types it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <sstream>

#include "base/file.h"
#include "cli/commands/small_model.h"
#include "cli/program.h"
#include "measure/record.h"

namespace paceline::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

/// Stripes, across for one class and down for the other.
std::string striped(bool across, int height, int width, int shade) {
  std::string image = "P6\n" + std::to_string(width) + " " + std::to_string(height) + "\n255\n";
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const int at = across ? y * 12 / height : x * 12 / width;
      image += std::string(3, static_cast<char>(at % 2 == 0 ? 20 + shade : 235 - shade));
    }
  return image;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) lines.push_back(line);
  return lines;
}

/// A folder "photos" of two classes, and a network "t" that was trained on them.
class Classify : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new Folder;
    (void)folder_->write("m.toml", kSmallModel);
    for (int i = 0; i < 24; ++i)
      for (const bool across : {false, true})
        write("photos/" + std::string(i < 16 ? "train" : "test") + (across ? "/across, wide/" : "/down/") +
                  std::to_string(i) + ".ppm",
              striped(across, 20 + i, 40 - i, 2 * i));
    const auto trained =
        run({"train", "--model", "m.toml", "--data", "folder:photos,size=24,flip=0", "--local-batch", "8",
             "--epochs", "4", "--precision", "fp32", "--lr", "0.02", "--json", "--out", "t"});
    ASSERT_EQ(trained.code, 0) << trained.err;
    // The checkpoint alone is enough.
    std::filesystem::remove(folder_->path() / "t/record.json");
    std::filesystem::remove(folder_->path() / "m.toml");
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static void write(const std::filesystem::path& name, const std::string& bytes) {
    std::filesystem::create_directories((folder_->path() / name).parent_path());
    (void)folder_->write(name, bytes);
  }
  static Outcome run(const std::vector<std::string>& words) {
    return run_program(words, {.directory = folder_->path()});
  }
  static Folder* folder_;
};
Folder* Classify::folder_ = nullptr;

TEST_F(Classify, NamesTheClassOfAnImage) {
  const auto one = run({"classify", "t", "photos/test/down/20.ppm"});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_THAT(one.out, MatchesRegex("photos/test/down/20.ppm: down [0-9]+\\.[0-9] %\n"));
  EXPECT_THAT(one.err, HasSubstr(": m, update 16, 2 classes, images 24x24; 1 image to classify, fp32"));
  const auto both = run({"classify", "t", "photos/test/across, wide/17.ppm", "--top", "5"});
  EXPECT_THAT(both.out, MatchesRegex("photos/test/across, wide/17.ppm: across, wide [0-9.]+ %, down "
                                     "[0-9.]+ %\n"));
}

TEST_F(Classify, WritesARowForEachImage) {
  write("photos/test/notes.txt", "not an image");
  const auto all = run({"classify", "t", "photos/test", "--top", "2", "--out", "all.csv"});
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_EQ(all.out, "16 images: all.csv\n");
  EXPECT_THAT(all.err, HasSubstr("skipped: 1 file whose name does not end in"));
  const auto rows = lines_of(base::read_file(folder_->path() / "all.csv"));
  ASSERT_EQ(rows.size(), 17u);
  EXPECT_EQ(rows[0], "file,class,probability,class_2,probability_2");
  EXPECT_THAT(rows[1], MatchesRegex("\"photos/test/across, wide/16.ppm\",\"across, wide\",0\\.[0-9]{6},down,"
                                    "0\\.[0-9]{6}"));
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto last = std::stod(rows[i].substr(rows[i].rfind(',') + 1));
    EXPECT_LE(last, 0.5) << "the likeliest stands first";
  }
}

TEST_F(Classify, AgreesWithTheEvaluation) {
  const auto evaluated = run({"evaluate", "t", "--model", "photos.toml", "--data", "folder:photos,size=24"});
  EXPECT_NE(evaluated.code, 0) << "the model's file is gone";
  (void)folder_->write("again.toml", kSmallModel);
  const auto result = run({"evaluate", "t", "--model", "again.toml", "--data", "folder:photos,size=24",
                           "--local-batch", "8", "--json", "--out", "e"});
  ASSERT_EQ(result.code, 0) << result.err;
  const auto evaluation = measure::record_from_json(result.out, "evaluate").evaluation.value();
  const auto lines = lines_of(run({"classify", "t", "photos/test"}).out);
  std::int64_t correct = 0;
  for (const auto& line : lines) {
    const auto end = line.find(".ppm: ");
    const bool is_down = line.find("/down/") != std::string::npos;
    correct += line.substr(end + 6).starts_with(is_down ? "down" : "across, wide") ? 1 : 0;
  }
  EXPECT_EQ(lines.size(), 16u);
  EXPECT_EQ(correct, evaluation.correct);
}

TEST_F(Classify, GoesOnPastWhatCannotBeRead) {
  write("mixed/a.ppm", striped(true, 30, 30, 0));
  write("mixed/b.png", "no picture");
  write("mixed/c.ppm", striped(false, 30, 30, 0).substr(0, 500));
  write("mixed/d.ppm", striped(false, 30, 30, 0));
  const auto mixed = run({"classify", "t", "mixed", "nowhere.jpg", "--out", "mixed.csv"});
  EXPECT_EQ(mixed.code, 3);
  EXPECT_THAT(mixed.err,
              AllOf(HasSubstr("mixed/b.png: the image cannot be decoded: it is no JPEG"),
                    HasSubstr("mixed/c.ppm: the image cannot be decoded: its header announces"),
                    HasSubstr("nowhere.jpg: there is no such file or folder"),
                    HasSubstr("3 of what was given could not be read and are left out; the other 2 "
                              "images are classified")));
  EXPECT_EQ(lines_of(base::read_file(folder_->path() / "mixed.csv")).size(), 3u);
  const auto none = run({"classify", "t", "mixed/b.png", "--out", "none.csv"});
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.err, HasSubstr("no image could be classified"));
  EXPECT_FALSE(std::filesystem::exists(folder_->path() / "none.csv"));
}

TEST_F(Classify, ReadsArchivesAsItReadsFolders) {
  const auto packed = run({"data", "pack", "folder:photos", "photos.tar"});
  const auto shards = run({"data", "pack", "folder:photos", "shards", "--shards", "3"});
  ASSERT_EQ(packed.code + shards.code, 0) << packed.err << shards.err;
  const auto classes_of = [](const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::vector<std::string> classes;
    for (const auto& line : lines_of(outcome.out)) classes.push_back(line.substr(line.rfind(": ")));
    std::ranges::sort(classes);
    return classes;
  };
  const auto expected = classes_of(run({"classify", "t", "photos/test", "photos/train"}));
  EXPECT_EQ(expected.size(), 48u);
  EXPECT_EQ(classes_of(run({"classify", "t", "photos.tar"})), expected);
  EXPECT_EQ(classes_of(run({"classify", "t", "folder:photos.tar"})), expected);
  EXPECT_EQ(classes_of(run({"classify", "t", "shards:shards/train-*.tar", "shards/test-0000.tar",
                            "shards/test-0001.tar"})),
            expected);
  write("empty.tar", "no archive");
  EXPECT_EQ(run({"classify", "t", "empty.tar"}).code, 3);
}

TEST_F(Classify, WritesWhatACompetitionTakes) {
  const auto labels = run({"classify", "t", "photos/test/down", "--columns", "id,label", "--out", "l.csv"});
  ASSERT_EQ(labels.code, 0) << labels.err;
  const auto rows = lines_of(base::read_file(folder_->path() / "l.csv"));
  ASSERT_EQ(rows.size(), 9u);
  EXPECT_EQ(rows[0], "id,label");
  EXPECT_THAT(rows[1], MatchesRegex("16,(down|\"across, wide\")"));
  (void)folder_->write("sample.csv", "id,down,\"across, wide\"\n18.ppm,0.5,0.5\n17.ppm,0.5,0.5\n");
  const auto sampled =
      run({"classify", "t", "photos/test/down", "--sample-submission", "sample.csv", "--out", "s.csv"});
  ASSERT_EQ(sampled.code, 0) << sampled.err;
  EXPECT_THAT(sampled.err, HasSubstr("6 images are left out"));
  const auto followed = lines_of(base::read_file(folder_->path() / "s.csv"));
  ASSERT_EQ(followed.size(), 3u);
  EXPECT_EQ(followed[0], "id,down,\"across, wide\"");
  double down = 0, across = 0;
  ASSERT_EQ(std::sscanf(followed[1].c_str(), "18.ppm,%lf,%lf", &down, &across), 2) << followed[1];
  EXPECT_NEAR(down + across, 1, 1e-6);
  const auto missing = run(
      {"classify", "t", "photos/test/down/17.ppm", "--sample-submission", "sample.csv", "--out", "n.csv"});
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.err, HasSubstr("1 of its 2 ids"));
  EXPECT_FALSE(std::filesystem::exists(folder_->path() / "n.csv"));
  EXPECT_EQ(run({"classify", "t", "photos/test/down", "--columns", "id,label"}).code, 2) << "without --out";
}

TEST_F(Classify, RefusesWhatIsNoCheckpoint) {
  const std::string image = "photos/test/down/20.ppm";
  EXPECT_EQ(run({"classify", "nowhere", image}).code, 3);
  EXPECT_THAT(run({"classify", image, image}).err,
              HasSubstr("photos/test/down/20.ppm' stands where the checkpoint is expected"));
  EXPECT_THAT(run({"classify", "t"}).err, HasSubstr("got 't' alone"));
  EXPECT_EQ(run({"classify"}).code, 2);
  EXPECT_EQ(run({"classify", "t", image, "--top", "0"}).code, 2);
  const std::string header = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::string foreign(8, '\0');
  foreign[0] = static_cast<char>(header.size());
  (void)folder_->write("foreign.safetensors", foreign + header + std::string(4, '\0'));
  const auto refused = run({"classify", "foreign.safetensors", image});
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, HasSubstr("was not written by this program's train"));
  const auto precious = run({"classify", "t", image, "--out", "t/checkpoint-00000016.safetensors"});
  EXPECT_EQ(precious.code, 3) << "the checkpoint would be lost";
  EXPECT_TRUE(std::filesystem::exists(folder_->path() / "t/checkpoint-00000016.safetensors"));
}

TEST_F(Classify, IsWhatOthersCallPredict) {
  const auto predicted = run({"predict", "t", "photos/test/down/20.ppm"});
  EXPECT_EQ(predicted.code, 2);
  EXPECT_THAT(predicted.err, HasSubstr("'paceline classify CHECKPOINT photos/test/down/20.ppm' says what"));
  for (const char* command : {"infer", "evalute"}) {
    const auto outcome = run({command, "t", "photos/test/down/20.ppm"});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err,
                HasSubstr("did you mean 'paceline classify CHECKPOINT photos/test/down/20.ppm'?"));
  }
  EXPECT_THAT(run({"cat.JPG"}).err, HasSubstr("did you mean 'paceline classify CHECKPOINT cat.JPG'?"));
  EXPECT_THAT(run({"trian"}).err, AllOf(HasSubstr("did you mean 'train'?"), Not(HasSubstr("classify"))));
}

// More lines than a pipe holds, so that the reader is gone before the last is written, however fast it is.
TEST_F(Classify, EndsWhenNobodyReadsOn) {
  std::string folders;
  for (int i = 0; i < 60; ++i) folders += " photos";
  const auto command = "cd " + folder_->path().string() + " && bash -c '" PACELINE_PROGRAM " classify t" +
                       folders + " 2>/dev/null | head -n 1 >first; exit ${PIPESTATUS[0]}'";
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 141);
  EXPECT_THAT(base::read_file(folder_->path() / "first"), StartsWith("photos/test/across, wide/16.ppm: "));
  const auto full =
      run_program({"classify", "t", "photos"}, {.directory = folder_->path(), .out_path = "/dev/full"});
  EXPECT_EQ(full.code, 3);
  EXPECT_THAT(full.err, HasSubstr("standard output could not be written"));
}

TEST_F(Classify, TakesCheckpointsOfGreyAndDrawnImages) {
  for (const std::string model : {"resnet8-cifar", "mnist-cnn"}) {
    const auto trained = run({"train", "--model", model, "--data", "synthetic,train=32,test=16",
                              "--local-batch", "16", "--steps", "2", "--out", "drawn-" + model});
    ASSERT_EQ(trained.code, 0) << trained.err;
    const auto outcome = run({"classify", "drawn-" + model, "photos/test/down", "--device", "cuda-on-host"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(lines_of(outcome.out).size(), 8u);
    EXPECT_THAT(outcome.err, HasSubstr("10 classes, images 32x32"));
  }
}

}  // namespace
}  // namespace paceline::cli
