#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "data/shards/shards.h"
#include "shard_files.h"

namespace paceline::data {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class Store : public testing::Test {
 protected:
  void open(const std::vector<int>& counts, std::size_t most_open) {
    write_shards(folder_.path(), counts);
    paths_ = shard_paths((folder_.path() / "train-*.tar").string());
    const auto opened = open_shard_index(paths_, "", 1);
    store_ = std::make_unique<ShardStore>(most_open);
    store_->add(paths_, opened.index);
  }
  [[nodiscard]] Bytes read(std::int64_t index) const {
    std::vector<std::uint8_t> buffer;
    const auto bytes = store_->bytes(index, buffer);
    return {bytes.begin(), bytes.end()};
  }
  [[nodiscard]] std::string refused(std::int64_t index) const {
    return error_of([&] { (void)read(index); }).text;
  }
  /// Open files of this process that are shards.
  static int shards_open() {
    int open = 0;
    std::error_code gone;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd"))
      open += fs::read_symlink(entry, gone).extension() == ".tar" ? 1 : 0;
    return open;
  }

  TemporaryDirectory folder_;
  std::vector<fs::path> paths_;
  std::unique_ptr<ShardStore> store_;
};

TEST_F(Store, ReadsEverySampleWithFewFilesOpen) {
  open({1, 7, 2, 5}, 2);
  ASSERT_EQ(store_->size(), 15);
  EXPECT_THAT(store_->shard_ends(), testing::ElementsAre(1, 8, 10, 15));
  for (int turn = 0; turn < 4; ++turn)
    for (int i = 0; i < 15; ++i) {
      const int sample = i * 7 % 15;
      EXPECT_EQ(read(sample), numbered_picture(sample));
      EXPECT_EQ(store_->stored_bytes(sample), static_cast<std::int64_t>(numbered_picture(sample).size()));
      EXPECT_LE(shards_open(), 2);
    }
  EXPECT_THAT(store_->name(9), testing::EndsWith("train-2.tar:000009.ppm"));
  EXPECT_THAT(store_->path_below(9), testing::StartsWith("train-2.tar:"));
}

TEST_F(Store, IsReadByManyThreads) {
  open({3, 3, 3, 3, 3, 3}, 2);
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 200; ++i)
          if (const int sample = (i * 5 + t * 7) % 18; read(sample) != numbered_picture(sample)) ++wrong;
      });
  }
  EXPECT_EQ(wrong, 0);
}

TEST_F(Store, NamesAShardThatHasChanged) {
  open({2, 2, 2}, 1);
  (void)read(0);
  fs::rename(paths_[1], folder_.path() / "away");
  EXPECT_THAT(refused(2),
              testing::AllOf(HasSubstr(paths_[1].string() + ": the shard cannot be read: No such file"),
                             HasSubstr("put it back, and continue from the last checkpoint")));
  EXPECT_THAT(store_->name(2), testing::EndsWith("train-1.tar: image 1"));
  fs::rename(folder_.path() / "away", paths_[1]);
  EXPECT_EQ(read(2), numbered_picture(2));
  const auto whole = read_bytes(paths_[1]);
  fs::resize_file(paths_[1], 512 + 100);  // while it is open
  EXPECT_THAT(refused(3), HasSubstr("the shard ends inside a sample: it has 612 bytes, but had "));
  (void)read(0);  // closes it
  EXPECT_THAT(refused(2), HasSubstr("the shard has changed since this run listed it"));
  write_bytes(paths_[1], whole);
  EXPECT_THAT(refused(2), HasSubstr("has changed")) << "it may be another one of this length";
}

}  // namespace
}  // namespace paceline::data
