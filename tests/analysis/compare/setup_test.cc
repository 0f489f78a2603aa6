#include "analysis/compare/setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "golden/fields.h"
#include "golden/records.h"
#include "measure/setting.h"

namespace paceline::analysis {
namespace {

using golden::make_record;
using measure::Record;
using testing::ElementsAre;

/// Two workers with all that a record can hold.
Record full_record() {
  Record record = make_record({.workers = 2});
  record.communication.processes = 2;
  golden::all_fields(record);
  return record;
}

constexpr std::string_view kResult = "was measured";
constexpr std::string_view kMoment = "of the moment: it is shown, and nothing is refused for it";
constexpr std::string_view kRepeat = "repeats differ in it by being repeats";
constexpr std::string_view kLength = "length of the window: times a step keep their distribution";
constexpr std::string_view kFollows = "follows from the model and the settings";
constexpr std::string_view kPlan =
    "follows from model and sizes; the process's own part of it grows over a study";

/// Fields that the set-up leaves out, with the reason; "epochs[]" stands for all fields of an epoch. Settings
/// are decided by their role.
constexpr std::pair<std::string_view, std::string_view> kLeftOut[] = {
    {"id", kRepeat},
    {"status", "how it ended: only what was measured has a key"},
    {"reason", "how it ended"},
    {"updates_done", kResult},
    {"loss", "how it ended"},
    {"restarts[].reason", "how an earlier run ended"},
    {"restarts[].detection_s", kResult},
    {"restarts[].rebuild_s", kResult},
    {"restarts[].lost_updates", kResult},
    {"restarts[].lost_samples", kResult},
    {"changes[].now", "what the next change says it was then, or the setting itself"},
    {"rollbacks[]", kResult},
    {"skipped_updates", kResult},
    {"loss_scale", kResult},
    {"created", kRepeat},
    {"batch_given_as", "the sizes say it, however they were given"},
    {"command", "as typed: what it chose stands in the settings"},
    {"environment.memory_bytes", "decides what fits, not how long a step takes; compare() remarks it"},
    {"environment.load_before", kMoment},
    {"environment.gpus", "sentences on the moment; the device has an entry"},
    {"model.bytes_a_sample", kFollows},
    {"model.graph_sha256", kFollows},
    {"model.bytes_a_step", kFollows},
    {"data.stored_bytes", "follows from the data set, which has an entry"},
    {"data.shards", "how the samples are stored: the lists of images have entries, and so has --shuffle"},
    {"data.classes", "names of labels: the lists of images have entries"},
    {"repeat", kRepeat},
    {"also", "which other question the cell is asked for, and nothing that it did otherwise"},
    {"memory.plan_bytes", kPlan},
    {"memory.plan_lines", kPlan},
    {"memory.peak_bytes", kResult},
    {"memory.available_bytes", kMoment},
    {"memory.device.plan_bytes", kPlan},
    {"memory.device.plan_lines", kPlan},
    {"memory.device.available_bytes", kMoment},
    {"memory.device.use", kMoment},
    {"window.warmup_steps", kLength},
    {"window.steps", kLength},
    {"window.timed_of", "follows from the number of steps"},
    {"window.samples", kLength},
    {"window.wall_s", kResult},
    {"window.others_cores", kMoment},
    {"window.others[]", kMoment},
    {"window.paused_s", kMoment},
    {"peak", kResult},
    {"first_step_s", kResult},
    {"communication.nodes", "the hosts of the ranks say it"},
    {"communication.parameter_bytes", kFollows},
    {"communication.statistics_bytes", kFollows},
    {"communication.padding_bytes", kFollows},
    {"communication.vote_bytes", "follows from how the device's steps are waited for"},
    {"communication.norm_bytes", kFollows},
    {"communication.norm_collectives", kFollows},
    {"communication.bytes_received", kResult},
    {"communication.bytes_sent", "counted over the window; the algorithm decides it"},
    {"communication.collectives", "counted over the window"},
    {"communication.memory_ceiling_gb_per_s", kResult},
    {"ranks[].rank", "its place in the list"},
    {"ranks[].wall_s", kResult},
    {"ranks[].phases_s", kResult},
    {"ranks[].communication_s", kResult},
    {"ranks[].transfer_s", kResult},
    {"ranks[].late_peer_s", kResult},
    {"ranks[].loader_prepare_s", kResult},
    {"ranks[].loader_processor_s", kResult},
    {"ranks[].loader_waits", kResult},
    {"ranks[].loader_ready", kResult},
    {"ranks[].peak_bytes", kResult},
    {"ranks[].bytes_sent", kResult},
    {"ranks[].bytes_received", kResult},
    {"ranks[].step_s", kResult},
    {"ranks[].own_s", kResult},
    {"ranks[].steps_s", kResult},
    {"buckets[]", "times, and sizes that follow from the setting: of bucket-mb auto see setup.h"},
    {"last_steps", kResult},
    {"gpus[]", kResult},
    {"epochs[]", kResult},
    {"steps[]", kResult},
    {"evaluations[]", kResult},
    {"target", "a setting; the rest was measured"},
    {"chosen", kResult},
    {"kernels", "which were measured is a setting, and by default they follow from shape and processor"},
    {"test_set", "the policy is a setting; the rest was measured"},
    {"evaluation", "of kind evaluate, of which there are no cells"},
    {"collectives[]", "of kind comm, of which there are no cells"},
    {"link_fits[]", "of kind comm, of which there are no cells"},
    {"notes", "sentences of the run"},
};

/// Why the set-up leaves the field out: a reason for each entry of kLeftOut that holds the field.
std::vector<std::string_view> reasons_to_leave_out(const std::string& field) {
  std::vector<std::string_view> reasons;
  for (const auto& [left_out, why] : kLeftOut) {
    const bool is_of_list = left_out.ends_with("[]") && field.starts_with(left_out);
    const bool is_above = field.starts_with(std::string(left_out) + '.');
    if (left_out == field || is_of_list || is_above) reasons.push_back(why);
  }
  return reasons;
}

bool changes_the_setup(const Record& record, const std::string& field) {
  Record other = record;
  golden::change_field(other, field);
  return setup(other) != setup(record);
}

// Processes, nodes and communicator were fields that nobody had decided on: threads, two processes of a host
// and two processes of two hosts became "3 repeats" of one cell.
TEST(Setup, HasOrLeavesOutEveryFieldOfARecord) {
  Record record = full_record();
  for (const auto& field : golden::all_fields(record)) {
    const auto reasons = reasons_to_leave_out(field);
    EXPECT_TRUE(!reasons.empty() || changes_the_setup(record, field))
        << field << ": give it a row in src/analysis/compare/setup.cc, or a reason here";
    for (const auto& why : reasons) EXPECT_FALSE(why.empty()) << field;
  }
}

TEST(Setup, DecidesOnNoFieldThatThereIsNot) {
  Record record = full_record();
  const auto fields = golden::all_fields(record);
  for (const auto& one : kLeftOut)
    EXPECT_TRUE(std::any_of(fields.begin(), fields.end(), [&](const auto& field) {
      return field.starts_with(one.first);
    })) << one.first;
}

TEST(Setup, ChangesWithEveryFieldThatItHasAndWithNoOther) {
  Record record = full_record();
  for (const auto& field : golden::all_fields(record))
    EXPECT_EQ(changes_the_setup(record, field), reasons_to_leave_out(field).empty()) << field;
}

TEST(Setup, HasEverySettingButTheWindowsAndWhatHasAnEntryOfItsOwn) {
  const Record record = make_record({.workers = 2});
  for (std::size_t row = 0; row < measure::Setting::count(); ++row) {
    const auto setting = measure::Setting::at(row);
    Record other = record;
    other.settings[std::string(setting.key())] = "another";
    const bool is_free = setting.role() == measure::SettingRole::window ||
                         setting.role() == measure::SettingRole::precision || setting == "parallel" ||
                         setting == "workers" || setting == "local-batch" || setting == "global-batch";
    EXPECT_EQ(setup(other) == setup(record), is_free) << setting.key();
  }
  Record unknown = record, empty = record;
  unknown.settings["an-option-of-the-future"] = "1";
  empty.settings["an-option-of-the-future"] = "";
  EXPECT_NE(setup(unknown), setup(record));
  EXPECT_NE(setup(empty), setup(record));
}

TEST(Setup, HasHowManyCoresWorkersArePinnedToAndNotWhich) {
  Record one = make_record({.workers = 2}), moved = one, fewer = one;
  moved.ranks[0].cores = {6};
  moved.ranks[1].cores = {3};
  EXPECT_EQ(setup(moved), setup(one));
  fewer.ranks[1].cores = fewer.ranks[0].cores;
  EXPECT_NE(setup(fewer), setup(one)) << "two workers on one core";
  fewer.ranks[0].cores.clear();
  fewer.ranks[1].cores.clear();
  EXPECT_EQ(text_of(setup(fewer), "cores pinned to"), "none");
}

TEST(Setup, TakesNoBucketSizeThatNoiseChose) {
  Record one = make_record({.workers = 2});
  one.settings["bucket-mb"] = "auto";
  Record other = one;
  other.buckets.resize(3);
  EXPECT_EQ(setup(other), setup(one));
}

/// `hosts` of the ranks, in as many processes as there are ranks.
Record joined(std::vector<std::string> hosts, const std::string& algorithm) {
  Record record = make_record({.workers = static_cast<int>(hosts.size())});
  record.communication.communicator = "mpi";
  record.communication.algorithm = algorithm;
  record.communication.processes = static_cast<std::int64_t>(hosts.size());
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) record.ranks[rank].host = hosts[rank];
  return record;
}

TEST(Setup, SaysHowWorkersAreJoined) {
  EXPECT_EQ(joined_as(make_record({})), "");
  EXPECT_EQ(joined_as(make_record({.workers = 2})), "threads of one process");
  EXPECT_EQ(joined_as(joined({"a", "a"}, "direct (memory of the host)")), "2 processes over shared memory");
  EXPECT_EQ(joined_as(joined({"a", "a"}, "exchange (messages)")), "2 processes by messages");
  EXPECT_EQ(joined_as(joined({"a", "b"}, "exchange (messages)")), "2 processes on 2 nodes");
  EXPECT_EQ(joined_as(joined({"a", "a", "a", "b"}, "")), "4 processes on 2 nodes (3 + 1)");
  EXPECT_EQ(joined_as(joined({"a", "a", "b", "b"}, "")), "4 processes on 2 nodes (2 + 2)");
  EXPECT_EQ(joined_as(golden::make_skipped({.workers = 2}, "too large")), "");
}

TEST(Setup, CountsWorkersByNode) {
  const auto text = [](std::vector<std::string> hosts) {
    return std::string(text_of(setup(joined(std::move(hosts), "")), "workers by node"));
  };
  EXPECT_EQ(text({"a", "a", "b"}), "2 + 1");
  EXPECT_EQ(text({"a", "b", "a", "b"}), "by rank 1, 2, 1, 2");
  EXPECT_EQ(text({"a", "a"}), "");
  const auto two = setup(joined({"a", "b"}, ""));
  EXPECT_EQ(text_of(two, "nodes"), "2");
  EXPECT_EQ(text_of(two, "hosts"), "a, b");
  EXPECT_TRUE(differ_in(two, setup(joined({"a", "c"}, "")), SetupKind::joined)) << "another host";
}

TEST(Setup, NamesEmulationApartFromTheCommunicator) {
  Record record = make_record({.workers = 2});
  record.communication.communicator = "local + EMULATED link of 1000 us, 1 GB/s";
  EXPECT_EQ(text_of(setup(record), "communicator"), "local");
  EXPECT_EQ(text_of(setup(record), "emulated"), "link of 1000 us, 1 GB/s");
}

TEST(Setup, HasTheWorkersOfWhatARestartCameFrom) {
  Record record = make_record({.workers = 2});
  record.restarts = {{.reason = "lost", .workers = 4}, {.reason = "lost", .workers = 2}};
  EXPECT_EQ(text_of(setup(record), "workers before a restart"), "4");
}

TEST(Setup, NamesTheFirstDifferencesOnly) {
  using enum SetupKind;
  const analysis::Setup a{{"cpu", "x", machine}, {"lr", "0.1", setting}, {"host", "h", circumstance}};
  const analysis::Setup b{{"cpu", "x", machine}, {"lr", "0.2", setting}, {"host", "i", circumstance}};
  const analysis::Setup c{{"cpu", "x", machine}, {"host", "h", circumstance}};
  const analysis::Setup d{{"cpu", "x", setting},
                          {"host", "h", circumstance}};  // a setting of that name is another
  EXPECT_THAT(first_differences({&a, &b, &c}), ElementsAre("lr 0.1", "lr 0.2", "no lr"));
  EXPECT_THAT(first_differences({&c, &d}), ElementsAre("cpu x", "no cpu"));
  EXPECT_THAT(first_differences({&a, &a}), ElementsAre("", ""));
  EXPECT_THAT(
      differences_within<const analysis::Setup*>({"same", "same", "own"}, {&a, &c, &b}, first_differences),
      ElementsAre("lr 0.1", "no lr", ""));
}

}  // namespace
}  // namespace paceline::analysis
