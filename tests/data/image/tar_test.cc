#include "data/image/tar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/dataset.h"
#include "pictures.h"

namespace paceline::data {
namespace {

using testing::HasSubstr;

class Tar : public testing::Test {
 protected:
  Tar() {
    int seed = 0;
    for (const char* folder : {"set/train/a", "set/train/a-b", "set/train/a/c", "set/test/a", "set/test/a/c"})
      for (int i = 0; i < 4; ++i)
        write_bytes(path() / folder / (std::to_string(i) + ".jpg"), jpeg(picture(20 + i, 30, ++seed)));
    // A name longer than the 100 bytes of a plain header.
    write_bytes(path() / "set/train/a" / (std::string(150, 'n') + ".png"), png(picture(9, 9)));
  }
  [[nodiscard]] const std::filesystem::path& path() const { return directory_.path(); }
  /// Packs the folder with the system's tar.
  [[nodiscard]] std::filesystem::path packed(const std::string& options, const std::string& name) const {
    const auto file = path() / name;
    const auto command = "tar -C '" + path().string() + "' " + options + " -cf '" + file.string() + "' set";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return file;
  }

 private:
  TemporaryDirectory directory_;
};

void expect_equal(const Source& a, const Source& b) {
  EXPECT_EQ(a.class_names, b.class_names);
  std::vector<std::uint8_t> one(static_cast<std::size_t>(a.train->format().bytes())), other(one.size());
  for (auto part : {&Source::train, &Source::test}) {
    ASSERT_EQ((a.*part)->size(), (b.*part)->size());
    for (std::int64_t i = 0; i < (a.*part)->size(); ++i) {
      EXPECT_EQ((a.*part)->read(i, one), (b.*part)->read(i, other));
      EXPECT_EQ(one, other) << i;
    }
  }
}

TEST_F(Tar, IsReadAsTheFolderItWasMadeFrom) {
  const auto here = [&](const std::string& what) { return open("folder:" + what + ",size=16"); };
  EXPECT_EQ(here((path() / "set").string()).train->size(), 13);
  for (const char* format : {"--format=gnu", "--format=pax"})  // each writes long names in its own way
    expect_equal(here((path() / "set").string()), here(packed(format, "images.tar").string()));
  std::filesystem::remove(path() / "set/train/a" /
                          (std::string(150, 'n') + ".png"));  // ustar has no such names
  expect_equal(here((path() / "set").string()), here(packed("--format=ustar", "images.tar").string()));
}

TEST_F(Tar, NamesClassesWhoseFilesAreNoImages) {
  for (const char* name : {"set/train/lost/1.heic", "set/train/lost/._2.jpg", "set/train/a/._0.jpg"})
    write_bytes(path() / name, {1});
  const auto error = error_of([&] { (void)open("folder:" + packed("", "images.tar").string()); });
  EXPECT_THAT(error.text, HasSubstr("'set/train/lost' (1 file, most in .heic)"));
}

/// What a sample weighs where it lies: the encoded image, in a folder and in an archive, also of a part of
/// the set.
TEST_F(Tar, AndFolderSayTheBytesThatASampleIsStoredIn) {
  std::int64_t sum = 0;
  const auto folder = path() / "set/train";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) sum += static_cast<std::int64_t>(entry.file_size());
  const double mean = static_cast<double>(sum) / 13;
  const std::string archive = packed("", "images.tar").string();
  for (const auto& what : {(path() / "set").string(), archive}) {
    const Source source = open("folder:" + what + ",size=16");
    ASSERT_EQ(source.train->size(), 13);
    EXPECT_DOUBLE_EQ(mean_stored_bytes(*source.train).value_or(0), mean) << what;
    const Source split = open("folder:" + what + ",size=16", {.validation_split = 0.3});
    std::int64_t both = 0;
    for (const auto* part : {split.train.get(), split.validation.get()})
      for (std::int64_t i = 0; i < part->size(); ++i) both += part->stored_bytes(i);
    EXPECT_EQ(both, sum) << "held back and kept together";
  }
  EXPECT_FALSE(mean_stored_bytes(*open("synthetic,train=8,test=2").train)) << "drawn, not stored";
}

// Found by an audit: 'tar -r' of the same folder made every image count twice.
TEST_F(Tar, TakesTheLaterOfTwoMembersOfOneName) {
  const auto file = packed("", "images.tar");
  const Bytes later = jpeg(picture(25, 25, 99));
  write_bytes(path() / "set/train/a/0.jpg", later);
  const auto command = "tar -C '" + path().string() + "' -rf '" + file.string() + "' set/train";
  ASSERT_EQ(std::system(command.c_str()), 0);
  expect_equal(open("folder:" + (path() / "set").string() + ",size=16"),
               open("folder:" + file.string() + ",size=16"));
}

// Parts of links to one pool of images, as subsets are often made: the links were silently no images.
TEST_F(Tar, TakesALinkForTheFileThatItLeadsTo) {
  const auto set = path() / "set";
  std::filesystem::create_directories(set / "pool");
  std::filesystem::create_directories(set / "test/a-b");
  write_bytes(set / "pool/no ending", jpeg(picture(21, 22, 50)));
  std::filesystem::create_hard_link(set / "train/a/0.jpg", set / "test/a/linked.jpg");
  std::filesystem::create_symlink("../../train/a-b/1.jpg", set / "test/a-b/linked.jpg");
  std::filesystem::create_symlink("linked.jpg", set / "test/a-b/twice.jpg");
  std::filesystem::create_symlink("../../pool/no ending", set / "test/a-b/pool.jpg");
  for (const char* format : {"--format=gnu", "--format=pax"}) {
    const Source tar = open("folder:" + packed(format, "images.tar").string() + ",size=16");
    EXPECT_EQ(tar.test->size(), 8 + 4);
    expect_equal(open("folder:" + set.string() + ",size=16"), tar);
    EXPECT_THAT(tar.notes, testing::Not(testing::Contains(HasSubstr("links"))));
  }
  std::filesystem::create_symlink("/nowhere/1.jpg", set / "test/a/out.jpg");
  std::filesystem::create_symlink("round.jpg", set / "test/a/round.jpg");
  const Source tar = open("folder:" + packed("", "images.tar").string() + ",size=16");
  EXPECT_EQ(tar.test->size(), 8 + 4);
  EXPECT_THAT(tar.notes,
              testing::Contains(HasSubstr("left out: 2 links whose targets are not in the archive")));
}

TEST_F(Tar, IsRefusedWhenCompressedOrCutShort) {
  const auto whole = packed("", "images.tar");
  const auto refused = [](const std::filesystem::path& file) {
    return error_of([&] { (void)open("folder:" + file.string()); });
  };
  EXPECT_THAT(refused(packed("-z", "images.tar.gz")).text,
              HasSubstr("compressed one cannot be read in place"));
  std::filesystem::resize_file(whole, std::filesystem::file_size(whole) / 2);
  EXPECT_EQ(refused(whole).kind, base::ErrorKind::data);
  EXPECT_THAT(refused(whole).text, HasSubstr("(its end is missing)"));
  // libarchive takes an archive that ends between two members for a whole one, and does not look behind its
  // end.
  const auto again = packed("", "images.tar");
  std::ifstream file(again, std::ios::binary);
  Bytes bytes(std::istreambuf_iterator<char>(file), {});
  write_bytes(path() / "joined.tar", [&] {
    auto both = bytes;
    both.insert(both.end(), bytes.begin(), bytes.end());
    return both;
  }());
  EXPECT_THAT(refused(path() / "joined.tar").text, HasSubstr("goes on after its end mark"));
  while (bytes.back() == 0) bytes.pop_back();
  bytes.resize((bytes.size() + 511) / 512 * 512);
  write_bytes(path() / "unended.tar", bytes);
  EXPECT_THAT(refused(path() / "unended.tar").text, HasSubstr("has no end mark, so it was cut short"));
  write_bytes(path() / "empty.tar", {});
  EXPECT_EQ(refused(path() / "empty.tar").kind, base::ErrorKind::data);
  write_bytes(path() / "text.tar", Bytes(2000, 'x'));
  EXPECT_THAT(refused(path() / "text.tar").text, HasSubstr("is not a complete, uncompressed tar archive"));
}

TEST_F(Tar, IsWrittenWholeOrNotAtAll) {
  const auto file = path() / "written.tar";
  const Bytes one = jpeg(picture(20, 20)), other = png(picture(30, 10));
  {
    TarWriter tar(file);
    tar.add("a/1.jpg", one);
    EXPECT_FALSE(std::filesystem::exists(file));
    tar.add("b/" + std::string(120, 'x') + ".png", other);
    tar.finish();
  }
  const TarStore store(file);
  std::vector<std::uint8_t> buffer;
  ASSERT_EQ(store.size(), 2);
  const auto read = [&](std::int64_t i) {
    const auto bytes = store.bytes(i, buffer);
    return Bytes(bytes.begin(), bytes.end());
  };
  EXPECT_EQ(read(0), one);
  EXPECT_EQ(read(1), other);
  { TarWriter abandoned(path() / "abandoned.tar"); }
  for (const auto& entry : std::filesystem::directory_iterator(path()))
    EXPECT_THAT(entry.path().filename().string(), testing::Not(HasSubstr("abandoned")));
  EXPECT_EQ(error_of([&] { TarWriter tar(path() / "no" / "folder.tar"); }).kind, base::ErrorKind::data);
}

// GNU tar used to warn of an unknown header, once for every image of a class called "bl\u00e4u".
TEST_F(Tar, IsReadByTheSystemsTarWithoutAWord) {
  const std::vector<std::string> names{"bl\xc3\xa4u/1.png", "bl\xff/2.png",
                                       std::string(90, 'd') + "/" + std::string(200, 'n'),
                                       "\xe6\x97\xa5 " + std::string(120, 'x') + "/3.png"};
  const Bytes image = png(picture(3, 3));
  const auto file = path() / "names.tar", said = path() / "said", out = path() / "out";
  TarWriter tar(file);
  for (const auto& name : names) tar.add(name, image);
  tar.finish();
  std::filesystem::create_directory(out);
  const auto command = "tar -C '" + out.string() + "' -xf '" + file.string() + "' 2> '" + said.string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(base::read_file(said), "");
  for (const auto& name : names)
    EXPECT_EQ(base::read_file(out / name), std::string(image.begin(), image.end())) << name;
}

}  // namespace
}  // namespace paceline::data
