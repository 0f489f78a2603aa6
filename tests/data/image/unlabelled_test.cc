#include "data/image/unlabelled.h"
#include "data/image/resize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "data/augment.h"
#include "pictures.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Unlabelled : public testing::Test {
 protected:
  fs::path write(const std::string& name, const Bytes& bytes) {
    write_bytes(folder_.path() / name, bytes);
    return folder_.path() / name;
  }
  static std::vector<std::uint8_t> read(const UnlabelledImages& set, std::int64_t index) {
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(set.format().bytes()));
    EXPECT_EQ(set.read(index, pixels), 0);
    return pixels;
  }
  TemporaryDirectory folder_;
};

TEST_F(Unlabelled, FindsFilesAndImagesBelowFolders) {
  const auto odd = write("odd name", png(picture(4, 4)));
  for (const char* name : {"d/b.PNG", "d/a.jpg", "d/deep/er/c.ppm", "d/notes.txt", "d/.hidden.png"})
    (void)write(name, png(picture(4, 4)));
  fs::create_directories(folder_.path() / "empty");
  const auto here = folder_.path();
  const std::vector<fs::path> given{here / "d", odd, here / "none.png", here / "empty"};
  const auto found = find_images(given);
  EXPECT_THAT(found.files, ElementsAre(here / "d/a.jpg", here / "d/b.PNG", here / "d/deep/er/c.ppm", odd));
  EXPECT_EQ(found.passed_over, 1);
  EXPECT_THAT(found.faults, ElementsAre(AllOf(HasSubstr("none.png"), HasSubstr("no such file or folder")),
                                        AllOf(HasSubstr("empty"), HasSubstr("no image"))));
}

TEST_F(Unlabelled, SeesWhatEvaluationSees) {
  const RgbImage image = picture(50, 90, 3);
  const std::vector<fs::path> files{write("a/x.png", png(image)), write("y.png", png(image))};
  for (const int resize : {0, 20}) {
    const ImageFormat format{.height = 16, .width = 16, .channels = 3};
    const UnlabelledImages set(files, format, resize);
    ASSERT_EQ(set.size(), 2);
    std::vector<std::uint8_t> expected(static_cast<std::size_t>(format.bytes()));
    Resizer().resize_as_pil(image, evaluated_box(format, resize, 50, 90), 16, 16, expected);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(read(set, i), expected) << resize;
    const UnlabelledImages grey(files, {.height = 16, .width = 16, .channels = 1}, resize);
    const auto values = read(grey, 1);
    ASSERT_EQ(values.size(), 256u);
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], grey_of(&expected[3 * i]));
  }
}

TEST_F(Unlabelled, GoesOnPastBrokenImages) {
  auto cut = png(picture(40, 40));
  cut.resize(cut.size() / 2);
  const auto pipe = folder_.path() / "pipe.png";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::vector<fs::path> files{write("cut.png", cut), write("empty.jpg", {}), pipe,
                                    write("good.png", png(picture(40, 40)))};
  const UnlabelledImages set(files, {.height = 8, .width = 8, .channels = 3}, 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(read(set, i), testing::Each(0)) << i;
    EXPECT_THAT(set.fault(i), HasSubstr(files[static_cast<std::size_t>(i)].string() + ": "));
  }
  EXPECT_THAT(set.fault(1), HasSubstr("the file is empty"));
  (void)read(set, 3);
  EXPECT_EQ(set.fault(3), "");
  (void)write("empty.jpg", png(picture(9, 9)));
  (void)read(set, 1);
  EXPECT_EQ(set.fault(1), "") << "it was read after all";
}

}  // namespace
}  // namespace paceline::data
