#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../files.h"
#include "data/image/listing.h"

namespace paceline::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A listing with `count` images in each of `folders`.
ImageListing listing_of(const std::vector<std::string>& folders, int count = 4) {
  ImageListing listing;
  for (const auto& folder : folders) {
    const auto number = listing.add_directory(folder);
    for (int i = 0; i < count; ++i) listing.add_image(number, std::to_string(i) + ".jpg");
  }
  return listing;
}

std::string refusal_of(const std::vector<std::string>& folders, const PassedOver& passed) {
  return error_of([&] { (void)check_passed_over("folder:d", listing_of(folders), std::vector{passed}); })
      .text;
}

TEST(PassedOver, ClassesThatLostAllFilesAreRefused) {
  EXPECT_THAT(refusal_of({"cats", "foxes"}, {"dogs", 10, ".heic"}),
              AllOf(HasSubstr("a folder beside the classes"), HasSubstr("'dogs' (10 files, most in .heic)"),
                    HasSubstr("write these files as JPEG or PNG")));
  EXPECT_THAT(refusal_of({"train/a", "test/a", "test/b"}, {"train/b", 1, ""}),
              HasSubstr("'train/b' (1 file without an ending)"));
  EXPECT_THAT(refusal_of({"train/a", "train/b"}, {"val/a", 3, ".tif"}), HasSubstr("'val/a'"))
      << "a whole part is lost";
}

TEST(PassedOver, OtherFilesAreNoLoss) {
  EXPECT_EQ(refusal_of({"cats", "dogs"}, {"labels", 10, ".xml"}), "");
  EXPECT_EQ(refusal_of({"cats", "dogs"}, {"films", 10, ".mp4"}), "");
  EXPECT_EQ(refusal_of({"cats", "dogs"}, {"checkpoints", 1, ".pt"}), "");
  EXPECT_EQ(refusal_of({"cats", "dogs"}, {"masks", 10, ".npy"}), "");
  EXPECT_EQ(refusal_of({"train/a", "train/b"}, {"train/labels", 10, ".npz"}), "");
  EXPECT_EQ(refusal_of({"train/a", "train/b"}, {"train/a/@eaDir", 9, ".jpg@synoeastream"}), "");
  EXPECT_EQ(refusal_of({"train/a", "train/b"}, {"train/a/small", 9, ".heic"}), "") << "inside a class";
  EXPECT_EQ(refusal_of({"cats", "dogs"}, {"", 10, ".heic"}), "") << "they lie beside the class folders";
  EXPECT_EQ(refusal_of({"train/a", "train/b"}, {"raw/train/a", 10, ".nef"}), "") << "they lie beside the set";
  EXPECT_EQ(refusal_of({"cats/old", "dogs"}, {"cats", 10, ".heic"}), "") << "images lie below";
  EXPECT_EQ(refusal_of({}, {"dogs", 10, ".heic"}), "") << "there is no image at all, which is said elsewhere";
}

TEST(PassedOver, ClassesThatLostMostAreNamed) {
  const auto notes = [](const PassedOver& passed) {
    return check_passed_over("folder:d", listing_of({"cats", "dogs"}), std::vector{passed});
  };
  EXPECT_THAT(notes({"dogs", 5, ".heic"}), ElementsAre(HasSubstr("'dogs' (5 files, most in .heic)")));
  EXPECT_THAT(notes({"dogs", 4, ".heic"}), IsEmpty());
  EXPECT_THAT(notes({"dogs", 5, ".txt"}), IsEmpty());
}

TEST(PassedOver, CountsTheMostFrequentEnding) {
  PassedOverCount count;
  for (const char* name : {"a.HEIC", "b.heic", "c.avif", "noending"}) count.add(name);
  EXPECT_EQ(count.files(), 4);
  EXPECT_EQ(count.in("x").ending, ".heic");
  EXPECT_EQ(count.in("x").folder, "x");
  EXPECT_EQ(PassedOverCount().files(), 0);
}

}  // namespace
}  // namespace paceline::data
