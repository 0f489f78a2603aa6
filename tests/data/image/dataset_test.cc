#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "data/image/dataset.h"
#include "data/image/resize.h"
#include "pictures.h"

namespace paceline::data {
namespace {

// Sizes as torchvision's Resize(256) and CenterCrop(224) compute them: the longer side is rounded down, and a
// crop that begins between two pixels begins at the even one.
TEST(ImageDataset, TakesTheCentreOfTheResizedImage) {
  struct Case {
    int height, width, format, resize, tall, wide, top, left;
  };
  for (const Case& c : {Case{256, 256, 224, 256, 256, 256, 16, 16},
                        {500, 375, 224, 256, 341, 256, 58, 16},
                        {375, 500, 224, 256, 256, 341, 16, 58},
                        {100, 233, 224, 256, 256, 596, 16, 186},
                        {101, 100, 224, 224, 226, 224, 1, 0},
                        {77, 300, 224, 224, 224, 872, 0, 324},
                        {301, 300, 128, 146, 146, 146, 9, 9},
                        {1, 3, 32, 40, 40, 120, 4, 44}}) {
    const auto box =
        evaluated_box({.height = c.format, .width = c.format, .channels = 3}, c.resize, c.height, c.width);
    const double down = static_cast<double>(c.height) / c.tall,
                 across = static_cast<double>(c.width) / c.wide;
    EXPECT_NEAR(box.top, c.top * down, 1e-9) << c.height << "x" << c.width;
    EXPECT_NEAR(box.left, c.left * across, 1e-9) << c.height << "x" << c.width;
    EXPECT_NEAR(box.height, c.format * down, 1e-9);
    EXPECT_NEAR(box.width, c.format * across, 1e-9);
  }
}

TEST(ImageDataset, WithoutResizingTakesAllThatFits) {
  const auto wide = evaluated_box({.height = 10, .width = 20, .channels = 3}, 0, 60, 60);
  EXPECT_EQ(wide.top, 15);
  EXPECT_EQ(wide.left, 0);
  EXPECT_EQ(wide.height, 30);
  EXPECT_EQ(wide.width, 60);
}

// A JPEG much larger than the format is decoded whole, as other programs do for evaluation.
TEST(ImageDataset, ResizesAllOfAJpegForEvaluation) {
  const TemporaryDirectory folder;
  const RgbImage image = painted(800, 600, [](int y, int x) {
    return Rgb{static_cast<std::uint8_t>(255 * ((x / 3 + y / 2) % 2)), static_cast<std::uint8_t>(x % 256),
               static_cast<std::uint8_t>(y % 256)};
  });
  const Bytes file = jpeg(image);
  write_bytes(folder.path() / "a.jpg", file);
  ImageListing listing;
  listing.add_image(listing.add_directory(""), "a.jpg");
  const ImageFormat format{.height = 32, .width = 32, .channels = 3};
  ImageDecoder decoder;
  RgbImage whole;
  decoder.decode(file, decoder.read_header(file), 1, whole);
  for (const int eval_resize : {0, 36}) {
    const ImageDataset set(store_of_files(folder.path(), listing), {.images = {0}, .labels = {7}},
                           {.format = format, .eval_resize = eval_resize});
    std::vector<std::uint8_t> seen(static_cast<std::size_t>(format.bytes())), expected(seen);
    EXPECT_EQ(set.read(0, seen), 7);
    Resizer().resize_as_pil(whole, evaluated_box(format, eval_resize, 800, 600), 32, 32, expected);
    EXPECT_EQ(seen, expected);
  }
}

TEST(ImageDataset, FoldersResizeForEvaluationFrom128Pixels) {
  const TemporaryDirectory folder;
  for (const char* name : {"train/a/1.png", "train/b/1.png", "test/a/1.png"})
    write_bytes(folder.path() / name, png(picture(8, 8)));
  for (const auto& [options, resize] : {std::pair{"", 0},
                                        {",size=127", 0},
                                        {",size=128", 146},
                                        {",size=224", 256},
                                        {",size=224,eval-resize=fit", 0},
                                        {",size=224x160", 0},
                                        {",size=224x160,eval-resize=224", 224},
                                        {",size=32,eval-resize=40", 40}}) {
    const Source source = open("folder:" + folder.path().string() + options);
    EXPECT_EQ(source.eval_resize, resize) << options;
    EXPECT_EQ(source.description.find("and the centre") != std::string::npos, resize > 0);
    EXPECT_EQ(identity_of(source, 1).eval_resize, resize);
  }
}

TEST(ImageDataset, EvaluationMayHaveItsOwnSize) {
  const TemporaryDirectory folder;
  for (const char* name :
       {"train/a/1.png", "train/a/2.png", "train/b/1.png", "train/b/2.png", "test/a/1.png"})
    write_bytes(folder.path() / name, png(picture(90, 70)));
  const std::string spec = "folder:" + folder.path().string() + ",size=24,eval-size=32x36,eval-resize=40";
  const Source source = open(spec, {.validation_split = 0.5});
  const ImageFormat trained{24, 24, 3}, evaluated{32, 36, 3};
  EXPECT_EQ(source.train->format(), trained);
  EXPECT_EQ(source.test->format(), evaluated);
  ASSERT_EQ(source.validation->format(), evaluated);
  EXPECT_EQ(source.train->size(), 2);
  EXPECT_EQ(source.validation->size(), 2);
  EXPECT_THAT(source.description, testing::HasSubstr("scaled to 24x24x3, to test 32x36x3"));
  EXPECT_EQ(identity_of(source, 1).evaluated, evaluated);
  // A validation image is seen as a test image, also one that was cut from the training set.
  std::vector<std::uint8_t> cut(static_cast<std::size_t>(evaluated.bytes())), test(cut);
  source.validation->read(0, cut);
  source.test->read(0, test);
  EXPECT_EQ(cut, test);
  EXPECT_EQ(open("folder:" + folder.path().string() + ",size=96,eval-size=128").eval_resize, 146);
}

}  // namespace
}  // namespace paceline::data
