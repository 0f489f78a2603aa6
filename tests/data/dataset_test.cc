#include "data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "data/fakes.h"
#include "data/files.h"

namespace paceline::data {
namespace {

/// Samples in files that do not exist: sample i is "dir/i", `bytes` long, of class i % 3.
class Listed final : public Dataset {
 public:
  explicit Listed(std::int64_t size, std::string folder = "dir", std::int64_t bytes = 9)
      : size_(size), folder_(std::move(folder)), bytes_(bytes) {}
  [[nodiscard]] std::int64_t size() const override { return size_; }
  [[nodiscard]] ImageFormat format() const override { return {1, 1, 3}; }
  std::int32_t read(std::int64_t, std::span<std::uint8_t>) const override {
    ADD_FAILURE() << "no pixel is needed";
    return 0;
  }
  [[nodiscard]] std::int32_t label(std::int64_t index) const override {
    return index == relabelled ? 7 : static_cast<std::int32_t>(index % 3);
  }
  [[nodiscard]] std::string list_entry(std::int64_t index) const override {
    return folder_ + '/' + std::to_string(index) + '\0' + std::to_string(bytes_);
  }
  std::int64_t relabelled = -1;

 private:
  std::int64_t size_;
  std::string folder_;
  std::int64_t bytes_;
};

TEST(Dataset, ListsDifferByPathLengthAndLabel) {
  Listed moved(10);
  moved.relabelled = 9;
  const std::set<std::string> all{list_sha256(Listed(10), 1), list_sha256(Listed(11), 1),
                                  list_sha256(Listed(10, "other"), 1), list_sha256(Listed(10, "dir", 8), 1),
                                  list_sha256(moved, 1)};
  EXPECT_EQ(all.size(), 5u);
  EXPECT_EQ(list_sha256(Listed(10), 1), list_sha256(Listed(10), 1));
}

/// Pieces of 4,096 samples go to threads, in whose number nothing may depend.
TEST(Dataset, ListsAreTheSameForAnyThreads) {
  for (const std::int64_t size : {1, 4096, 4097, 30011}) {
    const auto alone = list_sha256(Listed(size), 1);
    for (const int threads : {2, 3, 16}) EXPECT_EQ(list_sha256(Listed(size), threads), alone) << size;
  }
}

TEST(Dataset, ListsWithoutFilesHaveSomePixels) {
  const NumberedDataset set(1000);
  const auto sum = list_sha256(set, 1);
  EXPECT_EQ(set.reads.load(), 1000 + 64) << "all labels, and some samples";
  EXPECT_EQ(list_sha256(NumberedDataset(1000), 4), sum);
  EXPECT_NE(list_sha256(NumberedDataset(999), 1), sum);
  const auto drawn = [](const std::string& spec) { return list_sha256(*open(spec).test, 1); };
  EXPECT_EQ(drawn("synthetic,train=9,test=30"), drawn("synthetic,train=50,test=30"));
  EXPECT_NE(drawn("synthetic,train=9,test=30"), drawn("synthetic,train=9,test=30,seed=1"));
}

TEST(DataIdentity, StaysWhenItsFolderMoves) {
  const TemporaryDirectory here;
  const auto ppm = [](char colour) {
    Bytes bytes{'P', '6', '\n', '1', ' ', '1', '\n', '2', '5', '5', '\n'};
    bytes.insert(bytes.end(), 3, static_cast<std::uint8_t>(colour));
    return bytes;
  };
  for (const char* name : {"train/a/1.ppm", "train/a/2.ppm", "train/b/1.ppm", "test/a/1.ppm", "test/b/1.ppm"})
    write_bytes(here.path() / "set" / name, ppm('x'));
  const auto identity = [&](const std::string& folder, const OpenOptions& how = {}) {
    return identity_of(open("folder:" + (here.path() / folder).string() + ",size=1", how), 2);
  };
  const auto before = identity("set");
  EXPECT_THAT(before.classes, testing::ElementsAre("a", "b"));
  EXPECT_EQ(before.train.images, 3);
  EXPECT_EQ(before.validation, DataIdentity::List());
  std::filesystem::rename(here.path() / "set", here.path() / "moved");
  const auto moved = identity("moved");
  EXPECT_EQ(moved.train, before.train);
  EXPECT_EQ(moved.test, before.test);
  std::filesystem::rename(here.path() / "moved/train/a/2.ppm", here.path() / "moved/train/b/2.ppm");
  EXPECT_NE(identity("moved").train, before.train) << "an image has another class";
  EXPECT_EQ(identity("moved").test, before.test);
  EXPECT_EQ(identity("moved", {.validation_split = 0.5}).train.images, 2);
  EXPECT_EQ(identity("moved", {.validation_split = 0.5}).validation.images, 1);
}

}  // namespace
}  // namespace paceline::data
