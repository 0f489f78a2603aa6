// Measured choices of kernels: kept, found again, and never believed when they cannot be.

#include "engine/kernel_cache.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/error.h"

namespace paceline::engine {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "paceline-choices-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  fs::path path_;
};

KernelCache open_cache(const fs::path& folder, const std::string& machine = "a machine; a program") {
  return KernelCache(folder, machine,
                     [](const std::string& name) { return name.starts_with("gemm-per-tap"); });
}

const std::vector<std::string> kProblems = {"conv2d forward, 4 samples", "dense forward",
                                            "conv2d forward, 4 samples", "conv2d backward data"};

int measured_by(KernelCache& choices) {
  int measured = 0;
  const auto outcome = choices.complete(kProblems, [&](const std::vector<std::string>& problems) {
    KernelAlgorithms found;
    for (const std::string& problem : problems) found[problem] = "gemm-per-tap";
    measured += static_cast<int>(problems.size());
    return found;
  });
  EXPECT_EQ(outcome.trouble, "");
  EXPECT_EQ(outcome.measured, measured);
  for (const std::string& problem : kProblems) EXPECT_EQ(choices.find(problem), "gemm-per-tap");
  return measured;
}

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

TEST(KernelCache, KeepsEachPortionSoThatAKilledRunLeavesWhatItMeasured) {
  const Folder folder;
  const std::vector<std::string> five = {"a", "b", "c", "d", "e"};
  std::vector<std::size_t> portions;
  const auto measure = [&](const std::vector<std::string>& problems) {
    portions.push_back(problems.size());
    KernelAlgorithms found;
    for (const std::string& problem : problems) found[problem] = "gemm-per-tap";
    return found;
  };
  const auto dies = [&](const std::vector<std::string>& problems) {
    if (!portions.empty()) base::fail(base::ErrorKind::device, "the GPU is lost");
    return measure(problems);
  };
  EXPECT_THROW(open_cache(folder.path_).complete(five, dies, 2), base::Error);
  KernelCache next = open_cache(folder.path_);
  EXPECT_EQ(next.find("b"), "gemm-per-tap");
  EXPECT_EQ(next.find("c"), std::nullopt);
  EXPECT_EQ(next.complete(five, measure, 2).measured, 3);
  EXPECT_EQ(portions, (std::vector<std::size_t>{2, 2, 1}));
  for (const std::string& problem : five) EXPECT_EQ(next.find(problem), "gemm-per-tap");
}

TEST(KernelCache, KeepsWhatItHasWhereNoMoreCanBeMeasured) {
  const Folder folder;
  const auto first_of = [](const std::vector<std::string>& problems) {
    return KernelAlgorithms{{problems.front(), "gemm-per-tap"}};
  };
  KernelCache cache = open_cache(folder.path_);
  const auto outcome = cache.complete({"a", "b", "c"}, first_of, 2);
  EXPECT_EQ(outcome.measured, 1);
  EXPECT_EQ(outcome.left, 2u);
  EXPECT_EQ(outcome.trouble, "");
  EXPECT_EQ(cache.find("a"), "gemm-per-tap");
  EXPECT_EQ(open_cache(folder.path_).find("a"), "gemm-per-tap");
  EXPECT_EQ(
      open_cache(folder.path_).complete({"a", "b"}, [](const auto&) { return KernelAlgorithms{}; }).left, 1u);
}

TEST(KernelCache, IsMeasuredOnceAndFoundByTheNextProcess) {
  const Folder folder;
  KernelCache first = open_cache(folder.path_);
  EXPECT_EQ(first.find(kProblems.front()), std::nullopt);
  EXPECT_EQ(measured_by(first), 3);
  EXPECT_EQ(measured_by(first), 0);
  KernelCache second = open_cache(folder.path_);
  EXPECT_EQ(second.find(kProblems.front()), "gemm-per-tap");
  EXPECT_EQ(measured_by(second), 0);
}

TEST(KernelCache, OfAnotherMachineOrProgramIsMeasuredAnew) {
  const Folder folder;
  KernelCache first = open_cache(folder.path_);
  EXPECT_EQ(measured_by(first), 3);
  KernelCache other_program = open_cache(folder.path_, "a machine; another program");
  EXPECT_NE(other_program.file(), first.file()) << "another build must not take away what this one measured";
  EXPECT_EQ(measured_by(other_program), 3);
  KernelCache other_machine = open_cache(folder.path_, "another machine; a program");
  EXPECT_NE(other_machine.file(), first.file());
  EXPECT_EQ(measured_by(other_machine), 3);
}

TEST(KernelCache, OfADamagedFileIsMeasuredAnew) {
  const Folder folder;
  KernelCache first = open_cache(folder.path_);
  EXPECT_EQ(measured_by(first), 3);
  const std::string whole = text_of(first.file());
  for (std::size_t length = 0; length + 1 < whole.size(); length += 7) {
    std::ofstream(first.file(), std::ios::binary) << whole.substr(0, length);
    EXPECT_EQ(open_cache(folder.path_).find(kProblems.front()), std::nullopt) << "cut off at " << length;
  }
  std::string wrong = whole;
  wrong.replace(wrong.find("gemm-per-tap"), 12, "gemm-per-top");
  std::ofstream(first.file(), std::ios::binary) << wrong;
  KernelCache again = open_cache(folder.path_);
  EXPECT_EQ(measured_by(again), 3);
  EXPECT_EQ(text_of(first.file()), whole);
}

TEST(KernelCache, ThatCannotBeKeptIsNotBelieved) {
  const Folder folder;
  const fs::path file = folder.path_ / "not-a-directory";
  std::ofstream(file) << "here";
  KernelCache choices = open_cache(file);
  const auto outcome = choices.complete({"a problem"}, [](const auto&) {
    return KernelAlgorithms{{"a problem", "gemm-per-tap"}};
  });
  EXPECT_NE(outcome.trouble.find("not-a-directory"), std::string::npos) << outcome.trouble;
  EXPECT_EQ(choices.find("a problem"), std::nullopt);
}

// A device that fails while it measures ends the run; it is no cache that cannot be kept.
TEST(KernelCache, LeavesAFailureOfMeasuringToTheCaller) {
  const Folder folder;
  KernelCache choices = open_cache(folder.path_);
  const auto fail = [](const auto&) -> KernelAlgorithms {
    base::fail(base::ErrorKind::device, "the GPU fell off the bus");
  };
  EXPECT_THROW(choices.complete({"a problem"}, fail), base::Error);
}

TEST(KernelCache, OfSeveralProcessesEndsUpInOneFile) {
  const Folder folder;
  const auto problem = [](int i) { return "problem " + std::to_string(i); };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      KernelCache choices = open_cache(folder.path_);
      const auto outcome = choices.complete({problem(i)}, [&](const auto&) {
        return KernelAlgorithms{{problem(i), "gemm-per-tap-" + std::to_string(i)}};
      });
      EXPECT_EQ(outcome.trouble, "");
    });
  for (auto& thread : threads) thread.join();
  const KernelCache all = open_cache(folder.path_);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(all.find(problem(i)), "gemm-per-tap-" + std::to_string(i));
}

}  // namespace
}  // namespace paceline::engine
