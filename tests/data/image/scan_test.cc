#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "../files.h"
#include "base/clock.h"
#include "base/error.h"
#include "data/dataset.h"
#include "data/image/scan.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;

class Manifest : public testing::Test {
 protected:
  Manifest() {
    for (const char* name : {"train/b", "train/a", "train/a/deep", "test/a", "test/b", "test/a/deep"})
      for (const char* image : {"2.jpg", "1.png", "10.ppm"}) touch(std::string(name) + "/" + image);
    touch("train/a/notes.txt");
  }
  void touch(const std::string& name) {
    fs::create_directories((top() / name).parent_path());
    std::ofstream(top() / name) << name;
  }
  /// Moves the time of a folder's last change away from that of its manifest: the clock of a file system
  /// stands still for some milliseconds.
  void change(const std::string& folder) {
    fs::last_write_time(top() / folder, fs::last_write_time(top() / folder) + std::chrono::seconds(1));
  }
  [[nodiscard]] const fs::path& top() const { return folder_.path(); }
  [[nodiscard]] Source open_here() const { return open("folder:" + top().string() + ",size=8"); }
  std::string why_;

 private:
  const TemporaryDirectory folder_;
};

TEST_F(Manifest, SaysWhatAWalkFinds) {
  const auto walked = scan_folder(top());
  (void)write_manifest(top());
  const auto read = read_manifest(top(), why_);
  ASSERT_TRUE(read) << why_;
  ASSERT_EQ(read->listing.size(), 18u);
  ASSERT_EQ(walked.listing.size(), 18u);
  for (std::size_t i = 0; i < 18; ++i) EXPECT_EQ(read->listing.path(i), walked.listing.path(i));
  EXPECT_EQ(read->passed_over, 1);
  EXPECT_EQ(walked.passed_over, 1);
}

/// Found by a fuzzer: the listing keeps names as C strings, and such a one was the folder itself.
TEST_F(Manifest, WithAZeroInANameIsDamaged) {
  const std::string head = "paceline-manifest-1\npassed-over 0\nd 1 \nf ";
  EXPECT_TRUE(manifest_from(head + "a.png\nend 1\n"));
  EXPECT_FALSE(manifest_from(head + std::string(1, '\0') + "a.png\nend 1\n"));
}

TEST_F(Manifest, OpensTheSameSet) {
  const auto before = open_here();
  (void)write_manifest(top());
  const auto after = open_here();
  EXPECT_EQ(after.class_names, before.class_names);
  EXPECT_EQ(after.train->size(), before.train->size());
  for (std::int64_t i = 0; i < before.train->size(); ++i)
    EXPECT_EQ(after.train->label(i), before.train->label(i));
  EXPECT_EQ(after.notes, before.notes) << "the manifest itself is no file that was passed over";
}

TEST_F(Manifest, IsNotUsedOnceAFolderHasChanged) {
  for (const char* folder : {"", "train", "train/a/deep", "test/b"}) {
    (void)write_manifest(top());
    change(folder);
    why_.clear();
    EXPECT_FALSE(read_manifest(top(), why_)) << folder;
    EXPECT_THAT(why_, HasSubstr("has changed since"));
  }
  touch("train/a/3.jpg");
  const auto source = open_here();
  EXPECT_EQ(source.train->size(), 10);
  EXPECT_THAT(source.notes, Contains(HasSubstr("the manifest was not used")));
  (void)write_manifest(top());
  why_.clear();
  EXPECT_TRUE(read_manifest(top(), why_));
}

/// What a walk would notice and the manifest's check, by the folders' times, does not: so nothing walked.
TEST_F(Manifest, SparesTheWalk) {
  (void)write_manifest(top());
  const auto folder = top() / "train/b";
  const auto time = fs::last_write_time(folder);
  fs::remove(folder / "2.jpg");
  fs::last_write_time(folder, time);
  EXPECT_EQ(open_here().train->size(), 9);
  fs::remove(top() / kManifestName);
  EXPECT_EQ(open_here().train->size(), 8);
}

TEST_F(Manifest, ThatIsDamagedIsNotUsed) {
  (void)write_manifest(top());
  std::ifstream file(top() / kManifestName);
  const std::string whole((std::istreambuf_iterator<char>(file)), {});
  const auto with = [&](const std::string& text) {
    std::ofstream(top() / kManifestName) << text;
    why_.clear();
    EXPECT_FALSE(read_manifest(top(), why_)) << text;
    EXPECT_THAT(why_, HasSubstr("damaged"));
  };
  for (std::size_t length = 0; length < whole.size(); length += 7) with(whole.substr(0, length));
  const auto replaced = [&](const std::string& from, const std::string& to) {
    auto text = whole;
    text.replace(text.find(from), from.size(), to);
    with(text);
  };
  replaced("f 1.png", "f ../../1.png");
  replaced(" train/a\n", " ../train/a\n");
  replaced(" train/a\n", " /train/a\n");
  replaced("end 18", "end 17");
  replaced("f 2.jpg", "f 2.txt");
}

TEST_F(Manifest, RefusesANameOfTwoLines) {
  touch("train/a/x\ny.jpg");
  EXPECT_THAT(error_of([&] { (void)write_manifest(top()); }).text, HasSubstr("holds a line end"));
}

/// 20,000 files, 200,000 in the long form: under 100 bytes a file and its name, and under 3 s to list them.
TEST(Listing, OfManyFilesIsSmallAndQuick) {
  const TemporaryDirectory folder;
  constexpr int kClasses = 20;
  const int images = std::getenv("PACELINE_LONG") != nullptr ? 10000 : 1000;
  std::int64_t names = 0;
  for (int c = 0; c < kClasses; ++c) {
    const auto directory = folder.path() / ("class-" + std::to_string(c));
    fs::create_directories(directory);
    for (int i = 0; i < images; ++i) {
      const auto name = "image-number-" + std::to_string(i) + ".jpg";
      std::ofstream(directory / name) << 'x';
      names += static_cast<std::int64_t>(name.size());
    }
  }
  const auto begin = base::Clock::now();
  const auto source = open("folder:" + folder.path().string());
  const double walk_s = base::seconds_since(begin);
  EXPECT_EQ(source.train->size() + source.test->size(), kClasses * images);
  EXPECT_LT(source.resident_bytes, names + 100 * std::int64_t{kClasses} * images);
  EXPECT_LT(walk_s, 3.0);
  (void)write_manifest(folder.path());
  const auto second = open("folder:" + folder.path().string());
  EXPECT_EQ(second.resident_bytes, source.resident_bytes);
  EXPECT_THAT(second.notes, testing::ElementsAreArray(source.notes));
}

// An empty one used to stay behind, and every later start said that it was damaged.
TEST_F(Manifest, ThatCannotBeWrittenLeavesNone) {
  touch("train/b/two\nlines.jpg");
  EXPECT_THROW((void)write_manifest(top()), base::Error);
  EXPECT_FALSE(fs::exists(top() / kManifestName));
}

}  // namespace
}  // namespace paceline::data
