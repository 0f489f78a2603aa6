#include "cli/commands/submission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "cli/program.h"

namespace paceline::cli {

using Table = Submission;  // whose name the suite has

namespace tables {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::vector<std::string> kClasses{"cat", "dog", "owl, barn"};

train::ClassifiedImage image(const std::string& path, double cat, double dog, double owl) {
  train::ClassifiedImage one{.file = path, .path = path, .fault = {}, .classes = {}};
  one.classes = {{"cat", cat}, {"dog", dog}, {"owl, barn", owl}};
  std::ranges::sort(one.classes, std::greater(), [](const auto& pair) { return pair.second; });
  return one;
}

class Submission : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path sample(const std::string& text) const {
    return folder_.write("sample.csv", text);
  }
  static std::string filled(Table table, const std::vector<std::string>& paths) {
    table.set_classes(kClasses);
    double owl = 0.5;
    for (const auto& path : paths) {
      table.add(image(path, 0.25, 0.75 - owl, owl));
      owl = 0.125;
    }
    said_ = table.left_over();
    return table.text();
  }
  template <typename Make>
  static std::string why_not(const Make& make) {
    try {
      (void)make();
    } catch (const base::Error& error) {
      return error.what();
    }
    return "";
  }
  Folder folder_;
  static inline std::string said_;
};

TEST_F(Submission, HasAnIdAndAClass) {
  EXPECT_EQ(filled(Table("id,label", ""), {"test/7.jpg", "x,1.y.png"}),
            "id,label\n7,\"owl, barn\"\n\"x,1.y\",dog\n");
  EXPECT_EQ(filled(Table("image=file,breed", ""), {"test/7.jpg"}), "image,breed\n7.jpg,\"owl, barn\"\n");
}

TEST_F(Submission, HasAProbabilityForEachNamedClass) {
  EXPECT_EQ(filled(Table("id,dog,cat", ""), {"7.jpg"}), "id,dog,cat\n7,0.25,0.25\n");
  EXPECT_EQ(filled(Table("id,label=dog", ""), {"7.jpg", "8.jpg"}), "id,label\n7,0.25\n8,0.625\n");
}

TEST_F(Submission, FollowsTheSampleInColumnsAndRows) {
  const auto file = sample("id,dog,\"owl, barn\",cat\n8,0.3,0.3,0.3\n7,0.3,0.3,0.3\n");
  EXPECT_EQ(filled(Table("", file), {"a/7.jpg", "a/8.jpg", "a/9.jpg"}),
            "id,dog,\"owl, barn\",cat\n8,0.625,0.125,0.25\n7,0.25,0.5,0.25\n");
  EXPECT_THAT(said_, AllOf(HasSubstr("1 image is left out"), HasSubstr("'9'")));
  const auto names = sample("image_id,label\r\n8.jpg,cat\r\n7.jpg,cat\r\n");
  EXPECT_EQ(filled(Table("", names), {"a/7.jpg", "a/8.jpg"}),
            "image_id,label\n8.jpg,dog\n7.jpg,\"owl, barn\"\n");
  EXPECT_EQ(said_, "");
  const auto numbers = sample("id,label\n7,0.5\n");
  EXPECT_EQ(filled(Table("id,label=dog", numbers), {"7.jpg"}), "id,label\n7,0.25\n");
}

TEST_F(Submission, NamesIdsWithoutAnImage) {
  const auto file = sample("id,label\n1,cat\n2,cat\n3,cat\n4,cat\n5,cat\n");
  EXPECT_THAT(why_not([&] {
                return filled(Table("", file), {"0002.jpg", "3.jpg"});
              }),
              AllOf(HasSubstr("4 of its 5 ids"), HasSubstr("'1', '2', '4' and 1 more"), HasSubstr("'0002'")));
}

TEST_F(Submission, RefusesWhatHasNoMeaning) {
  const auto says = [&](const std::string& columns, const std::string& text) {
    return why_not([&] { return filled(Table(columns, text.empty() ? "" : sample(text)), {"7.jpg"}); });
  };
  EXPECT_THAT(says("id", ""), HasSubstr("the first column is the id"));
  EXPECT_THAT(says("id=name,label", ""), HasSubstr("ID=file"));
  EXPECT_THAT(says("id,,label", ""), HasSubstr("NAME or NAME=CLASS"));
  EXPECT_THAT(says("id,cat,cow", ""), AllOf(HasSubstr("'cow'"), HasSubstr("none of the 3 classes")));
  EXPECT_THAT(says("id,label=cow", ""), HasSubstr("'cow'"));
  EXPECT_THAT(says("", "id,label\n7,0.5\n"),
              AllOf(HasSubstr("holds numbers, such as 0.5"), HasSubstr("id,label=CLASS")));
  EXPECT_THAT(says("", "id,label\n"), HasSubstr("a row for each image"));
  EXPECT_THAT(says("", "id,label\n7,cat\n7,dog\n"), AllOf(HasSubstr(":3:"), HasSubstr("twice")));
  EXPECT_THAT(says("", "id,label\n7,cat,1\n"), HasSubstr("3 cells"));
  EXPECT_THAT(says("name,label", "id,label\n7,cat\n"), HasSubstr("id,label"));
  EXPECT_THAT(why_not([&] {
                return filled(Table("id,label", ""), {"a/7.jpg", "b/7.png"});
              }),
              AllOf(HasSubstr("a/7.jpg and b/7.png"), HasSubstr("'7'")));
}

}  // namespace
}  // namespace tables
}  // namespace paceline::cli
