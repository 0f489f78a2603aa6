#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "data/dataset.h"
#include "data/files.h"
#include "data/formats/formats.h"
#include "data/formats/pickle.h"
#include "data/pickles.h"

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

/// Records of CIFAR-100; record r has the coarse label (start + r) % 20 and the fine label (start + 7 r) %
/// 100.
Bytes records_of_100(int start, int count) {
  Bytes bytes;
  for (int r = 0; r < count; ++r) {
    bytes.push_back(static_cast<std::uint8_t>((start + r) % 20));
    bytes.push_back(static_cast<std::uint8_t>((start + 7 * r) % 100));
    for (int i = 0; i < 3072; ++i)
      bytes.push_back(static_cast<std::uint8_t>(i / 1024 * 80 + i % 1024 / 13 + start + 2 * r));
  }
  return bytes;
}

TEST(Cifar, ReadsFineAndCoarseLabelsOf100) {
  const TemporaryDirectory folder;
  for (const auto& where : {folder.path(), folder.path() / "cifar-100-binary"}) {
    write_bytes(where / "train.bin", records_of_100(3, 30));
    write_bytes(where / "test.bin", records_of_100(5, 4));
  }
  const auto binary = folder.path() / "cifar-100-binary";
  std::filesystem::remove(folder.path() / "train.bin");
  for (const auto& given : {folder.path(), binary}) {
    const Source fine = open("cifar100:" + given.string()),
                 coarse = open("cifar100:" + given.string() + ",labels=coarse");
    EXPECT_EQ(fine.classes(), 100);
    EXPECT_EQ(coarse.classes(), 20);
    EXPECT_EQ(fine.class_names[1], "aquarium_fish");
    EXPECT_EQ(fine.class_names[99], "worm");
    EXPECT_EQ(coarse.class_names[19], "vehicles_2");
    ASSERT_EQ(fine.train->size(), 30);
    ASSERT_EQ(fine.test->size(), 4);
    EXPECT_EQ(fine.resident_bytes, 34 * 3074);
    Bytes pixels(3072), same(3072);
    for (int r = 0; r < 30; ++r) {
      EXPECT_EQ(fine.train->read(r, pixels), (3 + 7 * r) % 100);
      EXPECT_EQ(coarse.train->read(r, same), (3 + r) % 20);
      EXPECT_EQ(pixels, same);
      for (int i = 0; i < 1024; ++i)
        for (int c = 0; c < 3; ++c)
          ASSERT_EQ(pixels[static_cast<std::size_t>(3 * i + c)],
                    static_cast<std::uint8_t>(c * 80 + i / 13 + 3 + 2 * r));
    }
  }
}

TEST(Cifar, SaysWhatIsWrongWith100) {
  const TemporaryDirectory folder;
  const auto said = [&](const std::string& options = "") {
    const auto error = error_of([&] { (void)open("cifar100:" + folder.path().string() + options); });
    EXPECT_EQ(error.kind, base::ErrorKind::data);
    return error.text;
  };
  EXPECT_THAT(said(), testing::AllOf(HasSubstr("there is no train.bin in " + folder.path().string()),
                                     HasSubstr("cifar-100-python"), HasSubstr("cifar-100-binary.tar.gz")));
  write_bytes(folder.path() / "train.bin", records_of_100(3, 4));
  EXPECT_THAT(said(), HasSubstr((folder.path() / "test.bin").string()));
  write_bytes(folder.path() / "test.bin", records_of_100(3, 2));
  // Both labels are checked, whichever is used.
  for (const auto& [byte, value, which] :
       {std::tuple{3074, 20, "20, but CIFAR-100 has labels 0 to 19 in its first"},
        {3075, 100, "100, but CIFAR-100 has labels 0 to 99 in its second"}}) {
    Bytes bytes = records_of_100(3, 4);
    bytes[static_cast<std::size_t>(byte)] = static_cast<std::uint8_t>(value);
    write_bytes(folder.path() / "train.bin", bytes);
    for (const char* labels : {"", ",labels=coarse"})
      EXPECT_THAT(said(labels),
                  testing::AllOf(HasSubstr("record 1 (from 0) has the label"), HasSubstr(which)));
  }
  for (std::size_t bytes = 0; bytes < 3 * 3074; bytes += 41) {
    Bytes cut = records_of_100(3, 3);
    cut.resize(bytes);
    write_bytes(folder.path() / "train.bin", cut);
    EXPECT_THAT(said(), HasSubstr("whole number of records of 3074 bytes")) << bytes;
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

namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string planes(int images, int start) {
  std::string pixels;
  for (int i = 0; i < images * 3072; ++i)
    pixels += static_cast<char>((start + i / 1024 * 40 + i % 251) & 0xff);
  return pixels;
}

CifarPickle batch(int images, int start) {
  CifarPickle made;
  for (int i = 0; i < images; ++i) made.labels.push_back((start + 3 * i) % 10);
  made.pixels = planes(images, start);
  return made;
}

/// Batches 1 .. 5 with 2 .. 6 images, a test batch with 300: more values than one byte can number.
void write_python_version(const std::filesystem::path& folder) {
  for (int f = 1; f <= 5; ++f)
    write_bytes(folder / ("data_batch_" + std::to_string(f)), cifar_pickle(batch(f + 1, f)));
  write_bytes(folder / "test_batch", cifar_pickle(batch(300, 6)));
}

TEST(CifarPython, IsTheSameDataSetAsTheBinaryVersion) {
  const TemporaryDirectory python, binary;
  write_python_version(python.path() / "cifar-10-batches-py");
  for (int f = 1; f <= 6; ++f) {
    const auto made = f == 6 ? batch(300, 6) : batch(f + 1, f);
    Bytes records;
    for (std::size_t i = 0; i < made.labels.size(); ++i) {
      records.push_back(static_cast<std::uint8_t>(made.labels[i]));
      for (std::size_t p = 0; p < 3072; ++p)
        records.push_back(static_cast<std::uint8_t>(made.pixels[i * 3072 + p]));
    }
    write_bytes(binary.path() / (f == 6 ? "test_batch.bin" : "data_batch_" + std::to_string(f) + ".bin"),
                records);
  }
  // Both DIR itself and the folder that DIR holds.
  for (const auto& path : {python.path(), python.path() / "cifar-10-batches-py"}) {
    const Source read = open("cifar10:" + path.string()), other = open("cifar10:" + binary.path().string());
    ASSERT_EQ(read.train->size(), 2 + 3 + 4 + 5 + 6);
    ASSERT_EQ(read.test->size(), 300);
    EXPECT_THAT(read.description, HasSubstr("python version"));
    EXPECT_EQ(read.mean, other.mean);
    Bytes a(3072), b(3072);
    for (const auto part : {&Source::train, &Source::test})
      for (std::int64_t i = 0; i < (read.*part)->size(); ++i) {
        ASSERT_EQ((read.*part)->read(i, a), (other.*part)->read(i, b));
        ASSERT_EQ(a, b);
      }
  }
}

TEST(CifarPython, HoldsBothLabelsOfCifar100) {
  const TemporaryDirectory folder;
  CifarPickle made{
      .labels = {99, 0, 50}, .pixels = planes(3, 2), .key = "fine_labels", .coarse_labels = {0, 19, 7}};
  for (const char* name : {"train", "test"})
    write_bytes(folder.path() / "cifar-100-python" / name, cifar_pickle(made));
  const auto labels_of = [&](const std::string& options) {
    const Source source = open("cifar100:" + folder.path().string() + options);
    EXPECT_THAT(source.description, HasSubstr("python version"));
    std::vector<std::int32_t> labels;
    for (std::int64_t i = 0; i < source.train->size(); ++i) labels.push_back(source.train->label(i));
    return labels;
  };
  EXPECT_THAT(labels_of(""), testing::ElementsAre(99, 0, 50));
  EXPECT_THAT(labels_of(",labels=coarse"), testing::ElementsAre(0, 19, 7));
  made.coarse_labels[1] = 20;
  write_bytes(folder.path() / "cifar-100-python" / "train", cifar_pickle(made));
  const auto error = error_of([&] { (void)open("cifar100:" + folder.path().string() + ",labels=coarse"); });
  EXPECT_EQ(error.kind, base::ErrorKind::data);
  EXPECT_THAT(error.text, HasSubstr("label 1 (from 0) is 20, but CIFAR-100 has labels 0 to 19"));
}

TEST(CifarPython, TheBinaryVersionIsTakenWhereBothAre) {
  const TemporaryDirectory folder;
  write_python_version(folder.path() / "cifar-10-batches-py");
  for (int f = 1; f <= 5; ++f)
    write_bytes(folder.path() / ("data_batch_" + std::to_string(f) + ".bin"), Bytes(3073));
  write_bytes(folder.path() / "test_batch.bin", Bytes(3073));
  EXPECT_EQ(open("cifar10:" + folder.path().string()).train->size(), 5);
}

TEST(CifarPython, AWrongFolderIsToldHowToGetTheData) {
  const TemporaryDirectory folder;
  const auto said = [&] { return error_of([&] { (void)open("cifar10:" + folder.path().string()); }); };
  EXPECT_EQ(said().kind, base::ErrorKind::data);
  EXPECT_THAT(said().text, AllOf(HasSubstr("paceline data get cifar10"), HasSubstr("cifar-10-batches-py")));
  write_bytes(folder.path() / "cifar-10-python.tar.gz", {1});
  EXPECT_THAT(said().text, HasSubstr("unpack it"));
  EXPECT_THAT(error_of([&] { (void)open("mnist:" + folder.path().string()); }).text,
              HasSubstr("paceline data get mnist"));
}

TEST(CifarPython, TakesNumPysNewName) {
  auto made = batch(1, 1);
  made.module = "numpy._core.multiarray";
  const Bytes bytes = cifar_pickle(made);
  EXPECT_EQ(read_cifar_python("f", bytes).pixels.size(), 3072u);
}

std::string said_of(const Bytes& bytes) {
  const auto error = error_of([&] { (void)read_cifar_python("folder/data_batch_1", bytes); });
  EXPECT_EQ(error.kind, base::ErrorKind::data);
  EXPECT_THAT(error.text,
              AllOf(HasSubstr("folder/data_batch_1: at byte "), HasSubstr("paceline data get cifar10")));
  return error.text;
}

TEST(CifarPython, NamesFileAndOffsetOfWhatItDoesNotKnow) {
  const auto changed = [](auto change) {
    auto made = batch(2, 1);
    change(made);
    return cifar_pickle(made);
  };
  EXPECT_THAT(said_of(changed([](auto& b) { b.labels[1] = 10; })), HasSubstr("label 1 (from 0) is 10"));
  EXPECT_THAT(said_of(changed([](auto& b) { b.labels[0] = -1; })), HasSubstr("label 0 (from 0) is -1"));
  EXPECT_THAT(said_of(changed([](auto& b) {
                b.labels.clear();
                b.pixels.clear();
              })),
              HasSubstr("no labels"));
  EXPECT_THAT(said_of(changed([](auto& b) { b.labels.pop_back(); })),
              HasSubstr("1 images need 3072 bytes, but the array has 6144"));
  EXPECT_THAT(said_of(changed([](auto& b) { b.columns = 784; })), HasSubstr("of 3072 bytes"));
  EXPECT_THAT(said_of(changed([](auto& b) { b.type = "i4"; })), HasSubstr("but has 'i4'"));
  EXPECT_THAT(said_of(changed([](auto& b) { b.module = "os"; })),
              HasSubstr("'os._reconstruct' is not one of the functions"));

  EXPECT_THAT(said_of({}), HasSubstr("at byte 0: a pickle of protocol 2 begins"));
  EXPECT_THAT(said_of({0x80, 4, '.'}), HasSubstr("protocol 2"));
  EXPECT_THAT(said_of({0x80, 2, 'i'}), HasSubstr("at byte 2: the operation 0x69"));
  EXPECT_THAT(said_of({0x80, 2, '}', 'q', 1, '.'}), HasSubstr("has no 'labels'"));
  EXPECT_THAT(said_of({0x80, 2, 'K', 1, '.'}),
              HasSubstr("a dictionary with 'labels' is needed, but this is a whole number"));
  EXPECT_THAT(said_of({0x80, 2, 'h', 7}), HasSubstr("memo entry 7 was never stored"));
  EXPECT_THAT(said_of({0x80, 2, '}', '.', 'x'}),
              HasSubstr("at byte 4: the pickle is at its end, but the file goes on"));
  EXPECT_THAT(said_of({0x80, 2, 'e'}), HasSubstr("there is no mark"));
  EXPECT_THAT(said_of({0x80, 2, '}', '(', 'K', 1, 'u'}), HasSubstr("a key without a value"));
  EXPECT_THAT(said_of({0x80, 2, '}', '}', '.'}), HasSubstr("values left over"));
  EXPECT_THAT(said_of({0x80, 2, 'T', 0xff, 0xff, 0xff, 0xff}),
              HasSubstr("4294967295 bytes more are announced"));
  EXPECT_THAT(said_of({0x80, 2, 'c', 'a', 'b'}), HasSubstr("a name must be a line"));
}

// Cut anywhere, and with any byte changed to a few others, it is read or refused, and never more than that.
TEST(CifarPython, IsRefusedCutAnywhere) {
  const Bytes whole = cifar_pickle(batch(1, 2));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    if (length > 400 && length + 400 < whole.size()) continue;  // inside the pixels nothing changes
    (void)said_of(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)));
  }
  for (std::size_t at = 0; at < whole.size(); at = at == 300 ? whole.size() - 200 : at + 1)
    for (const std::uint8_t value :
         {std::uint8_t{0}, std::uint8_t{'('}, std::uint8_t{'R'}, std::uint8_t{0xff}}) {
      Bytes bytes = whole;
      bytes[at] = value;
      try {
        EXPECT_EQ(read_cifar_python("f", bytes).labels.size(), 1u);
      } catch (const base::Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("f: at byte "));
      }
    }
}

TEST(CifarPython, HoldsNoMoreValuesThanAFileMayHave) {
  Bytes bytes{0x80, 2};
  bytes.resize(Pickle::kMostValues + 10, ']');
  EXPECT_THAT(said_of(bytes), HasSubstr("more than 1000000 values"));
}

}  // namespace
}  // namespace paceline::data
