#include "data/image/inspect.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>

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
}  // namespace paceline::data
