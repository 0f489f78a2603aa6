#include "data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/dataset.h"
#include "fakes.h"

namespace paceline::data {
namespace {

TEST(EvaluationPart, CoversEverySampleOnce) {
  for (const std::int64_t size : {0, 1, 7, 10, 10000})
    for (const int world : {1, 2, 3, 8, 13}) {
      std::int64_t next = 0;
      for (int rank = 0; rank < world; ++rank) {
        const SampleRange part = evaluation_part(size, rank, world);
        EXPECT_EQ(part.begin, next);
        EXPECT_LE(part.end - part.begin, size / world + 1);
        next = part.end;
      }
      EXPECT_EQ(next, size);
    }
}

TEST(EvaluationPart, OfWholeBatchesASampleHasItsPlaceForAnyNumberOfRanks) {
  for (const std::int64_t size : {0, 1, 7, 16, 26, 10000})
    for (const std::int64_t batch : {1, 8, 128})
      for (const int world : {1, 2, 3, 8}) {
        std::int64_t next = 0;
        for (int rank = 0; rank < world; ++rank) {
          const SampleRange part = evaluation_part(size, rank, world, batch);
          EXPECT_EQ(part.begin, next);
          EXPECT_TRUE(part.begin == part.end || part.begin % batch == 0) << size << batch << world;
          EXPECT_LE(part.end - part.begin, size / world + 2 * batch);
          next = part.end;
        }
        EXPECT_EQ(next, size);
      }
}

// For an engine that has the images: what the draws show of them is what would be prepared otherwise.
TEST(EvaluationBatches, GivesDrawsThatShowTheImagesThatItWouldPrepare) {
  const NumberedDataset dataset(60);
  const Augment augment = full_augment(dataset.format());
  const auto values = static_cast<std::size_t>(dataset.format().bytes());
  std::vector<std::int32_t> labels;
  for (std::int32_t i = 7; i < 27; ++i) labels.push_back(i);
  constexpr std::int64_t kFirst = 1000;  // where sample 7 stands among the stored images
  for (const int views : {1, 2, 6})
    for (const int batch : {1, 8, 100}) {
      EvaluationOptions options{.begin = 7, .end = 27, .batch = batch, .views = views};
      EvaluationBatches prepared(dataset, augment, options);
      options.draws = true;
      options.first_draw = kFirst;
      options.labels = labels;
      EvaluationBatches drawn(dataset, augment, options);
      std::vector<std::uint8_t> pixels(values);
      for (int pass = 0; pass < 2; ++pass)
        while (const EvaluationBatch* want = prepared.next()) {
          const EvaluationBatch* got = drawn.next();
          ASSERT_NE(got, nullptr);
          EXPECT_EQ(got->first, want->first);
          EXPECT_TRUE(std::ranges::equal(got->labels, want->labels));
          ASSERT_EQ(got->draws.size() * values, want->images.size());
          std::vector<float> shown(want->images.size());
          for (std::size_t i = 0; i < got->draws.size(); ++i) {
            dataset.read(7 + got->draws[i].index - kFirst, pixels);
            augment.show(pixels, got->draws[i], std::span(shown).subspan(i * values, values));
          }
          EXPECT_TRUE(std::ranges::equal(shown, want->images));
          if (want->first + want->count() == 27) {
            EXPECT_EQ(drawn.next(), nullptr) << "the pass ends where the other does";
          }
        }
      EXPECT_EQ(drawn.samples(), 20);
      EXPECT_EQ(EvaluationBatches::planned_bytes(dataset.format(), options),
                std::min(batch, 20) * views * 16);
    }
}

TEST(EvaluationBatches, YieldsItsPartOnceInOrderAndThenAgain) {
  const NumberedDataset dataset(60);
  const Augment augment = full_augment(dataset.format());
  for (const auto& [begin, end] : {std::pair{0, 60}, {0, 1}, {7, 27}, {59, 60}, {20, 40}, {30, 30}})
    for (const int batch : {1, 3, 10, 20, 1000})
      for (const int threads : {1, 3}) {
        EvaluationBatches batches(dataset, augment,
                                  {.begin = begin, .end = end, .batch = batch, .threads = threads});
        for (int pass = 0; pass < 3; ++pass) {
          std::int64_t next = begin;
          while (const EvaluationBatch* got = batches.next()) {
            EXPECT_EQ(got->first, next);
            EXPECT_EQ(got->count(), std::min<std::int64_t>(batch, end - next));
            for (const auto label : got->labels) EXPECT_EQ(label, next++);
          }
          EXPECT_EQ(next, end);
        }
      }
}

TEST(EvaluationBatches, ReadsNothingBeyondThePassesThatWereAskedFor) {
  Source source;
  source.test = std::make_unique<NumberedDataset>(50);
  const auto& counted = count_test_reads(source);
  const Augment augment = full_augment(counted.format());
  for (const int passes : {1, 3})
    for (const int batch : {1, 7, 50, 1000})
      for (const int threads : {1, 3}) {
        const auto before = counted.reads();
        EvaluationBatches batches(
            *source.test, augment,
            {.begin = 10, .end = 40, .batch = batch, .threads = threads, .passes = passes});
        for (int pass = 0; pass < passes; ++pass) {
          std::int64_t next = 10;
          while (const EvaluationBatch* got = batches.next())
            for (const auto label : got->labels) EXPECT_EQ(label, next++);
          EXPECT_EQ(next, 40);
        }
        batches.wait_until_prepared();
        EXPECT_EQ(counted.reads() - before, 30 * passes) << batch << " a batch, " << threads << " threads";
      }
}

TEST(CountedDataset, CountsImagesAndNotLabels) {
  auto set = std::make_unique<NumberedDataset>(5);
  const CountedDataset counted(std::move(set));
  EXPECT_EQ(counted.size(), 5);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(counted.format().bytes()));
  EXPECT_EQ(counted.read(3, pixels), 3);
  EXPECT_EQ(counted.read(3, pixels), 3);
  EXPECT_EQ(counted.label(4), 4);
  EXPECT_EQ(counted.sample_name(4), "");
  EXPECT_EQ(counted.reads(), 2);
}

TEST(EvaluationBatches, DoesNotAugment) {
  const NumberedDataset dataset(30);
  const Augment augment = full_augment(dataset.format());
  EvaluationBatches batches(dataset, augment, {.begin = 0, .end = 30, .batch = 30});
  const EvaluationBatch* batch = batches.next();
  ASSERT_NE(batch, nullptr);
  const auto bytes = static_cast<std::size_t>(dataset.format().bytes());
  std::vector<std::uint8_t> pixels(bytes);
  std::vector<float> expected(bytes);
  for (std::int64_t i = 0; i < 30; ++i) {
    dataset.read(i, pixels);
    augment.evaluate(pixels, expected);
    EXPECT_THAT(batch->images.subspan(static_cast<std::size_t>(i) * bytes, bytes),
                testing::ElementsAreArray(expected));
  }
}

TEST(EvaluationBatches, ShowsEverySampleInAllItsViews) {
  const NumberedDataset dataset(11);
  const Augment augment = full_augment(dataset.format());
  const auto bytes = static_cast<std::size_t>(dataset.format().bytes());
  for (const int views : {2, 6}) {
    EvaluationBatches batches(dataset, augment, {.begin = 2, .end = 11, .batch = 4, .views = views});
    std::vector<std::uint8_t> pixels(bytes);
    std::vector<float> expected(bytes);
    std::int64_t sample = 2;
    while (const EvaluationBatch* batch = batches.next()) {
      ASSERT_EQ(batch->images.size(), static_cast<std::size_t>(batch->count() * views) * bytes);
      for (std::size_t at = 0; at < batch->images.size(); at += bytes) {
        const auto item = static_cast<int>(at / bytes);
        dataset.read(sample + item / views, pixels);
        EXPECT_EQ(batch->labels[static_cast<std::size_t>(item / views)], sample + item / views);
        augment.show(pixels, Augment::view_draw(0, item % views), expected);
        EXPECT_THAT(batch->images.subspan(at, bytes), testing::ElementsAreArray(expected));
      }
      sample += batch->count();
    }
    EXPECT_EQ(sample, 11);
  }
}

TEST(EvaluationBatches, PreparesTheNextPassAhead) {
  const NumberedDataset dataset(20);
  const Augment augment = full_augment(dataset.format());
  EvaluationBatches batches(dataset, augment, {.begin = 0, .end = 20, .batch = 10, .prefetch = 3});
  batches.wait_until_prepared();
  EXPECT_EQ(dataset.reads, 40);
  while (batches.next()) {
  }
  EXPECT_EQ(batches.wait_s(), 0);
}

TEST(EvaluationBatches, TakesNoMoreMemoryThanItsPart) {
  const ImageFormat format{.height = 4, .width = 4, .channels = 1};
  EXPECT_EQ(EvaluationBatches::planned_bytes(format, {.begin = 0, .end = 5, .batch = 1000}), 3 * 5 * 68 + 16);
  EXPECT_EQ(EvaluationBatches::planned_bytes(format, {.begin = 5, .end = 5, .batch = 1000}), 0);
}

TEST(EvaluationBatches, ThrowsWhatReadingThrew) {
  NumberedDataset dataset(20);
  dataset.on_read = [](std::int64_t index) {
    if (index == 12) base::fail(base::ErrorKind::data, "sample 12 is unreadable");
  };
  const Augment augment = full_augment(dataset.format());
  EvaluationBatches batches(dataset, augment, {.begin = 0, .end = 20, .batch = 10});
  EXPECT_EQ(batches.next()->first, 0);
  EXPECT_THROW((void)batches.next(), base::Error);
}

}  // namespace
}  // namespace paceline::data
