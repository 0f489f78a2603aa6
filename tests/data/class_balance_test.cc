#include "data/class_balance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/file.h"
#include "data/loader.h"
#include "fakes.h"
#include "files.h"

namespace paceline::data {
namespace {

using testing::AllOf;
using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;

/// Labels alone, mixed over the set; the pixels are those of NumberedDataset.
class LabelledDataset final : public Dataset {
 public:
  explicit LabelledDataset(const std::vector<std::int64_t>& sizes)
      : pixels_(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0})) {
    for (std::size_t c = 0; c < sizes.size(); ++c)
      labels_.insert(labels_.end(), static_cast<std::size_t>(sizes[c]), static_cast<std::int32_t>(c));
    for (std::size_t i = 0; i < labels_.size(); ++i)
      std::swap(labels_[i], labels_[i * 7919 % labels_.size()]);
  }
  [[nodiscard]] std::int64_t size() const override { return pixels_.size(); }
  [[nodiscard]] ImageFormat format() const override { return pixels_.format(); }
  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    (void)pixels_.read(index, pixels);
    return label(index);
  }
  [[nodiscard]] std::int32_t label(std::int64_t index) const override {
    return labels_[static_cast<std::size_t>(index)];
  }

 private:
  NumberedDataset pixels_;
  std::vector<std::int32_t> labels_;
};

Source source_of(const std::vector<std::int64_t>& sizes, std::vector<std::string> names) {
  Source source;
  source.train = std::make_unique<LabelledDataset>(sizes);
  source.class_names = std::move(names);
  return source;
}

TEST(ClassBalance, BalancedWeightsAreThoseOfScikitLearn) {
  const Source source = source_of({60, 30, 10}, {"a", "b", "c"});
  EXPECT_EQ(class_sizes(*source.train, 3), (std::vector<std::int64_t>{60, 30, 10}));
  // sklearn.utils.class_weight.compute_class_weight("balanced", ...): n / (classes * count).
  EXPECT_THAT(class_weights("balanced", source),
              ElementsAre(DoubleEq(100.0 / 180), DoubleEq(100.0 / 90), DoubleEq(100.0 / 30)));
  EXPECT_THAT(class_weights("balanced", source_of({60, 0, 40}, {"a", "b", "c"})),
              ElementsAre(DoubleEq(100.0 / 120), 1, DoubleEq(100.0 / 80)))
      << "a class that training lacks counts for nothing";
}

TEST(ClassBalance, WeightsOfAFileHaveMeanOne) {
  const TemporaryDirectory directory;
  const auto file = (directory.path() / "weights.csv").string();
  const Source source = source_of({60, 30, 10}, {"red, round", "b", "c"});
  for (const char* text : {"class,weight\n\"red, round\",1\nc,4\nb,2\n", "b,1\n\"red, round\",0.5\nc,2\n",
                           "b;20\n\"red, round\";10\nc;40\n"}) {
    base::write_file(file, text);
    EXPECT_THAT(class_weights(file, source),
                ElementsAre(DoubleEq(1 / 1.6), DoubleEq(2 / 1.6), DoubleEq(4 / 1.6)))
        << text;
  }
}

TEST(ClassBalance, KnowsHowUnevenClassesAre) {
  for (const auto& [sizes, want] : {std::pair<std::vector<std::int64_t>, double>{{5, 5}, 1},
                                    {{10, 4, 0}, 2.5},
                                    {{0, 0}, 1},
                                    {{3}, 1},
                                    {{}, 1}})
    EXPECT_DOUBLE_EQ(unevenness(sizes), want);
}

TEST(ClassBalance, RefusesEachMistakeOfAFile) {
  const TemporaryDirectory directory;
  const auto file = (directory.path() / "weights.csv").string();
  const Source source = source_of({6, 3}, {"apple", "pear"});
  const std::pair<const char*, const char*> cases[] = {
      {"apple,1\npaer,2\n", "line 2: the data have no class 'paer'; did you mean 'pear'?"},
      {"apple,1\npear,2\napple,3\n", "line 3: the class 'apple' has a weight in line 1 already"},
      {"apple,1\n", "but 'pear' and 0 of 2 classes have none; add the line 'pear,1'"},
      {"", "every class needs a weight"},
      {"apple,1\npear,0\n", "line 2: the weight of 'pear' must be a number above 0, got '0'"},
      {"apple,1\npear,-1\n", "line 2: the weight of 'pear' must be a number above 0"},
      {"apple,1\npear,nan\n", "line 2: the weight of 'pear' must be a number above 0"},
      {"apple,1\npear,inf\n", "line 2: the weight of 'pear' must be a number above 0"},
      {"apple,1\npear,much\n", "line 2: the weight of 'pear' must be a number above 0, got 'much'"},
      {"apple,1\npear\n", "line 2 must be a class and its weight, but has 1 cell"},
      {"apple,1,2\npear,1\n", "line 1 must be a class and its weight, but has 3 cells"}};
  for (const auto& [text, said] : cases) {
    base::write_file(file, text);
    const auto error = error_of([&] { (void)class_weights(file, source); });
    EXPECT_EQ(error.kind, base::ErrorKind::data) << text;
    EXPECT_THAT(error.text, AllOf(HasSubstr(file), HasSubstr(said))) << text;
  }
  EXPECT_THAT(error_of([&] { (void)class_weights("none.csv", source); }).text, HasSubstr("none.csv"));
}

/// The samples that N loaders of a balanced order yield in `steps` steps, in the order of the global batches.
std::vector<float> yielded(const Dataset& set, int classes, int workers, std::int64_t global,
                           std::int64_t steps, std::vector<std::int32_t>& labels, std::int64_t from = 0) {
  const std::int64_t an_epoch = set.size() / global;
  const Sampler sampler(set.size(), std::make_shared<BalancedOrder>(set, classes, 3, an_epoch * global));
  std::vector<std::unique_ptr<Loader>> loaders;
  for (int rank = 0; rank < workers; ++rank)
    loaders.push_back(std::make_unique<Loader>(set, sampler, full_augment(set.format(), 3),
                                               LoaderOptions{.global_batch = global,
                                                             .local_batch = global / workers,
                                                             .first = rank * global / workers,
                                                             .start_epoch = from / an_epoch,
                                                             .start_step = from % an_epoch}));
  std::vector<float> images;
  for (std::int64_t step = from; step < steps; ++step)
    for (auto& loader : loaders) {
      const Batch& batch = loader->next();
      images.insert(images.end(), batch.images.begin(), batch.images.end());
      labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
    }
  return images;
}

TEST(BalancedOrder, DrawsEachClassEquallyOften) {
  const LabelledDataset set({90, 11, 3, 0, 1});  // 105 samples, 8 steps of 12 an epoch
  constexpr int kClasses = 5, kPresent = 4;
  constexpr std::int64_t kGlobal = 12, kSteps = 25;  // into the fourth epoch
  std::vector<std::int32_t> alone;
  const auto images = yielded(set, kClasses, 1, kGlobal, kSteps, alone);
  for (const int workers : {2, 3, 4}) {
    std::vector<std::int32_t> together;
    EXPECT_EQ(yielded(set, kClasses, workers, kGlobal, kSteps, together), images) << workers;
    EXPECT_EQ(together, alone) << workers;
  }
  std::map<std::int32_t, std::int64_t> drawn;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    ++drawn[alone[i]];
    if ((i + 1) % kPresent != 0) continue;
    for (const std::int32_t label : {0, 1, 2, 4})
      ASSERT_EQ(drawn[label], static_cast<std::int64_t>(i + 1) / kPresent) << label << " after " << i + 1;
  }
  EXPECT_EQ(drawn.size(), 4u);
  // From the middle of the second epoch.
  std::vector<std::int32_t> rest;
  const auto rest_of_images = yielded(set, kClasses, 2, kGlobal, kSteps, rest, 11);
  EXPECT_TRUE(std::equal(rest_of_images.rbegin(), rest_of_images.rend(), images.rbegin()));
  EXPECT_TRUE(std::equal(rest.rbegin(), rest.rend(), alone.rbegin()));
  EXPECT_EQ(rest.size(), alone.size() - 11 * kGlobal);
}

TEST(BalancedOrder, ShowsAClassWholeBeforeAgain) {
  const LabelledDataset set({50, 7, 3});
  for (const std::int64_t positions : {60, 56, 59}) {  // also epochs that leave samples out
    const BalancedOrder order(set, 3, 8, positions);
    std::map<std::int32_t, std::vector<std::int64_t>> drawn;
    for (std::int64_t place = 0; place < 900; ++place) {
      const auto index = order.index(place / positions, place % positions);
      drawn[set.label(index)].push_back(index);
    }
    for (const auto& [label, size] : {std::pair<std::int32_t, std::size_t>{0, 50}, {1, 7}, {2, 3}}) {
      const auto& samples = drawn[label];
      ASSERT_EQ(samples.size(), 300u);
      std::set<std::vector<std::int64_t>> cycles;
      for (std::size_t begin = 0; begin + size <= samples.size(); begin += size) {
        const std::vector cycle(samples.begin() + static_cast<std::ptrdiff_t>(begin),
                                samples.begin() + static_cast<std::ptrdiff_t>(begin + size));
        EXPECT_EQ(std::set(cycle.begin(), cycle.end()).size(), size) << "each sample once in a cycle";
        cycles.insert(cycle);
      }
      EXPECT_GT(cycles.size(), 4u) << "cycles have orders of their own";
    }
  }
}

TEST(BalancedOrder, FollowsSeedAndEpoch) {
  const LabelledDataset set({40, 20});
  const auto epoch = [&](std::uint64_t seed, std::int64_t number, Order order = Order::shuffled) {
    const Sampler sampler(set.size(), std::make_shared<BalancedOrder>(set, 2, seed, set.size()), order);
    std::vector<std::int64_t> indices;
    for (std::int64_t i = 0; i < set.size(); ++i) indices.push_back(sampler.index(number, i));
    return indices;
  };
  EXPECT_EQ(epoch(1, 0), epoch(1, 0));
  EXPECT_NE(epoch(1, 0), epoch(2, 0));
  EXPECT_NE(epoch(1, 0), epoch(1, 1));
  EXPECT_EQ(epoch(1, 0), epoch(1, 1, Order::shuffled_once)) << "as of a sampler that is not told the epoch";
}

TEST(ClassBalance, SaysHowOftenSamplesCome) {
  const Source source = source_of({80, 0, 20}, {"cat", "none", "owl"});
  EXPECT_EQ(
      balanced_sentence(source, 96),
      "an epoch has 96 draws, 48 of each of 2 classes; in it a sample of 'owl' (20) comes 2.4 times, one of "
      "'cat' (80) 0.6 times");
  EXPECT_THAT(balanced_sentence(source, 97), HasSubstr("48 or 49 of each"));
}

}  // namespace
}  // namespace paceline::data
