// Measured choices of kernels: kept, found again, and never believed when they cannot be.

#include "engine/cpu/conv/tuning_cache.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "engine/cpu/conv/autotune.h"
#include "engine/cpu/engine.h"
#include "engine/cpu/parallel.h"
#include "graph/zoo.h"

namespace paceline::engine::cpu {
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

ConvProblem problem(int channels, int pixels, int samples, Direction direction = Direction::forward) {
  return {.shape = {.samples = samples,
                    .src = {channels, pixels, pixels},
                    .dst = {channels, pixels, pixels},
                    .kernel = 3,
                    .padding = 1},
          .direction = direction};
}

std::vector<ConvProblem> some_products() {
  return {problem(64, 8, 4), problem(64, 8, 4, Direction::backward_weights), problem(32, 16, 4)};
}

std::atomic<int> g_measured{0};
const ConvAlgorithm* taps(const ConvProblem&) {
  ++g_measured;
  return find_algorithm("gemm-per-tap");
}

int measured_by(TuningCache& choices) {
  g_measured = 0;
  EXPECT_EQ(choices.complete(some_products(), taps).trouble, "");
  for (const ConvProblem& problem : some_products())
    EXPECT_EQ(choices.find(problem), find_algorithm("gemm-per-tap"));
  return g_measured;
}

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

TEST(TuningCache, AreMeasuredOnceAndFoundByTheNextProcess) {
  const Folder folder;
  TuningCache first(folder.path_, "a machine; a program");
  EXPECT_EQ(first.find(some_products().front()), nullptr);
  EXPECT_EQ(measured_by(first), 3);
  EXPECT_EQ(measured_by(first), 0);
  TuningCache second(folder.path_, "a machine; a program");
  EXPECT_EQ(second.find(some_products().front()), find_algorithm("gemm-per-tap"));
  EXPECT_EQ(measured_by(second), 0);
}

TEST(TuningCache, OfAnotherMachineOrProgramAreMeasuredAnew) {
  const Folder folder;
  TuningCache first(folder.path_, "a machine; a program");
  EXPECT_EQ(measured_by(first), 3);
  TuningCache other_program(folder.path_, "a machine; another program");
  EXPECT_NE(other_program.file(), first.file()) << "another build must not take away what this one measured";
  EXPECT_EQ(measured_by(other_program), 3);
  TuningCache other_machine(folder.path_, "another machine; a program");
  EXPECT_NE(other_machine.file(), first.file());
  EXPECT_EQ(measured_by(other_machine), 3);
}

TEST(TuningCache, OfADamagedFileAreMeasuredAnew) {
  const Folder folder;
  TuningCache first(folder.path_, "a machine; a program");
  EXPECT_EQ(measured_by(first), 3);
  const std::string whole = text_of(first.file());
  for (std::size_t length = 0; length + 1 < whole.size(); length += 7) {
    std::ofstream(first.file(), std::ios::binary) << whole.substr(0, length);
    TuningCache again(folder.path_, "a machine; a program");
    EXPECT_EQ(again.find(some_products().front()), nullptr) << "cut off at " << length;
  }
  std::string wrong = whole;
  wrong.replace(wrong.find("gemm-per-tap"), 12, "gemm-per-top");
  std::ofstream(first.file(), std::ios::binary) << wrong;
  TuningCache again(folder.path_, "a machine; a program");
  EXPECT_EQ(measured_by(again), 3);
  EXPECT_EQ(text_of(first.file()), whole);
}

TEST(TuningCache, ThatCannotBeKeptAreNotBelieved) {
  const Folder folder;
  const fs::path file = folder.path_ / "not-a-directory";
  std::ofstream(file) << "here";
  TuningCache choices(file, "a machine; a program");
  const auto outcome = choices.complete(some_products(), taps);
  EXPECT_NE(outcome.trouble.find("not-a-directory"), std::string::npos) << outcome.trouble;
  EXPECT_EQ(choices.find(some_products().front()), nullptr);
}

TEST(TuningCache, ThatAKernelRefusesAreNotFound) {
  const Folder folder;
  TuningCache choices(folder.path_, "a machine; a program");
  ConvProblem biased = problem(64, 8, 4);
  biased.shape.bias = true;
  EXPECT_EQ(choices.complete({biased}, taps).measured, 1);
  EXPECT_EQ(choices.find(biased), nullptr);
}

TEST(TuningCache, OfSeveralProcessesEndUpInOneFile) {
  const Folder folder;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      TuningCache choices(folder.path_, "a machine; a program");
      EXPECT_EQ(choices.complete({problem(64, 8, i + 1)}, taps).trouble, "");
    });
  for (auto& thread : threads) thread.join();
  const TuningCache all(folder.path_, "a machine; a program");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(all.find(problem(64, 8, i + 1)), find_algorithm("gemm-per-tap")) << i;
}

TEST(TuningCache, KeysTellApartWhatKernelsAreChosenFor) {
  std::set<std::string> keys;
  const auto add = [&](ConvProblem problem) {
    EXPECT_TRUE(keys.insert(key_of(problem)).second) << key_of(problem);
  };
  const ConvProblem plain = problem(64, 8, 4);
  add(plain);
  for (const auto direction : {Direction::backward_data, Direction::backward_weights})
    add(problem(64, 8, 4, direction));
  const auto changed = [&](auto change) {
    ConvProblem other = plain;
    change(other.shape);
    add(other);
  };
  changed([](ConvShape& s) { s.samples = 5; });
  changed([](ConvShape& s) { s.src.channels = 32; });
  changed([](ConvShape& s) { s.dst.height = 7; });
  changed([](ConvShape& s) { s.kernel = 1; });
  changed([](ConvShape& s) { s.stride = 2; });
  changed([](ConvShape& s) { s.padding = 0; });
  changed([](ConvShape& s) { s.bias = true; });
  changed([](ConvShape& s) { s.is_dense = true; });
  changed([](ConvShape& s) { s.training = false; });
  changed([](ConvShape& s) { s.in_blocks = true; });
  changed([](ConvShape& s) { s.type = Storage::bf16; });
  changed([](ConvShape& s) { s.dst_type = Storage::bf16; });
}

TEST(Autotune, TakesAnAlgorithmThatCanComputeTheProblem) {
  const OneThread one_thread;
  for (const auto direction : {Direction::forward, Direction::backward_data, Direction::backward_weights}) {
    for (const int samples : {1, 7, 33}) {
      for (ConvProblem p : {problem(16, 9, samples, direction), problem(3, 5, samples, direction),
                            problem(128, 4, samples, direction)}) {
        const ConvAlgorithm* algorithm = autotune(p);
        EXPECT_EQ(algorithm->refusal(p), std::nullopt) << key_of(p);
        EXPECT_GT(seconds_of(p, *algorithm), 0) << key_of(p);
      }
    }
  }
}

TEST(TuningCache, AreTakenByTheEngine) {
  const OneThread one_thread;
  const auto graph = graph::make_model("resnet8-cifar", {3, 32, 32}, 10, 0);
  CompileOptions options{.batch = 8};
  const auto taps_among = [&] {
    int count = 0;
    for (const auto& kernel : compile(graph, options)->kernels())
      count += kernel.implementation.find("tap") != std::string::npos;
    return count;
  };
  EXPECT_EQ(taps_among(), 0);
  const graph::Shape inner{16, 32, 32};
  const ConvProblem second{.shape = {.samples = 8, .src = inner, .dst = inner, .kernel = 3, .padding = 1}};
  options.algorithms =
      std::make_shared<const KernelAlgorithms>(KernelAlgorithms{{key_of(second), "gemm-per-tap"}});
  EXPECT_GE(taps_among(), 1);
}

}  // namespace
}  // namespace paceline::engine::cpu
