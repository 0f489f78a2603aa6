#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <malloc.h>
#include <sys/stat.h>

#include <cstdlib>

#include "../mutations.h"
#include "base/file.h"
#include "data/dataset.h"
#include "data/shards/shards.h"
#include "shard_files.h"

namespace paceline::data {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

/// A cache of its own, so that a manifest of another test is not found there.
class ShardManifest : public testing::Test {
 protected:
  ShardManifest() {
    ::setenv("PACELINE_CACHE", (folder_.path() / "cache").c_str(), 1);
    write_shards(folder_.path() / "", {2, 3});
  }
  ~ShardManifest() override {
    if (before_.empty())
      ::unsetenv("PACELINE_CACHE");
    else
      ::setenv("PACELINE_CACHE", before_.c_str(), 1);
  }
  [[nodiscard]] std::vector<fs::path> paths() const {
    return shard_paths((folder_.path() / "train-*.tar").string());
  }
  [[nodiscard]] OpenedIndex opened(int threads = 1) const { return open_shard_index(paths(), "", threads); }
  static std::vector<std::string> labels(const ShardIndex& index) {
    std::vector<std::string> texts;
    for (const auto label : index.labels) texts.push_back(index.texts[label]);
    return texts;
  }

  TemporaryDirectory folder_;
  const std::string before_ = std::getenv("PACELINE_CACHE") == nullptr ? "" : std::getenv("PACELINE_CACHE");
};

TEST_F(ShardManifest, IsWrittenOnceAndReadAgain) {
  const auto first = opened();
  EXPECT_EQ(first.manifest.parent_path(), folder_.path());
  EXPECT_THAT(first.notes,
              ElementsAre(HasSubstr("the list of the 5 samples in 2 shards was made and written: ")));
  EXPECT_THAT(labels(first.index), ElementsAre("0", "1", "2", "0", "1"));
  // Another label in the same bytes, whose time is put back, is not seen: the shard was not read.
  const auto time = fs::last_write_time(paths()[0]);
  auto bytes = read_bytes(paths()[0]);
  bytes[512 + 512 + 512] = '2';
  write_bytes(paths()[0], bytes);
  fs::last_write_time(paths()[0], time);
  const auto again = opened();
  EXPECT_THAT(again.notes, IsEmpty());
  EXPECT_EQ(labels(again.index), labels(first.index));
  EXPECT_EQ(again.manifest, first.manifest);
  EXPECT_EQ(shard_manifest_of(again.index), shard_manifest_of(first.index));
}

TEST_F(ShardManifest, ListsAgainTheShardsThatChanged) {
  (void)opened();
  write_tar(paths()[1], {{"x.ppm", numbered_picture(9)}, {"x.cls", bytes_of("cat")}});
  const auto again = opened(3);
  EXPECT_THAT(
      again.notes,
      ElementsAre(HasSubstr("was made anew, because 1 shard has changed since, the first 'train-1.tar'")));
  EXPECT_THAT(labels(again.index), ElementsAre("0", "1", "cat"));
  EXPECT_THAT(opened().notes, IsEmpty());
  write_tar(paths()[0], numbered_samples(0, 4));
  EXPECT_THAT(labels(opened().index), ElementsAre("0", "1", "2", "0", "cat"));
}

TEST_F(ShardManifest, OfAnotherListOrFieldIsAnother) {
  const auto both = opened();
  const auto one = open_shard_index(std::vector{paths()[1]}, "", 1);
  EXPECT_NE(one.manifest, both.manifest);
  EXPECT_THAT(labels(one.index), ElementsAre("2", "0", "1"));
  EXPECT_THAT(error_of([&] { (void)open_shard_index(paths(), "label", 1); }).text, HasSubstr("no label"));
}

TEST_F(ShardManifest, LiesInTheCacheOtherwise) {
  const auto beside = opened().manifest;
  fs::remove(beside);
  fs::create_directories(beside / "in the way");
  const auto first = opened();
  EXPECT_EQ(first.manifest.parent_path(), folder_.path() / "cache/shards");
  EXPECT_THAT(opened().notes, IsEmpty());
  fs::remove(first.manifest);
  fs::create_directories(first.manifest / "in the way");
  EXPECT_THAT(opened().notes, ElementsAre(HasSubstr("made, but could not be written: ")));
  EXPECT_THAT(labels(opened().index), ElementsAre("0", "1", "2", "0", "1"));
}

TEST_F(ShardManifest, IsMadeAnewWhereItIsDamaged) {
  const auto first = opened();
  const auto whole = read_bytes(first.manifest);
  int damaged = 0;
  read_mutations(whole, [&](const Bytes& bytes) {
    if (bytes == whole) return;
    ++damaged;
    EXPECT_FALSE(shard_index_from({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  });
  EXPECT_GT(damaged, 300);
  write_bytes(first.manifest, Bytes(whole.begin(), whole.end() - 1));
  EXPECT_THAT(opened().notes, ElementsAre(HasSubstr("is damaged, or of another version")));
  EXPECT_EQ(read_bytes(first.manifest), whole);
}

/// Without its SHA-256 the rest is still checked: no number may lead out of a shard or a list.
TEST_F(ShardManifest, WithAForgedSumLeadsNowhere) {
  const auto good = opened().index;
  const auto refused = [&](const std::function<void(ShardIndex&)>& change) {
    auto index = good;
    change(index);
    return !shard_index_from(shard_manifest_of(index)).has_value();
  };
  EXPECT_FALSE(refused([](ShardIndex&) {}));
  EXPECT_TRUE(refused([](ShardIndex& i) { i.labels[1] = 3; }));
  EXPECT_TRUE(refused([](ShardIndex& i) { i.labels.pop_back(); }));
  EXPECT_TRUE(refused([](ShardIndex& i) { i.members[4].block = 1u << 30; }));
  EXPECT_TRUE(refused([](ShardIndex& i) { i.members[4].bytes = UINT32_MAX; }));
  EXPECT_TRUE(refused([](ShardIndex& i) { i.shards[0].samples = 1; }));
  EXPECT_TRUE(refused([](ShardIndex& i) { i.shards[0].samples = INT64_MAX; }));
  EXPECT_TRUE(refused([](ShardIndex& i) { i.shards[0].samples = -1; }));
  EXPECT_TRUE(refused([](ShardIndex& i) { i.shards.clear(); }));
  read_mutations(bytes_of(base::to_bytes(good)), [&](const Bytes& bytes) {
    (void)shard_index_from_body({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  });
}

/// VmRSS or VmHWM of this process, in bytes.
std::int64_t status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == key) {
      status >> word;
      return 1024 * std::stoll(word);
    }
  return 0;
}

TEST_F(ShardManifest, OfImageNetTakesLittleMemory) {
  constexpr int kShards = 147;
  constexpr std::int64_t kSamples = 1'281'167, kMost = 64'000'000;
  constexpr std::uint32_t kBlocks = 220;  // of an image of 110 KB
  const auto folder = folder_.path() / "large";
  fs::create_directories(folder);
  write_shards(folder / "", std::vector<int>(kShards, 1));
  const auto large = shard_paths((folder / "train-*.tar").string());
  auto made = open_shard_index(large, "", 1);
  {
    ShardIndex index{.field = "", .shards = made.index.shards, .members = {}, .labels = {}, .texts = {}};
    for (int label = 0; label < 1000; ++label) index.texts.push_back(std::to_string(label));
    for (int s = 0; s < kShards; ++s) {
      const auto begin = kSamples * s / kShards, end = kSamples * (s + 1) / kShards;
      auto& shard = index.shards[static_cast<std::size_t>(s)];
      shard.samples = end - begin;
      shard.bytes = (end - begin + 2) * kBlocks * 512;
      fs::resize_file(large[static_cast<std::size_t>(s)], static_cast<std::uintmax_t>(shard.bytes));
      fs::last_write_time(large[static_cast<std::size_t>(s)], fs::file_time_type::clock::now());
      for (auto i = begin; i < end; ++i) {
        index.members.push_back({static_cast<std::uint32_t>(i - begin) * kBlocks + 1, 110'000});
        index.labels.push_back(static_cast<std::uint32_t>(i % 1000));
      }
      struct stat status {};
      ASSERT_EQ(::stat(large[static_cast<std::size_t>(s)].c_str(), &status), 0);
      shard.modified_ns = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
    }
    base::write_file(made.manifest, shard_manifest_of(index));
    made = {};
  }
  ::malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << 5;  // forgets the peak so far
  const auto resident = status_bytes("VmRSS:");
  const Source source = open("shards:" + (folder / "train-*.tar").string());
  const auto peak = status_bytes("VmHWM:") - resident;
  EXPECT_EQ(source.train->size(), kSamples);
  EXPECT_THAT(source.notes, testing::Not(Contains(HasSubstr("anew"))));
  EXPECT_GT(peak, kSamples * 12) << "the peak is not measured";
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which keep what was freed
  EXPECT_LT(peak, kMost);
#endif
  EXPECT_LT(source.resident_bytes, kMost);
  RecordProperty("peak_bytes", std::to_string(peak));
}

}  // namespace
}  // namespace paceline::data
