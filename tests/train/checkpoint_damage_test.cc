/// Damaged checkpoints and records: refused, or without a consequence; never other bits in silence.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "fixture.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_header.h"
#include "train/checkpoint/kept_record.h"
#include "train/checkpoint/resume_point.h"

namespace paceline::train {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

/// A model whose checkpoint takes about 4 KB.
constexpr const char* kTiny = R"(
[[layer]]
op = "conv2d"
name = "conv1"
channels = 8
kernel = 3
stride = 4
[[layer]]
op = "batch_norm"
name = "bn1"
[[layer]]
op = "relu"
[[layer]]
op = "global_average_pool"
[[layer]]
op = "dense"
name = "fc"
features = "classes"
)";

class CheckpointDamage : public TrainingTest {
 protected:
  CheckpointDamage() { base::write_file(directory_ / "tiny.toml", std::string_view(kTiny)); }

  [[nodiscard]] Options tiny(const std::string& out) const {
    Options options = small(out);
    options.model = (directory_ / "tiny.toml").string();
    options.steps = 0;
    options.epochs = 2;
    return options;
  }

  void write(const std::filesystem::path& path, std::string_view bytes) const {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;  // not synced: thousands of them
  }
  /// Why a checkpoint of these bytes is refused; "" where it is not.
  [[nodiscard]] std::string refused(std::string_view bytes) const {
    const auto path = directory_ / "damaged.safetensors";
    write(path, bytes);
    try {
      (void)open_checkpoint(path);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.kind(), base::ErrorKind::data);
      return error.what();
    }
    return "";
  }
};

TEST_F(CheckpointDamage, EveryFlippedByteAndEveryTruncationIsRefused) {
  const Options options = tiny("o");
  (void)train(options);
  const auto good = base::read_file(checkpoint_path(options.out, 12));
  ASSERT_GT(good.size(), 3800u);
  ASSERT_LT(good.size(), 6000u);
  ASSERT_EQ(refused(good), "");
  for (std::size_t at = 0; at < good.size(); ++at)
    for (const int mask : {1 << (at % 8), 0xff, 0x20}) {
      auto damaged = good;
      damaged[at] = static_cast<char>(damaged[at] ^ mask);
      EXPECT_NE(refused(damaged), "") << "byte " << at << " ^ " << mask;
    }
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_NE(refused(good.substr(0, length)), "") << length;
  EXPECT_NE(refused(good + " "), "");
  // As a file system leaves it after a loss of power: the header, and zeros.
  const auto header = good.size() / 2;
  EXPECT_NE(refused(good.substr(0, header) + std::string(good.size() - header, '\0')), "");
}

// Checkpoints of versions before have another format, no sum, and open; one that lost its sum does not.
TEST_F(CheckpointDamage, OlderFilesOpenWithANoteAndNewOnesNeedTheirSum) {
  Options options = tiny("o");
  (void)train(options);
  const auto path = checkpoint_path(options.out, 12);
  const auto rewrite = [&](const char* format) {
    const SafetensorsFile file(path);
    auto metadata = file.metadata();
    metadata.erase("sha256");
    metadata["format"] = format;
    write_safetensors(path, file.tensors(), metadata);
  };
  rewrite(kCheckpointFormat);
  EXPECT_THAT(refused(base::read_file(path)),
              HasSubstr("requires a SHA-256 in its header, but there is none"));
  rewrite(kFormatWithoutSum);
  options.resume = options.out;
  options.epochs = 3;
  EXPECT_THAT(train(options).notes,
              Contains(HasSubstr("checkpoint-00000012.safetensors was written by a version "
                                 "without checksums")));
}

TEST_F(CheckpointDamage, AResumeGoesOnFromTheNewestWholeOneAndSaysSo) {
  Options options = tiny("whole");
  options.epochs = 4;
  (void)train(options);
  const auto whole = base::read_file(checkpoint_path(options.out, 24));

  options = tiny("o");
  (void)train(options);
  const auto newest = checkpoint_path(options.out, 12), before = checkpoint_path(options.out, 6);
  auto bytes = base::read_file(newest);
  bytes[bytes.size() - 5] ^= 1;  // of the data
  write(newest, bytes);
  options.resume = options.out;
  options.epochs = 4;
  std::vector<std::string> said;
  Progress progress;
  progress.say = [&](const std::string& text) { said.push_back(text); };
  (void)train(options, {}, progress);
  EXPECT_THAT(said,
              Contains(AllOf(HasSubstr("checkpoint-00000012.safetensors is not used"), HasSubstr("SHA-256"),
                             HasSubstr("continues from checkpoint-00000006.safetensors"))));
  EXPECT_EQ(base::read_file(checkpoint_path(options.out, 24)), whole);
  EXPECT_EQ(base::read_file(options.out / "damaged-checkpoint-00000012.safetensors"), bytes);
  // The file itself, and a directory without a whole one, are refused.
  for (const auto& path : checkpoints_in(options.out)) write(path, "x");
  EXPECT_THAT(refusal([&] {
                Options again = options;
                again.epochs = 5;
                return again;
              }()),
              AllOf(HasSubstr("cannot continue from any of its")));
}

TEST_F(CheckpointDamage, ThousandFlipsOfARecordAreRefusedOrHarmless) {
  const Options options = tiny("o");
  (void)train(options);
  const auto path = options.out / "record.json";
  const auto good = base::read_file(path);
  const auto meaning = measure::to_json(measure::read_record(path));
  std::mt19937_64 rng(28);
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    auto damaged = good;
    const auto at = static_cast<std::size_t>(rng() % damaged.size());
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (rng() % 8)));
    try {
      EXPECT_EQ(measure::to_json(measure::record_from_json(damaged, "r")), meaning) << at;
    } catch (const base::Error& error) {
      EXPECT_EQ(error.kind(), base::ErrorKind::data);
      ++refused;
    }
  }
  EXPECT_EQ(refused, 1000);
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_THROW((void)measure::record_from_json(good.substr(0, length), "r"), base::Error) << length;
}

/// Values that no run can have, in a record that carries no sum (one that somebody made, or an older one).
TEST_F(CheckpointDamage, NoRecordStandsInTheWayOfAGoodCheckpoint) {
  Options options = tiny("whole");
  options.epochs = 3;
  (void)train(options);
  const auto whole = base::read_file(checkpoint_path(options.out, 18));
  options = tiny("o");
  (void)train(options);
  auto record = nlohmann::ordered_json::parse(base::read_file(options.out / "record.json"));
  record.erase("sha256");
  record.erase("checksum");
  using Json = nlohmann::ordered_json;
  const auto with = [&](const char* pointer, const Json& value) {
    auto changed = record;
    changed[Json::json_pointer(pointer)] = value;
    return changed.dump();
  };
  const Json huge = 9223372036854775807, small = std::int64_t{-9223372036854775807};
  const std::array<std::string, 16> hostile{"",
                                            "{",
                                            "[]",
                                            "\xff\xfe",
                                            std::string(1000, '['),
                                            with("/schema", "other"),
                                            with("/status", 7),
                                            with("/epochs", Json::array({7})),
                                            with("/epochs/0/updates", huge),
                                            with("/epochs/1/updates", small),
                                            with("/epochs/1/updates", 3),
                                            with("/epochs/0/steps", small),
                                            with("/epochs/1/steps", huge),
                                            with("/test_set/reads", huge),
                                            with("/updates_done", huge),
                                            with("/settings", Json::array())};
  for (std::size_t i = 0; i < hostile.size(); ++i) {
    Options resumed = options;
    resumed.out = directory_ / ("h" + std::to_string(i));
    std::filesystem::copy(
        options.out, resumed.out,
        std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
    write(resumed.out / "record.json", hostile[i]);
    EXPECT_FALSE(read_kept_record(resumed.out / "record.json").record) << i;
    resumed.resume = resumed.out;
    resumed.epochs = 3;
    const auto notes = train(resumed).notes;
    EXPECT_THAT(notes, Contains(HasSubstr("the record beside the checkpoint cannot be used"))) << i;
    EXPECT_EQ(base::read_file(checkpoint_path(resumed.out, 18)), whole) << i;
    EXPECT_EQ(base::read_file(resumed.out / "damaged-record.json"), hostile[i]);
  }
}

}  // namespace
}  // namespace paceline::train
