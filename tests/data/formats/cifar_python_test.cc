#include "data/formats/cifar_python.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/dataset.h"
#include "data/files.h"
#include "data/formats/pickle.h"
#include "data/pickles.h"

namespace paceline::data {
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
