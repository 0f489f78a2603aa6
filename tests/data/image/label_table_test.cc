#include "data/image/label_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/files.h"

namespace paceline::data {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

ImageListing listing_with(const std::vector<std::pair<std::string, std::vector<std::string>>>& folders) {
  ImageListing listing;
  for (const auto& [folder, names] : folders) {
    const auto number = listing.add_directory(folder);
    for (const auto& name : names) listing.add_image(number, name);
  }
  return listing;
}

TEST(ImageFinder, FindsByPathNameAndEnding) {
  const auto listing =
      listing_with({{"", {"a.jpg"}}, {"x", {"a.jpg", "b.1.png"}}, {"y/z", {"c.jpg", "c.png"}}});
  const ImageFinder finder(listing, "/data/set");
  EXPECT_THAT(finder.find("x/a.jpg"), ElementsAre(1));
  EXPECT_THAT(finder.find("./x/a"), ElementsAre(1));
  EXPECT_THAT(finder.find("a"), ElementsAre(0));  // that path alone
  EXPECT_THAT(finder.find("b.1"), ElementsAre(2));
  EXPECT_THAT(finder.find("b.1.png"), ElementsAre(2));
  EXPECT_THAT(finder.find("c"), ElementsAre(3, 4));
  EXPECT_THAT(finder.find("z/c.png"), ElementsAre(4));
  EXPECT_THAT(finder.find("set/a.jpg"), ElementsAre(0));
  EXPECT_THAT(finder.find("/data/set/x/a.jpg"), ElementsAre(1));
  for (const char* other : {"", "/", "test/a.jpg", "et/a.jpg", "a.png", "A.jpg", "/other/set/a.jpg", "b"})
    EXPECT_THAT(finder.find(other), IsEmpty()) << other;
}

TEST(LabelColumns, AreFoundByNameOrText) {
  const TemporaryDirectory folder;
  const auto listing = listing_with({{"", {"0.jpg", "1.jpg", "2.jpg", "3.jpg"}}});
  const ImageFinder finder(listing, folder.path());
  const auto columns = [&](const std::string& text) {
    write_bytes(folder.path() / "t.csv", {text.begin(), text.end()});
    const auto table = read_label_table(folder.path() / "t.csv", finder);
    std::string names;
    const auto found = label_columns(table);
    for (const auto i : found.columns) names += table.column(i);
    return names + found.why_not.substr(0, 5);
  };
  EXPECT_EQ(columns("id,size,the Label\n0,1,a\n1,1,b\n2,2,c\n3,2,d\n"), "'the Label'");
  EXPECT_EQ(columns("size;id;x\n1;0;a\n1;1;b\n2;2;a\n2;3;b\n"), "'x'");  // of words, not of numbers
  EXPECT_EQ(columns("0\ta\n1\tb\n"), "2 (from 1)");
  EXPECT_EQ(columns("id,a,b\n0,1,0\n1,0,1\n"), "'a''b'");
  EXPECT_EQ(columns("id,a,b\n0,1,1\n1,0,1\n"), "'a''b'its c");
  EXPECT_EQ(columns("id,a,b\n0,u,v\n1,w,x\n2,u,v\n3,w,x\n"), "which");
}

}  // namespace
}  // namespace paceline::data
