#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <string>

#include "data/image/inspect.h"
#include "pictures.h"

namespace paceline::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Images in memory, every fifth of them cut short, that counts how often it is read.
class CountingStore final : public ImageStore {
 public:
  explicit CountingStore(std::string name) : name_(std::move(name)) {
    for (int i = 0; i < 20; ++i) {
      images_.push_back(jpeg(picture(30 + i, 40, i)));
      if (i % 5 == 2) images_.back().resize(images_.back().size() / 2);
    }
  }
  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(images_.size()); }
  [[nodiscard]] std::string name(std::int64_t index) const override {
    return name_ + "/" + std::to_string(index) + ".jpg";
  }
  [[nodiscard]] std::span<const std::uint8_t> bytes(std::int64_t index,
                                                    std::vector<std::uint8_t>&) const override {
    ++reads;
    return images_[static_cast<std::size_t>(index)];
  }

  mutable std::atomic<int> reads{0};

 private:
  std::string name_;
  std::vector<Bytes> images_;
};

std::vector<std::uint32_t> numbers(std::size_t count) {
  std::vector<std::uint32_t> list(count);
  std::iota(list.begin(), list.end(), 0u);
  return list;
}

std::vector<std::size_t> places(const std::vector<BrokenEntry>& broken) {
  std::vector<std::size_t> at;
  for (const auto& entry : broken) at.push_back(entry.at);
  return at;
}

TEST(FindBroken, NamesThemInOrderForAnyNumberOfThreads) {
  const CountingStore store("a");
  for (const int threads : {1, 3}) {
    const auto broken = find_broken(store, numbers(20), threads);
    EXPECT_THAT(places(broken), ElementsAre(2, 7, 12, 17)) << threads;
    EXPECT_EQ(broken[1].name, "a/7.jpg");
    EXPECT_THAT(broken[1].reason, HasSubstr("JPEG"));
  }
}

// A study of twenty cells decoded a folder forty times.
TEST(BrokenImageCache, DecodesTheSameImagesOnce) {
  BrokenImageCache cache;
  for (int cell = 0; cell < 3; ++cell) {
    const CountingStore store("b");  // opened anew, as every cell does
    EXPECT_THAT(places(cache.find(store, numbers(20), 2)), ElementsAre(2, 7, 12, 17));
    EXPECT_EQ(store.reads, cell == 0 ? 20 : 0);
  }
  const CountingStore same("b"), other("cb");
  EXPECT_THAT(places(cache.find(same, numbers(10), 2)), ElementsAre(2, 7));
  EXPECT_EQ(same.reads, 10) << "another part";
  EXPECT_EQ(cache.find(other, numbers(20), 2).front().name, "cb/2.jpg");
  EXPECT_EQ(other.reads, 20) << "another folder";
  BrokenImageCache second;
  EXPECT_THAT(places(second.find(same, numbers(10), 2)), ElementsAre(2, 7));
  EXPECT_EQ(same.reads, 20) << "another cache knows nothing";
}

}  // namespace

namespace {

std::vector<std::uint64_t> hashes_of(const std::vector<std::string>& texts) {
  std::vector<std::uint64_t> hashes;
  for (const auto& text : texts) hashes.push_back(text.size());  // many clash
  return hashes;
}

std::vector<std::pair<std::int64_t, std::int64_t>> pairs(const std::vector<DuplicatePair>& duplicates) {
  std::vector<std::pair<std::int64_t, std::int64_t>> result;
  for (const auto& pair : duplicates) result.emplace_back(pair.first, pair.second);
  return result;
}

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

TEST(Inspect, FindsEqualSamplesInsideAndAcross) {
  const std::vector<std::string> one{"cat", "dog", "cat", "bird", "cat"}, other{"cow", "bird", "dog", "cat"};
  const auto inside = [&](auto a, auto b) {
    return one.at(static_cast<std::size_t>(a)) == one.at(static_cast<std::size_t>(b));
  };
  const auto across = [&](auto a, auto b) {
    return one.at(static_cast<std::size_t>(a)) == other.at(static_cast<std::size_t>(b));
  };
  EXPECT_EQ(pairs(find_equal(hashes_of(one), inside)), (Pairs{{0, 2}, {0, 4}}));
  EXPECT_EQ(pairs(find_equal(hashes_of(one), inside, hashes_of(other), across)),
            (Pairs{{3, 1}, {1, 2}, {0, 3}}));
  EXPECT_TRUE(find_equal({}, inside).empty());
}

// An audit: of n copies of one picture ("not available") every pair was read from disk.
TEST(Inspect, ComparesEqualSamplesOnce) {
  const std::vector<std::uint64_t> hashes(1000, 7);
  int comparisons = 0;
  const auto equal = [&](auto, auto) { return ++comparisons > 0; };
  EXPECT_EQ(find_equal(hashes, equal).size(), 999u);
  EXPECT_EQ(comparisons, 999);
  comparisons = 0;
  EXPECT_EQ(find_equal(hashes, equal, hashes, equal).size(), 1000u);
  EXPECT_EQ(comparisons, 1999);
}

}  // namespace
}  // namespace paceline::data
