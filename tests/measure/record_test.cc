#include "measure/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/file.h"
#include "measure/record_file.h"

namespace paceline::measure {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// What records of before did not have.
void fill_later_fields(Record& r) {
  r.environment.gpus = {"GPU 0: NVIDIA H100"};
  r.model.bytes_a_sample = 101;
  r.model.bytes_a_step = 102;
  r.window.others = std::vector<OtherProgramRecord>{{.name = "ninja", .cores = 0.8}};
  r.peak = PeakRecord{.threads = 2, .precision = "bf16", .flops_per_s = 4e11, .bytes_per_s = 2e10};
  GpuRecord gpu{.index = 3, .ranks = {0, 1}, .name = "NVIDIA H100", .uuid = "GPU-4f", .readings = 4};
  gpu.seconds = 1.5;
  gpu.energy_j = 812.5;
  gpu.energy_by = "counter";
  gpu.pcie = base::PcieLink{.generation = 4, .width = 8};
  gpu.held_back = std::map<std::string, double>{{"power cap", 0.25}};
  gpu.others = std::vector<GpuProcessRecord>{{.pid = 41, .name = "python3", .share = 0.5}};
  gpu.course.utilisation = {0.5, 1};
  gpu.course.watts = {300, std::numeric_limits<double>::quiet_NaN()};
  r.gpus = {gpu};
  r.communication.parameter_bytes = 44695848;
  r.communication.statistics_bytes = 38400;
  r.communication.padding_bytes = 64;
  r.communication.norm_bytes = 76;
  r.communication.norm_collectives = 77;
}

/// A record with every field different from its default and from its neighbours.
Record filled() {
  Record r;
  r.kind = "scale";
  r.id = "scale-weak-w2-b128-r0";
  r.status = "interrupted";
  r.reason = "Ctrl-C \"twice\"\nand a line break";
  r.created = "2026-01-02T03:04:05Z";
  r.command = "paceline scale --workers 2 --name 'Zürich'";
  r.settings = {{"optimizer", "sgd"}, {"lr", "0.1"}};
  r.environment = {.host = "h",
                   .cpu = "c",
                   .cores = 3,
                   .memory_bytes = 1ll << 40,
                   .instructions = {"avx2", "fma"},
                   .os = "o",
                   .compiler = "g",
                   .build = "Release",
                   .version = "v",
                   .libraries = {"onednn 2.6.3"},
                   .load_before = 0.37};
  r.model = {.name = "m", .parameters = 11173962, .training_flops = 3333333333};
  r.data = {.spec = "cifar10:d",
            .name = "n",
            .description = "d",
            .synthetic = true,
            .train_samples = 50000,
            .test_samples = 10000,
            .validation_samples = 5000,
            .dropped_per_epoch = 80,
            .steps_per_epoch = 390};
  r.workers = 2;
  r.threads_per_worker = 4;
  r.oversubscribed = true;
  r.local_batch = 64;
  r.global_batch = 128;
  r.batch_given_as = "global";
  r.precision = "bf16";
  r.device = "cpu";
  r.scaling = "weak";
  r.variant = "baseline";
  r.repeat = 5;
  r.learning_rate = {.base = 0.1, .factor = 4, .peak = 0.4, .rule = "linear", .reference_batch = 32};
  r.memory = {.plan_bytes = 10,
              .plan_lines = {{"weights", 6}, {"loader", 4}},
              .peak_bytes = 11,
              .available_bytes = 12};
  r.window = {.unit = "steps", .warmup_steps = 2, .steps = 3, .samples = 384, .wall_s = 1.0 / 3};
  r.first_step_s = 0.7;
  r.loss = LossRecord{.known_at_s = 1.8e9, .detection_s = 0.9};
  r.restarts = std::vector<RestartRecord>{{.reason = "rank 1 is lost",
                                           .workers = 4,
                                           .detection_s = 5.5,
                                           .rebuild_s = 12.5,
                                           .lost_updates = 3,
                                           .lost_samples = 384}};
  for (int rank = 0; rank < 2; ++rank) {
    RankRecord one{.rank = rank,
                   .cores = {rank, rank + 2},
                   .wall_s = 0.1 + rank,
                   .phases = {},
                   .communication_s = 0.2,
                   .transfer_s = 0.15,
                   .late_peer_s = 0.05,
                   .step_s = {0.1, 0.2, 0.3},
                   .loader_prepare_s = 0.9,
                   .loader_threads = 1 + rank,
                   .loader_processor_s = 0.7,
                   .loader_waits = 3,
                   .loader_ready = 1.5,
                   .loader_queue = 2};
    for (std::size_t i = 0; i < kPhases; ++i) one.phases[i] = 0.01 * static_cast<double>(i + 1);
    r.ranks.push_back(one);
  }
  r.data.stored_bytes = 3072.5;
  r.data.images_on = "device";
  r.ranks[1].own_s = std::vector<double>{0.05, 0.15, 0.25};
  r.ranks[1].steps_s = 0.9;
  r.window.timed_of = 2;
  r.buckets = {{.bytes = 4096, .transfer_s = {1e-6, 2e-6}, .duration_s = {3e-6, 4e-6}}};
  r.buckets[0].ready_s = std::vector<double>{0.01, 0.02};
  r.communication = {.communicator = "local",
                     .algorithm = "direct",
                     .gradient_bytes = 44695848,
                     .vote_bytes = 32,
                     .bytes_sent = 7,
                     .collectives = 9,
                     .memory_ceiling_gb_per_s = 12.5};
  r.epochs = {{.epoch = 1,
               .updates = 390,
               .seconds = 3.5,
               .lr = 0.05,
               .train_loss = 1.1,
               .train_accuracy = 0.6,
               .test_loss = 1.2,
               .test_accuracy = 0.55}};
  r.steps = {{.update = 1, .loss = 2.3, .lr = 0.01}, {.update = 2, .loss = 2.2, .lr = 0.02}};
  r.notes = {"one", "two"};
  fill_later_fields(r);
  return r;
}

TEST(Record, SurvivesTheRoundTripWhole) {
  const std::string text = to_json(filled());
  EXPECT_EQ(to_json(record_from_json(text, "x")), text);
  // Against a field that both directions forget: the default must not look the same.
  const Record back = record_from_json(text, "x");
  EXPECT_EQ(back.environment.libraries, filled().environment.libraries);
  EXPECT_EQ(back.environment.gpus, filled().environment.gpus);
  EXPECT_EQ(back.gpus->at(0).energy_j, 812.5);
  EXPECT_EQ(back.gpus->at(0).pcie->width, 8);
  EXPECT_EQ(back.gpus->at(0).held_back->at("power cap"), 0.25);
  EXPECT_EQ(back.gpus->at(0).others->at(0).name, "python3");
  EXPECT_TRUE(std::isnan(back.gpus->at(0).course.watts[1]));
  EXPECT_EQ(back.model.bytes_a_sample, 101);
  EXPECT_EQ(back.model.bytes_a_step, 102);
  EXPECT_EQ(back.window.others->at(0).name, "ninja");
  EXPECT_EQ(back.window.others->at(0).cores, 0.8);
  EXPECT_EQ(back.peak->precision, "bf16");
  EXPECT_EQ(back.peak->bytes_per_s, 2e10);
  EXPECT_EQ(back.communication.statistics_bytes, 38400);
  EXPECT_EQ(back.communication.norm_bytes, 76);
  EXPECT_EQ(back.communication.norm_collectives, 77);
  EXPECT_EQ(back.memory.plan_lines, filled().memory.plan_lines);
  EXPECT_EQ(back.ranks[1].phases, filled().ranks[1].phases);
  EXPECT_EQ(back.ranks[1].cores, filled().ranks[1].cores);
  EXPECT_EQ(back.ranks[1].step_s, filled().ranks[1].step_s);
  EXPECT_EQ(back.ranks[1].loader_threads, 2);
  EXPECT_EQ(back.ranks[1].loader_processor_s, 0.7);
  EXPECT_EQ(back.ranks[1].loader_waits, 3);
  EXPECT_EQ(back.ranks[1].loader_ready, 1.5);
  EXPECT_EQ(back.ranks[1].loader_queue, 2);
  EXPECT_EQ(back.data.stored_bytes, 3072.5);
  EXPECT_EQ(back.data.images_on, "device");
  EXPECT_EQ(back.ranks[0].own_s, std::nullopt);
  EXPECT_EQ(back.ranks[1].own_s, filled().ranks[1].own_s);
  EXPECT_EQ(back.ranks[0].steps_s, std::nullopt);
  EXPECT_EQ(back.ranks[1].steps_s, 0.9);
  EXPECT_EQ(back.window.timed_of, 2);
  EXPECT_EQ(back.buckets[0].ready_s, filled().buckets[0].ready_s);
  EXPECT_EQ(back.buckets[0].duration_s, filled().buckets[0].duration_s);
  EXPECT_EQ(back.epochs[0].test_accuracy, 0.55);
  EXPECT_EQ(back.steps[1].loss, 2.2);
  EXPECT_EQ(back.reason, filled().reason);
  EXPECT_EQ(back.window.wall_s, 1.0 / 3);
  EXPECT_EQ(back.settings, filled().settings);
  EXPECT_EQ(back.repeat, 5);
}

/// Records of the host's engines do not have what is a device's: they read as they always did.
TEST(Record, HasADevicesFieldsOnlyWhereThereIsOne) {
  Record record = filled();
  EXPECT_EQ(to_json(record).find("device_name"), std::string::npos);
  EXPECT_FALSE(record_from_json(to_json(record), "x").memory.device.has_value());
  EXPECT_TRUE(Record::Memory({.plan_bytes = 13, .available_bytes = 12}).exceeds_what_there_is());
  EXPECT_FALSE(record.memory.exceeds_what_there_is());
  record.device = "cuda";
  record.device_name = "a GPU";
  record.memory.device = Record::Memory::Device{
      .workers = 2, .plan_bytes = 20, .plan_lines = {{"activations", 20}}, .available_bytes = 19};
  const Record back = record_from_json(to_json(record), "x");
  EXPECT_EQ(back.device_name, "a GPU");
  ASSERT_TRUE(back.memory.device.has_value());
  EXPECT_EQ(back.memory.device->workers, 2);
  EXPECT_EQ(back.memory.device->plan_lines, record.memory.device->plan_lines);
  EXPECT_TRUE(back.memory.exceeds_what_there_is());
}

/// Records of one process do not have what tells processes and nodes apart.
TEST(Record, HasNodesAndProcessesOfRanksOnlyWhereThereAreSeveral) {
  Record record = filled();
  for (const char* key :
       {"nodes", "processes_of_nodes", "placement", "parallel", "\"process\"", "peak_bytes\": 9"})
    EXPECT_EQ(to_json(record).find(key), std::string::npos) << key;
  record.communication.nodes = 2;
  record.communication.processes_of_nodes = {3, 1};
  record.communication.placement = "packed";
  record.communication.parallel = "data-parallel";
  record.communication.bytes_received = 11;
  record.ranks.front().process = 3;
  record.ranks.front().peak_bytes = 9;
  record.ranks.front().bytes_sent = 1;
  record.ranks.front().bytes_received = 2;
  const Record back = record_from_json(to_json(record), "x");
  EXPECT_EQ(back.communication.nodes, 2);
  EXPECT_EQ(back.communication.processes_of_nodes, std::vector({3, 1}));
  EXPECT_EQ(back.communication.placement, "packed");
  EXPECT_EQ(back.communication.parallel, "data-parallel");
  EXPECT_EQ(back.communication.bytes_received, 11);
  EXPECT_EQ(back.ranks.front().process, 3);
  EXPECT_EQ(back.ranks.front().peak_bytes, 9);
  EXPECT_EQ(back.ranks.front().bytes_sent, 1);
  EXPECT_EQ(back.ranks.front().bytes_received, 2);
}

TEST(Record, HasClassesAndListsOfItsData) {
  Record record;
  EXPECT_THAT(to_json(record), Not(HasSubstr("classes")));
  record.data.classes = {"cat", "dog"};
  record.data.lists_sha256 = {{"test", "ab"}, {"train", "cd"}};
  const Record back = record_from_json(to_json(record), "x");
  EXPECT_EQ(back.data.classes, record.data.classes);
  EXPECT_EQ(back.data.lists_sha256, record.data.lists_sha256);
}

TEST(Record, SaysWhichImagesChanged) {
  EXPECT_EQ(sentence({.setting = "lr", .then = "0.1", .now = std::nullopt, .update = 7}),
            "from update 7 on, --lr is not given; it was 0.1");
  EXPECT_EQ(sentence({.setting = kTestImages, .then = "32 images (ab..)", .now = std::nullopt, .update = 7}),
            "from update 7 on, the list of test images is another: none; before, 32 images (ab..)");
}

TEST(Record, ReadsItsOwnDefaults) {
  const Record back = record_from_json(to_json(Record{}), "x");
  EXPECT_EQ(back.status, "complete");
  EXPECT_FALSE(back.memory.peak_bytes.has_value());
  EXPECT_TRUE(back.ranks.empty());
}

/// A reader that compares each key with all before it would take hours, and end by the limit of the test.
TEST(Record, IsReadAmongAMillionOtherKeys) {
  const auto text = to_json(filled());
  std::string keys;
  for (int i = 0; i < 1000000; ++i) keys += "\"k" + std::to_string(i) + "\":1,";
  EXPECT_EQ(to_json(record_from_json("{" + keys + text.substr(1), "x")), text);
}

TEST(Record, KnowsWhetherItsFileHadAChecksum) {
  const auto text = to_json(filled());
  EXPECT_FALSE(record_from_json(text, "x").has_checksum);
  EXPECT_TRUE(record_from_json(with_checksum(text), "x").has_checksum);
}

TEST(Record, DoublesSurviveToTheLastBit) {
  Record r;
  r.buckets.resize(1);
  r.buckets[0].transfer_s = {0.1,  1.0 / 3, std::nextafter(1.0, 2.0), 5e-324, 1.7976931348623157e308,
                             -0.0, 1e22,    123456789.123456789};
  EXPECT_EQ(record_from_json(to_json(r), "x").buckets[0].transfer_s, r.buckets[0].transfer_s);
}

TEST(Record, WhatIsNotFiniteIsNullAndComesBackAsMissing) {
  Record r;
  r.epochs.resize(1);
  r.epochs[0].train_loss = std::numeric_limits<double>::infinity();
  r.epochs[0].test_loss = std::numeric_limits<double>::quiet_NaN();
  const std::string text = to_json(r);
  EXPECT_THAT(text, HasSubstr("\"train_loss\": null"));
  EXPECT_THAT(text, AllOf(Not(HasSubstr("inf")), Not(HasSubstr("nan"))));
  const Record back = record_from_json(text, "x");
  EXPECT_TRUE(std::isnan(back.epochs[0].train_loss));
  EXPECT_FALSE(back.epochs[0].test_loss.has_value());
}

std::string error_of(const std::string& text) {
  try {
    (void)record_from_json(text, "runs/a.json");
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::data);
    return error.what();
  }
  return "no error";
}

/// The record's JSON with its first `from` replaced.
std::string with(const std::string& from, const std::string& to) {
  std::string text = to_json(filled());
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Record, EveryErrorNamesTheFileTheKeyAndWhatWasFound) {
  struct Row {
    std::string text;
    std::vector<std::string> parts;
  };
  for (const auto& [text, parts] : std::vector<Row>{
           {"", {"runs/a.json", "is empty"}},
           {to_json(filled()).substr(0, 500), {"runs/a.json", "ends within its JSON", "the file is cut"}},
           {"{\"schema\": paceline}", {"runs/a.json: is not JSON: at byte 12 of 20"}},
           {"[]", {"not a record"}},
           {"{\"schema\": 3}", {"not a record"}},
           {with("paceline-record-1", "paceline-record-9"),
            {"runs/a.json", "paceline-record-9", "paceline-record-1"}},
           {with("\"workers\": 2", "\"workers\": \"two\""),
            {"runs/a.json", "'workers'", "whole number", "\"two\""}},
           {with("\"workers\": 2", "\"workers\": 2.5"), {"'workers'", "2.5"}},
           {with("\"workers\": 2", "\"workers\": 5000000000"), {"'workers'", "32 bits"}},
           {with("\"workers\": 2", "\"werkers\": 2"), {"no key 'workers'"}},
           {with("\"synthetic\": true", "\"synthetic\": 1"), {"'data.synthetic'", "true or false"}},
           {with("\"rank\": 1", "\"rank\": null"), {"'ranks[1].rank'", "null"}},
           {with("\"step_s\": [0.1,0.2,0.3]", "\"step_s\": [0.1,\"x\"]"), {"'ranks[0].step_s[1]'", "\"x\""}},
           {with("\"forward\"", "\"foreward\""), {"ranks[0].phases_s.forward"}},
           {with("\"weights\": 6", "\"weights\": 6.5"), {"'memory.plan_lines.weights'"}},
           {with("\"kind\": \"scale\"", "\"kind\": [1]"), {"'kind'", "a text"}},
           {with("[0.1,0.2,0.3]", "[0.1,-1,0.3]"),
            {"runs/a.json", "'ranks[0].step_s[1]'", "above 0 s but is -1", "measure again"}},
           {with("[0.1,0.2,0.3]", "[0.1,0.2,0]"), {"'ranks[0].step_s[2]'", "is 0;"}},
           {with("[0.1,0.2,0.3]", "[null,0.2,0.3]"), {"'ranks[0].step_s[0]'", "is null"}},
           {with("[0.1,0.2,0.3]", "[0.1,0.2,1e999]"), {"runs/a.json", "1e999"}},
       }) {
    const std::string error = error_of(text);
    for (const auto& part : parts) EXPECT_THAT(error, HasSubstr(part));
  }
}

// A picture called "caf\xe9.jpg" (Latin-1) was broken; its name in the notes ended the run as "a bug".
TEST(Record, TakesNamesThatAreNoUtf8) {
  Record record;
  record.kind = "train";
  record.notes = {"broken: caf\xe9.jpg"};
  record.settings = {{"data", "folder:\xff"}};
  const Record back = record_from_json(to_json(record), "f");
  EXPECT_EQ(back.notes.at(0), "broken: caf\xef\xbf\xbd.jpg");
  EXPECT_EQ(back.settings.at("data"), "folder:\xef\xbf\xbd");
}

TEST(Record, IsWrittenToAFileAndReadBack) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "paceline_record_test";
  const auto path = folder / "deeper" / "record.json";
  write_record(path, filled());
  EXPECT_EQ(to_json(read_record(path)), to_json(filled()));
  EXPECT_THROW((void)read_record(folder / "none.json"), base::Error);
  std::filesystem::remove_all(folder);
}

TEST(Record, KeepsPlainListsOnOneLine) {
  const std::string text = to_json(filled());
  EXPECT_THAT(text, HasSubstr("\"step_s\": [0.1,0.2,0.3]"));
  EXPECT_THAT(text, HasSubstr("\n      \"rank\": 1"));
}

TEST(Record, WhatValidationAndTestSetSayComesBackAndIsAbsentInOlderRecords) {
  Record record;
  EXPECT_EQ(to_json(record).find("test_set"), std::string::npos);
  EXPECT_FALSE(record_from_json(to_json(record), "r").test_set.has_value());
  record.chosen = {
      .epoch = 3, .updates = 30, .validation_loss = 0.1, .validation_accuracy = 0.9, .reductions = 2};
  record.test_set = {.policy = "last", .reads = 40, .epoch = 3, .loss = 0.3, .accuracy = 0.8};
  record.evaluation.emplace().classes = {"a", "b"};
  record.evaluation->confusion = {{1, 2}, {3, 4}};
  record.evaluation->mistakes = {
      {.index = 7, .path = "x.png", .label = 1, .predicted = 0, .probability = 0.75}};
  const auto back = record_from_json(to_json(record), "r");
  EXPECT_EQ(back.chosen.value().reductions, 2);
  EXPECT_EQ(back.test_set.value().accuracy, 0.8);
  EXPECT_EQ(back.evaluation.value().confusion, record.evaluation->confusion);
  EXPECT_EQ(back.evaluation->mistakes.at(0).path, "x.png");
  EXPECT_EQ(to_json(back), to_json(record));
}

TEST(Record, KeepsEvaluationsAndTheTarget) {
  Record record;
  EXPECT_EQ(to_json(record).find("\"target\""), std::string::npos) << "as records of before";
  EXPECT_EQ(to_json(record).find("\"evaluations\""), std::string::npos);
  EXPECT_FALSE(record_from_json(to_json(record), "r").evaluations.has_value());
  record.evaluations = {{.update = 20, .samples = 640, .seconds = {}, .loss = 0.5, .accuracy = 0.8},
                        {.update = 40, .samples = 1280, .seconds = 1.5, .loss = 0.25, .accuracy = 0.9}};
  record.target = {.quantity = "accuracy", .value = 0.9, .update = 40, .seconds = 1.5};
  const auto back = record_from_json(to_json(record), "r");
  EXPECT_EQ(back.evaluations.value().at(1).samples, 1280);
  EXPECT_FALSE(back.evaluations->at(0).seconds.has_value());
  EXPECT_EQ(back.target.value().update, 40);
  EXPECT_EQ(to_json(back), to_json(record));
}

TEST(Record, ATrainingEndsWithTheTestAccuracyOfTheChosenEpochWhereItWasHeldBack) {
  Record record;
  EXPECT_FALSE(final_test_accuracy(record).has_value());
  record.epochs.resize(2);
  record.epochs.back().test_accuracy = 0.7;
  EXPECT_EQ(final_test_accuracy(record), 0.7);
  record.test_set = {.policy = "last", .reads = 0, .epoch = 1, .accuracy = 0.9};
  EXPECT_EQ(final_test_accuracy(record), 0.9);
}

TEST(Record, KeepsTheEvaluationAndTheTopFive) {
  Record record;
  EXPECT_EQ(to_json(record).find("eval_resize"), std::string::npos) << "as records of before";
  record.data.eval_resize = 256;
  record.data.eval_size = "224x192";
  record.data.shards = 147;
  record.epochs = {{.epoch = 1, .test_accuracy = 0.5, .test_top_5 = 0.9}};
  const auto back = record_from_json(to_json(record), "here");
  EXPECT_EQ(back.data.eval_resize, 256);
  EXPECT_EQ(back.data.eval_size, "224x192");
  EXPECT_EQ(back.data.shards, 147);
  EXPECT_EQ(back.epochs.at(0).test_top_5, 0.9);
  EXPECT_FALSE(back.epochs.at(0).validation_top_5.has_value());
}

}  // namespace
}  // namespace paceline::measure
