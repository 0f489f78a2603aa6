/// Trainings whose file layer fails: call by call, once and from some call on. Whatever fails, the files
/// under final names stay whole, and the same command with --resume auto ends with the undisturbed run's
/// bytes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "measure/record.h"
#include "program.h"
#include "train/checkpoint/safetensors.h"

namespace paceline::cli {
namespace {

#ifdef PACELINE_FAILING_CALL

namespace fs = std::filesystem;

struct Fault {
  const char* call;
  int error;
  int from;   ///< the first call that fails, from 1
  int times;  ///< so many do
  [[nodiscard]] std::string text() const {
    return std::string(call) + " " + std::strerror(error) + " from " + std::to_string(from) + ", " +
           std::to_string(times) + " times";
  }
};

constexpr int kAlways = 1'000'000;

std::vector<std::string> words() {
  return {"train",
          "--model",
          "tiny.toml",
          "--data",
          "synthetic,train=64,test=32",
          "--epochs",
          "3",
          "--checkpoint-every",
          "2steps",
          "--local-batch",
          "8",
          "--lr",
          "0.05",
          "--resume",
          "auto",
          "--out",
          "outputs"};
}

class FileFaults : public testing::Test {
 protected:
  void SetUp() override {
    for (const Folder* folder : {&whole_, &folder_})
      (void)folder->write("tiny.toml",
                          "[[layer]]\nop = \"conv2d\"\nname = \"c\"\nchannels = 4\nkernel = 3\nstride = 4\n"
                          "[[layer]]\nop = \"global_average_pool\"\n"
                          "[[layer]]\nop = \"dense\"\nname = \"d\"\nfeatures = \"classes\"\n");
    ASSERT_EQ(run_program(words(), {.directory = whole_.path()}).code, 0);
    expected_ = last_checkpoint(whole_.path());
  }

  [[nodiscard]] Outcome run(const Fault& fault) const {
    RunConditions conditions{.directory = folder_.path()};
    conditions.variables = {{"LD_PRELOAD", PACELINE_FAILING_CALL},
                            {"FAIL_CALL", fault.call},
                            {"FAIL_PATH", "outputs"},
                            {"FAIL_ERRNO", std::to_string(fault.error)},
                            {"FAIL_FROM", std::to_string(fault.from)},
                            {"FAIL_TIMES", std::to_string(fault.times)},
                            {"FAIL_SEEN", seen().string()}};
    fs::remove(seen());
    return run_program(words(), conditions);
  }

  /// There once a call has failed.
  [[nodiscard]] fs::path seen() const { return folder_.path() / "a-call-has-failed"; }

  static std::string last_checkpoint(const fs::path& folder) {
    const auto files = checkpoints(folder);
    return files.empty() ? "" : base::read_file(files.back());
  }
  static std::vector<fs::path> checkpoints(const fs::path& folder) {
    std::vector<fs::path> found;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder / "outputs", none))
      if (entry.path().filename().string().starts_with("checkpoint-") &&
          entry.path().extension() == ".safetensors")
        found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    return found;
  }

  /// What must hold after any fault.
  void expect_nothing_lost(const Fault& fault, const Outcome& outcome) const {
    SCOPED_TRACE(fault.text());
    EXPECT_TRUE(outcome.code == 0 || outcome.code == 3) << outcome.code << outcome.err;
    if (outcome.code == 0)
      EXPECT_TRUE(last_checkpoint(folder_.path()) == expected_) << outcome.out << outcome.err;
    else
      EXPECT_THAT(outcome.err, testing::HasSubstr(std::strerror(fault.error)));
    for (const auto& file : checkpoints(folder_.path()))
      EXPECT_EQ(train::check_checksum(file), train::Checksum::right) << file;
    const auto record = folder_.path() / "outputs/record.json";
    if (fs::exists(record)) {
      EXPECT_NO_THROW((void)measure::read_record(record));
    }
    const auto again = run_program(words(), {.directory = folder_.path()});
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_TRUE(last_checkpoint(folder_.path()) == expected_);
    fs::remove_all(folder_.path() / "outputs");
  }

  Folder whole_, folder_;
  std::string expected_;
};

TEST_F(FileFaults, OneFailureIsTriedAgainAndNothingIsLost) {
  for (const char* call : {"write", "short-write", "fsync", "rename", "create"}) {
    const Fault fault{call, call == std::string("write") ? ENOSPC : EIO, 4, 1};
    const auto outcome = run(fault);
    EXPECT_TRUE(fs::exists(seen())) << fault.text();
    EXPECT_EQ(outcome.code, 0) << fault.text() << outcome.err;
    expect_nothing_lost(fault, outcome);
  }
}

TEST_F(FileFaults, ADiskThatStaysFullEndsTheRunWithItsWordAndCostsNothingThatWasWhole) {
  const Fault fault{"write", ENOSPC, 6, kAlways};
  const auto outcome = run(fault);
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.out + outcome.err, testing::HasSubstr("is not kept"));
  expect_nothing_lost(fault, outcome);
}

TEST_F(FileFaults, ACheckpointThatCannotBeReadIsNotRemoved) {
  auto shorter = words();
  shorter[6] = "1";
  ASSERT_EQ(run_program(shorter, {.directory = folder_.path()}).code, 0);
  const auto before = checkpoints(folder_.path());
  for (const int from : {1, 2, 3, 4}) {
    const Fault fault{"read", EIO, from, 1};
    const auto outcome = run(fault);
    EXPECT_TRUE(fs::exists(seen())) << fault.text();
    EXPECT_THAT(outcome.err, testing::Not(testing::HasSubstr("remove it"))) << fault.text();
    if (outcome.code != 0) {
      EXPECT_EQ(outcome.code, 3) << outcome.err;
      EXPECT_EQ(checkpoints(folder_.path()), before) << fault.text();
    }
  }
  EXPECT_EQ(run_program(words(), {.directory = folder_.path()}).code, 0);
  EXPECT_TRUE(last_checkpoint(folder_.path()) == expected_);
}

/// Every call until no further one is made: --long.
TEST_F(FileFaults, LongEveryCall) {
  if (std::getenv("PACELINE_LONG") == nullptr) GTEST_SKIP() << "takes minutes: PACELINE_LONG=1";
  int tried = 0, kept = 0;
  for (const char* call : {"write", "short-write", "fsync", "rename", "create", "open"})
    for (const int error : {EIO, ENOSPC})
      for (const int times : {1, kAlways})
        for (int from = 1; from <= 24; from += times == 1 ? 1 : 5) {
          const Fault fault{call, error, from, times};
          const auto outcome = run(fault);
          if (!fs::exists(seen())) break;  // no call so late
          ++tried;
          kept += outcome.code == 0;
          expect_nothing_lost(fault, outcome);
        }
  RecordProperty("tried", tried);
  std::printf("%d faults: %d runs ended with 0, %d said what was lost; every file stayed whole\n", tried,
              kept, tried - kept);
}

#else

TEST(FileFaults, NeedsAPreloadedLibrary) { GTEST_SKIP() << "not with a sanitizer, whose library is first"; }

#endif

}  // namespace
}  // namespace paceline::cli
