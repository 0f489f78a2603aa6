// The choice among a convolution's algorithms by events, on a made-up GPU with a made-up clock.

#include "engine/cuda/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "engine/cuda/conv_problem.h"
#include "engine/cuda/device/fake_cuda.h"
#include "engine/cuda/runtime/device_runtime.h"
#include "engine/cuda/runtime/host_runtime.h"
#include "engine/reference/toy.h"

namespace paceline::engine::cuda {
namespace {

using test::FakeCuda;
using testing::ElementsAre;

const std::size_t kLimit = workspace_limit(0);

/// Algorithms with names, times and workspaces.
struct TimedLibrary {
  struct Algorithm {
    std::string name;
    double first_ms, ms;  ///< of the first run, and of later ones
    std::size_t workspace = 0;
  };
  FakeCuda& cuda;
  std::vector<Algorithm> algorithms;
  std::vector<std::string> left_out;
  std::map<std::string, int> runs;
  std::set<const void*> workspaces;

  class One final : public Convolution {
   public:
    One(TimedLibrary& owner, const Algorithm& algorithm) : owner_(owner), algorithm_(algorithm) {}
    [[nodiscard]] std::size_t workspace_bytes() const override { return algorithm_.workspace; }
    [[nodiscard]] std::string algorithm() const override { return algorithm_.name; }
    void run(Stream, const ConvOperands& operands) override {
      EXPECT_NE(operands.src, nullptr);
      EXPECT_NE(operands.dst, nullptr);
      EXPECT_NE(operands.weight, nullptr);
      if (algorithm_.workspace > 0) {
        EXPECT_NE(operands.workspace, nullptr);
      }
      owner_.workspaces.insert(operands.workspace);
      const bool is_first = owner_.runs[algorithm_.name]++ == 0;
      owner_.cuda.now_ms += is_first ? algorithm_.first_ms : algorithm_.ms;
    }

   private:
    TimedLibrary& owner_;
    const Algorithm algorithm_;
  };
  class Open final : public ConvolutionLibrary {
   public:
    explicit Open(TimedLibrary& owner) : owner_(owner) {}
    [[nodiscard]] std::string version() const override { return "timed"; }
    [[nodiscard]] std::unique_ptr<Convolution> make(const ConvProblem&, const std::string& name) override {
      for (const Algorithm& algorithm : owner_.algorithms)
        if (name.empty() || algorithm.name == name) return std::make_unique<One>(owner_, algorithm);
      return nullptr;
    }
    [[nodiscard]] ConvCandidates candidates(const ConvProblem&) override {
      ConvCandidates all{.algorithms = {}, .left_out = owner_.left_out};
      for (const Algorithm& algorithm : owner_.algorithms) all.algorithms.push_back(algorithm.name);
      return all;
    }

   private:
    TimedLibrary& owner_;
  };
  OpenConvolutions open() {
    return [this](const NativeStream&) { return std::make_unique<Open>(*this); };
  }
};

ConvProblem timed_problem(int samples = 4) {
  return {.precision = Precision::bf16,
          .samples = samples,
          .channels_in = 8,
          .height_in = 6,
          .width_in = 6,
          .channels_out = 16,
          .height_out = 6,
          .width_out = 6,
          .kernel_height = 3,
          .kernel_width = 3,
          .padding = 1};
}

MeasuredConvolution measure(std::vector<TimedLibrary::Algorithm> algorithms) {
  FakeCuda cuda;
  TimedLibrary library{.cuda = cuda, .algorithms = std::move(algorithms), .left_out = {"huge (300 MB)"}};
  MeasuredConvolution measured;
  {
    DeviceRuntime runtime(cuda.api(), 0, library.open());
    measured = ConvolutionTimer(runtime).measure(timed_problem());
  }
  EXPECT_EQ(cuda.left(), "");
  return measured;
}

TEST(ConvolutionTimer, TakesTheFastestByTheMedianOfRunsThatAreWarm) {
  const auto measured = measure({{"usual", 1, 2}, {"slow", 0.1, 3}, {"fast", 50, 1.5, 4096}});
  EXPECT_EQ(measured.algorithm, "fast") << "loading its kernels in the first run is no part of its time";
  ASSERT_EQ(measured.times.size(), 3u);
  EXPECT_EQ(measured.times[0].algorithm, "usual");
  EXPECT_NEAR(measured.times[0].seconds, 2e-3, 1e-7);
  EXPECT_NEAR(measured.times[1].seconds, 3e-3, 1e-7);
  EXPECT_NEAR(measured.times[2].seconds, 1.5e-3, 1e-7);
  EXPECT_THAT(measured.left_out, ElementsAre("huge (300 MB)"));
}

TEST(ConvolutionTimer, KeepsTheDefaultWhereNoneIsClearlyFaster) {
  EXPECT_EQ(measure({{"usual", 1, 1}, {"near", 1, 0.96}}).algorithm, "usual");
  EXPECT_EQ(measure({{"usual", 1, 1}, {"near", 1, 0.94}}).algorithm, "near");
  EXPECT_EQ(measure({{"usual", 1, 1}}).algorithm, "usual");
}

TEST(ConvolutionTimer, ReusesItsMemoryForOneProblemAfterAnother) {
  FakeCuda cuda;
  TimedLibrary library{.cuda = cuda, .algorithms = {{"usual", 1, 1, std::size_t{3} << 20}}};
  DeviceRuntime runtime(cuda.api(), 0, library.open());
  ConvolutionTimer timer(runtime);
  static_cast<void>(timer.measure(timed_problem(8)));
  const std::size_t used = cuda.used_bytes;
  static_cast<void>(timer.measure(timed_problem(8)));
  static_cast<void>(timer.measure(timed_problem(1)));
  EXPECT_EQ(cuda.used_bytes, used);
  EXPECT_EQ(library.workspaces.size(), 1u);
}

TEST(ConvolutionTimer, TakesWhatItReservedAndNoMore) {
  FakeCuda cuda;
  TimedLibrary library{.cuda = cuda, .algorithms = {{"usual", 1, 1, std::size_t{3} << 20}}};
  DeviceRuntime runtime(cuda.api(), 0, library.open());
  const std::vector problems{timed_problem(1), timed_problem(64), timed_problem(8)};
  ConvolutionTimer timer(runtime);
  const std::size_t before = cuda.used_bytes;
  timer.reserve(problems);
  const std::size_t reserved = cuda.used_bytes - before;
  for (const ConvProblem& problem : problems) static_cast<void>(timer.measure(problem));
  EXPECT_EQ(cuda.used_bytes - before, reserved + allocated_bytes(std::size_t{3} << 20))
      << "and the workspace";
  EXPECT_EQ(reserved, ConvolutionTimer::most_bytes(problems, kLimit) - 2 * kLimit);
}

TEST(ConvolutionTimer, StaysWithinWhatItSaysHoweverWorkspacesGrow) {
  FakeCuda cuda;
  TimedLibrary library{.cuda = cuda, .algorithms = {{"usual", 1, 1, 1}, {"other", 1, 1, 1}}};
  DeviceRuntime runtime(cuda.api(), 0, library.open());
  const std::vector problems{timed_problem(), timed_problem(8)};
  ConvolutionTimer timer(runtime);
  const std::size_t before = cuda.used_bytes;
  timer.reserve(problems);
  for (const int megabytes : {3, 63, 127, 255, 256}) {  // each a little more than half of the next
    for (auto& algorithm : library.algorithms)
      algorithm.workspace = static_cast<std::size_t>(megabytes) << 20;
    for (const ConvProblem& problem : problems) static_cast<void>(timer.measure(problem));
  }
  EXPECT_LE(cuda.used_bytes - before, ConvolutionTimer::most_bytes(problems, kLimit));
}

/// An empty cache directory of its own, as long as it lives.
class OwnCache {
 public:
  OwnCache() {
    if (const char* before = ::getenv("PACELINE_CACHE")) before_ = before;
    ::setenv("PACELINE_CACHE", ::mkdtemp(folder_.data()), 1);
  }
  ~OwnCache() {
    before_.empty() ? ::unsetenv("PACELINE_CACHE") : ::setenv("PACELINE_CACHE", before_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }
  OwnCache(const OwnCache&) = delete;
  OwnCache& operator=(const OwnCache&) = delete;

 private:
  std::string folder_ = (std::filesystem::temp_directory_path() / "paceline-timer-XXXXXX").string();
  std::string before_;
};

TEST(ConvolutionTimer, WhereItHasNoRoomTheDefaultsStayAndTheNoteSaysSo) {
  const OwnCache cache;
  FakeCuda cuda;
  const std::size_t all = cuda.memory_bytes, little = std::size_t{256} << 20;  // a workspace may take as much
  TimedLibrary library{.cuda = cuda, .algorithms = {{"usual", 1, 1}, {"fast", 1, 0.5}}};
  const auto prepared_with = [&](std::size_t bytes) {
    cuda.memory_bytes = bytes;
    DeviceRuntime runtime(cuda.api(), 0, library.open());
    return prepare(toy::every_op(), {.batch = 4}, {.is_measured = true}, runtime);
  };
  const auto refused = prepared_with(little);
  EXPECT_EQ(refused.chosen_by, "heuristics");
  EXPECT_THAT(refused.note, testing::HasSubstr("measuring takes up to 0.5"));
  for (const auto& [product, algorithm] : *refused.algorithms) EXPECT_NE(algorithm, "fast") << product;

  EXPECT_EQ(prepared_with(all).chosen_by, "measured");
  const auto cached = prepared_with(little);
  EXPECT_EQ(cached.chosen_by, "measured") << "what was measured before takes no memory";
  EXPECT_THAT(cached.note, testing::Not(testing::HasSubstr("measuring takes")));
  EXPECT_TRUE(std::ranges::any_of(*cached.algorithms, [](const auto& one) { return one.second == "fast"; }));
}

// Real times of the host's loops: which of the two is faster nobody knows, but both are timed and one is
// taken.
TEST(ConvolutionTimer, TimesTheHostsLoops) {
  HostRuntime runtime;
  ConvolutionTimer timer(runtime);
  for (const ConvDirection direction :
       {ConvDirection::forward, ConvDirection::backward_data, ConvDirection::backward_weights}) {
    ConvProblem problem = timed_problem();
    problem.direction = direction;
    const auto measured = timer.measure(problem);
    ASSERT_EQ(measured.times.size(), 2u);
    for (const auto& time : measured.times) EXPECT_GT(time.seconds, 0) << time.algorithm;
    EXPECT_EQ(runtime.make_convolution(problem, measured.algorithm)->algorithm(), measured.algorithm);
  }
}

}  // namespace
}  // namespace paceline::engine::cuda
