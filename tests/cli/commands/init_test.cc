/// paceline init on folders as people have them, through the real program: what it finds, what it writes, and
/// that what it writes trains.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "base/file.h"
#include "cli/program.h"
#include "data/dataset.h"
#include "data/image/pictures.h"
#include "measure/record.h"

namespace paceline::cli {
namespace {

namespace fs = std::filesystem;
using data::Rgb;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

std::string bytes_of(const data::Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

/// A disc of a colour on white, as a fruit that was photographed for a data set.
data::RgbImage disc(int side, int seed) {
  return data::painted(side, side, [&](int y, int x) {
    const int dy = 2 * y - side, dx = 2 * x - side;
    const bool inside = dy * dy + dx * dx < side * side / 2;
    return inside ? Rgb{static_cast<std::uint8_t>(60 + 31 * seed % 190),
                        static_cast<std::uint8_t>(17 * seed % 200),
                        static_cast<std::uint8_t>((7 * seed + y) % 180)}
                  : Rgb{255, 255, 255};
  });
}

/// A bright stroke on black.
data::Bytes digit(int side, int seed) {
  data::Bytes grey;
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x)
      grey.push_back(y > 3 && y < side - 3 && x > 3 && x < side - 3 && (x + seed) % 9 < 3 ? 250 : 0);
  return data::png(data::ihdr(side, side, SPNG_COLOR_TYPE_GRAYSCALE), grey);
}

class Init : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& bytes) const {
    fs::create_directories((folder_.path() / name).parent_path());
    folder_.write(name, bytes);
  }
  void put(const std::string& name, const data::Bytes& bytes) const { put(name, bytes_of(bytes)); }
  /// `classes` classes of discs, `train` and `test` of each.
  void put_fruits(int classes, int train, int test) const {
    for (int c = 0; c < classes; ++c)
      for (int i = 0; i < train + test; ++i)
        put("fruits/" + std::string(i < train ? "Training" : "Test") + "/Fruit " + std::to_string(c) + "/" +
                std::to_string(i) + ".jpg",
            data::jpeg(disc(100, 100 * c + i)));
  }
  Outcome run(const Words& words) const { return run_program(words, {.directory = folder_.path()}); }
  Outcome init(const std::string& directory, const Words& more = {}) const {
    Words words{"init", directory};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  [[nodiscard]] std::string recipe(const std::string& name = "paceline.toml") const {
    return base::read_file(folder_.path() / name);
  }
  [[nodiscard]] bool has_recipe() const { return fs::exists(folder_.path() / "paceline.toml"); }
  /// The plan of the recipe as it stands: it would train at once.
  void expect_plan(const Words& has) const {
    const auto plan = run({"train", "paceline.toml", "--plan"});
    EXPECT_EQ(plan.code, 0) << plan.err;
    for (const auto& text : has) EXPECT_THAT(plan.out, HasSubstr(text));
  }
  const Folder folder_;
};

TEST_F(Init, ProposesForThingsOnWhiteAndTheRecipeTrains) {
  put_fruits(12, 12, 3);
  const auto done = init("fruits");
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out,
              AllOf(HasSubstr("144 to train, 36 to test"), HasSubstr("12, each with 12 training images"),
                    HasSubstr("all 180"), HasSubstr("180 JPEG RGB; before a plain background"),
                    HasSubstr("paceline train paceline.toml --plan")));
  // Few images: the small network; sides of 100 as 96; a crop that holds the thing; a fifth held back.
  EXPECT_THAT(recipe(),
              AllOf(ContainsRegex("data = \"folder:/.*/fruits,size=96,crop-area=0.4\""),
                    HasSubstr("model = \"resnet8-cifar\""), HasSubstr("validation-split = 0.2"),
                    HasSubstr("global-batch = 8"), HasSubstr("epochs = 60"), HasSubstr("lr = 0.025"),
                    HasSubstr("label-smoothing = 0.1"), Not(HasSubstr("bad-images"))));
  // Each value that is set has a comment above it, or above the first of its group.
  EXPECT_THAT(recipe(), HasSubstr("\n# 120 training images are few"));
  expect_plan({"paceline.toml:", "validation-split", "resnet8-cifar"});
  const auto trained = run({"train", "paceline.toml", "--steps", "4", "--threads", "1", "--out", "t"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(measure::read_record(folder_.path() / "t/record.json").status, "complete");
  EXPECT_EQ(run({"train", "paceline.toml", "--quick", "--threads", "1", "--plan"}).code, 0);
}

TEST_F(Init, ProposesFineTuningWithGivenWeights) {
  put_fruits(6, 12, 3);
  ASSERT_EQ(init("fruits").code, 0);
  ASSERT_EQ(run({"train", "paceline.toml", "--steps", "2", "--threads", "1", "--out", "t"}).code, 0);
  put_fruits(4, 12, 3);
  fs::remove_all(folder_.path() / "fruits/Training/Fruit 5");
  fs::remove_all(folder_.path() / "fruits/Test/Fruit 5");
  const auto lonely = init("fruits", {"--weights", "t/latest.safetensors", "--force"});
  EXPECT_EQ(lonely.code, 2);
  EXPECT_THAT(lonely.err, HasSubstr("add --model NAME or FILE.toml"));
  const auto of_another =
      init("fruits", {"--model", "mnist-cnn", "--weights", "t/latest.safetensors", "--force"});
  EXPECT_NE(of_another.code, 0);
  EXPECT_THAT(of_another.err, HasSubstr("model 'mnist-cnn' needs an array"));
  EXPECT_NE(init("fruits", {"--model", "resnet8-cifar", "--weights", "none.pth", "--force"}).code, 0);
  const auto done =
      init("fruits", {"--model", "resnet8-cifar", "--weights", "t/latest.safetensors", "--force"});
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(recipe(), AllOf(HasSubstr("weights = \"t/latest.safetensors\""), HasSubstr("epochs = 12")));
  expect_plan({"weights", "resnet8-cifar"});
  const auto trained = run({"train", "paceline.toml", "--steps", "1", "--threads", "1", "--out", "u"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.out + trained.err, HasSubstr("fc.weight and fc.bias drawn anew"));
}

TEST_F(Init, WritesOverNothingUnlessTold) {
  put_fruits(2, 4, 1);
  put("paceline.toml", std::string("lr = 0.5\n"));
  const auto refused = init("fruits");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("paceline.toml exists already"), HasSubstr("--force")));
  EXPECT_EQ(recipe(), "lr = 0.5\n");
  EXPECT_EQ(init("fruits", {"--out", "other.toml"}).code, 0);
  EXPECT_THAT(recipe("other.toml"), HasSubstr("resnet8-cifar"));
  EXPECT_EQ(init("fruits", {"--force"}).code, 0);
  EXPECT_THAT(recipe(), HasSubstr("resnet8-cifar"));
  EXPECT_EQ(init("fruits", {"--out", "nowhere/x.toml"}).code, 3);
  EXPECT_EQ(init("fruits", {"--out", "x.yaml"}).code, 2);
}

TEST_F(Init, CutsATestSetFromPhotographsOfManySizes) {
  // As Caltech's: one folder, sizes and counts uneven, a folder inside a class's, one image of two sizes
  // twice.
  const int counts[]{80, 20, 9};
  for (int c = 0; c < 3; ++c)
    for (int i = 0; i < counts[c]; ++i)
      put("caltech/00" + std::to_string(c) + ".thing/" + (c == 1 && i < 5 ? "greg/" : "") +
              std::to_string(i) + ".jpg",
          data::jpeg(data::picture(120 + 3 * i, 220 - 2 * i + c, 10 * c + i)));
  const auto done = init("caltech");
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, AllOf(HasSubstr("no test folder"), HasSubstr("fewer than 10 training images")));
  EXPECT_THAT(recipe(),
              AllOf(HasSubstr("classes=top,size="), HasSubstr("a fifth of every class is the test set"),
                    HasSubstr("crop-area=0.25"), HasSubstr("class-weights = \"balanced\""),
                    Not(HasSubstr("label-smoothing = 0.2"))));
  expect_plan({"images of 3 classes"});
}

TEST_F(Init, TakesSmallGreyImagesForCharactersAndMirrorsNone) {
  for (int c = 0; c < 10; ++c)
    for (int i = 0; i < 14; ++i)
      put(std::string("digits/") + (i < 12 ? "train/" : "test/") + std::to_string(c) + "/" +
              std::to_string(i) + ".png",
          digit(28, 20 * c + i));
  ASSERT_EQ(init("digits").code, 0);
  EXPECT_THAT(recipe(), AllOf(HasSubstr(",size=28,crop-area=0.8,flip=0\""),
                              HasSubstr("model = \"mnist-cnn\""), HasSubstr("optimizer = \"adamw\""),
                              HasSubstr("is another one or none"), Not(HasSubstr("weight-decay"))));
  expect_plan({"mnist-cnn"});
}

TEST_F(Init, SaysWhatIsBrokenAndWhatComesTwice) {
  put_fruits(4, 12, 3);
  put("fruits/Training/Fruit 1/cut.jpg", bytes_of(data::jpeg(disc(100, 1))).substr(0, 900));
  fs::copy_file(folder_.path() / "fruits/Training/Fruit 2/3.jpg",
                folder_.path() / "fruits/Test/Fruit 3/copy.jpg");
  const auto done = init("fruits");
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, AllOf(HasSubstr("1 of 62 images looked at cannot be decoded"),
                              HasSubstr("Fruit 1/cut.jpg"), HasSubstr("1 image is in two parts"),
                              HasSubstr("Test/Fruit 3/copy.jpg = "), HasSubstr("stand under two classes")));
  EXPECT_THAT(recipe(), HasSubstr("bad-images = \"skip\""));
  const auto trained = run({"train", "paceline.toml", "--steps", "2", "--threads", "1", "--out", "t"});
  EXPECT_EQ(trained.code, 0) << trained.err;
}

TEST_F(Init, LooksAtEachOfAFewThousandImages) {
  const auto bytes = bytes_of(data::jpeg(disc(24, 1)));
  for (const char* name : {"a", "b"})
    for (int i = 0; i < 1500; ++i) put(std::string("many/") + name + "/" + std::to_string(i) + ".jpg", bytes);
  put("many/b/1203.jpg", std::string("\xff\xd8 and no more"));
  const auto done = init("many");
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("all 3000"));
  EXPECT_THAT(recipe(), AllOf(HasSubstr("b/1203.jpg"), HasSubstr("bad-images = \"skip\"")));
}

TEST_F(Init, RefusesWhatCannotTrainWithTheReason) {
  const auto refusal = [&](const std::string& directory, int code) {
    const auto refused = init(directory);
    EXPECT_EQ(refused.code, code) << directory;
    EXPECT_FALSE(has_recipe()) << directory;
    return refused.err;
  };
  EXPECT_THAT(refusal("nowhere", 3), HasSubstr("there is no folder and no archive 'nowhere'"));
  put("paceline.toml", std::string("model = \"resnet18\"\n"));
  EXPECT_THAT(init("nowhere").err, HasSubstr("there is no folder")) << "before the recipe that is there";
  fs::remove(folder_.path() / "paceline.toml");
  fs::create_directories(folder_.path() / "empty");
  EXPECT_THAT(refusal("empty", 3), HasSubstr("no file that ends in .jpg"));
  put("one/cats/1.jpg", data::jpeg(disc(20, 1)));
  put("one/cats/2.jpg", data::jpeg(disc(20, 2)));
  EXPECT_THAT(refusal("one", 3), AllOf(HasSubstr("one class folder"), HasSubstr("give the folder above")));
  put("arrays/train.npz", std::string("x"));
  EXPECT_THAT(refusal("arrays", 3), AllOf(HasSubstr("ends in .npz"), HasSubstr("a folder for each class")));
  for (const char* name : {"a", "b"})
    for (int i = 0; i < 5; ++i)
      put(std::string("broken/") + name + "/" + std::to_string(i) + ".jpg",
          std::string("\xff\xd8\xff\xe0 cut"));
  EXPECT_THAT(refusal("broken", 3), AllOf(HasSubstr("10 of the 10 images that were looked at are broken"),
                                          HasSubstr("broken/a/0.jpg"), HasSubstr("paceline data verify")));
  put("a,b/x/1.jpg", data::jpeg(disc(20, 1)));
  EXPECT_THAT(refusal("a,b", 2), AllOf(HasSubstr("holds a comma"), HasSubstr("ln -s")));
  EXPECT_THAT(init("one", {"two"}).err, HasSubstr("init takes one folder"));
}

TEST_F(Init, TakesATableOfLabels) {
  std::string table = "id,width,breed\n";
  for (int i = 0; i < 24; ++i) {
    put("dogs/images/dog " + std::to_string(i) + ".jpg", data::jpeg(disc(40, i)));
    table += "dog " + std::to_string(i) + ",40," + (i % 2 == 0 ? "\"great dane\"" : "pug") + "\r\n";
  }
  put("dogs/labels.csv", table);
  const auto done = init("dogs");
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, AllOf(HasSubstr("2, each with"), HasSubstr("all 24")));
  EXPECT_THAT(recipe(), HasSubstr("dogs,labels=labels.csv"));
}

/// Tables of labels as people have them, and the classes that are read from them.
TEST_F(Init, MakesTheRightClassesOfAnyTable) {
  struct Case {
    const char* name;
    std::function<std::string(int)> row;
    std::string header;
    std::vector<std::string> classes;
    const char* said;
  };
  const auto number = [](int i) { return std::to_string(i); };
  const std::vector<Case> cases{
      {"one-hot",
       [&](int i) {
         return "t" + number(i) + (i % 3 == 0 ? ",1,0,0" : i % 3 == 1 ? ",0,1,0" : ",0,0,1");
       },
       "image_id,healthy,rust,scab\n",
       {"healthy", "rust", "scab"},
       ""},
      {"floats",
       [&](int i) { return "t" + number(i) + (i % 2 == 0 ? ",0.0,1.0" : ",1.0,0.0"); },
       "image,MEL,NV\n",
       {"MEL", "NV"},
       ""},
      {"commas",
       [&](int i) { return "t" + number(i) + ".jpg," + (i % 2 == 0 ? "\"red, round\"" : "\"red, square\""); },
       "file,category\n",
       {"red, round", "red, square"},
       ""},
      {"headerless",
       [&](int i) { return "t" + number(i) + ".jpg," + (i % 2 == 0 ? "cat" : "dog"); },
       "",
       {"cat", "dog"},
       ""},
      {"semicolons",
       [&](int i) { return (i % 2 == 0 ? "oak;" : "elm;") + std::string("images/t") + number(i) + ".jpg"; },
       "kind;path\n",
       {"elm", "oak"},
       ""},
      {"some-missing",
       [&](int i) { return "t" + number(2 * i) + (i % 2 == 0 ? ",x" : ",y"); },
       "id,label\n",
       {"x", "y"},
       "6 of 12 rows of"}};
  for (const auto& one : cases) {
    std::string table = one.header;
    for (int i = 0; i < 12; ++i) {
      put(std::string(one.name) + "/images/t" + number(i) + ".jpg", data::jpeg(disc(40, i)));
      table += one.row(i) + "\r\n";
    }
    put(std::string(one.name) + "/table.csv", table);
    const auto done = init(one.name, {"--force"});
    EXPECT_EQ(done.code, 0) << one.name << ": " << done.err;
    EXPECT_THAT(done.out, AllOf(HasSubstr(one.said), HasSubstr("labels=table.csv"))) << one.name;
    const auto source = data::open("folder:" + (folder_.path() / one.name).string() + ",labels=table.csv");
    EXPECT_THAT(source.class_names, testing::ElementsAreArray(one.classes)) << one.name;
  }
}

TEST_F(Init, GivesNoAdviceThatItCannotKnow) {
  const auto said = [&](const std::string& name, const std::string& table) {
    for (int i = 0; i < 8; ++i) put(name + "/images/t" + std::to_string(i) + ".jpg", data::jpeg(disc(40, i)));
    put(name + "/table.csv", table);
    const auto refused = init(name);
    EXPECT_EQ(refused.code, 3) << name;
    return refused.err;
  };
  std::string several = "id,cat,dog\n", unclear = "id,colour,shape\n", measured = "id,weight\n";
  for (int i = 0; i < 8; ++i) {
    const auto id = "t" + std::to_string(i) + ",";
    several += id + (i == 3 ? "1,1\n" : "0,1\n");
    unclear += id + (i % 2 == 0 ? "red,round\n" : "blue,long\n");
    measured += id + "7\n";
  }
  EXPECT_THAT(said("several", several), HasSubstr("1 of 8 rows have not exactly one 1"));
  EXPECT_THAT(said("unclear", unclear), HasSubstr("which of the columns 'colour', 'shape' is the class"));
  EXPECT_THAT(said("measured", measured), HasSubstr("no other column has texts that come again"));
}

TEST_F(Init, SaysThatATableHasOtherClasses) {
  std::string table = "image,dx\n";
  for (int i = 0; i < 12; ++i) {
    put(std::string("scans/") + (i % 2 == 0 ? "left" : "right") + "/s" + std::to_string(i) + ".jpg",
        data::jpeg(disc(40, i)));
    table += "s" + std::to_string(i) + (i < 6 ? ",mel\n" : ",nv\n");
  }
  put("scans/metadata.csv", table);
  const auto done = init("scans");
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out,
              AllOf(HasSubstr("metadata.csv is a table that names images"), HasSubstr("not its labels")));
}

// The sets as their publishers pack them: each became a recipe for other classes, without a word.
TEST_F(Init, ReadsFoldersAsTheyAreOrRefuses) {
  for (const char* folder : {"pets/training_set/cats", "pets/training_set/dogs", "pets/test_set/cats",
                             "pets/test_set/dogs", "flat/train", "flat/test1", "lost/cats", "lost/foxes"})
    for (int i = 0; i < (std::string(folder).find("test") == std::string::npos ? 10 : 4); ++i)
      put(std::string(folder) + "/i" + std::to_string(i) + ".jpg", data::jpeg(disc(40, i + folder[0])));
  for (int i = 0; i < 10; ++i) put("lost/dogs/i" + std::to_string(i) + ".heic", std::string("RIFF"));
  const auto pets = init("pets");
  EXPECT_EQ(pets.code, 0) << pets.err;
  EXPECT_THAT(pets.out,
              AllOf(HasSubstr("20 to train, 8 to test"), HasSubstr("2, each with 10 training images")));
  const auto flat = init("flat", {"--force"});
  EXPECT_EQ(flat.code, 3);
  EXPECT_THAT(flat.err, AllOf(HasSubstr("train/i0.jpg lies in no class folder"), HasSubstr("'test1'")));
  const auto lost = init("lost", {"--force"});
  EXPECT_EQ(lost.code, 3);
  EXPECT_THAT(lost.err, HasSubstr("'dogs' (10 files, most in .heic)"));
}

TEST_F(Init, KnowsTheFilesOfKnownSets) {
  // MNIST's form: images of one size, no files of their own.
  const auto big = [](std::uint32_t number) {
    std::string text;
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>((number >> shift) & 0xff);
    return text;
  };
  for (const auto& [name, count] : {std::pair{"train", 40u}, std::pair{"t10k", 20u}}) {
    std::string images = big(2051) + big(count) + big(28) + big(28), labels = big(2049) + big(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      labels += static_cast<char>(i % 10);
      images += std::string(784, static_cast<char>(7 * i));
    }
    put(std::string("mnist/") + name + "-images-idx3-ubyte", images);
    put(std::string("mnist/") + name + "-labels-idx1-ubyte", labels);
  }
  const auto done = init("mnist");
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(recipe(),
              AllOf(ContainsRegex("data = \"mnist:/.*/mnist\""), HasSubstr("model = \"mnist-cnn\"")));
  expect_plan({"mnist-cnn"});
}

}  // namespace
}  // namespace paceline::cli
