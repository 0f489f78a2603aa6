#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/dataset.h"
#include "data/files.h"
#include "data/formats/arrays.h"
#include "data/mutations.h"

namespace paceline::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// `images` of 8x8, whose pixel p of image i is (3 i + p) % 256 and whose label is i % 10.
std::string pixel_lines(int images, bool has_names = true, const char* line_end = "\n") {
  std::string text;
  if (has_names) {
    text = "label";
    for (int p = 0; p < 64; ++p) text += ",pixel" + std::to_string(p);
    text += line_end;
  }
  for (int i = 0; i < images; ++i) {
    text += std::to_string(i % 10);
    for (int p = 0; p < 64; ++p) text += "," + std::to_string((3 * i + p) % 256);
    text += line_end;
  }
  return text;
}

Bytes lines_as_bytes(const std::string& text) { return {text.begin(), text.end()}; }

TEST(PixelTable, ReadsKagglesTablesOfMnist) {
  for (const char* line_end : {"\n", "\r\n"})
    for (const bool has_names : {true, false}) {
      const TemporaryDirectory folder;
      write_bytes(folder.path() / "mnist_train.csv", lines_as_bytes(pixel_lines(30, has_names, line_end)));
      write_bytes(folder.path() / "mnist_test.csv", lines_as_bytes(pixel_lines(12, has_names, line_end)));
      const Source source = open("mnist:" + folder.path().string());
      ASSERT_EQ(source.train->size(), 30);
      ASSERT_EQ(source.test->size(), 12);
      EXPECT_EQ(source.classes(), 10);
      EXPECT_EQ(source.mean, std::vector<float>{0.1307f});
      Bytes pixels(64);
      EXPECT_EQ(source.train->read(17, pixels), 7);
      EXPECT_EQ(pixels[9], 60);
    }
}

TEST(PixelTable, HoldsTestImagesBackFromTheCompetitions) {
  const TemporaryDirectory folder;
  write_bytes(folder.path() / "train.csv", lines_as_bytes(pixel_lines(50)));
  write_bytes(folder.path() / "test.csv", lines_as_bytes("pixel0,pixel1\n0,0\n"));  // without labels
  const Source source = open("mnist:" + folder.path().string());
  EXPECT_EQ(source.train->size(), 40);
  EXPECT_EQ(source.test->size(), 10);
  EXPECT_THAT(source.notes, testing::Contains(HasSubstr("no test part: 10 of 50")));
}

TEST(PixelTable, IsNoOtherTable) {
  const TemporaryDirectory folder;
  for (const char* text : {"", "label,path\n0,a.jpg\n", "id,label\n1,2\n", "\n", "label"}) {
    write_bytes(folder.path() / "train.csv", lines_as_bytes(text));
    EXPECT_FALSE(is_pixel_table(folder.path() / "train.csv")) << text;
  }
  EXPECT_FALSE(is_pixel_table(folder.path()));
}

TEST(PixelTable, NamesTheLineThatBreaks) {
  const TemporaryDirectory folder;
  const auto path = folder.path() / "t.csv";
  const auto said = [&](std::string text, const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
    write_bytes(path, lines_as_bytes(text));
    const auto error = error_of([&] { (void)read_pixel_table(path); });
    EXPECT_EQ(error.kind, base::ErrorKind::data);
    return error.text;
  };
  const auto whole = pixel_lines(3);
  EXPECT_THAT(said(whole, "\n1,3,4", "\n1,3,256"), AllOf(HasSubstr("line 3, column 3"), HasSubstr("'256,")));
  EXPECT_THAT(said(whole, "\n1,3,4", "\n1,3,-4"), HasSubstr("line 3, column 3"));
  EXPECT_THAT(said(whole, "\n1,3,4", "\n1,3"), HasSubstr("line 3, column 64"));
  EXPECT_THAT(said(whole, "\n1,3,4", "\n1,3,4,5"), HasSubstr("line 3, column 65"));
  EXPECT_THAT(said(whole, "\n1,3,4", "\n\n1,3,4"), HasSubstr("line 3, column 1"));
  EXPECT_THAT(said(whole, "label,", "label,x,"), HasSubstr("as many grey values as a square has"));
}

// A cut behind a line is a shorter table; no line is lost within.
TEST(PixelTable, IsReadLineByLineOrRefused) {
  const TemporaryDirectory folder;
  const auto path = folder.path() / "t.csv";
  read_mutations(lines_as_bytes(pixel_lines(4)), [&](const Bytes& bytes) {
    write_bytes(path, bytes);
    (void)is_pixel_table(path);
    const auto part = read_pixel_table(path);
    EXPECT_EQ(part.pixels.size(), 64 * part.labels.size());
    const auto lines = static_cast<std::size_t>(std::ranges::count(bytes, std::uint8_t{'\n'}));
    EXPECT_GE(part.labels.size() + 2, lines);  // a line of names, an empty one at the end
  });
}

}  // namespace
}  // namespace paceline::data
