/// `paceline verify` over files as they were written, and as they were damaged.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/program.h"
#include "golden/records.h"
#include "measure/record_file.h"

namespace paceline::cli {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Verify : public testing::Test {
 protected:
  Outcome verify(std::vector<std::string> words) {
    words.insert(words.begin(), "verify");
    return run_program(words, {.directory = folder_.path()});
  }
  void train() {
    const auto outcome =
        run_program({"train", "--model", "resnet8-cifar", "--data", "synthetic,train=32,test=16",
                     "--global-batch", "16", "--steps", "2", "--threads", "1", "--out", "run"},
                    {.directory = folder_.path()});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  /// Flips one bit of a byte of `name`, counted from the end.
  void flip(const std::string& name, std::size_t from_end) {
    auto bytes = base::read_file(folder_.path() / name);
    bytes[bytes.size() - from_end] ^= 1;
    base::write_file(folder_.path() / name, std::string_view(bytes));
  }
  const Folder folder_;
};

TEST_F(Verify, FindsADamagedByteOfARun) {
  train();
  const auto good = verify({"run"});
  EXPECT_EQ(good.code, 0) << good.out << good.err;
  EXPECT_THAT(
      good.out,
      AllOf(HasSubstr("ok       run/checkpoint-00000002.safetensors: checkpoint of update 2, SHA-256 right"),
            HasSubstr("ok       run/record.json: record of train (complete), SHA-256 right"),
            HasSubstr("ok       run/events.jsonl: "), HasSubstr("ok       run/latest.safetensors"),
            Not(HasSubstr("damaged"))));
  flip("run/checkpoint-00000002.safetensors", 100);
  auto bad = verify({"run"});
  EXPECT_EQ(bad.code, 3);
  EXPECT_THAT(bad.out,
              HasSubstr("damaged  run/checkpoint-00000002.safetensors: it is damaged: the SHA-256 "));
  EXPECT_THAT(bad.err, HasSubstr("2 of 4 files are damaged")) << "and the link that leads to it";
  flip("run/checkpoint-00000002.safetensors", 100);
  flip("run/record.json", 300);
  bad = verify({"run/record.json", "run/checkpoint-00000002.safetensors", "--json"});
  EXPECT_EQ(bad.code, 3);
  EXPECT_THAT(bad.out, AllOf(HasSubstr("\"state\": \"damaged\""), HasSubstr("\"state\": \"ok\"")));
}

TEST_F(Verify, KnowsWhatItCannotKnow) {
  const auto record = to_json(golden::make_record({}));
  (void)folder_.write("old/record.json", record);
  (void)folder_.write("new/record.json", measure::with_checksum(record));
  (void)folder_.write("cut/record.json", record.substr(0, record.size() / 2));
  (void)folder_.write("whole/record.json", "{\"epoch\": 1, \"loss\": 0.5}");
  (void)folder_.write("half/record.json", "{\"epoch\": 1, \"lo");
  (void)folder_.write("words.txt", "hello");
  (void)folder_.write("report.json", "{\"schema\": \"paceline-report-2\"}");
  const auto outcome = verify({"old", "new", "cut", "whole", "half", "words.txt", "report.json", "nowhere"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(
      outcome.out,
      AllOf(HasSubstr("unknown  old/record.json: record of scale (complete), of a version without"),
            HasSubstr("ok       new/record.json"), HasSubstr("damaged  cut/record.json"),
            HasSubstr("damaged  whole/record.json: not a record: it is whole JSON without the key 'schema'"),
            HasSubstr("damaged  half/record.json: not a record: it ends within its JSON, at byte 16"),
            HasSubstr("unknown  words.txt"),
            HasSubstr("unknown  report.json: not a record: it is whole JSON, but its 'schema'"),
            HasSubstr("damaged  nowhere: there is no such file")));
}

/// Another program has read a record and written it again, with the keys of its SHA-256 and other white
/// space.
TEST_F(Verify, NamesARecordThatWasLaidOutAnew) {
  const auto text = measure::with_checksum(to_json(golden::make_record({})));
  const auto json = nlohmann::ordered_json::parse(text);
  (void)folder_.write("compact/record.json", json.dump());
  (void)folder_.write("wide/record.json", json.dump(4));
  auto without = json;
  without.erase("checksum");
  without.erase("sha256");
  (void)folder_.write("without/record.json", without.dump());
  const auto outcome = verify({"compact", "wide", "without"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(
      outcome.out,
      AllOf(HasSubstr("damaged  compact/record.json: the record: the record is damaged, or was edited"),
            HasSubstr("damaged  wide/record.json"), HasSubstr("unknown  without/record.json")));
}

/// A hole of 6 GB, as a power loss leaves one, is damage of that file; the others are checked.
TEST_F(Verify, GoesOnBehindAFileWithoutLines) {
  const std::string event = "{\"event\":\"start\",\"at\":1}\n";
  for (const char* name : {"a/events.jsonl", "b/record.json"}) {
    const auto file = folder_.write(name, event);
    fs::resize_file(file, std::uintmax_t{6} << 30);
  }
  (void)folder_.write("c/events.jsonl", event);
  const auto outcome = verify({"."});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(
      outcome.out,
      AllOf(HasSubstr("damaged  ./a/events.jsonl: the line that begins at byte 25 has more than 1 MiB"),
            HasSubstr("damaged  ./b/record.json: has more than 1024 MiB"),
            HasSubstr("ok       ./c/events.jsonl: 1 events")));
  EXPECT_THAT(outcome.err, HasSubstr("2 of 3 files are damaged"));
}

TEST_F(Verify, ReadsListsOfImagesKernelCachesAndPacks) {
  (void)folder_.write("d/paceline-manifest.txt",
                      "paceline-manifest-1\npassed-over 0\nd 1 cats\nf a.png\nend 1\n");
  (void)folder_.write("e/paceline-manifest.txt", "paceline-manifest-1\npassed-over 0\nd 1 cats\nf a.png\n");
  (void)folder_.write("kernels-1.txt", "paceline kernels, format 1\nm\nwinograd k\nend 1\n");
  (void)folder_.write("kernels-2.txt", "paceline kernels, format 1\nm\nwinograd k\nend 2\n");
  (void)folder_.write("broken.tar", std::string(2000, 'x'));
  fs::create_symlink("nowhere", folder_.path() / "latest.safetensors");
  const auto outcome = verify({"."});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("ok       ./d/paceline-manifest.txt: list of 1 images"),
                                 HasSubstr("damaged  ./e/paceline-manifest.txt"),
                                 HasSubstr("ok       ./kernels-1.txt: kernel cache with 1 entries"),
                                 HasSubstr("damaged  ./kernels-2.txt"), HasSubstr("damaged  ./broken.tar"),
                                 HasSubstr("damaged  ./latest.safetensors: a broken link")));
}

}  // namespace
}  // namespace paceline::cli
