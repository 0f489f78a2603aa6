#include "data/formats/cifar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "data/files.h"

namespace paceline::data {
namespace {

using testing::HasSubstr;

constexpr std::size_t kRecord = 3073;

/// `records` records; record r of file f has the label (f + r) % 10 and planes that tell colour, place and
/// record.
Bytes records(int file, int count) {
  Bytes bytes;
  for (int r = 0; r < count; ++r) {
    bytes.push_back(static_cast<std::uint8_t>((file + r) % 10));
    for (int i = 0; i < 3072; ++i)
      bytes.push_back(static_cast<std::uint8_t>(i / 1024 * 80 + i % 1024 / 13 + file + 2 * r));
  }
  return bytes;
}

/// Training files 1 .. 5 with 1 .. 5 records, a test file with 3.
void write_small_cifar(const std::filesystem::path& folder) {
  for (int f = 1; f <= 5; ++f)
    write_bytes(folder / ("data_batch_" + std::to_string(f) + ".bin"), records(f, f));
  write_bytes(folder / "test_batch.bin", records(6, 3));
  write_bytes(folder / "other.bin", records(7, 2));
}

TEST(Cifar, ReadsTheRecordsOfAllFilesInOrderAsInterleavedPixels) {
  const TemporaryDirectory folder;
  write_small_cifar(folder.path());
  const Source source = open("cifar10:" + folder.path().string());
  ASSERT_EQ(source.train->size(), 15);
  ASSERT_EQ(source.test->size(), 3);
  EXPECT_EQ(source.classes(), 10);
  EXPECT_EQ(source.resident_bytes, 18 * 3073);
  EXPECT_FALSE(source.synthetic);
  Bytes pixels(3072);
  std::int64_t index = 0;
  for (int f = 1; f <= 5; ++f)
    for (int r = 0; r < f; ++r) {
      EXPECT_EQ(source.train->read(index++, pixels), (f + r) % 10);
      for (int i = 0; i < 1024; ++i)
        for (int c = 0; c < 3; ++c)
          ASSERT_EQ(pixels[static_cast<std::size_t>(3 * i + c)],
                    static_cast<std::uint8_t>(c * 80 + i / 13 + f + 2 * r));
    }
}

TEST(Cifar, TakesTheFolderThatTheArchiveMakesAndAnotherTestFile) {
  const TemporaryDirectory folder;
  write_small_cifar(folder.path() / "cifar-10-batches-bin");
  const Source source = open("cifar10:" + folder.path().string() + ",test=other.bin");
  EXPECT_EQ(source.train->size(), 15);
  EXPECT_EQ(source.test->size(), 2);
  EXPECT_THAT(source.description, HasSubstr("other.bin"));
}

TEST(Cifar, TrainsOnAPartOfItsImages) {
  const TemporaryDirectory folder;
  write_small_cifar(folder.path());
  const std::string spec = "cifar10:" + folder.path().string();
  const Source part = open(spec + ",train=6");
  EXPECT_EQ(part.train->size(), 6);
  EXPECT_EQ(part.test->size(), 3);
  EXPECT_THAT(part.description, HasSubstr("trained on 6 of them"));
  EXPECT_THAT(error_of([&] { (void)open(spec + ",train=16"); }).text, HasSubstr("from 1 to 15, not '16'"));
}

TEST(Cifar, SaysWhatIsWrongWithAFile) {
  const TemporaryDirectory folder;
  const auto path = [&](const char* name) { return folder.path() / name; };
  const auto said = [&](const std::string& options = "") {
    const auto error = error_of([&] { (void)open("cifar10:" + folder.path().string() + options); });
    EXPECT_EQ(error.kind, base::ErrorKind::data);
    return error.text;
  };
  EXPECT_THAT(said(), testing::AllOf(HasSubstr("there is no data_batch_1.bin in " + folder.path().string()),
                                     HasSubstr("give the folder")));

  write_small_cifar(folder.path());
  EXPECT_THAT(said(",test=missing.bin"),
              testing::AllOf(HasSubstr(path("missing.bin").string()), HasSubstr("No such file")));
  EXPECT_THAT(said(",test=."), HasSubstr("Is a directory"));

  std::filesystem::remove(path("data_batch_4.bin"));
  EXPECT_THAT(said(),
              testing::AllOf(HasSubstr(path("data_batch_4.bin").string()), HasSubstr("No such file")));

  Bytes bytes = records(4, 4);
  bytes.resize(bytes.size() - 10);
  write_bytes(path("data_batch_4.bin"), bytes);
  EXPECT_EQ(
      said(),
      path("data_batch_4.bin").string() +
          ": a CIFAR-10 file is a whole number of records of 3073 bytes, but this one has 12282 bytes (3 "
          "records and 3063 bytes); it is truncated or of another format: fetch it again");
  write_bytes(path("data_batch_4.bin"), {});
  EXPECT_THAT(said(), HasSubstr("has 0 bytes"));

  for (const std::size_t record : {0u, 2u, 3u}) {
    bytes = records(4, 4);
    bytes[record * kRecord] = 10;
    write_bytes(path("data_batch_4.bin"), bytes);
    EXPECT_THAT(said(),
                testing::AllOf(HasSubstr(path("data_batch_4.bin").string()),
                               HasSubstr("record " + std::to_string(record) + " (from 0) has the label 10"),
                               HasSubstr("labels 0 to 9"), HasSubstr("fetch it again")));
  }
}

TEST(Cifar, ReadsTheRealFiles) {
  std::string reason;
  const auto data = real_data(reason);
  if (!data) GTEST_SKIP() << reason;
  const Source source = open("cifar10:" + data->string());
  const Source exact = open("cifar10:" + data->string() + ",test=test_batch_exact1k.bin");
  ASSERT_EQ(source.train->size(), 50000);
  ASSERT_EQ(source.test->size(), 10000);
  ASSERT_EQ(exact.test->size(), 1000);
  Bytes pixels(3072);
  std::array<int, 10> histogram{}, test_histogram{};
  std::array<double, 3> sum{}, sum_of_squares{};
  std::vector<int> first;
  for (std::int64_t i = 0; i < 50000; ++i) {
    const int label = source.train->read(i, pixels);
    ++histogram[static_cast<std::size_t>(label)];
    if (i < 10) first.push_back(label);
    for (std::size_t p = 0; p < 3072; ++p) {
      const double value = pixels[p] / 255.0;
      sum[p % 3] += value;
      sum_of_squares[p % 3] += value * value;
    }
  }
  for (std::int64_t i = 0; i < 10000; ++i)
    ++test_histogram[static_cast<std::size_t>(source.test->read(i, pixels))];
  EXPECT_THAT(histogram, testing::Each(5000));
  EXPECT_THAT(test_histogram, testing::Each(1000));
  EXPECT_THAT(first, testing::ElementsAre(6, 9, 9, 4, 1, 1, 2, 7, 8, 3));  // frog, truck, truck, deer, ...
  EXPECT_EQ(exact.test->read(0, pixels), 3);                               // the cat everybody knows
  for (std::size_t c = 0; c < 3; ++c) {  // the normalisation is that of these very files
    const double mean = sum[c] / (50000.0 * 1024),
                 variance = sum_of_squares[c] / (50000.0 * 1024) - mean * mean;
    EXPECT_NEAR(source.mean[c], mean, 1e-4);
    EXPECT_NEAR(source.stddev[c], std::sqrt(variance), 1e-4);
  }
}

}  // namespace
}  // namespace paceline::data
