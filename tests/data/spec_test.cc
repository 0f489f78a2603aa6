#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>

#include "data/dataset.h"
#include "data/spec.h"
#include "files.h"

namespace paceline::data {
namespace {

using testing::HasSubstr;

std::vector<std::int32_t> labels_of(std::initializer_list<int> per_class) {
  std::vector<std::int32_t> labels;
  std::int32_t label = 0;
  for (const int count : per_class) labels.insert(labels.end(), static_cast<std::size_t>(count), label++);
  return labels;
}

TEST(StratifiedCut, TakesThePartOfEveryClassAndLosesNothing) {
  const auto labels = labels_of({100, 7, 1, 2, 30});
  for (const double fraction : {0.1, 0.2, 0.5, 0.9}) {
    const Cut cut = stratified_cut(labels, fraction, CutFor::validation);
    std::vector<int> seen(labels.size());
    std::vector<int> taken(5);
    for (const auto index : cut.rest) ++seen[static_cast<std::size_t>(index)];
    for (const auto index : cut.part) {
      ++seen[static_cast<std::size_t>(index)];
      ++taken[static_cast<std::size_t>(labels[static_cast<std::size_t>(index)])];
    }
    EXPECT_THAT(seen, testing::Each(1));
    EXPECT_EQ(taken[0], std::lround(100 * fraction));
    EXPECT_EQ(taken[1], std::min(6l, std::lround(7 * fraction)));
    EXPECT_EQ(taken[2], 0);  // the only one of its class stays to be trained on
    EXPECT_EQ(taken[4], std::lround(30 * fraction));
    EXPECT_TRUE(std::is_sorted(cut.part.begin(), cut.part.end()));
  }
}

TEST(StratifiedCut, ChoosesApartForEachPurpose) {
  const auto labels = labels_of({200});
  const auto validation = stratified_cut(labels, 0.5, CutFor::validation).part;
  const auto test = stratified_cut(labels, 0.5, CutFor::test).part;
  std::vector<std::int64_t> both;
  std::set_intersection(validation.begin(), validation.end(), test.begin(), test.end(),
                        std::back_inserter(both));
  EXPECT_GT(both.size(), 30u);  // 50 expected, standard deviation 3.5
  EXPECT_LT(both.size(), 70u);
}

// The numbers stand here so that a change of the hash, which would move images between the parts of every
// study, is seen.
TEST(StratifiedCut, IsTheSameForEver) {
  const Cut cut = stratified_cut(labels_of({10, 10}), 0.3, CutFor::validation);
  EXPECT_THAT(cut.part, testing::ElementsAre(1, 7, 9, 10, 16, 17));
}

/// Sources of 10 classes of 30 training images each (synthetic blocks of ten have every class once).
TEST(CutTraining, KeepsEveryClassesShareAndGrows) {
  std::set<std::string> smaller;
  for (const std::int64_t count : {1, 7, 10, 95, 100, 299}) {
    Source source = open("synthetic,train=300,test=10");
    cut_training(source, count);
    ASSERT_EQ(source.train->size(), count);
    std::vector<int> of_class(10);
    std::set<std::string> images;
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(source.train->format().bytes()));
    for (std::int64_t i = 0; i < count; ++i) {
      ++of_class[static_cast<std::size_t>(source.train->read(i, pixels))];
      images.emplace(pixels.begin(), pixels.end());
    }
    EXPECT_EQ(static_cast<std::int64_t>(images.size()), count) << "an image comes twice";
    const auto [least, most] = std::minmax_element(of_class.begin(), of_class.end());
    EXPECT_LE(*most - *least, 1) << count;
    EXPECT_TRUE(std::includes(images.begin(), images.end(), smaller.begin(), smaller.end())) << count;
    EXPECT_THAT(source.notes, testing::Contains(HasSubstr("train=" + std::to_string(count))));
    smaller = std::move(images);
  }
}

TEST(CutTraining, OfAllImagesIsTheSetItself) {
  Source source = open("synthetic,train=20,test=10");
  const Dataset* const whole = source.train.get();
  cut_training(source, 20);
  EXPECT_EQ(source.train.get(), whole);
  EXPECT_TRUE(source.notes.empty());
}

TEST(Open, CutsAValidationSetOfAnyDataSet) {
  const Source whole = open("synthetic,train=1000,test=10");
  const Source cut = open("synthetic,train=1000,test=10", {.validation_split = 0.2});
  ASSERT_TRUE(cut.validation);
  EXPECT_EQ(cut.train->size(), 800);
  EXPECT_EQ(cut.validation->size(), 200);
  EXPECT_EQ(cut.test->size(), 10);
  EXPECT_THAT(cut.notes, testing::Contains(HasSubstr("200 of 1000")));
  std::set<std::string> training;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(cut.train->format().bytes()));
  for (std::int64_t i = 0; i < cut.train->size(); ++i) {
    EXPECT_EQ(cut.train->read(i, pixels), cut.train->label(i));
    training.emplace(pixels.begin(), pixels.end());
  }
  for (std::int64_t i = 0; i < cut.validation->size(); ++i) {
    cut.validation->read(i, pixels);
    EXPECT_FALSE(training.contains(std::string(pixels.begin(), pixels.end()))) << i;
  }
}

}  // namespace
}  // namespace paceline::data
