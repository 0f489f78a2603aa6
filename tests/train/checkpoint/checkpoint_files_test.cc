#include "train/checkpoint/checkpoint_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "fixture.h"

namespace paceline::train {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class CheckpointFiles : public TrainingTest {
 protected:
  void touch(const fs::path& path, std::string_view text = "x") const { base::write_file(path, text); }
};

TEST_F(CheckpointFiles, AreNamedByTheirUpdates) {
  for (const std::int64_t update : {0L, 812L, 99'999'999L, 123'456'789'012L}) {
    EXPECT_EQ(update_of(checkpoint_path("d", update)), update);
    EXPECT_FALSE(update_of(best_checkpoint_path("d", update))) << "another kind of file";
  }
  EXPECT_EQ(checkpoint_path("d", 812), fs::path("d/checkpoint-00000812.safetensors"));
  for (const char* none : {"", "checkpoint-.safetensors", "checkpoint-12", "checkpoint-12x.safetensors",
                           "xcheckpoint-12.safetensors", "checkpoint-12.safetensors.part", ".safetensors",
                           "damaged-checkpoint-00000012.safetensors", "latest.safetensors",
                           "checkpoint-99999999999999999999.safetensors"})
    EXPECT_FALSE(update_of(none)) << none;
}

TEST_F(CheckpointFiles, OfADirectoryAreListedNewestFirst) {
  EXPECT_THAT(checkpoints_in(directory_ / "nowhere"), IsEmpty());
  EXPECT_THAT(checkpoints_in(directory_), IsEmpty());
  for (const std::int64_t update : {9L, 100'000'000L, 10L, 0L}) touch(checkpoint_path(directory_, update));
  touch(best_checkpoint_path(directory_, 11));
  touch(directory_ / "record.json");
  link_to(checkpoint_path(directory_, 10), kLatestLink);
  EXPECT_THAT(checkpoints_in(directory_),
              ElementsAre(checkpoint_path(directory_, 100'000'000), checkpoint_path(directory_, 10),
                          checkpoint_path(directory_, 9), checkpoint_path(directory_, 0)))
      << "by number, not by letters";
}

TEST_F(CheckpointFiles, LinksLeadToTheNewTargetAndNeverOverSomebodysFile) {
  const auto link = directory_ / kLatestLink;
  for (const std::int64_t update : {6, 12}) {
    touch(checkpoint_path(directory_, update), std::to_string(update));
    link_to(checkpoint_path(directory_, update), kLatestLink);
    EXPECT_EQ(fs::read_symlink(link), checkpoint_path({}, update)) << "within the directory: it may be moved";
    EXPECT_EQ(base::read_file(link), std::to_string(update));
  }
  fs::remove(checkpoint_path(directory_, 12));
  link_to(checkpoint_path(directory_, 6), kLatestLink);
  EXPECT_EQ(base::read_file(link), "6") << "a link that led nowhere changes too";
  fs::remove(link);
  touch(link, "mine");
  link_to(checkpoint_path(directory_, 6), kLatestLink);
  EXPECT_EQ(base::read_file(link), "mine");
}

TEST_F(CheckpointFiles, DamagedOnesAreSetAside) {
  const auto path = checkpoint_path(directory_, 12);
  touch(path, "damaged");
  const auto aside = set_aside_damaged(path);
  EXPECT_EQ(aside, directory_ / "damaged-checkpoint-00000012.safetensors");
  EXPECT_EQ(base::read_file(aside), "damaged");
  EXPECT_THAT(checkpoints_in(directory_), IsEmpty());
  EXPECT_EQ(set_aside_damaged(path), path) << "one that cannot be renamed keeps its name";
}

}  // namespace
}  // namespace paceline::train
