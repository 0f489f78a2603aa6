#include "data/formats/formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <optional>
#include <set>

#include "../image/pictures.h"
#include "data/image/inspect.h"
#include "data/image/scan.h"
#include "data/loader.h"

namespace paceline::data {
namespace {

using base::ErrorKind;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class Folder : public testing::Test {
 protected:
  /// Writes `count` images of different sizes and kinds into `folder`.
  void fill(const std::string& folder, int count, int seed = 0) {
    for (int i = 0; i < count; ++i) {
      const int height = 20 + 13 * (i % 5), width = 90 - 11 * (i % 4);
      const RgbImage image = picture(height, width, seed + i);
      const bool is_png = i % 3 == 2;
      write_bytes(path() / folder / (std::to_string(i) + (is_png ? ".png" : ".jpg")),
                  is_png ? png(image) : jpeg(image, TJSAMP_420));
    }
  }
  [[nodiscard]] const std::filesystem::path& path() const { return directory_.path(); }
  [[nodiscard]] Source open_here(const std::string& options = "", const OpenOptions& how = {}) const {
    return open("folder:" + path().string() + options, how);
  }
  [[nodiscard]] Caught refused(const std::string& options = "") const {
    return error_of([&] { (void)open_here(options); });
  }

 private:
  TemporaryDirectory directory_;
};

TEST_F(Folder, FindsTrainingAndTestInEveryUsualSpelling) {
  const std::pair<const char*, const char*> names[] = {
      {"train", "test"}, {"Training", "Test"}, {"TRAIN", "testing"}, {"set/Training", "set/Test"}};
  for (const auto& [train, test] : names) {
    TemporaryDirectory here;
    for (const char* name : {"b", "a c"}) {
      write_bytes(here.path() / train / name / "1.jpg", jpeg(picture(9, 9)));
      write_bytes(here.path() / train / name / "2.JPEG", jpeg(picture(9, 9)));
      write_bytes(here.path() / test / name / "1.PNG", png(picture(9, 9)));
    }
    const Source source = open("folder:" + here.path().string() + ",size=8");
    EXPECT_EQ(source.name, "folder");
    EXPECT_THAT(source.class_names, ElementsAre("a c", "b"));
    EXPECT_EQ(source.train->size(), 4) << train;
    EXPECT_EQ(source.test->size(), 2);
    EXPECT_FALSE(source.validation);
    EXPECT_EQ(source.train->label(0), 0);
    EXPECT_EQ(source.train->label(3), 1);
    EXPECT_EQ(source.train->format(), (ImageFormat{8, 8, 3}));
  }
}

// A set of cats and dogs in training_set/ and test_set/ became four classes, and its test images were trained
// on.
TEST_F(Folder, FindsPartsOfOtherNames) {
  const std::pair<const char*, const char*> names[] = {
      {"training_set", "test_set"},
      {"train_images", "TestImages"},
      {"pets/training_set/training_set", "pets/test_set/test_set"},
      {"seg_train/seg_train", "seg_test/seg_test"},
      {"asl_train", "asl_test"},
      {"test/train", "test/test"}};
  for (const auto& [train, test] : names) {
    TemporaryDirectory here;
    for (const char* name : {"cats", "dogs"}) {
      for (const char* image : {"1.jpg", "2.jpg"})
        write_bytes(here.path() / train / name / image, jpeg(picture(9, 9)));
      write_bytes(here.path() / test / name / "1.jpg", jpeg(picture(9, 9)));
    }
    const Source source = open("folder:" + here.path().string() + ",size=8");
    EXPECT_THAT(source.class_names, ElementsAre("cats", "dogs")) << train;
    EXPECT_EQ(source.train->size(), 4) << train;
    EXPECT_EQ(source.test->size(), 2) << train;
  }
}

TEST_F(Folder, LeavesOutASecondTestSet) {
  for (const char* folder : {"train/cats", "train/dogs", "test/cats", "test/dogs", "test2/cats"})
    fill(folder, 5);
  const Source source = open_here("");
  EXPECT_EQ(source.test->size(), 10);
  EXPECT_THAT(source.notes, testing::Contains(HasSubstr("5 images in 'test2'")));
}

TEST_F(Folder, RefusesTheSameClassesBelowSeveralFolders) {
  for (const char* folder : {"home/cats", "home/dogs", "zoo/cats", "zoo/dogs"}) fill(folder, 5);
  EXPECT_THAT(refused().text, AllOf(HasSubstr("'home' and 'zoo'"), HasSubstr("classes=leaf")));
  EXPECT_EQ(open_here(",classes=leaf").classes(), 4);
  EXPECT_THAT(open_here(",classes=top").class_names, ElementsAre("home", "zoo"));
}

TEST_F(Folder, RefusesPartsInsideTheClasses) {
  for (const char* folder : {"cats/train", "cats/test", "dogs/train", "dogs/test"}) fill(folder, 2);
  for (const char* options : {"", ",classes=top"})
    EXPECT_THAT(refused(options).text, AllOf(HasSubstr("parts lie inside of classes"), HasSubstr("'cats/t"),
                                             HasSubstr("DIR/train/CLASS")));
}

// train/ beside test1/, without class folders, taught a network from which folder a photograph came.
TEST_F(Folder, RefusesPartsWithoutClasses) {
  fill("train", 4);
  fill("test1", 3);
  EXPECT_THAT(refused().text, AllOf(HasSubstr("train/0.jpg lies in no class folder (4 in all)"),
                                    HasSubstr("3 in 'test1'"), HasSubstr("move that folder away")));
  std::filesystem::rename(path() / "test1", path() / "unlabelled");
  EXPECT_THAT(refused().text, AllOf(HasSubstr("'train' is called as a part"), HasSubstr("'unlabelled'")));
  std::filesystem::remove_all(path() / "unlabelled");
  for (const char* folder : {"cats", "dogs"}) fill(folder, 2);
  EXPECT_THAT(open_here().notes, Contains(HasSubstr("the folder 'train' is read as a class")));
  std::filesystem::rename(path() / "train", path() / "Test");
  EXPECT_THAT(refused().text, AllOf(HasSubstr("'Test' is called as a part"), HasSubstr("classes=leaf")));
  EXPECT_EQ(open_here(",classes=leaf").classes(), 3);
}

TEST_F(Folder, TakesNumberedFoldersForClasses) {
  for (const char* folder : {"test_1", "test_2", "sample_a", "sample_b"}) fill(folder, 3);
  EXPECT_THAT(open_here().class_names, ElementsAre("sample_a", "sample_b", "test_1", "test_2"));
  EXPECT_THAT(open_here().notes, Contains("the folder 'test_1' is read as a class, as 'sample_a' is"));
  fill("images", 3);
  EXPECT_THAT(refused().text, HasSubstr("is called as a part of a set")) << "unlabelled ones lie beside";
  std::filesystem::remove_all(path() / "images");
  std::filesystem::remove_all(path() / "test_2");
  EXPECT_THAT(refused().text, HasSubstr("'test_1' is called as a part of a set")) << "it is numbered alone";
  std::filesystem::rename(path() / "test_1", path() / "train_1");
  fill("train_2", 3);
  EXPECT_THAT(refused().text, HasSubstr("is called as a part of a set")) << "a training set in pieces";
}

TEST_F(Folder, RefusesOnePartWithoutClassesBesideAnother) {
  for (const char* folder : {"train/a", "train/b", "test"}) fill(folder, 5);
  EXPECT_THAT(refused().text,
              AllOf(HasSubstr("test/0.jpg lies in no class folder"),
                    HasSubstr("if the images of 'test' have no labels, move that folder away")));
  std::filesystem::remove_all(path() / "test");
  EXPECT_THAT(open_here().class_names, ElementsAre("a", "b"));
}

TEST_F(Folder, NamesClassesWhoseFilesAreNoImages) {
  for (const char* folder : {"cats", "foxes"}) fill(folder, 5);
  for (const char* file : {"dogs/1.heic", "dogs/2.heic", "notes/readme.txt"}) write_bytes(path() / file, {1});
  EXPECT_EQ(refused().kind, ErrorKind::data);
  EXPECT_THAT(refused().text, AllOf(HasSubstr("'dogs' (2 files, most in .heic)"), HasSubstr("JPEG or PNG")));
  (void)write_manifest(path());
  EXPECT_THAT(refused().text, HasSubstr("'dogs' (2 files")) << "the manifest has no such files";
  std::filesystem::remove(path() / kManifestName);
  std::filesystem::remove_all(path() / "foxes");
  EXPECT_THAT(refused().text, HasSubstr("'dogs' (2 files")) << "rather than that there is one class";
  fill("dogs", 1);
  EXPECT_THAT(open_here(",classes=leaf,test=0.5").notes,
              Contains(HasSubstr("'dogs' (2 files, most in .heic)")));
}

/// A grey PNG of 16 bits with values up to `largest`.
Bytes deep_png(int largest) {
  Bytes samples;
  for (int i = 0; i < 8 * 8; ++i) {
    const auto value = static_cast<std::uint16_t>(largest * i / 63);
    samples.push_back(static_cast<std::uint8_t>(value & 0xff));
    samples.push_back(static_cast<std::uint8_t>(value >> 8));
  }
  return png(ihdr(8, 8, SPNG_COLOR_TYPE_GRAYSCALE, 16), samples);
}

TEST_F(Folder, RefusesSixteenBitsThatHoldTwelve) {
  const auto fill_deep = [&](const std::string& folder, int count, int largest) {
    for (int i = 0; i < count; ++i)
      write_bytes(path() / folder / (std::to_string(i) + ".png"), deep_png(largest));
  };
  for (const int largest : {1023, 4095, 16383}) {
    for (const char* folder : {"a", "b"}) fill_deep(folder, 10, largest);
    EXPECT_THAT(refused().text, AllOf(HasSubstr("hold values up to " + std::to_string(largest) + " of 65535"),
                                      HasSubstr(std::to_string(largest / 256 + 1) + " levels"),
                                      HasSubstr("add range=0:" + std::to_string(largest))));
  }
  for (const char* folder : {"a", "b"}) fill_deep(folder, 10, 40000);
  EXPECT_EQ(open_here().classes(), 2);
  fill_deep("b", 4, 4095);
  EXPECT_THAT(open_here().notes, Contains(HasSubstr("hold values up to 4095"))) << "a few are noted";
}

TEST_F(Folder, TakesAValidationFolderAsWhatItIs) {
  for (const char* part : {"train", "val", "test"})
    for (const char* name : {"/a", "/b"}) fill(std::string(part) + name, 3);
  const Source source = open_here();
  ASSERT_TRUE(source.validation);
  EXPECT_EQ(source.validation->size(), 6);
  const auto error = error_of([&] { (void)open_here("", {.validation_split = 0.2}); });
  EXPECT_EQ(error.kind, ErrorKind::usage);
  EXPECT_THAT(error.text, HasSubstr("has a validation set of 6 images already"));
  std::filesystem::remove_all(path() / "test");
  const Source without = open_here();
  EXPECT_FALSE(without.validation);
  EXPECT_EQ(without.test->size(), 6);
  EXPECT_THAT(without.notes, Contains(HasSubstr("the validation folder is the test set")));
  EXPECT_THAT(open_here(",test=0.5").notes, Contains(HasSubstr("test=0.5 changes nothing")));
}

TEST_F(Folder, CutsATestSetFromASingleFolder) {
  fill("a", 20);
  fill("b", 10);
  for (const auto& [options, test] : {std::pair{"", 4 + 2}, {",test=0.5", 10 + 5}}) {
    const Source source = open_here(options);
    EXPECT_EQ(source.test->size(), test);
    EXPECT_EQ(source.train->size(), 30 - test);
    EXPECT_THAT(source.notes, Contains(HasSubstr("no test folder")));
    std::set<std::string> names;
    for (const auto* set : {source.train.get(), source.test.get()})
      for (std::int64_t i = 0; i < set->size(); ++i) names.insert(set->sample_name(i));
    EXPECT_EQ(names.size(), 30u);
  }
}

TEST_F(Folder, NamesNestedClassesByTheirPathOrByTheFirstFolder) {
  for (const char* part : {"train/", "test/"})
    for (const char* name : {"animals/cat", "animals/dog", "plants/oak/young", "plants/oak/old"})
      fill(std::string(part) + name, 1);
  EXPECT_THAT(open_here().class_names,
              ElementsAre("animals/cat", "animals/dog", "plants/oak/old", "plants/oak/young"));
  const Source top = open_here(",classes=top");
  EXPECT_THAT(top.class_names, ElementsAre("animals", "plants"));
  EXPECT_EQ(top.train->label(3), 1);
}

// With classes=top they would be further images of the class, and those of test images trained on.
TEST_F(Folder, LeavesOutThumbnailsOfAClass) {
  for (const char* name : {"a", "b", "a/sub", "a/thumbnails", "b/Thumbs"}) fill(name, 10);
  fill("thumbs", 5);  // beside the classes: is one
  const Source top = open_here(",classes=top");
  EXPECT_THAT(top.class_names, ElementsAre("a", "b", "thumbs"));
  EXPECT_EQ(top.train->size() + top.test->size(), 35);
  EXPECT_THAT(open_here().class_names, ElementsAre("a", "a/sub", "b", "thumbs"));
  EXPECT_THAT(top.notes, Contains(HasSubstr("left out: the images of 2 folders inside of classes")));
  EXPECT_EQ(open_here(",classes=leaf").class_names.size(), 6u);
}

TEST_F(Folder, CountsWhatItPassesOver) {
  for (const char* part : {"train", "test"})
    for (const char* name : {"/a", "/b"}) fill(std::string(part) + name, 2);
  fill("papers/x", 3);
  write_bytes(path() / "train/a/list.txt", {1});
  write_bytes(path() / "train/a/._0.jpg", {1});  // what macOS leaves in archives
  const Source source = open_here();
  EXPECT_EQ(source.train->size(), 4);
  EXPECT_THAT(source.notes, AllOf(Contains(HasSubstr("3 images in 'papers'")),
                                  Contains(HasSubstr("1 file whose name does"))));
}

TEST_F(Folder, SaysWhatIsWrongWithItsFolders) {
  EXPECT_THAT(refused().text, HasSubstr("no file that ends in .jpg"));
  EXPECT_THAT(error_of([&] { (void)open("folder:" + (path() / "nowhere").string()); }).text,
              HasSubstr("there is no folder and no tar archive"));
  fill("a", 2);
  EXPECT_EQ(refused().kind, ErrorKind::data);
  EXPECT_THAT(refused().text, HasSubstr("all images lie in one class folder"));
  fill("b", 2);
  write_bytes(path() / "stray.jpg", jpeg(picture(9, 9)));
  EXPECT_THAT(refused().text, AllOf(HasSubstr("stray.jpg"), HasSubstr("lies in no class folder")));
  std::filesystem::remove_all(path() / "stray.jpg");
  for (const char* folder : {"train/a", "train/b", "test/a", "test/c"}) fill(folder, 1);
  EXPECT_THAT(refused().text, AllOf(HasSubstr("class 'c'"), HasSubstr("not among the 2 classes")));
  std::filesystem::remove_all(path() / "test/c");
  fill("Training/a", 1);
  EXPECT_THAT(refused().text, HasSubstr("both"));
}

// Found by an audit: train/ beside tests/ trained on twice as many classes, "train/a" and "tests/a".
TEST_F(Folder, RefusesAPartWhoseCounterpartIsMisspelt) {
  for (const char* folder : {"train/a", "train/b", "tests/a", "tests/b"}) fill(folder, 4);
  EXPECT_EQ(refused().kind, ErrorKind::data);
  EXPECT_THAT(refused().text, AllOf(HasSubstr("'train' is a part"), HasSubstr("'tests'"),
                                    HasSubstr("no validation or test folder")));
  std::filesystem::rename(path() / "train", path() / "val");
  std::filesystem::rename(path() / "tests", path() / "test");
  EXPECT_THAT(refused().text, HasSubstr("no training folder"));
}

TEST_F(Folder, TakesAClassThatIsCalledTrain) {
  for (const char* folder : {"train", "plane", "ship"}) fill(folder, 4);
  EXPECT_THAT(open_here().class_names, ElementsAre("plane", "ship", "train"));
}

TEST_F(Folder, RefusesOptionsOutOfRange) {
  fill("a", 4);
  fill("b", 4);
  for (const char* options :
       {",size=0", ",size=32x", ",size=4000", ",crop-area=0", ",crop-area=1.5", ",jitter=-1", ",flip=2",
        ",classes=middle", ",test=1", ",eval-resize=0", ",eval-resize=63", ",eval-resize=fits",
        ",eval-resize=99999", ",eval-size=0", ",eval-size=32x", ",eval-size=70,eval-resize=69"}) {
    EXPECT_EQ(refused(options).kind, ErrorKind::usage) << options;
    EXPECT_THAT(refused(options).text, HasSubstr("not '")) << options;
  }
  EXPECT_EQ(open_here(",size=24x40").train->format(), (ImageFormat{24, 40, 3}));
}

TEST_F(Folder, ShowsTheCentreOfAnImageScaled) {
  // 40 x 80, its middle 40 x 40 green, the rest red: the centred square is all green.
  const auto paint = [](int, int x) { return x >= 20 && x < 60 ? Rgb{0, 200, 0} : Rgb{200, 0, 0}; };
  for (const char* folder : {"train/a", "train/b", "test/a"})
    write_bytes(path() / folder / "1.png", png(painted(40, 80, paint)));
  const Source source = open_here(",size=10");
  std::vector<std::uint8_t> pixels(300);
  source.train->read(0, pixels);
  for (std::size_t i = 0; i < 300; i += 3)
    if (i % 30 != 0 && i % 30 != 27) {  // at the edges the triangle reaches past the part
      EXPECT_EQ(pixels[i], 0) << i;
      EXPECT_EQ(pixels[i + 1], 200) << i;
    }
}

TEST_F(Folder, NamesAnImageThatIsBroken) {
  for (const char* folder : {"train/a", "train/b", "test/a", "test/b"}) fill(folder, 6);
  Bytes cut = jpeg(picture(50, 50));
  cut.resize(cut.size() / 2);
  write_bytes(path() / "train/a/broken.jpg", cut);
  write_bytes(path() / "test/b/empty.png", {});

  const Source source = open_here();
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(source.train->format().bytes()));
  const auto error = error_of([&] {
    for (std::int64_t i = 0; i < source.train->size(); ++i) source.train->read(i, pixels);
  });
  EXPECT_EQ(error.kind, ErrorKind::data);
  EXPECT_THAT(error.text, AllOf(HasSubstr("train/a/broken.jpg"), HasSubstr("--bad-images skip")));

  const Source whole = open_here("", {.skip_bad_images = true, .threads = 2});
  EXPECT_EQ(whole.train->size(), 12);
  EXPECT_EQ(whole.test->size(), 12);
  for (std::int64_t i = 0; i < 12; ++i) whole.train->read(i, pixels);
  EXPECT_THAT(whole.notes,
              AllOf(Contains(AllOf(HasSubstr("1 of 13 training images are broken"), HasSubstr("broken.jpg"))),
                    Contains(AllOf(HasSubstr("1 of 13 test images"), HasSubstr("empty.png")))));
}

// Found by an audit: verify and training waited for ever for a pipe's first byte.
TEST_F(Folder, DoesNotWaitForAPipeNamedAsAnImage) {
  for (const char* folder : {"train/a", "train/b", "test/a", "test/b"}) fill(folder, 2);
  ASSERT_EQ(::mkfifo((path() / "train/a/pipe.jpg").c_str(), 0600), 0);
  std::filesystem::create_symlink("/nowhere/at/all.jpg", path() / "train/b/gone.jpg");
  std::filesystem::create_symlink("/nowhere/at/all.jpg", path() / "train/b/gone too.jpg");
  {  // what cannot be read is no duplicate of its like
    const Source all = open_here();
    const auto& train = dynamic_cast<const ImageDataset&>(*all.train);
    const auto report = inspect(train, 2, true, 1);
    EXPECT_EQ(report.broken.size(), 3u);
    EXPECT_EQ(find_duplicates(train, report, train, report).size(), 2u);  // fill() gave both classes the same
  }
  const Source source = open_here("", {.skip_bad_images = true});
  EXPECT_EQ(source.train->size(), 4);
  const auto named = [](const std::string& file, const std::string& reason) {
    return Contains(AllOf(HasSubstr(file + ": " + reason)));
  };
  EXPECT_THAT(source.notes, AllOf(named("pipe.jpg", "is not a regular file"),
                                  named("gone.jpg", "cannot be read: No such file")));
}

TEST_F(Folder, SaysWhichClassesLoseAllTheirImages) {
  for (const char* folder : {"train/a", "train/b", "test/a", "test/b"}) fill(folder, 2);
  for (const char* name : {"0.jpg", "1.jpg"}) write_bytes(path() / "train/b" / name, {});
  EXPECT_THAT(open_here("", {.skip_bad_images = true}).notes,
              Contains(HasSubstr("no training image is left of 1 class: b")));
}

TEST_F(Folder, FindsDuplicatesAndCountsKinds) {
  for (const char* folder : {"train/a", "train/b", "test/a", "test/b"})
    fill(folder, 3, folder[1] * 7 + folder[6] * 3);
  const Bytes twin = jpeg(picture(33, 44, 77));
  write_bytes(path() / "train/a/twin.jpg", twin);
  write_bytes(path() / "test/b/twin.jpg", twin);
  const Source source = open_here();
  const auto& train = dynamic_cast<const ImageDataset&>(*source.train);
  const auto& test = dynamic_cast<const ImageDataset&>(*source.test);
  for (const bool decode : {false, true}) {
    const auto report = inspect(train, 2, decode, 2);
    EXPECT_EQ(report.images, 7);
    EXPECT_THAT(report.per_class, ElementsAre(4, 3));
    EXPECT_EQ(report.kinds, (std::map<std::string, std::int64_t>{{"JPEG RGB", 5}, {"PNG RGB", 2}}));
    EXPECT_TRUE(report.broken.empty());
    const auto found = find_duplicates(train, report, test, inspect(test, 2, decode, 1));
    ASSERT_EQ(found.size(), 1u);
    EXPECT_THAT(found[0].first, HasSubstr("train/a/twin.jpg"));
    EXPECT_THAT(found[0].second, HasSubstr("test/b/twin.jpg"));
    EXPECT_FALSE(found[0].same_label);
    EXPECT_TRUE(find_duplicates(train, report, train, report).empty());
  }
}

// Decoding, random-resized-crop, colours and flip: one body of bits whatever the workers and threads.
TEST_F(Folder, GivesTheSameBitsForAnyWorkersAndLoaderThreads) {
  for (const char* folder : {"train/a", "train/b", "test/a"}) fill(folder, 20, folder[6]);
  const Source source = open_here(",size=24,jitter=0.4");
  const Augment augment(source.train->format(), {.flip = Flip::random,
                                                 .mean = source.mean,
                                                 .stddev = source.stddev,
                                                 .seed = 7,
                                                 .crop_area = source.crop_area,
                                                 .jitter = source.jitter});
  constexpr int kSteps = 7;  // 2 epochs of 3 steps, and into the third
  constexpr std::int64_t kGlobal = 12;
  const auto images = [&](int workers, int threads) {
    std::vector<std::unique_ptr<Loader>> loaders;
    for (int rank = 0; rank < workers; ++rank)
      loaders.push_back(std::make_unique<Loader>(*source.train, Sampler(source.train->size(), 7), augment,
                                                 LoaderOptions{.global_batch = kGlobal,
                                                               .local_batch = kGlobal / workers,
                                                               .first = rank * kGlobal / workers,
                                                               .threads = threads}));
    std::vector<float> all;
    for (int step = 0; step < kSteps; ++step)
      for (auto& loader : loaders) {
        const Batch& batch = loader->next();
        all.insert(all.end(), batch.images.begin(), batch.images.end());
      }
    return all;
  };
  const auto alone = images(1, 1);
  for (const auto& [workers, threads] : {std::pair{1, 3}, {2, 1}, {4, 2}, {12, 1}})
    EXPECT_EQ(images(workers, threads), alone) << workers << " workers, " << threads << " threads";
}

}  // namespace
}  // namespace paceline::data
