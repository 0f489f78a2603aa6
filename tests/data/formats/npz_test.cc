#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/dataset.h"
#include "data/files.h"
#include "data/formats/arrays.h"
#include "data/formats/formats.h"
#include "data/mutations.h"
#include "data/npz_files.h"

namespace paceline::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Bytes counting_bytes(std::size_t count, int start = 0) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::uint8_t>(start + 7 * static_cast<int>(i));
  return bytes;
}

/// Labels i % classes as MedMNIST stores them, [N, 1].
Bytes npz_labels(std::size_t count, int classes) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(static_cast<int>(i) % classes);
  return bytes;
}

Members medmnist_members() {
  return {{"train_images", npy("|u1", "(6, 4, 5, 3)", counting_bytes(360))},
          {"val_images", npy("|u1", "(2, 4, 5, 3)", counting_bytes(120, 1))},
          {"test_images", npy("|u1", "(3, 4, 5, 3)", counting_bytes(180, 2))},
          {"train_labels", npy("|u1", "(6, 1)", npz_labels(6, 3))},
          {"val_labels", npy("|u1", "(2, 1)", npz_labels(2, 3))},
          {"test_labels", npy("|u1", "(3, 1)", npz_labels(3, 3))}};
}

class Npz : public testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return (folder_.path() / "set.npz").string(); }
  [[nodiscard]] Source open_with(const Members& members, const std::string& options = "") const {
    write_bytes(path(), npz(members));
    return open("npz:" + path() + options);
  }
  [[nodiscard]] std::string said(const Members& members, const std::string& options = "") const {
    const auto error = error_of([&] { (void)open_with(members, options); });
    EXPECT_EQ(error.kind, base::ErrorKind::data) << error.text;
    return error.text;
  }
  TemporaryDirectory folder_;
};

TEST_F(Npz, ReadsMedMnistAsItIs) {
  for (const bool is_packed : {false, true}) {
    write_bytes(path(), npz(medmnist_members(), is_packed));
    const Source source = open("npz:" + path());
    ASSERT_EQ(source.train->size(), 6);
    ASSERT_EQ(source.validation->size(), 2);
    ASSERT_EQ(source.test->size(), 3);
    EXPECT_EQ(source.train->format(), (ImageFormat{.height = 4, .width = 5, .channels = 3}));
    EXPECT_THAT(source.class_names, testing::ElementsAre("0", "1", "2"));
    EXPECT_EQ(source.resident_bytes, 11 * (60 + 8));
    Bytes pixels(60);
    for (int i = 0; i < 6; ++i) {
      EXPECT_EQ(source.train->read(i, pixels), i % 3);
      for (int p = 0; p < 60; ++p)
        ASSERT_EQ(pixels[static_cast<std::size_t>(p)], static_cast<std::uint8_t>(7 * (60 * i + p)));
    }
    EXPECT_EQ(source.test->read(2, pixels), 2);
    EXPECT_EQ(pixels[0], static_cast<std::uint8_t>(2 + 7 * 120));
  }
}

TEST_F(Npz, ReadsLabelsOfAnyWholeType) {
  auto members = medmnist_members();
  members[3].second =
      npy("<i8", "(6,)", {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0,
                          0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0});
  members[4].second = npy(">u2", "(2,)", {0, 2, 0, 1});
  members[5].second = npy("|u1", "(3, 3)", {0, 0, 1, 1, 0, 0, 0, 1, 0});
  const Source source = open_with(members);
  EXPECT_EQ(source.train->label(4), 1);
  EXPECT_EQ(source.validation->label(0), 2);
  EXPECT_EQ(source.test->label(0), 2);
  EXPECT_EQ(source.test->label(1), 0);
}

TEST_F(Npz, CountsClassesFromOne) {
  auto members = medmnist_members();
  for (auto& [name, bytes] : members)
    if (name.ends_with("labels"))
      for (std::size_t i = 128; i < bytes.size(); ++i) ++bytes[i];
  const Source source = open_with(members);
  EXPECT_THAT(source.class_names, testing::ElementsAre("1", "2", "3"));
  EXPECT_EQ(source.train->label(5), 2);
}

TEST_F(Npz, TestsOnValidationOrHoldsImagesBack) {
  auto members = medmnist_members();
  members.erase(members.begin() + 5);
  members.erase(members.begin() + 2);
  const Source validated = open_with(members);
  EXPECT_EQ(validated.validation, nullptr);
  EXPECT_EQ(validated.test->size(), 2);
  EXPECT_THAT(validated.notes, testing::Contains(HasSubstr("the validation part is the test set")));
  const Members alone = {{"x_train", npy("|u1", "(20, 4, 5)", counting_bytes(400))},
                         {"y_train", npy("|u1", "(20,)", npz_labels(20, 2))}};
  const Source cut = open_with(alone, ",test=0.3");
  EXPECT_EQ(cut.train->size(), 14);
  EXPECT_EQ(cut.test->size(), 6);
  EXPECT_EQ(cut.train->format().channels, 1);
  EXPECT_THAT(cut.notes, testing::Contains(HasSubstr("6 of 20 images are the test set")));
}

TEST_F(Npz, ScalesSixteenBitsByTheirRange) {
  Members members = {
      {"x_train", npy("<u2", "(2, 1, 3)", {0x00, 0x01, 0x00, 0x02, 0x00, 0x03, 0, 0, 10, 0, 5, 0})},
      {"y_train", npy("|u1", "(2,)", {0, 1})},
      {"x_test", npy("<u2", "(1, 1, 3)", {7, 0, 7, 0, 7, 0})},
      {"y_test", npy("|u1", "(1,)", {0})}};
  EXPECT_THAT(said(members), AllOf(HasSubstr("x_train"), HasSubstr("16 bits"), HasSubstr("range=own")));
  Bytes pixels(3);
  const Source own = open_with(members, ",range=own");
  (void)own.train->read(0, pixels);
  EXPECT_THAT(pixels, testing::ElementsAre(0, 128, 255));
  (void)own.train->read(1, pixels);
  EXPECT_THAT(pixels, testing::ElementsAre(0, 255, 128));
  (void)own.test->read(0, pixels);
  EXPECT_THAT(pixels, testing::ElementsAre(0, 0, 0));
  const Source fixed = open_with(members, ",range=256:511");
  (void)fixed.train->read(0, pixels);
  EXPECT_THAT(pixels, testing::ElementsAre(0, 255, 255));
  for (const char* wrong : {"range=", "range=5", "range=5:5", "range=0:70000", "range=a:b"})
    EXPECT_EQ(error_of([&] { (void)open("npz:" + path() + "," + wrong); }).kind, base::ErrorKind::usage)
        << wrong;
}

TEST_F(Npz, RefusesPickledObjectsByName) {
  auto members = medmnist_members();
  members[3].second = npy("|O", "(6,)", {0x80, 3, ']', '.'});
  EXPECT_THAT(said(members), AllOf(HasSubstr("train_labels: holds Python objects"), HasSubstr("pickle"),
                                   HasSubstr("astype('int64')")));
}

TEST_F(Npz, SaysWhatIsWrongWithAnArray) {
  struct Case {
    std::size_t member;
    Bytes bytes;
    const char* said;
  };
  const Case cases[] = {
      {0, npy("|u1", "(6, 3, 4, 5)", counting_bytes(360)), "array.transpose(0, 2, 3, 1)"},
      {0, npy("|u1", "(6, 4, 5, 3, 1)", counting_bytes(360)), "volumes are not read"},
      {0, npy("|u1", "(6, 5, 3, 4)", counting_bytes(360)), "array[..., :3]"},
      {0, npy("|u1", "(6, 60)", counting_bytes(360)), "array.reshape"},
      {0, npy("<f4", "(6, 1, 5, 3)", counting_bytes(360)), "pixels are bytes (uint8)"},
      {0, npy("|u1", "(6, 4, 5, 3)", counting_bytes(359)), "needs 360 bytes, but 359 follow"},
      {0, npy("|u1", "(6, 4, 5, 3)", counting_bytes(360), "True"), "numpy.ascontiguousarray"},
      {0, npy("|u1", "(6, 4, 5, 3), 'x': (1,)", counting_bytes(360)), "the key 'x'"},
      {0, npy("|u1", "(9999999999999, 9999999999999)", counting_bytes(360)), "more values than there can be"},
      {0, npy("|S3", "(6, 4, 5)", counting_bytes(360)), "of the type '|S3'"},
      {0, npy("|u1", "(6, 2, 5, 6)", counting_bytes(360)), "1 or 3 channels"},
      {0, {'x'}, "is no array of NumPy"},
      {2, npy("|u1", "(3, 5, 4, 3)", counting_bytes(180)), "all parts have one size"},
      {3, npy("|u1", "(5, 1)", npz_labels(5, 3)), "has 5 labels, but train_images has 6 images"},
      {3, npy("|u1", "(6, 1)", {0, 1, 3, 0, 1, 3}), "the label 3 occurs, but none of 2"},
      {3, npy("|u1", "(6, 1)", {4, 5, 4, 5, 4, 5}), "smallest label is 4"},
      {3, npy("|u1", "(6, 1)", {1, 1, 1, 1, 1, 1}), "all labels are 1"},
      {3, npy("|u1", "(6, 2)", {0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 0, 1}), "row 2 (from 0) has 2 of 1"},
      {3, npy("<f4", "(6,)", counting_bytes(24)), "labels are whole numbers"},
      {5, npy("|u1", "(3, 1)", {0, 1, 3}),
       "image 2 (from 0) has the label 3, but training has labels 0 to 2"},
  };
  for (const auto& [member, bytes, rule] : cases) {
    auto members = medmnist_members();
    members[member].second = bytes;
    EXPECT_THAT(said(members), AllOf(HasSubstr(members[member].first), HasSubstr(rule)));
  }
  auto members = medmnist_members();
  members.erase(members.begin() + 3);
  EXPECT_THAT(said(members), HasSubstr("holds train_images without train_labels"));
  EXPECT_THAT(said({{"data", npy("|u1", "(1,)", {1})}}), HasSubstr("it holds data"));
  members = medmnist_members();
  members.push_back(members[0]);
  EXPECT_THAT(said(members), HasSubstr("holds train_images twice"));
  write_bytes(path(), npy("|u1", "(1,)", {1}));
  EXPECT_THAT(error_of([&] { (void)open("npz:" + path()); }).text, HasSubstr("numpy.savez"));
  EXPECT_THAT(error_of([&] { (void)open("npz:" + path() + "x"); }).text, HasSubstr("there is no file"));
}

TEST_F(Npz, RefusesTwoChecksumsThatDiffer) {
  auto bytes = npz(medmnist_members(), true);
  constexpr std::string_view kInDirectory = "PK\x01\x02";
  const auto entry = std::search(bytes.begin(), bytes.end(), kInDirectory.begin(), kInDirectory.end());
  ASSERT_NE(entry, bytes.end());
  entry[16] ^= 1;
  write_bytes(path(), bytes);
  EXPECT_THAT(error_of([&] { (void)open("npz:" + path()); }).text, HasSubstr("is damaged or cut short"));
}

// No sample is lost: what is read has all of them.
TEST_F(Npz, IsReadWholeOrRefused) {
  for (const bool is_packed : {false, true})
    read_mutations(npz(medmnist_members(), is_packed), [&](const Bytes& bytes) {
      write_bytes(path(), bytes);
      const Source source = open("npz:" + path());
      EXPECT_EQ(source.train->size(), 6);
      const auto others = source.test->size() + (source.validation ? source.validation->size() : 0);
      EXPECT_TRUE(others == 5 || others == 3 || others == 2 || !source.notes.empty());
      Bytes pixels(static_cast<std::size_t>(source.train->format().bytes()));
      for (std::int64_t i = 0; i < source.train->size(); ++i) (void)source.train->read(i, pixels);
    });
}

}  // namespace
}  // namespace paceline::data
