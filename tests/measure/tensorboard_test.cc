#include "measure/tensorboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"

namespace paceline::measure {
namespace {

namespace fs = std::filesystem;

// That another library reads these files, and finds the checksums right, is shown by
// tests/tensorboard/decode.py.

TEST(Crc32c, IsThatOfItsSpecification) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);  // of RFC 3720
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(TfRecord, FramesAMessage) {
  const auto record = tfrecord("abc");
  ASSERT_EQ(record.size(), 8 + 4 + 3 + 4u);
  EXPECT_EQ(record.substr(0, 8), std::string("\3\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(record.substr(12, 3), "abc");
}

TEST(TensorBoard, MakesAFileWithTheFirstScalarAndPassesOverOtherEvents) {
  std::string pattern = (fs::temp_directory_path() / "paceline-board-XXXXXX").string();
  const fs::path directory = ::mkdtemp(pattern.data());
  {
    TensorBoardFile board(directory / "tensorboard", nullptr);
    board.take(Event("start"));
    EXPECT_TRUE(fs::is_empty(directory));
    board.take(Event("step").set("update", 3).set("loss", 0.5));
    board.take(Event("evaluation").set("update", 4).set("epoch", 2).set("test_accuracy", 0.25));
  }
  ASSERT_EQ(std::distance(fs::directory_iterator(directory / "tensorboard"), {}), 1);
  const auto path = fs::directory_iterator(directory / "tensorboard")->path();
  EXPECT_THAT(path.filename().string(), ::testing::StartsWith("events.out.tfevents."));
  const auto bytes = base::read_file(path);
  for (const char* text : {"brain.Event:2", "train/loss", "test/accuracy", "by_epoch/test/accuracy"})
    EXPECT_THAT(bytes, ::testing::HasSubstr(text));
  EXPECT_THAT(bytes, ::testing::Not(::testing::HasSubstr("by_epoch/train")));
  fs::remove_all(directory);
}

TEST(TensorBoard, ThatCannotWriteSaysSoOnce) {
  std::vector<std::string> said;
  TensorBoardFile board("/dev/null/tensorboard", [&](const std::string& text) { said.push_back(text); });
  for (int i = 0; i < 3; ++i) board.take(Event("step").set("update", i).set("loss", 0.5));
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], ::testing::HasSubstr("goes on without it"));
}

}  // namespace
}  // namespace paceline::measure
