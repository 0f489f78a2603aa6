#include "data/shards/shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../shards/shard_files.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "data/spec.h"

namespace paceline::data {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class Shards : public testing::Test {
 protected:
  [[nodiscard]] std::string spec(const std::string& rest = "") const {
    return "shards:" + (folder_.path() / "train-*.tar").string() + ",size=8" + rest;
  }
  [[nodiscard]] Caught refused(const std::string& rest, const OpenOptions& how = {}) const {
    return error_of([&] { (void)open(spec(rest), how); });
  }
  static std::vector<int> labels(const Dataset& set) {
    std::vector<int> all;
    for (std::int64_t i = 0; i < set.size(); ++i) all.push_back(set.label(i));
    return all;
  }
  /// A shard of samples with these labels.
  void write(const std::string& name, const std::vector<std::string>& labels) const {
    Members members;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      members.emplace_back(fmt::format("{}.ppm", i), numbered_picture(static_cast<int>(i)));
      members.emplace_back(fmt::format("{}.cls", i), bytes_of(labels[i]));
    }
    write_tar(folder_.path() / name, members);
  }

  TemporaryDirectory folder_;
};

TEST_F(Shards, NumbersClassesByTheirLabels) {
  write("train-0.tar", {"1", "0", "02"});
  write("train-1.tar", {"2"});
  write("val-0.tar", {"2", "1"});
  const auto source = open(spec(",test=val-0.tar"), {.needs_test = true});
  EXPECT_THAT(source.class_names, ElementsAre("0", "1", "2"));
  EXPECT_THAT(labels(*source.train), ElementsAre(1, 0, 2, 2));
  EXPECT_THAT(labels(*source.test), ElementsAre(2, 1));
  EXPECT_THAT(source.train->shard_sizes(), ElementsAre(3, 1));
  EXPECT_THAT(source.train->sample_name(3), testing::EndsWith("train-1.tar:0.ppm"));
  EXPECT_THAT(source.description,
              HasSubstr("4 to train, 2 to test, scaled to 8x8x3; in 2 shards and 1 to test"));
  write("train-1.tar", {"4"});
  EXPECT_THAT(refused("").text, HasSubstr("the label 4 occurs, but none of 3"));
}

TEST_F(Shards, NamesClassesByTheirTexts) {
  write("train-0.tar", {"dog", "cat", "7", "dog"});
  write("val-0.tar", {"cat", "bird"});
  const auto source = open(spec());
  EXPECT_THAT(source.class_names, ElementsAre("7", "cat", "dog"));
  EXPECT_THAT(labels(*source.train), ElementsAre(2, 1, 0, 2));
  EXPECT_EQ(source.test->size(), 0);
  EXPECT_THAT(refused(",test=val-0.tar").text,
              HasSubstr("the label 'bird' of val-0.tar is none of the 3 classes ('7' to 'dog')"));
  write("train-0.tar", {"dog", "dog"});
  EXPECT_THAT(refused("").text, HasSubstr("all labels are 'dog'"));
}

TEST_F(Shards, TakesNamesOfClassesFromAFile) {
  write("train-0.tar", {"2", "0"});
  write_bytes(folder_.path() / "names.txt", bytes_of("cat\ndog\r\na bird\n"));
  EXPECT_THAT(open(spec(",classes=names.txt")).class_names, ElementsAre("cat", "dog", "a bird"));
  EXPECT_THAT(labels(*open(spec(",classes=names.txt")).train), ElementsAre(2, 0));
  write("train-1.tar", {"dog"});
  EXPECT_THAT(labels(*open(spec(",classes=names.txt")).train), ElementsAre(2, 0, 1));
  write("train-1.tar", {"3"});
  EXPECT_THAT(refused(",classes=names.txt").text, HasSubstr("add it to classes=FILE"));
  write_bytes(folder_.path() / "names.txt", bytes_of("cat\ncat\n"));
  EXPECT_THAT(refused(",classes=names.txt").text, HasSubstr("line 2: the class 'cat' is named twice"));
  EXPECT_THAT(refused(",classes=gone.txt").text, HasSubstr("gone.txt"));
}

TEST_F(Shards, WantsATestSetToTrain) {
  write_shards(folder_.path(), {20, 20}, 2);
  EXPECT_THAT(refused("", {.needs_test = true}).text,
              HasSubstr("there is no test set; give the shards of one as test=PATTERN, or hold back a part"));
  const auto source = open(spec(), {.validation_split = 0.25, .needs_test = true});
  EXPECT_EQ(source.train->size(), 30);
  EXPECT_EQ(source.test->size(), 10);
  EXPECT_EQ(source.validation, nullptr);
  EXPECT_THAT(source.notes, Contains(HasSubstr("what is held back of the training set is the test set")));
  const auto sizes = source.train->shard_sizes();
  ASSERT_EQ(sizes.size(), 2u);
  EXPECT_EQ(sizes[0] + sizes[1], 30);
  write_shards(folder_.path(), {2}, 2, "val");
  EXPECT_THAT(refused(",test=val-{0..1}.tar").text,
              HasSubstr((folder_.path() / "val-1.tar").string() + " is not there (1 of 2 are missing)"));
  EXPECT_EQ(open(spec(",test=" + (folder_.path() / "val-0.tar").string())).test->size(), 2);
  EXPECT_THAT(refused(",test=train-0.tar").text, HasSubstr("of the training and of the test set"));
}

TEST_F(Shards, HaveTheIdentityOfTheirContents) {
  write_shards(folder_.path(), {4, 3}, 2);
  const auto before = list_sha256(*open(spec()).train, 2);
  write_shards(folder_.path(), {4, 3}, 2);  // at another time
  EXPECT_EQ(list_sha256(*open(spec()).train, 1), before);
  write_shards(folder_.path(), {3, 4}, 2);
  EXPECT_NE(list_sha256(*open(spec()).train, 1), before);
}

TEST_F(Shards, SaysWhatItDidNotRead) {
  auto members = numbered_samples(0, 4);
  members.emplace_back("000001.txt", bytes_of("a caption"));
  write_tar(folder_.path() / "train-0.tar", members);
  EXPECT_THAT(
      open(spec()).notes,
      Contains(HasSubstr("training shards: 1 member is neither the image nor the label of a sample")));
}

}  // namespace
}  // namespace paceline::data
