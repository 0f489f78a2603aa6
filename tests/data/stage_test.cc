#include "data/stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "base/file.h"
#include "data/dataset.h"
#include "data/image/scan.h"
#include "data/shards/pack.h"
#include "shards/shard_files.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

class Stage : public testing::Test {
 protected:
  Stage() {
    for (const char* part : {"train", "test"})
      for (const char* name : {"a", "b"})
        for (int i = 0; i < 4; ++i)
          write_bytes(from() / part / name / (std::to_string(i) + ".ppm"), numbered_picture(i));
  }
  [[nodiscard]] fs::path from() const { return folder_.path() / "images"; }
  [[nodiscard]] fs::path to() const { return folder_.path() / "scratch/data"; }
  [[nodiscard]] std::string spec() const { return "folder:" + from().string() + ",size=8"; }
  [[nodiscard]] StagedData copy(const std::string& text) const {
    auto staged = stage(text, to(), {.threads = 3});
    EXPECT_TRUE(staged.has_value());
    return staged.value_or(StagedData());
  }
  [[nodiscard]] static std::string list_of(const std::string& text) {
    const auto source = open(text);
    return list_sha256(*source.train, 1) + list_sha256(*source.test, 1);
  }
  /// The folder of the copy.
  [[nodiscard]] static fs::path place_of(const StagedData& staged) {
    return staged.spec.substr(7, staged.spec.find(',') - 7);
  }
  TemporaryDirectory folder_;
};

TEST_F(Stage, CopiesAFolderOnce) {
  const auto first = copy(spec());
  EXPECT_THAT(first.spec, StartsWith("folder:" + to().string() + "/images-"));
  EXPECT_TRUE(first.spec.ends_with(",size=8"));
  EXPECT_EQ(first.files, 16);
  EXPECT_EQ(first.copied, 16);
  EXPECT_EQ(list_of(first.spec), list_of(spec()));
  const auto second = copy(spec());
  EXPECT_EQ(second.spec, first.spec);
  EXPECT_EQ(second.copied, 0);
  EXPECT_EQ(second.removed, 0);
}

TEST_F(Stage, CompletesAHalfCopy) {
  const auto place = place_of(copy(spec()));
  fs::remove(place / "train/a/1.ppm");
  write_bytes(place / "train/a/2.ppm", bytes_of("cut"));
  auto damaged = numbered_picture(3);
  damaged.back() ^= 1;
  write_bytes(place / "test/b/3.ppm", damaged);
  write_bytes(place / "test/b/.paceline-partial-1-9.ppm", bytes_of("half"));
  const auto again = copy(spec());
  EXPECT_EQ(again.copied, 3);
  EXPECT_EQ(read_bytes(place / "test/b/3.ppm"), numbered_picture(3));
  EXPECT_FALSE(fs::exists(place / "test/b/.paceline-partial-1-9.ppm"));
}

TEST_F(Stage, FollowsChangesOfTheOriginal) {
  const auto place = place_of(copy(spec()));
  fs::remove(from() / "train/a/1.ppm");
  write_bytes(from() / "train/a/2.ppm", numbered_picture(99));
  const auto again = copy(spec());
  EXPECT_EQ(again.copied, 1);
  EXPECT_EQ(again.removed, 1);
  EXPECT_FALSE(fs::exists(place / "train/a/1.ppm")) << "it would be trained on";
  EXPECT_EQ(list_of(again.spec), list_of(spec()));
}

TEST_F(Stage, OfOneNameDoNotMeet) {
  const auto other = folder_.path() / "other/images";
  fs::create_directories(other.parent_path());
  fs::copy(from(), other, fs::copy_options::recursive);
  EXPECT_NE(copy(spec()).spec, copy("folder:" + other.string()).spec);
}

TEST_F(Stage, KeepsTheManifestOfAFolderValid) {
  (void)write_manifest(from());
  std::string why_not;
  EXPECT_TRUE(read_manifest(place_of(copy(spec())), why_not).has_value()) << why_not;
}

TEST_F(Stage, CopiesShardsWithTheirManifest) {
  const auto packed = pack_shards(open(spec()), folder_.path() / "s", {.shards = 3}, {}, [](auto, auto) {});
  ASSERT_TRUE(packed.has_value());
  write_bytes(folder_.path() / "s/train-9999.tar", bytes_of("not of the set"));
  const auto staged = copy(packed->spec);
  const auto source = open(staged.spec);
  EXPECT_EQ(source.train->size(), 8);
  EXPECT_EQ(source.test->size(), 8);
  for (const auto& note : source.notes) EXPECT_THAT(note, testing::Not(HasSubstr("was made")));
  for (const auto& entry :
       fs::directory_iterator(to() / fs::path(staged.spec.substr(7)).parent_path().filename()))
    EXPECT_NE(entry.path().filename(), "train-9999.tar");
  EXPECT_EQ(copy(packed->spec).copied, 0);
}

TEST_F(Stage, RemovesShardsThatAPatternWouldMatch) {
  fs::create_directories(folder_.path() / "s");
  write_shards(folder_.path() / "s", {4, 4, 4}, 2);
  const auto pattern = "shards:" + (folder_.path() / "s/train-*.tar").string();
  (void)copy(pattern);
  fs::remove(folder_.path() / "s/train-1.tar");
  const auto staged = copy(pattern);
  EXPECT_EQ(staged.removed, 1);
  EXPECT_EQ(open(staged.spec).train->size(), 8);
}

TEST_F(Stage, CopiesATableThatLiesElsewhere) {
  write_bytes(
      folder_.path() / "l/labels.csv",
      bytes_of(
          "image,label\na/0.ppm,x\nb/0.ppm,y\na/1.ppm,x\nb/1.ppm,y\na/2.ppm,x\nb/2.ppm,y\na/3.ppm,x\nb/3.ppm,y\n"));
  const auto staged =
      copy("folder:" + (from() / "train").string() + ",labels=" + (folder_.path() / "l/labels.csv").string());
  EXPECT_THAT(staged.spec, HasSubstr(",labels=" + to().string() + "/l-"));
  EXPECT_EQ(staged.files, 9);
  EXPECT_EQ(open(staged.spec).class_names, (std::vector<std::string>{"x", "y"}));
}

TEST_F(Stage, OfSeveralAtOnceIsOneCopy) {
  std::atomic<std::int64_t> copied = 0;
  {
    std::vector<std::jthread> processes;
    for (int i = 0; i < 4; ++i)
      processes.emplace_back([&] { copied += stage(spec(), to()).value_or(StagedData()).copied; });
  }
  EXPECT_EQ(copied, 16);
}

TEST_F(Stage, NamesAFileThatChangesMeanwhile) {
  const auto large = from() / "train/a/0.ppm";
  write_bytes(large, Bytes(3u << 20, 7));
  bool has_grown = false;
  const auto grow = [&](std::int64_t, std::int64_t) {
    if (!std::exchange(has_grown, true)) std::ofstream(large, std::ios::app) << "more";
  };
  try {
    (void)stage("folder:" + (from() / "train/a").string(), to(), {.progress = grow});
    FAIL() << "the copy is another file";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(HasSubstr(large.string()), HasSubstr("changed while it was copied")));
  }
}

TEST_F(Stage, RefusesMoreThanItsDiskHolds) {
  const auto hole = from() / "train/a/large.ppm";
  write_bytes(hole, {});
  constexpr std::int64_t kMuch = std::int64_t{1} << 40;
  std::error_code refusal;
  fs::resize_file(hole, static_cast<std::uintmax_t>(base::free_bytes(from()).value_or(0) + kMuch), refusal);
  if (refusal) GTEST_SKIP() << "this file system has no files with holes: " << refusal.message();
  try {
    (void)stage(spec(), to());
    FAIL() << "there is no room";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(HasSubstr("are to be copied, but its disk has"), HasSubstr("left")));
  }
  for (const auto& entry : fs::directory_iterator(to()))
    EXPECT_FALSE(entry.is_directory()) << "nothing was copied";
}

TEST_F(Stage, StopsAndGoesOnLater) {
  std::stop_source stop;
  const auto stopped =
      stage(spec(), to(), {.stop = stop.get_token(), .progress = [&](auto, auto) { stop.request_stop(); }});
  EXPECT_FALSE(stopped.has_value());
  EXPECT_EQ(list_of(copy(spec()).spec), list_of(spec()));
}

TEST_F(Stage, RefusesWhatHasNoFiles) {
  for (const auto& [text, why] :
       {std::pair{std::string("synthetic"), "has none"},
        std::pair{"folder:" + (from() / "c").string(), "neither a file nor a folder"},
        std::pair{"folder:" + folder_.path().string(), "is inside of"}})
    try {
      (void)stage(text, to());
      ADD_FAILURE() << text;
    } catch (const base::Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  EXPECT_THROW((void)stage(spec(), folder_.path() / "a,b"), base::Error);
}

}  // namespace
}  // namespace paceline::data
