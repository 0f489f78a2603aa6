#include "engine/cuda/cudnn/convolution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "engine/cuda/conv_problem.h"
#include "engine/cuda/cudnn/fake_cudnn.h"

namespace paceline::engine::cuda::cudnn {
namespace {

using test::FakeCudnn;
using test::FakeEngine;
using ::testing::HasSubstr;

constexpr int kTensorCore = static_cast<int>(NumericalNote::tensor_core);
constexpr int kNondeterministic = static_cast<int>(NumericalNote::nondeterministic);
constexpr int kReduced = static_cast<int>(NumericalNote::reduced_precision_reduction);
constexpr int kCompiled = static_cast<int>(BehaviorNote::compiled_at_run_time);
constexpr std::size_t kMegabyte = std::size_t{1} << 20;
constexpr std::size_t kLimit = 256 * kMegabyte;

ConvProblem problem(Precision precision = Precision::bf16, ConvDirection direction = ConvDirection::forward) {
  return {.direction = direction,
          .precision = precision,
          .samples = 2,
          .channels_in = 8,
          .height_in = 6,
          .width_in = 4,
          .channels_out = 16,
          .height_out = 3,
          .width_out = 2,
          .kernel_height = 3,
          .kernel_width = 3,
          .stride = 2,
          .padding = 1};
}

std::int64_t first_engine(FakeCudnn& fake, Precision precision = Precision::bf16) {
  const Connection connection(fake.api());
  const TargetDevice device(fake.api(), connection.handle());
  return first_plan(device, problem(precision), 256 * kMegabyte).engine.index;
}

TEST(CudnnPlans, TheFirstEngineOfHeuristicsBThatQualifiesIsTaken) {
  FakeCudnn fake;
  fake.engines[HeuristicsMode::b] = {{.index = 1, .numerical_notes = {kTensorCore, kNondeterministic}},
                                     {.index = 2, .numerical_notes = {kTensorCore, kReduced}},
                                     {.index = 3, .numerical_notes = {kTensorCore}, .workspace = 257 << 20},
                                     {.index = 4, .numerical_notes = {kTensorCore}, .finalize = 3002},
                                     {.index = 5, .behavior_notes = {kCompiled}},
                                     {.index = 6, .numerical_notes = {kTensorCore}, .workspace = 256 << 20},
                                     {.index = 7}};
  fake.engines[HeuristicsMode::a] = {{.index = 8}};
  EXPECT_EQ(first_engine(fake), 6);
  // fp32 is without TF32, hence without tensor cores.
  EXPECT_EQ(first_engine(fake, Precision::f32), 7);
  EXPECT_EQ(fake.created, fake.destroyed);
}

TEST(CudnnPlans, HeuristicsAAndTheFallbackComeAfterB) {
  FakeCudnn fake;
  fake.engines[HeuristicsMode::b] = {{.index = 1, .numerical_notes = {kNondeterministic}}};
  fake.engines[HeuristicsMode::fallback] = {{.index = 3}};
  EXPECT_EQ(first_engine(fake), 3);
  fake.engines[HeuristicsMode::a] = {{.index = 2}};
  EXPECT_EQ(first_engine(fake), 2);
}

TEST(CudnnPlans, AnEngineThatIsCompiledAtRunTimeComesAfterAllOthers) {
  FakeCudnn fake;
  fake.engines[HeuristicsMode::b] = {{.index = 1, .behavior_notes = {kCompiled}}};
  EXPECT_EQ(first_engine(fake), 1);
  fake.engines[HeuristicsMode::fallback] = {{.index = 3}};
  EXPECT_EQ(first_engine(fake), 3);
}

TEST(CudnnPlans, WithoutAnEngineTheSentenceSaysForWhatTheyWereRefused) {
  FakeCudnn fake;
  try {
    first_engine(fake, Precision::f32);
    ADD_FAILURE() << "an engine was found";
  } catch (const base::Error& error) {
    EXPECT_STREQ(
        error.what(),
        "cuDNN 9.19.0 has no engine that qualifies for convolution (forward, f32, 2x6x4x8 to 2x3x2x16, "
        "kernel 3x3, stride 2, padding 1): its heuristics propose none; try another batch or "
        "precision");
  }
  fake.engines[HeuristicsMode::b] = {{.index = 1, .numerical_notes = {kTensorCore}},
                                     {.index = 2, .numerical_notes = {kNondeterministic}},
                                     {.index = 3, .numerical_notes = {kNondeterministic}},
                                     {.index = 4, .workspace = std::int64_t{300} << 20},
                                     {.index = 5, .finalize = 3008}};
  try {
    first_engine(fake, Precision::f32);
    ADD_FAILURE() << "an engine was found";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("engines were refused, 1 for CUDNN_STATUS_OTHER (3008): the fake was told to fail, "
                          "1 for TF32 (they use tensor cores), 1 for more than 256 MB beside its operands, 2 "
                          "for other bits each time; try another batch or precision"));
  }
}

// Were another engine taken when, say, memory runs out, then workers would not compute the same bits.
TEST(CudnnPlans, AnEngineWhosePlanFailsForWantOfMemoryOrOnTheDeviceIsAnError) {
  for (const Status status : {kHostAllocationFailed, kDeviceAllocationFailed, kExecutionFailed, 5001}) {
    FakeCudnn fake;
    fake.engines[HeuristicsMode::b] = {{.index = 1, .finalize = status}, {.index = 2}};
    EXPECT_THROW(first_engine(fake), base::Error) << status;
    EXPECT_EQ(fake.created, fake.destroyed);
  }
  for (const Status status : {2000, 3002, 4000, 4001}) {
    FakeCudnn fake;
    fake.engines[HeuristicsMode::b] = {{.index = 1, .finalize = status}, {.index = 2}};
    EXPECT_EQ(first_engine(fake), 2) << status;
  }
}

// As where the compiler in cuDNN is newer than the driver.
TEST(CudnnPlans, WhatCannotBeCompiledIsPassedOver) {
  FakeCudnn fake;
  fake.engines[HeuristicsMode::b] = {
      {.index = 1, .behavior_notes = {kCompiled}, .finalize = kExecutionFailed},
      {.index = 2, .behavior_notes = {kCompiled}, .finalize = 5003},
      {.index = 3, .behavior_notes = {kCompiled}}};
  {
    const auto library = open_cudnn(fake.api(), kLimit)([](Stream) -> void* { return nullptr; });
    const auto convolution = library->make(problem(), {});
    EXPECT_EQ(convolution->algorithm(), "cudnn-9.19.0-engine-3(14=1)");
    ASSERT_EQ(convolution->passed_over().size(), 2u);
    const PassedOver& first = convolution->passed_over().front();
    EXPECT_EQ(first.problem, describe(problem()));
    EXPECT_EQ(first.algorithm, "cudnn-9.19.0-engine-1(14=1)");
    EXPECT_EQ(first.why,
              "cannot be compiled: CUDNN_STATUS_EXECUTION_FAILED (5000): the fake was told to fail");
    EXPECT_THAT(library->candidates(problem()).algorithms, ::testing::ElementsAre(convolution->algorithm()));
  }
  fake.engines[HeuristicsMode::b][0].finalize = kDeviceAllocationFailed;
  EXPECT_THROW(first_engine(fake), base::Error) << "a lack of memory is none of the engine's";
  EXPECT_EQ(fake.created, fake.destroyed);
}

TEST(CudnnPlans, InF32EnginesWithWinogradOrFftAreNotTaken) {
  FakeCudnn fake;
  fake.engines[HeuristicsMode::b] = {
      {.index = 1, .numerical_notes = {static_cast<int>(NumericalNote::winograd)}},
      {.index = 2, .numerical_notes = {static_cast<int>(NumericalNote::fft)}},
      {.index = 3}};
  EXPECT_EQ(first_engine(fake, Precision::f32), 3);
  EXPECT_EQ(first_engine(fake, Precision::bf16), 1);
}

// Reading all engines that the heuristics know takes most of the time of a plan.
TEST(CudnnPlans, AllEnginesAreReadOnlyWhenNoneOfTheFirstQualifies) {
  const FakeEngine random = {.index = 1, .numerical_notes = {kNondeterministic}};
  FakeCudnn fake;
  fake.engines[HeuristicsMode::b].assign(60, random);
  fake.engines[HeuristicsMode::b][3] = {.index = 3};
  EXPECT_EQ(first_engine(fake), 3);
  EXPECT_LT(fake.created, 200);
  const int created = fake.created;
  std::swap(fake.engines[HeuristicsMode::b][3], fake.engines[HeuristicsMode::b][59]);
  EXPECT_EQ(first_engine(fake), 3);
  EXPECT_GT(fake.created, 5 * created);
  EXPECT_EQ(fake.created, fake.destroyed);
}

TEST(CudnnPlans, ThoseToBeMeasuredAreOfBothHeuristicsInTurnAndEachOnce) {
  FakeCudnn fake;
  fake.engines[HeuristicsMode::b] = {{.index = 1}, {.index = 2}, {.index = 3}};
  fake.engines[HeuristicsMode::a] = {{.index = 4}, {.index = 2}, {.index = 5}};
  fake.engines[HeuristicsMode::fallback] = {{.index = 6}, {.index = 1}};
  const Connection connection(fake.api());
  const TargetDevice device(fake.api(), connection.handle());
  const auto indices = [&](std::size_t most) {
    std::vector<std::int64_t> all;
    for (const Plan& plan : plans_to_measure(device, problem(), kMegabyte, most))
      all.push_back(plan.engine.index);
    return all;
  };
  EXPECT_THAT(indices(8), ::testing::ElementsAre(1, 4, 2, 3, 5, 6));
  EXPECT_THAT(indices(2), ::testing::ElementsAre(1, 4));
}

TEST(CudnnConvolution, OperandsAndStreamReachCudnnAndArgumentsAreBoundOnce) {
  FakeCudnn fake;
  fake.engines[HeuristicsMode::b] = {{.index = 62, .workspace = 4096}};
  {
    int streams[2] = {};
    const auto library =
        open_cudnn(fake.api(), kLimit)([&streams](Stream stream) -> void* { return &streams[stream.index]; });
    EXPECT_EQ(library->version(), "cuDNN 9.19.0");
    const auto convolution = library->make(problem(), {});
    EXPECT_EQ(convolution->workspace_bytes(), 4096u);
    EXPECT_EQ(convolution->algorithm(), "cudnn-9.19.0-engine-62(14=1)");
    alignas(16) std::byte memory[5][16] = {};
    ConvOperands operands = {memory[0], memory[1], memory[2], memory[3]};
    convolution->run({1}, operands);
    const int calls = fake.calls;
    convolution->run({0}, operands);
    EXPECT_EQ(fake.calls, calls + 2);  // the stream, the execution
    operands.src = memory[4];
    convolution->run({0}, operands);
    ASSERT_EQ(fake.executions.size(), 3u);
    EXPECT_EQ(fake.executions[0].engine, 62);
    EXPECT_THAT(fake.executions[0].ids, ::testing::ElementsAre(kSrcId, kWeightId, kDstId));
    EXPECT_THAT(fake.executions[0].pointers, ::testing::ElementsAre(memory[0], memory[2], memory[1]));
    EXPECT_EQ(fake.executions[0].workspace, memory[3]);
    EXPECT_EQ(fake.executions[0].stream, &streams[1]);
    EXPECT_EQ(fake.executions[1].stream, &streams[0]);
    EXPECT_THAT(fake.executions[2].pointers, ::testing::ElementsAre(memory[4], memory[2], memory[1]));
  }
  EXPECT_EQ(fake.created, fake.destroyed);
  EXPECT_EQ(fake.handles, 0);
}

TEST(CudnnConvolution, LayersOfOneShapeShareOnePlan) {
  FakeCudnn fake;
  fake.engines[HeuristicsMode::b] = {{.index = 1}};
  {
    const auto library = open_cudnn(fake.api(), kLimit)([](Stream) -> void* { return nullptr; });
    auto first = library->make(problem(), {});
    const int created = fake.created;
    auto second = library->make(problem(), {});
    EXPECT_EQ(fake.created, created);
    auto other = library->make(problem(Precision::f32), {});
    EXPECT_GT(fake.created, created);
    first.reset();
    alignas(16) std::byte memory[4][16] = {};
    second->run({0}, {memory[0], memory[1], memory[2], memory[3]});
  }
  EXPECT_EQ(fake.created, fake.destroyed);
  EXPECT_EQ(fake.handles, 0);
}

// A study opens the GPU several times for each of its cells.
TEST(CudnnConvolution, KeepsPlansForTheNextRuntime) {
  FakeCudnn fake;
  fake.engines[HeuristicsMode::b] = {{.index = 1}, {.index = 2}};
  {
    KeptPlans kept;
    const auto open = [&] {
      return open_cudnn(fake.api(), kLimit, &kept)([](Stream) -> void* { return nullptr; });
    };
    std::string measured;
    {
      const auto library = open();
      EXPECT_EQ(library->make(problem(), {})->algorithm(), "cudnn-9.19.0-engine-1(14=1)");
      measured = library->candidates(problem()).algorithms.at(1);
      EXPECT_EQ(library->make(problem(), measured)->algorithm(), measured);
    }
    const int created = fake.created;
    {
      const auto library = open();
      EXPECT_EQ(library->make(problem(), {})->algorithm(), "cudnn-9.19.0-engine-1(14=1)");
      EXPECT_EQ(library->make(problem(), measured)->algorithm(), measured);
      EXPECT_EQ(fake.created, created) << "nothing is planned again";
      EXPECT_EQ(fake.handles, 1);
      // Two runtimes at a time, as two workers on one GPU have them: a handle serves one thread.
      const auto beside = open();
      EXPECT_EQ(fake.handles, 2);
    }
    EXPECT_EQ(fake.handles, 2) << "both stay";
  }
  EXPECT_EQ(fake.created, fake.destroyed);
  EXPECT_EQ(fake.handles, 0);
}

TEST(CudnnConvolution, IsRefusedIfItCannotStart) {
  FakeCudnn fake;
  fake.engines[HeuristicsMode::b] = {{.index = 1, .execute = kExecutionFailed}};
  const auto library = open_cudnn(fake.api(), kLimit)([](Stream) -> void* { return nullptr; });
  alignas(16) std::byte memory[4][16] = {};
  const ConvOperands operands{memory[0], memory[1], memory[2], memory[3]};
  const auto convolution = library->make(problem(), {});
  EXPECT_TRUE(convolution->is_untried());
  try {
    convolution->run({0}, operands);
    ADD_FAILURE() << "it ran";
  } catch (const AlgorithmRefused& refused) {
    EXPECT_EQ(refused.why(),
              "cannot be started: CUDNN_STATUS_EXECUTION_FAILED (5000): the fake was told to fail");
    EXPECT_THAT(refused.what(), HasSubstr("cuDNN: cudnnBackendExecute failed for " + describe(problem())));
  }
  const auto expect_device_error = [&] {
    try {
      convolution->run({0}, operands);
      ADD_FAILURE() << "it ran";
    } catch (const AlgorithmRefused&) {
      ADD_FAILURE() << "the algorithm is not to blame";
    } catch (const base::Error& error) {
      EXPECT_EQ(error.kind(), base::ErrorKind::device);
    }
  };
  fake.engines[HeuristicsMode::b][0].execute = kDeviceAllocationFailed;
  expect_device_error();
  fake.engines[HeuristicsMode::b][0].execute = kSuccess;
  convolution->run({0}, operands);
  EXPECT_FALSE(convolution->is_untried());
  EXPECT_FALSE(library->make(problem(), {})->is_untried()) << "the plan has run";
  fake.engines[HeuristicsMode::b][0].execute = kExecutionFailed;
  expect_device_error();
}

TEST(CudnnConvolution, CandidatesBeginWithTheUsualOneAndNameThoseThatWantTooMuch) {
  FakeCudnn fake;
  fake.engines[HeuristicsMode::b] = {{.index = 1, .numerical_notes = {kNondeterministic}},
                                     {.index = 2, .workspace = std::int64_t{300} << 20},
                                     {.index = 3},
                                     {.index = 4},
                                     {.index = 5, .behavior_notes = {kCompiled}}};
  fake.engines[HeuristicsMode::a] = {{.index = 6}, {.index = 3}};
  {
    const auto library = open_cudnn(fake.api(), kLimit)([](Stream) -> void* { return nullptr; });
    const ConvCandidates candidates = library->candidates(problem());
    EXPECT_THAT(candidates.algorithms,
                ::testing::ElementsAre("cudnn-9.19.0-engine-3(14=1)", "cudnn-9.19.0-engine-6(14=1)",
                                       "cudnn-9.19.0-engine-4(14=1)"));
    EXPECT_THAT(candidates.left_out, ::testing::ElementsAre("cudnn-9.19.0-engine-2(14=1) (300 MB)"));
    // Their plans are there already.
    const int created = fake.created;
    std::vector<std::unique_ptr<Convolution>> made;
    for (const std::string& name : candidates.algorithms) {
      made.push_back(library->make(problem(), name));
      EXPECT_EQ(made.back()->algorithm(), name);
    }
    EXPECT_EQ(fake.created, created);
    EXPECT_EQ(library->make(problem(), {})->algorithm(), candidates.algorithms.front());
  }
  EXPECT_EQ(fake.created, fake.destroyed);
}

TEST(CudnnConvolution, IsMadeByTheNameThatARecordKeptOrRefusedWithTheReason) {
  FakeCudnn fake;
  fake.engines[HeuristicsMode::b].assign(6, {.index = 1});
  fake.engines[HeuristicsMode::b][5] = {.index = 2};
  fake.engines[HeuristicsMode::fallback] = {{.index = 3},
                                            {.index = 4, .numerical_notes = {kNondeterministic}},
                                            {.index = 5, .workspace = std::int64_t{300} << 20}};
  {
    const auto library = open_cudnn(fake.api(), kLimit)([](Stream) -> void* { return nullptr; });
    for (const char* name : {"cudnn-9.19.0-engine-2(14=1)", "cudnn-9.19.0-engine-3(14=1)"})
      EXPECT_EQ(library->make(problem(), name)->algorithm(), name);
    const auto why = [&](const std::string& name) -> std::string {
      try {
        static_cast<void>(library->make(problem(), name));
      } catch (const AlgorithmRefused& refused) {
        EXPECT_THAT(refused.what(), HasSubstr(name + " " + refused.why()));
        EXPECT_THAT(refused.what(), HasSubstr(describe(problem())));
        return refused.why();
      }
      return "it was made";
    };
    EXPECT_EQ(why("cudnn-9.19.0-engine-7(14=1)"), "is not an engine that cuDNN 9.19.0 proposes for it");
    EXPECT_EQ(why("cudnn-9.11.0-engine-2(14=1)"), "is of another version than cuDNN 9.19.0 here");
    EXPECT_EQ(why("cudnn-9.19.0-engine-4(14=1)"), "was refused: other bits each time");
    EXPECT_EQ(why("cudnn-9.19.0-engine-5(14=1)"), "was refused: more than 256 MB beside its operands");
    EXPECT_EQ(why("host-loops"), "is not an algorithm of GPUs");
    // A device that fails is no refusal: workers would choose differently.
    fake.engines[HeuristicsMode::b][0].finalize = kDeviceAllocationFailed;
    EXPECT_THROW(static_cast<void>(library->make(problem(), "cudnn-9.19.0-engine-1(14=1)")), base::Error);
    EXPECT_EQ(why("cudnn-9.19.0-engine-2(14=1)"), "it was made");
  }
  EXPECT_EQ(fake.created, fake.destroyed);
}

/// Plans, binds and runs one convolution.
void run_one(const CudnnApi& api, ConvDirection direction) {
  const auto library = open_cudnn(api, kLimit)([](Stream) -> void* { return nullptr; });
  const auto convolution = library->make(problem(Precision::bf16, direction), {});
  alignas(16) std::byte memory[4][16] = {};
  convolution->run({0}, {memory[0], memory[1], memory[2], memory[3]});
}

TEST(CudnnConvolution, EachCallThatFailsIsOneSentenceWithCallAndProblemAndNothingLeaks) {
  for (const ConvDirection direction :
       {ConvDirection::forward, ConvDirection::backward_data, ConvDirection::backward_weights}) {
    int silent = 0, failing = 0;
    for (bool reached = true; reached; ++failing) {
      FakeCudnn fake;
      fake.engines[HeuristicsMode::b] = {{.index = 1, .numerical_notes = {kNondeterministic}}, {.index = 2}};
      fake.failing_call = failing;
      std::string text;
      try {
        run_one(fake.api(), direction);
      } catch (const base::Error& error) {
        EXPECT_EQ(error.kind(), base::ErrorKind::device);
        text = error.what();
      }
      EXPECT_EQ(fake.created, fake.destroyed) << text;
      EXPECT_EQ(fake.handles, 0) << text;
      reached = !fake.failed_call.empty();
      if (!reached) break;
      if (fake.failed_call == "cudnnBackendDestroyDescriptor" || fake.failed_call == "cudnnDestroy") {
        EXPECT_EQ(text, "");  // nobody could do anything about it
        ++silent;
        continue;
      }
      EXPECT_THAT(text, HasSubstr("cuDNN: " + fake.failed_call));
      EXPECT_THAT(text, ::testing::AnyOf(HasSubstr(describe(problem(Precision::bf16, direction))),
                                         HasSubstr("the current device")));
      EXPECT_THAT(text, HasSubstr("CUDNN_STATUS_EXECUTION_FAILED (5000): the fake was told to fail"));
      EXPECT_EQ(text.find('\n'), std::string::npos);
    }
    EXPECT_GT(silent, 10);
    EXPECT_GT(failing, 120);
    if (direction == ConvDirection::forward) fmt::print("{} calls failed in turn\n", failing);
  }
}

}  // namespace
}  // namespace paceline::engine::cuda::cudnn
