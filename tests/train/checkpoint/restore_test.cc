/// --on-nan: what becomes of a training whose loss explodes or is no longer finite.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <limits>
#include <string_view>

#include "comm/make.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_header.h"
#include "train/checkpoint/restore.h"
#include "train/fixture.h"
#include "train/forwarding_engine.h"

namespace paceline::train {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using Unit = CheckpointInterval::Unit;

/// Does what another engine does, but for a loss that is not finite in steps (from 0) of the second half of
/// the global batch: of one worker the second shard, of two the second's.
class BadLoss : public ForwardingEngine {
 public:
  BadLoss(std::unique_ptr<engine::Engine> engine, std::vector<std::uint64_t> steps)
      : ForwardingEngine(std::move(engine)), steps_(std::move(steps)) {}
  engine::LossSums forward(const engine::StepInput& input) override {
    auto sums = ForwardingEngine::forward(input);
    const bool is_second_half = input.first_position % 16 >= 8;
    const auto found = std::ranges::find(steps_, input.step);
    if (!is_second_half || found == steps_.end()) return sums;
    steps_.erase(found);  // once: after a rollback the step is a good one
    sums.loss = std::numeric_limits<double>::quiet_NaN();
    return sums;
  }

 private:
  std::vector<std::uint64_t> steps_;
};

/// Notes what a rank calls from its last rollback on.
class NotesCalls final : public comm::Forwarding {
 public:
  NotesCalls(std::unique_ptr<comm::Communicator> inner, std::vector<std::string>& calls)
      : Forwarding(std::move(inner)), calls_(calls) {}
  void at(std::int64_t step, const char* phase) override {
    if (std::string_view(phase) == "the rollback") calls_.assign({"rollback"});
    Forwarding::at(step, phase);
  }
  void barrier() override {
    note("barrier");
    Forwarding::barrier();
  }
  std::unique_ptr<comm::Pending> all_reduce(base::Array src, base::Array dst) override {
    note("sum");
    return Forwarding::all_reduce(src, dst);
  }

 private:
  void note(const char* call) {
    if (!calls_.empty()) calls_.emplace_back(call);
  }
  std::vector<std::string>& calls_;
};

class Recover : public TrainingTest {
 protected:
  /// 10 steps of 16 samples in two shards, 6 an epoch.
  [[nodiscard]] Options asked(const std::string& out, int workers, OnNan on_nan) const {
    Options options = small(out);
    options.workers = workers;
    options.shard = 8;
    options.on_nan = on_nan;
    options.keep_checkpoints = 100;
    return options;
  }
  measure::Record train_with_bad(const Options& options, std::vector<std::uint64_t> steps,
                                 std::int64_t stop_at = 0) {
    said_.clear();
    events_.clear();
    std::stop_source stop;
    Progress progress;
    progress.say = [&](const std::string& text) { said_.push_back(text); };
    progress.event = [&](const measure::Event& event) { events_.push_back(event); };
    std::int64_t steps_done = 0;
    progress.step = [&](std::int64_t, std::int64_t, double, double) {
      if (++steps_done == stop_at) stop.request_stop();
    };
    auto backend = backend_of(options.device);
    backend.made_up->on_compile = [steps, device = options.device](const graph::Graph& graph,
                                                                   const engine::CompileOptions& compiled) {
      return std::make_unique<BadLoss>(engine::compile(device, graph, compiled), steps);
    };
    calls_.assign(static_cast<std::size_t>(options.workers), {});
    backend.made_up->on_communicators = [this](int ranks, std::chrono::seconds deadline) {
      auto joined = comm::make_local(ranks, {.deadline = deadline});
      for (std::size_t rank = 0; rank < joined.size(); ++rank)
        joined[rank] = std::make_unique<NotesCalls>(std::move(joined[rank]), calls_[rank]);
      return joined;
    };
    return run(options, backend, stop.get_token(), progress);
  }
  static std::string bytes_at(const Options& options, std::int64_t update) {
    return base::read_file(checkpoint_path(options.out, update));
  }
  /// All arrays but the count of updates.
  static std::map<std::string, std::string> arrays_at(const Options& options, std::int64_t update) {
    const auto file = open_checkpoint(checkpoint_path(options.out, update));
    std::map<std::string, std::string> arrays;
    for (const auto& tensor : file.tensors())
      if (tensor.dtype == base::DType::f32)
        arrays[tensor.name] =
            std::string(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
    return arrays;
  }
  [[nodiscard]] std::vector<measure::Event> events_named(const std::string& name) const {
    std::vector<measure::Event> found;
    for (const auto& event : events_)
      if (event.name() == name) found.push_back(event);
    return found;
  }
  std::vector<std::string> said_;
  std::vector<measure::Event> events_;
  std::vector<std::vector<std::string>> calls_;  ///< of each rank, see NotesCalls
};

// What opens after a rollback may allocate on a GPU, which can wait for the collectives of the others.
TEST_F(Recover, SumsWaitUntilAllHaveGoneBack) {
  auto options = asked("o", 2, OnNan::rollback);
  ASSERT_EQ(train_with_bad(options, {8}).rollbacks->size(), 1u);
  for (const auto& calls : calls_) {
    const auto first = std::ranges::find(calls, "sum");
    ASSERT_NE(first, calls.end());
    ASSERT_NE(first, calls.begin());
    EXPECT_EQ(*std::prev(first), "barrier");
  }
}

TEST_F(Recover, StopNamesTheBatchAndItsSamplesOnEveryRank) {
  for (const int workers : {1, 2}) {
    const auto options = asked("o" + std::to_string(workers), workers, OnNan::stop);
    try {
      (void)train_with_bad(options, {7});
      FAIL() << "goes on";
    } catch (const base::Error& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("step 8 of 10: the loss is no longer finite ("),
                                      HasSubstr("in the batch of step 2 of epoch 2 (training samples "),
                                      HasSubstr("--on-nan rollback")));
    }
    const auto found = events_named("divergence");
    ASSERT_EQ(found.size(), 1u);
    std::istringstream samples(found[0].text("samples").value());
    const std::set<int> indices{std::istream_iterator<int>(samples), {}};
    EXPECT_EQ(indices.size(), 16u);
    EXPECT_LT(*indices.rbegin(), 96);
    EXPECT_EQ(says_it_is_good(open_header(checkpoint_path(options.out, 6))), true);
  }
}

TEST_F(Recover, SkipLeavesWeightsAsTheyWereAndCounts) {
  std::string first;
  for (const int workers : {1, 2}) {
    auto options = asked("o" + std::to_string(workers), workers, OnNan::skip);
    options.checkpoint_every = {Unit::steps, 1};
    options.steps = 6;  // one epoch: the last step is the skipped one
    (void)train(options);
    const auto record = [&] {
      auto five = options;
      five.out = directory_ / ("five" + std::to_string(workers));
      five.steps = 5;
      (void)train(five);
      auto skipped = options;
      skipped.out = directory_ / ("skipped" + std::to_string(workers));
      const auto made = train_with_bad(skipped, {5});
      EXPECT_EQ(arrays_at(skipped, 6), arrays_at(five, 5)) << "bit for bit";
      EXPECT_NE(arrays_at(skipped, 6), arrays_at(options, 6));
      EXPECT_FALSE(says_it_is_good(open_header(checkpoint_path(skipped.out, 6))));
      if (first.empty()) first = bytes_at(skipped, 6);
      EXPECT_EQ(bytes_at(skipped, 6), first) << workers;
      return made;
    }();
    EXPECT_EQ(record.skipped_updates, 1);
    EXPECT_EQ(record.epochs.back().steps, 6);
    EXPECT_THAT(said_, Contains(AllOf(HasSubstr("step 6: the loss is no longer finite"),
                                      HasSubstr("its update is skipped (number 1 of this training)"))));
    EXPECT_EQ(events_named("skip").size(), 1u);
  }
}

TEST_F(Recover, SkipGivesUpWhereNothingElseIsLeft) {
  auto options = asked("o", 2, OnNan::skip);
  options.steps = 20;
  std::vector<std::uint64_t> bad;
  for (std::uint64_t step = 3; step < 20; ++step) bad.push_back(step);
  try {
    (void)train_with_bad(options, bad);
    FAIL() << "goes on";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("every update since the last epoch or checkpoint was skipped"));
  }
  options = asked("p", 1, OnNan::skip);
  options.data = "synthetic,train=400,test=40";  // 25 steps an epoch
  options.steps = 25;
  try {
    (void)train_with_bad(options, bad);
    FAIL() << "goes on";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("step 14 of 25"), HasSubstr("has been bad for 11 steps")));
  }
}

TEST_F(Recover, RollbackGoesOnFromTheNewestGoodCheckpointAtALowerRate) {
  // What it must come to: the first six steps, then four at a quarter of the rate.
  auto reference = asked("reference", 1, OnNan::stop);
  (void)train(reference);
  reference.resume = checkpoint_path(reference.out, 6);
  reference.out = directory_ / "rest";
  reference.lr /= 4;
  (void)train(reference);
  const auto expected = arrays_at(reference, 10);

  std::string first;
  for (const int workers : {1, 2}) {
    auto options = asked("o" + std::to_string(workers), workers, OnNan::rollback);
    const auto record = train_with_bad(options, {8});
    EXPECT_EQ(record.status, "complete");
    EXPECT_EQ(arrays_at(options, 10), expected) << workers;
    if (first.empty()) first = bytes_at(options, 10);
    EXPECT_EQ(bytes_at(options, 10), first) << workers;
    ASSERT_TRUE(record.rollbacks);
    ASSERT_EQ(record.rollbacks->size(), 1u);
    EXPECT_EQ(record.rollbacks->at(0).update, 9);
    EXPECT_EQ(record.rollbacks->at(0).to_update, 6);
    EXPECT_EQ(record.rollbacks->at(0).rate_factor, 0.25);
    EXPECT_EQ(record.epochs.size(), 2u);
    EXPECT_EQ(record.epochs.back().steps, 4);
    EXPECT_EQ(events_named("rollback").size(), 1u);
    EXPECT_THAT(said_, Contains(AllOf(HasSubstr("goes back to its checkpoint of update 6"),
                                      HasSubstr("with 0.25 times the learning rate"))));
  }
}

TEST_F(Recover, RollbackTwiceAndAResumeBetweenGiveTheBitsOfARunThatWasNeverStopped) {
  for (const int workers : {1, 2}) {
    auto options = asked("o" + std::to_string(workers), workers, OnNan::rollback);
    options.steps = 16;
    options.validation_split = 0.25;  // 4 steps an epoch
    const auto whole = train_with_bad(options, {6, 10});
    ASSERT_EQ(whole.rollbacks->size(), 2u);
    EXPECT_EQ(whole.rollbacks->back().rate_factor, 0.0625);

    auto stopped = options;
    stopped.out = directory_ / ("stopped" + std::to_string(workers));
    const auto part = train_with_bad(stopped, {6}, 6 + 2);  // two steps are done again: the next ends it
    ASSERT_EQ(part.status, "interrupted");
    ASSERT_EQ(part.epochs.back().updates, 7);
    stopped.resume = stopped.out;
    const auto rest = train_with_bad(stopped, {10});
    EXPECT_EQ(bytes_at(stopped, 16), bytes_at(options, 16)) << workers;
    ASSERT_EQ(rest.rollbacks->size(), 2u);
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_EQ(rest.rollbacks->at(i).to_update, whole.rollbacks->at(i).to_update) << i;
    ASSERT_EQ(rest.epochs.size(), whole.epochs.size());
    for (std::size_t i = 0; i < rest.epochs.size(); ++i)
      EXPECT_EQ(rest.epochs[i].validation_loss, whole.epochs[i].validation_loss) << i;
    EXPECT_EQ(rest.chosen->updates, whole.chosen->updates);
  }
}

TEST_F(Recover, RollbackFindsItsCheckpointHoweverFewAreKept) {
  for (const int workers : {1, 2}) {
    auto options = asked("o" + std::to_string(workers), workers, OnNan::rollback);
    options.keep_checkpoints = 1;
    options.validation_split = 0.25;  // 4 steps an epoch
    options.steps = 12;
    options.checkpoint_every = {Unit::epochs, 1};
    // The weights of update 8 are found bad before any later step has found them good.
    const auto record = train_with_bad(options, {8});
    ASSERT_EQ(record.rollbacks->size(), 1u);
    EXPECT_EQ(record.rollbacks->at(0).to_update, 4);
    EXPECT_EQ(record.status, "complete");
  }
}

TEST_F(Recover, RollbackBeforeTheFirstEpochGoesBackToFirstWeights) {
  const auto options = asked("o", 2, OnNan::rollback);
  EXPECT_EQ(train_with_bad(options, {3}).rollbacks->at(0).to_update, 0);
  EXPECT_EQ(
      refusal([&] {
        auto none = options;
        none.out = directory_ / "none";
        none.save_checkpoints = false;
        return none;
      }()),
      "--on-nan rollback goes back to checkpoints, and --no-checkpoints writes none; leave one of them out");
}

TEST_F(Recover, RollbackGivesUpWhereTheFirstLossIsBadAndAfterFiveTries) {
  auto options = asked("o", 2, OnNan::rollback);
  EXPECT_THROW((void)train_with_bad(options, {0}), base::Error);
  options = asked("p", 1, OnNan::rollback);
  try {
    (void)train_with_bad(options, {3, 3, 3, 3, 3, 3});
    FAIL() << "goes on";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("went back 5 times already"));
  }
}

// R10 of the study: a loss of 1e9 and no word.
TEST_F(Recover, AnExplodingLossIsFoundWhileItIsFinite) {
  for (const double lr : {50.0, 300.0}) {
    auto options = asked("stop" + std::to_string(static_cast<int>(lr)), 2, OnNan::stop);
    options.lr = lr;
    options.steps = 60;
    EXPECT_THAT(refusal(options), AnyOf(HasSubstr(": the loss is "), HasSubstr("no longer finite"))) << lr;
  }
}

TEST_F(Recover, RollbackLowersARateThatExplodesUntilItLearns) {
  auto options = asked("o", 2, OnNan::rollback);
  options.lr = 50;
  options.steps = 60;
  const auto record = train(options);
  EXPECT_EQ(record.status, "complete");
  ASSERT_TRUE(record.rollbacks);
  EXPECT_LT(record.epochs.back().train_loss, 10);
}

}  // namespace
}  // namespace paceline::train
