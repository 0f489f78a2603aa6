#include "data/formats/formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "data/files.h"

namespace paceline::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

void append_big_endian(Bytes& bytes, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(value >> shift));
}

Bytes idx_images(std::uint32_t count, std::uint32_t side, std::uint32_t magic = 2051) {
  Bytes bytes;
  for (const auto word : {magic, count, side, side}) append_big_endian(bytes, word);
  for (std::uint32_t i = 0; i < count * side * side; ++i)
    bytes.push_back(static_cast<std::uint8_t>(i * 3 + i / 256));
  return bytes;
}

Bytes idx_labels(std::uint32_t count, std::uint32_t magic = 2049) {
  Bytes bytes;
  for (const auto word : {magic, count}) append_big_endian(bytes, word);
  for (std::uint32_t i = 0; i < count; ++i) bytes.push_back(static_cast<std::uint8_t>(i % 10));
  return bytes;
}

constexpr const char* kTrainImages = "train-images-idx3-ubyte";
constexpr const char* kTrainLabels = "train-labels-idx1-ubyte";

class Idx : public testing::Test {
 protected:
  Idx() {
    write(kTrainImages, idx_images(12, 7));
    write(kTrainLabels, idx_labels(12));
    write("t10k-images-idx3-ubyte", idx_images(5, 7));
    write("t10k-labels-idx1-ubyte", idx_labels(5));
  }
  [[nodiscard]] std::filesystem::path path(const std::string& name) const { return folder_.path() / name; }
  void write(const std::string& name, const Bytes& bytes) const { write_bytes(path(name), bytes); }
  /// In place of the plain file, a packed one.
  void write_packed(const std::string& name, const Bytes& packed) const {
    std::filesystem::remove(path(name));
    write(name + ".gz", packed);
  }
  [[nodiscard]] Source open_here() const { return open("mnist:" + folder_.path().string()); }
  [[nodiscard]] std::string said() const {
    const auto error = error_of([&] { (void)open_here(); });
    EXPECT_EQ(error.kind, base::ErrorKind::data);
    return error.text;
  }

  TemporaryDirectory folder_;
};

void expect_the_twelve(const Source& source) {
  ASSERT_EQ(source.train->size(), 12);
  ASSERT_EQ(source.test->size(), 5);
  EXPECT_EQ(source.train->format(), (ImageFormat{.height = 7, .width = 7, .channels = 1}));
  Bytes pixels(49);
  for (std::int64_t r = 0; r < 12; ++r) {
    EXPECT_EQ(source.train->read(r, pixels), r % 10);
    for (std::int64_t i = 0; i < 49; ++i) {
      const std::int64_t at = r * 49 + i;
      ASSERT_EQ(pixels[static_cast<std::size_t>(i)], static_cast<std::uint8_t>(at * 3 + at / 256));
    }
  }
}

TEST_F(Idx, ReadsPlainFiles) { expect_the_twelve(open_here()); }

TEST_F(Idx, ReadsPackedFilesAndAnyMixture) {
  write_packed(kTrainImages, gzip(idx_images(12, 7)));
  expect_the_twelve(open_here());
  write_packed(kTrainLabels, gzip(idx_labels(12)));
  expect_the_twelve(open_here());
}

TEST_F(Idx, SaysWhatOpeningHasNotRead) {
  const auto plain = open_here();
  EXPECT_EQ(plain.unread_bytes, 2 * 16 + plain.train->size() * plain.train->format().bytes() +
                                    plain.test->size() * plain.test->format().bytes());
  EXPECT_GT(plain.resident_bytes, plain.unread_bytes) << "labels are looked at";
  write_packed(kTrainImages, gzip(idx_images(12, 7)));
  const auto packed = open_here();
  EXPECT_EQ(packed.unread_bytes, 16 + packed.test->size() * packed.test->format().bytes())
      << "a packed file is unpacked into memory";
}

TEST_F(Idx, ReadsAPackedFileOfSeveralMembers) {
  const Bytes whole = idx_images(12, 7);
  Bytes packed;
  for (const auto& [from, to] : {std::pair<std::size_t, std::size_t>{0, 5}, {5, 300}, {300, whole.size()}}) {
    const Bytes part =
        gzip(Bytes(whole.begin() + static_cast<long>(from), whole.begin() + static_cast<long>(to)));
    packed.insert(packed.end(), part.begin(), part.end());
  }
  write_packed(kTrainImages, packed);
  expect_the_twelve(open_here());
}

TEST_F(Idx, LooksInTheChildFolderMnist) {
  const TemporaryDirectory parent;
  std::filesystem::rename(folder_.path(), parent.path() / "mnist");
  expect_the_twelve(open("mnist:" + parent.path().string()));
}

/// As torchvision unpacks the four files, as archives with a point in their names do, and as Kaggle's copy.
TEST_F(Idx, LooksWhereOtherProgramsPutThem) {
  for (const char* place : {"MNIST/raw", "raw", "MNIST", "FashionMNIST/raw"}) {
    const TemporaryDirectory parent;
    std::filesystem::create_directories(parent.path() / place);
    std::filesystem::copy(folder_.path(), parent.path() / place);
    expect_the_twelve(open("mnist:" + parent.path().string()));
  }
  for (const bool is_in_folder : {false, true}) {
    const TemporaryDirectory parent;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      auto name = entry.path().filename().string();
      const auto folder = is_in_folder ? parent.path() / name : parent.path();
      std::filesystem::create_directories(folder);
      if (!is_in_folder) name.replace(name.find("-idx"), 1, ".");
      std::filesystem::copy(entry.path(), folder / name);
    }
    expect_the_twelve(open("mnist:" + parent.path().string()));
  }
}

TEST_F(Idx, SaysWhereNoneOrSeveralAre) {
  const TemporaryDirectory parent;
  const auto here = [&] { return error_of([&] { (void)open("mnist:" + parent.path().string()); }).text; };
  for (const char* place : {"KMNIST/raw", "FashionMNIST/raw"}) {
    std::filesystem::create_directories(parent.path() / place);
    std::filesystem::copy(folder_.path(), parent.path() / place);
  }
  EXPECT_THAT(here(),
              AllOf(HasSubstr("FashionMNIST/raw and "), HasSubstr("KMNIST/raw; give the folder of one")));
  std::filesystem::remove_all(parent.path() / "KMNIST");
  std::filesystem::remove_all(parent.path() / "FashionMNIST");
  write_bytes(parent.path() / "gzip/mine-train-images-idx3-ubyte", idx_images(2, 7));
  EXPECT_THAT(here(),
              AllOf(HasSubstr("there is no train-images-idx3-ubyte"),
                    HasSubstr("gzip/mine-train-images-idx3-ubyte is there"), HasSubstr("MNIST/raw/")));
}

TEST_F(Idx, NamesAMissingFile) {
  std::filesystem::remove(path("t10k-labels-idx1-ubyte"));
  EXPECT_THAT(said(), AllOf(HasSubstr("there is no t10k-labels-idx1-ubyte in " + folder_.path().string()),
                            HasSubstr("plain or with .gz")));
}

TEST_F(Idx, FindsSwappedFilesByTheirMagicNumber) {
  write(kTrainImages, idx_labels(12));
  EXPECT_THAT(said(),
              AllOf(HasSubstr(path(kTrainImages).string()),
                    HasSubstr("an IDX file of images begins with the magic number 2051, but this one begins "
                              "with 2049"),
                    HasSubstr("swapped")));
}

TEST_F(Idx, FindsATruncatedOrOverlongFile) {
  Bytes bytes = idx_images(12, 7);
  bytes.pop_back();
  write(kTrainImages, bytes);
  EXPECT_THAT(said(),
              HasSubstr("its header announces 12 images and so 604 bytes, but the file has 603; it is "
                        "truncated or damaged: fetch it again"));
  bytes.resize(bytes.size() + 2);
  write(kTrainImages, bytes);
  EXPECT_THAT(said(), HasSubstr("604 bytes, but the file has 605"));
  bytes.resize(15);
  write(kTrainImages, bytes);
  EXPECT_THAT(said(), HasSubstr("a header of 16 bytes, but this one ends after 15"));
  write(kTrainImages, {});
  EXPECT_THAT(said(), HasSubstr("ends after 0"));
}

TEST_F(Idx, FindsAHeaderThatCannotBe) {
  write(kTrainImages, idx_images(0, 7));
  EXPECT_THAT(said(), HasSubstr("announces 0 images"));
  Bytes bytes = idx_images(1, 1);
  bytes[8] = 0x7f;  // a height of two thousand million
  write(kTrainImages, bytes);
  EXPECT_THAT(said(), AllOf(HasSubstr("images of 2130706433x1"), HasSubstr("1 to 4096 pixels")));
}

TEST_F(Idx, FindsCountsAndSizesThatDoNotAgree) {
  write(kTrainLabels, idx_labels(11));
  EXPECT_THAT(said(), AllOf(HasSubstr("has 11 labels, but"), HasSubstr("has 12 images")));
  write(kTrainLabels, idx_labels(12));
  write("t10k-images-idx3-ubyte", idx_images(5, 8));
  EXPECT_THAT(said(), AllOf(HasSubstr("its images are 8x8"), HasSubstr("are 7x7")));
}

TEST_F(Idx, FindsALabelOutOfRange) {
  Bytes bytes = idx_labels(12);
  bytes[8 + 11] = 11;
  write(kTrainLabels, bytes);
  const auto hole = HasSubstr("the label 11 occurs, but none of 10");
  EXPECT_THAT(said(), AllOf(HasSubstr(path(kTrainLabels).string()), hole));
  write_packed(kTrainLabels, gzip(bytes));
  EXPECT_THAT(said(), hole);
  std::filesystem::remove(path(std::string(kTrainLabels) + ".gz"));
  write(kTrainLabels, idx_labels(12));
  bytes = idx_labels(5);
  bytes[8 + 4] = 10;
  write("t10k-labels-idx1-ubyte", bytes);
  EXPECT_THAT(said(), AllOf(HasSubstr(path("t10k-labels-idx1-ubyte").string()),
                            HasSubstr("record 4 (from 0) has the label 10"), HasSubstr("labels 0 to 9")));
}

TEST_F(Idx, CountsTheClassesOfLargerSets) {
  Bytes labels = idx_labels(12);
  for (std::size_t i = 0; i < 12; ++i) labels[8 + i] = static_cast<std::uint8_t>(11 - i);
  write(kTrainLabels, labels);
  const Source source = open_here();
  EXPECT_EQ(source.classes(), 12);
  EXPECT_EQ(source.train->label(0), 11);
  EXPECT_THAT(source.description, HasSubstr("12 classes"));
}

TEST_F(Idx, HasTheClassesOfEmnistsSplit) {
  const TemporaryDirectory folder;
  const auto write = [&](const std::string& split, int first, const char* ending) {
    for (const auto& [part, count] : {std::pair{"train", 12u}, {"test", 5u}}) {
      const auto name = folder.path() / "EMNIST/raw" / ("emnist-" + split + "-" + part);
      Bytes labels = idx_labels(count);
      for (std::size_t i = 8; i < labels.size(); ++i)
        labels[i] = static_cast<std::uint8_t>(labels[i] + first);
      const bool is_packed = *ending != '\0';
      write_bytes(name.string() + "-images-idx3-ubyte" + ending,
                  is_packed ? gzip(idx_images(count, 7)) : idx_images(count, 7));
      write_bytes(name.string() + "-labels-idx1-ubyte" + ending, is_packed ? gzip(labels) : labels);
    }
  };
  write("letters", 1, ".gz");
  const auto spec = "mnist:" + folder.path().string();
  const Source letters = open(spec);
  EXPECT_EQ(letters.classes(), 26);
  EXPECT_EQ(letters.class_names[3], "d");
  EXPECT_EQ(letters.train->label(3), 3);
  EXPECT_EQ(letters.test->label(0), 0);
  EXPECT_THAT(letters.description, HasSubstr("EMNIST letters"));
  write("balanced", 0, "");
  EXPECT_THAT(error_of([&] { (void)open(spec); }).text,
              AllOf(HasSubstr("the splits balanced, letters of EMNIST"), HasSubstr("split=NAME")));
  EXPECT_EQ(open(spec + ",split=balanced").class_names[46], "t");
  EXPECT_THAT(error_of([&] { (void)open(spec + ",split=digits"); }).text, HasSubstr("but no 'digits'"));
  write("letters", 0, ".gz");  // 0 is no letter
  EXPECT_THAT(error_of([&] { (void)open(spec + ",split=letters"); }).text,
              HasSubstr("has the label 0, but EMNIST letters has labels 1 to 26"));
}

TEST_F(Idx, FindsGzipDataThatBreaksOffAnywhere) {
  const Bytes whole = gzip(idx_images(12, 7));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_packed(kTrainImages, Bytes(whole.begin(), whole.begin() + static_cast<long>(length)));
    ASSERT_THAT(said(), AllOf(HasSubstr(path(kTrainImages).string() + ".gz: the gzip data breaks off after "),
                              HasSubstr("incomplete: fetch it again")))
        << length << " of " << whole.size();
  }
}

TEST_F(Idx, FindsDamagedGzipData) {
  const Bytes whole = gzip(idx_images(12, 7));
  write_packed(kTrainImages, idx_images(12, 7));
  EXPECT_THAT(said(), HasSubstr("damaged after 0 unpacked bytes (zlib: incorrect header check)"));
  Bytes bytes = whole;
  bytes[bytes.size() - 6] ^= 1;  // the checksum
  write_packed(kTrainImages, bytes);
  EXPECT_THAT(said(), HasSubstr("damaged after 604 unpacked bytes (zlib: incorrect data check)"));
  // A bit anywhere: an error, or (in the header's unused fields) the right images; never wrong ones.
  for (std::size_t at = 0; at < whole.size(); ++at) {
    bytes = whole;
    bytes[at] ^= 4;
    write_packed(kTrainImages, bytes);
    const auto error = error_of([&] { expect_the_twelve(open_here()); });
    if (at >= 10) {
      EXPECT_EQ(error.kind, base::ErrorKind::data) << at;
    }
  }
}

TEST_F(Idx, FindsGzipDataOfAnotherLengthThanItsHeaderSays) {
  Bytes bytes = idx_images(12, 7);
  bytes.pop_back();
  write_packed(kTrainImages, gzip(bytes));
  EXPECT_THAT(said(), HasSubstr("its header announces 604 bytes, but it unpacks to 603"));
  bytes.resize(bytes.size() + 2);
  write_packed(kTrainImages, gzip(bytes));
  EXPECT_THAT(said(), HasSubstr("its header announces 604 bytes, but it unpacks to more"));
}

TEST_F(Idx, AllocatesNothingThatThePackedFileCannotHold) {
  Bytes bytes = idx_images(12, 7);
  bytes[4] = 0xff;  // 4,278,190,092 images: 210 GB
  write_packed(kTrainImages, gzip(bytes));
  EXPECT_THAT(said(), AllOf(HasSubstr("asks for 209631314524 bytes"), HasSubstr("the header is damaged")));
}

TEST_F(Idx, ReadsTheRealFiles) {
  std::string reason;
  const auto data = real_data(reason);
  if (!data) GTEST_SKIP() << reason;
  const Source source = open("mnist:" + data->string());
  ASSERT_EQ(source.train->size(), 60000);
  ASSERT_EQ(source.test->size(), 10000);
  EXPECT_EQ(source.train->format(), (ImageFormat{.height = 28, .width = 28, .channels = 1}));
  Bytes pixels(784);
  std::array<int, 10> histogram{}, test_histogram{};
  double sum = 0, sum_of_squares = 0;
  std::vector<int> first;
  for (std::int64_t i = 0; i < 60000; ++i) {
    const int label = source.train->read(i, pixels);
    ++histogram[static_cast<std::size_t>(label)];
    if (i < 10) first.push_back(label);
    for (const auto pixel : pixels) {
      sum += pixel / 255.0;
      sum_of_squares += pixel / 255.0 * (pixel / 255.0);
    }
  }
  for (std::int64_t i = 0; i < 10000; ++i)
    ++test_histogram[static_cast<std::size_t>(source.test->read(i, pixels))];
  EXPECT_THAT(histogram, testing::ElementsAre(5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949));
  EXPECT_THAT(test_histogram, testing::ElementsAre(980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009));
  EXPECT_THAT(first, testing::ElementsAre(5, 0, 4, 1, 9, 2, 1, 3, 1, 4));
  const double mean = sum / (60000.0 * 784);
  EXPECT_NEAR(source.mean[0], mean, 1e-4);
  EXPECT_NEAR(source.stddev[0], std::sqrt(sum_of_squares / (60000.0 * 784) - mean * mean), 1e-4);
}

}  // namespace
}  // namespace paceline::data
