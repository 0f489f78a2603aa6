// Checkpoints by themselves: what a file holds, and that every bit of it comes back.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/file.h"
#include "graph/zoo.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/safetensors.h"
#include "train/fixture.h"
#include "train/some_arrays.h"

namespace paceline::train {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class CheckpointFile : public TrainingTest {
 protected:
  void write(const std::string& name, const TrainingState& standing, bool with_slow = false) {
    write_checkpoint(directory_ / name, some_.arrays(with_slow), options_, resolved_, standing);
  }
  /// num_batches_tracked of the model's norm; -1 if it is not there.
  std::int64_t batches_in(const char* name) const {
    const SafetensorsFile file(directory_ / name);
    const Tensor* const batches = file.find("bn1.num_batches_tracked");
    std::int64_t count = -1;
    if (batches == nullptr || batches->dtype != base::DType::i64 || batches->bytes.size() != sizeof count)
      return -1;
    std::memcpy(&count, batches->bytes.data(), sizeof count);
    return count;
  }
  template <typename Body>
  static std::string text_of_error(const Body& body) {
    try {
      body();
    } catch (const base::Error& error) {
      EXPECT_EQ(error.kind(), base::ErrorKind::data);
      return error.what();
    }
    return "nothing is refused";
  }
  SomeArrays some_;
  Options options_;
  Resolved resolved_;
};

TEST_F(CheckpointFile, HasPyTorchsNamesAndShapes) {
  write("c", standing_at(812), true);
  const SafetensorsFile file(directory_ / "c");
  const auto shape_of = [&](const char* name) {
    const Tensor* const tensor = file.find(name);
    return tensor == nullptr ? std::vector<std::int64_t>{-1} : tensor->shape;
  };
  EXPECT_THAT(shape_of("conv1.weight"), ElementsAre(5, 3, 3, 3));
  EXPECT_THAT(shape_of("bn1.running_var"), ElementsAre(5));
  EXPECT_THAT(shape_of("fc.weight"), ElementsAre(4, 5));
  EXPECT_THAT(shape_of("optimizer.momentum_buffer.fc.bias"), ElementsAre(4));
  EXPECT_THAT(shape_of("optimizer.momentum_buffer.bn1.running_var"), ElementsAre(-1)) << "it is not trained";
  EXPECT_THAT(shape_of("lookahead.bn1.running_mean"), ElementsAre(5));
  // 7 parameters and the count of batches; the state of the 5 that are trained; 7 slow ones.
  EXPECT_EQ(file.tensors().size(), 7u + 1 + 5 + 7);
  EXPECT_EQ(batches_in("c"), 812);
}

TEST_F(CheckpointFile, CountsNoBatchesOfAFrozenNorm) {
  for (auto& node : some_.graph.nodes)
    if (auto* norm = std::get_if<graph::BatchNorm>(&node.op)) norm->is_frozen = true;
  write("frozen", standing_at(812));
  EXPECT_EQ(batches_in("frozen"), 0) << "PyTorch in eval() leaves its counter too";
}

TEST_F(CheckpointFile, GivesBackEveryBitUnderEveryUpdateRule) {
  const auto compiled = [&](const engine::UpdateRule& rule) {
    return engine::compile("reference", some_.graph, {.batch = 2, .rule = rule});
  };
  for (const auto& row : engine::update_rules()) {
    SCOPED_TRACE(row.name);
    options_.rule = row.usual;
    const auto from = compiled(options_.rule), to = compiled(options_.rule);
    const int slots = engine::state_slots(options_.rule);
    fill_slots(from->layout(), 7, from->weights());
    std::ranges::fill(to->weights(), std::numeric_limits<float>::quiet_NaN());
    for (int slot = 0; slot < slots; ++slot) {
      fill_slots(from->layout(), 8 + static_cast<std::uint64_t>(slot), from->optimizer_state(slot));
      std::ranges::fill(to->optimizer_state(slot), std::numeric_limits<float>::quiet_NaN());
    }
    const auto path = directory_ / std::string(row.name);
    write_checkpoint(path, arrays_of(*from, options_.rule, some_.slow), options_, resolved_, standing_at(7));
    std::vector<float> slow(some_.slow.size(), std::numeric_limits<float>::quiet_NaN());
    read_checkpoint(path, *to, slow, options_);
    const auto same = [&](std::span<const float> a, std::span<const float> b, bool trainable_only) {
      return same_slots(some_.graph, some_.layout, a, b, trainable_only);
    };
    EXPECT_TRUE(same(to->weights(), from->weights(), false));
    EXPECT_TRUE(same(slow, some_.slow, false));
    for (int slot = 0; slot < slots; ++slot)
      EXPECT_TRUE(same(to->optimizer_state(slot), from->optimizer_state(slot), true)) << slot;
  }
}

TEST_F(CheckpointFile, HasTheSameBytesForTheSameTraining) {
  write("a", standing_at(7, 6));
  write("b", standing_at(7, 6));
  EXPECT_EQ(base::read_file(directory_ / "a"), base::read_file(directory_ / "b"));
  write("b", standing_at(8, 6));
  EXPECT_NE(base::read_file(directory_ / "a"), base::read_file(directory_ / "b"));
}

TEST_F(CheckpointFile, WeightsAloneAreReadWithTheirRunningStatistics) {
  write("c", standing_at(7));
  std::vector<float> weights(some_.weights.size(), std::numeric_limits<float>::quiet_NaN());
  read_weights(directory_ / "c", some_.graph, some_.layout, weights);
  EXPECT_TRUE(same_slots(some_.graph, some_.layout, weights, some_.weights));
}

TEST_F(CheckpointFile, OfAnotherModelOrOptimizerNamesTheTensor) {
  write("c", standing_at(7));
  const auto other = small_graph(3);
  const auto layout = graph::flat_layout(other);
  std::vector<float> weights(static_cast<std::size_t>(layout.elements));
  EXPECT_THAT(text_of_error([&] { read_weights(directory_ / "c", other, layout, weights); }),
              AllOf(HasSubstr((directory_ / "c").string()), HasSubstr("fc.")));
  options_.rule = {.kind = engine::UpdateKind::adam};
  const auto adam = engine::compile("reference", some_.graph, {.batch = 2, .rule = options_.rule});
  EXPECT_THAT(text_of_error([&] { read_checkpoint(directory_ / "c", *adam, {}, options_); }),
              HasSubstr("optimizer.exp_avg."));
  const auto momentum = engine::compile("reference", some_.graph, {.batch = 2, .rule = Options().rule});
  std::vector<float> slow(some_.slow.size());
  EXPECT_THAT(text_of_error([&] { read_checkpoint(directory_ / "c", *momentum, slow, Options()); }),
              HasSubstr("lookahead."));
}

TEST_F(CheckpointFile, DamagedIsNotReadThoughItsHeaderSpeaks) {
  write("c", standing_at(7));
  auto bytes = base::read_file(directory_ / "c");
  bytes[bytes.size() - 5] ^= 1;
  base::write_file(directory_ / "c", std::string_view(bytes));
  EXPECT_EQ(read_checkpoint_info(directory_ / "c").updates, 7);
  std::vector<float> weights(some_.weights.size(), 1.0f);
  EXPECT_THAT(text_of_error([&] { read_weights(directory_ / "c", some_.graph, some_.layout, weights); }),
              HasSubstr("SHA-256"));
  EXPECT_EQ(weights, std::vector<float>(weights.size(), 1.0f)) << "nothing of it is taken";
}

TEST_F(CheckpointFile, SaysOfItselfWhatItIs) {
  resolved_.precision = engine::Precision::bf16;
  write("c", standing_at(7));
  const auto info = read_checkpoint_info(directory_ / "c");
  EXPECT_EQ(info.path, directory_ / "c");
  EXPECT_EQ(info.model, "small");
  EXPECT_EQ(info.precision, "bf16");
  EXPECT_EQ(info.updates, 7);
}

TEST_F(CheckpointFile, OfADirectoryTheBestElseTheNewestIsMeant) {
  EXPECT_THAT(text_of_error([&] { (void)read_checkpoint_info(directory_); }),
              HasSubstr("is neither a checkpoint nor a directory with checkpoint-*.safetensors in it"));
  write("checkpoint-00000006.safetensors", standing_at(6));
  write("checkpoint-00000012.safetensors", standing_at(12));
  EXPECT_EQ(read_checkpoint_info(directory_).updates, 12);
  write("best-00000006.safetensors", standing_at(6, 6));
  EXPECT_EQ(read_checkpoint_info(directory_).updates, 12) << "which the newest does not name";
  write("checkpoint-00000018.safetensors", standing_at(18, 6));
  EXPECT_EQ(read_checkpoint_info(directory_).updates, 6);
}

// A directory in the place of the file stands in for a disk that refuses it.
TEST_F(CheckpointFile, ThatCannotBeWrittenIsNamedAndLeavesNothingBehind) {
  const auto path = directory_ / "out" / "c";
  std::filesystem::create_directories(path / "in the way");
  try {
    write("out/c", standing_at(7));
    FAIL() << "accepted";
  } catch (const base::WriteError& error) {
    EXPECT_THAT(error.what(), HasSubstr(path.string()));
  }
  std::vector<std::filesystem::path> left;
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path()))
    left.push_back(entry.path());
  EXPECT_THAT(left, ElementsAre(path));
}

TEST(Counters, EpochsAreNumberedFromOne) {
  EXPECT_EQ(epoch_number({.update = 6, .epoch = 1, .step = 0}), 1) << "which has just ended";
  EXPECT_EQ(epoch_number({.update = 7, .epoch = 1, .step = 1}), 2);
}

}  // namespace

namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class CheckpointDirectory : public TrainingTest {
 protected:
  void touch(const fs::path& path, std::string_view text = "x") const { base::write_file(path, text); }
};

TEST_F(CheckpointDirectory, AreNamedByTheirUpdates) {
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

TEST_F(CheckpointDirectory, OfADirectoryAreListedNewestFirst) {
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

TEST_F(CheckpointDirectory, LinksLeadToTheNewTargetAndNeverOverSomebodysFile) {
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

TEST_F(CheckpointDirectory, DamagedOnesAreSetAside) {
  const auto path = checkpoint_path(directory_, 12);
  touch(path, "damaged");
  const auto aside = set_aside_damaged(path);
  EXPECT_EQ(aside, directory_ / "damaged-checkpoint-00000012.safetensors");
  EXPECT_EQ(base::read_file(aside), "damaged");
  EXPECT_THAT(checkpoints_in(directory_), IsEmpty());
  EXPECT_EQ(set_aside_damaged(path), path) << "one that cannot be renamed keeps its name";
}

}  // namespace

namespace {

using testing::HasSubstr;

graph::Graph dense(int inputs, int classes) {
  graph::Builder model("dense");
  model.loss(model.dense(model.input({inputs, 1, 1}), "dense", {.features = classes}), 0);
  return model.finish();
}

TEST(DiskSpace, ACheckpointHoldsWeightsStateAndSlowWeights) {
  const auto graph = dense(16, 16);  // 16 x 16 weights and 16 of bias, both whole lines
  const std::int64_t weights = 4 * (16 * 16 + 16);
  EXPECT_EQ(checkpoint_bytes(graph, {.rule = {}}), weights);
  EXPECT_EQ(checkpoint_bytes(graph, {.rule = {.momentum = 0.9}}), 2 * weights);
  EXPECT_EQ(checkpoint_bytes(graph, {.rule = {.kind = engine::UpdateKind::adam}, .lookahead = {.steps = 5}}),
            4 * weights);
}

TEST(DiskSpace, IsOfTheNearestDirectoryThatIsThere) {
  const fs::path out = fs::path(testing::TempDir()) / "not" / "there" / "yet";
  const auto room = static_cast<std::int64_t>(fs::space(testing::TempDir()).available);
  EXPECT_FALSE(lack_of_space(out, 1, 3));
  const auto lack = lack_of_space(out, room, 3);
  ASSERT_TRUE(lack);
  EXPECT_THAT(*lack, HasSubstr("MB are free, but 3 checkpoints of "));
  EXPECT_THAT(*lack, HasSubstr("make room, or the next ones will not be kept"));
  EXPECT_FALSE(lack_of_space(out, room / 8, 2));
}

}  // namespace
}  // namespace paceline::train
