#include "engine/cuda/runtime/device_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "engine/cuda/device/fake_cuda.h"

namespace paceline::engine::cuda {
namespace {

using test::FakeCuda;
using testing::AllOf;
using testing::HasSubstr;

/// Convolutions that count themselves, and fail when they are told to.
struct FakeLibrary {
  int opened = 0, closed = 0, made = 0, run = 0;
  bool fails = false;
  bool refuses = false;  ///< whether convolutions cannot be started
  std::vector<PassedOver> passed_over;
  void* stream = nullptr;

  OpenConvolutions open() {
    return [this](const NativeStream& streams) { return std::make_unique<Open>(*this, streams); };
  }

  class Open final : public ConvolutionLibrary {
   public:
    Open(FakeLibrary& owner, NativeStream streams) : owner_(owner), streams_(std::move(streams)) {
      if (owner_.fails) base::fail(base::ErrorKind::device, "cuDNN: cudnnCreate failed: no");
      ++owner_.opened;
    }
    ~Open() override { ++owner_.closed; }
    [[nodiscard]] std::string version() const override { return "cuDNN 9.99.0"; }
    [[nodiscard]] ConvCandidates candidates(const ConvProblem&) override {
      if (owner_.fails) base::fail(base::ErrorKind::device, "cuDNN: cudnnBackendFinalize failed: no");
      return {.algorithms = {"none", "another"}, .left_out = {}};
    }
    [[nodiscard]] std::unique_ptr<Convolution> make(const ConvProblem& problem,
                                                    const std::string& algorithm) override {
      if (algorithm == "unknown") throw AlgorithmRefused(problem, algorithm, "is no engine");
      if (owner_.fails) base::fail(base::ErrorKind::device, "cuDNN: cudnnBackendFinalize failed: no");
      ++owner_.made;
      return std::make_unique<One>(owner_, streams_);
    }

   private:
    FakeLibrary& owner_;
    NativeStream streams_;
  };

  class One final : public Convolution {
   public:
    One(FakeLibrary& owner, NativeStream streams) : owner_(owner), streams_(std::move(streams)) {}
    [[nodiscard]] std::size_t workspace_bytes() const override { return 64; }
    [[nodiscard]] std::string algorithm() const override { return "none"; }
    [[nodiscard]] std::span<const PassedOver> passed_over() const override { return owner_.passed_over; }
    void run(Stream stream, const ConvOperands&) override {
      if (owner_.refuses)
        throw AlgorithmRefused("cuDNN: cudnnBackendExecute failed: no", "cannot be started: no");
      if (owner_.fails) base::fail(base::ErrorKind::device, "cuDNN: cudnnBackendExecute failed: no");
      owner_.stream = streams_(stream);
      ++owner_.run;
    }

   private:
    FakeLibrary& owner_;
    NativeStream streams_;
  };
};

std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::device);
    return error.what();
  }
  return "";
}

/// Uses every function of a runtime. The last value on the device comes back: 7. `worked`: the number of
/// calls when all was done, before anything is given back.
int use_everything(const FakeCuda& cuda, FakeLibrary& library, int* worked = nullptr) {
  DeviceRuntime runtime(cuda.api(), 1, library.open());
  (void)runtime.facts();
  runtime.set_step(12);
  runtime.set_op("layer1.conv1");
  auto* device = runtime.allocate(100);
  auto* other = runtime.allocate(3 << 20);
  auto* pinned = runtime.allocate_pinned(100);
  const Stream compute = runtime.make_stream(), copies = runtime.make_stream();
  const Event copied = runtime.make_event(), computed = runtime.make_timed_event(),
              begun = runtime.make_timed_event();
  const auto convolution = runtime.make_convolution({}, {});
  std::memset(pinned, 7, 100);
  runtime.copy_to_device(copies, device, pinned, 100);
  runtime.record(copied, copies);
  runtime.wait(compute, copied);
  runtime.copy_on_device(compute, other, device, 100);
  runtime.fill_bytes(compute, other, 1, 100);
  const int arguments = 5;
  runtime.record(begun, compute);
  runtime.launch(compute, 0, &arguments, sizeof arguments, {.blocks = 2, .threads = 32});
  convolution->run(compute, {});
  const CapturedSection section =
      runtime.capture(compute, [&] { runtime.copy_on_device(compute, other, device, 100); });
  runtime.replay(compute, section);
  runtime.record(computed, compute);
  runtime.synchronize(computed);
  EXPECT_TRUE(runtime.is_done(computed));
  EXPECT_NEAR(runtime.seconds_between(begun, computed), 1e-3, 1e-9);
  std::memset(pinned, 0, 100);
  runtime.copy_to_host(compute, pinned, other, 100);
  runtime.synchronize(compute);
  if (worked != nullptr) *worked = static_cast<int>(cuda.calls.size());
  return std::to_integer<int>(pinned[99]);
}

TEST(DeviceRuntime, LoadsItsKernelsWhenItIsOpened) {
  FakeCuda cuda;
  FakeLibrary library;
  const DeviceRuntime runtime(cuda.api(), 1, library.open());
  EXPECT_THAT(cuda.calls, testing::Contains("load_kernels"));
}

TEST(DeviceRuntime, PutsWorkOnItsDeviceAndGivesAllBack) {
  FakeCuda cuda;
  FakeLibrary library;
  int launches = 0;
  cuda.run_kernel = [&](int kernel, const void* arguments, const Grid& grid) {
    ++launches;
    EXPECT_EQ(kernel, 0);
    EXPECT_EQ(*static_cast<const int*>(arguments), 5);
    EXPECT_EQ(grid.blocks, 2);
  };
  EXPECT_EQ(use_everything(cuda, library), 7);
  EXPECT_EQ(launches, 1);
  EXPECT_EQ(cuda.current_device, 1);
  EXPECT_EQ(library.run, 1);
  EXPECT_NE(library.stream, nullptr);
  EXPECT_EQ(library.closed, 1);
  EXPECT_EQ(cuda.left(), "");
}

TEST(DeviceRuntime, AnEventThatIsNotReachedIsNoError) {
  FakeCuda cuda;
  FakeLibrary library;
  DeviceRuntime runtime(cuda.api(), 0, library.open());
  const Event event = runtime.make_event();
  cuda.query_status = kCudaErrorNotReady;
  EXPECT_FALSE(runtime.is_done(event));
  cuda.query_status = kCudaSuccess;
  EXPECT_TRUE(runtime.is_done(event));
}

TEST(DeviceRuntime, EveryCallThatFailsIsSaidWithDeviceAndStepAndNothingIsLeft) {
  for (const CudaStatus status : {kCudaErrorLaunchFailure, kCudaErrorInvalidValue})
    for (int call = 1;; ++call) {
      FakeCuda cuda;
      FakeLibrary library;
      cuda.fresh_byte = 0;
      cuda.failing_call = call;
      cuda.failing_status = status;
      int worked = 0;
      const auto text = error_of([&] { (void)use_everything(cuda, library, &worked); });
      EXPECT_EQ(cuda.left(), "") << "after " << cuda.failed_call();
      EXPECT_EQ(library.opened, library.closed);
      if (!cuda.failed()) {
        EXPECT_GT(call, 40);
        EXPECT_EQ(text, "");
        break;
      }
      if (worked > 0) {  // what fails while all is given back has nobody to be said to
        EXPECT_GT(call, worked);
        EXPECT_EQ(text, "");
        continue;
      }
      EXPECT_THAT(text, AllOf(HasSubstr("--device cuda: "), HasSubstr("on GPU 1"))) << call;
      EXPECT_THAT(text,
                  HasSubstr(cuda.failed_call() == "launch" ? "the launch of kernel 0 (2 blocks of 32 threads)"
                                                           : cuda.failed_call()));
      EXPECT_EQ(text.find('\n'), std::string::npos);
      if (cuda.failed_call() == "cudaMemcpyAsync") {
        EXPECT_THAT(text, HasSubstr("(Fake H100), in step 12, op layer1.conv1"));
      }
      EXPECT_EQ(text.find("which must end") != std::string::npos, is_sticky(status)) << text;
    }
}

TEST(DeviceRuntime, AGraphIsCapturedOnceAndRunsWhenItIsReplayed) {
  FakeCuda cuda;
  FakeLibrary library;
  {
    DeviceRuntime runtime(cuda.api(), 0, library.open());
    const Stream stream = runtime.make_stream();
    std::byte* memory = runtime.allocate(4);
    const CapturedSection section =
        runtime.capture(stream, [&] { runtime.fill_bytes(stream, memory, 5, 4); });
    EXPECT_EQ(std::to_integer<int>(memory[0]), 0xff) << "it ran while it was captured";
    runtime.replay(stream, section);
    EXPECT_EQ(std::to_integer<int>(memory[0]), 5);
    runtime.fill_bytes(stream, memory, 6, 4);
    EXPECT_EQ(std::to_integer<int>(memory[0]), 6);
    runtime.replay(stream, section);
    EXPECT_EQ(std::to_integer<int>(memory[0]), 5);
    EXPECT_EQ(cuda.graph_launches, 2);
    EXPECT_TRUE(cuda.graphs.empty()) << "what was instantiated is not needed any more";
  }
  EXPECT_EQ(cuda.left(), "");
}

TEST(DeviceRuntime, WhatCannotBeCapturedIsToldApartFromWhatFails) {
  FakeCuda cuda;
  FakeLibrary library;
  {
    DeviceRuntime runtime(cuda.api(), 0, library.open());
    const Stream stream = runtime.make_stream();
    std::byte* memory = runtime.allocate(4);
    const auto fill = [&] { runtime.fill_bytes(stream, memory, 5, 4); };
    cuda.refuses_captures = true;
    try {
      (void)runtime.capture(stream, fill);
      ADD_FAILURE() << "it was captured";
    } catch (const CannotCapture& error) {
      EXPECT_THAT(error.what(), HasSubstr("cudaMemsetAsync failed on GPU 0 (Fake H100)"));
    }
    EXPECT_EQ(cuda.left().find("capture"), std::string::npos);
    fill();  // as usual
    EXPECT_EQ(std::to_integer<int>(memory[0]), 5);
    // A library's own failure is no matter of capturing.
    cuda.refuses_captures = false;
    const auto convolution = runtime.make_convolution({}, {});
    library.fails = true;
    try {
      (void)runtime.capture(stream, [&] { convolution->run(stream, {}); });
      ADD_FAILURE() << "it was captured";
    } catch (const CannotCapture& error) {
      ADD_FAILURE() << error.what();
    } catch (const base::Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("cudnnBackendExecute failed"));
    }
  }
  EXPECT_EQ(cuda.left(), "");
}

TEST(DeviceRuntime, AnErrorOfALibraryIsSaidWithDeviceStepAndOp) {
  FakeCuda cuda;
  FakeLibrary library;
  library.fails = true;
  EXPECT_THAT(error_of([&] { const DeviceRuntime runtime(cuda.api(), 0, library.open()); }),
              testing::StartsWith("--device cuda: on GPU 0 (Fake H100): cuDNN: cudnnCreate failed"));
  library.fails = false;
  DeviceRuntime runtime(cuda.api(), 0, library.open());
  const Stream stream = runtime.make_stream();
  const auto convolution = runtime.make_convolution({}, {});
  try {
    (void)runtime.make_convolution({}, "unknown");
    FAIL() << "there is no such algorithm";
  } catch (const AlgorithmRefused& refused) {
    EXPECT_EQ(refused.why(), "is no engine");  // of the algorithm, not of the device
  }
  EXPECT_THAT(runtime.convolution_candidates({}).algorithms, testing::ElementsAre("none", "another"));
  library.fails = true;
  runtime.set_op("fc");
  EXPECT_THAT(error_of([&] { (void)runtime.convolution_candidates({}); }),
              HasSubstr("on GPU 0 (Fake H100), op fc: cuDNN: cudnnBackendFinalize failed"));
  EXPECT_THAT(error_of([&] { (void)runtime.make_convolution({}, {}); }),
              HasSubstr("on GPU 0 (Fake H100), op fc: cuDNN: cudnnBackendFinalize failed"));
  runtime.set_step(3);
  EXPECT_THAT(error_of([&] { convolution->run(stream, {}); }),
              HasSubstr("on GPU 0 (Fake H100), in step 3, op fc: cuDNN: cudnnBackendExecute failed"));
}

TEST(DeviceRuntime, ALibrarysErrorThatAKernelBeforeItCausedSaysThatToo) {
  FakeCuda cuda;
  FakeLibrary library;
  DeviceRuntime runtime(cuda.api(), 0, library.open());
  const Stream stream = runtime.make_stream();
  const auto convolution = runtime.make_convolution({}, {});
  // cuDNN's runtime saw the error; ours learns of it at its next wait, behind cudaSetDevice.
  cuda.failing_call = static_cast<int>(cuda.calls.size()) + 2;
  cuda.failing_status = kCudaErrorIllegalAddress;
  library.fails = true;
  EXPECT_THAT(error_of([&] { convolution->run(stream, {}); }),
              AllOf(HasSubstr("cuDNN: cudnnBackendExecute failed: no; cudaStreamSynchronize failed"),
                    HasSubstr("cudaErrorIllegalAddress, 700"), HasSubstr("which must end")));
}

TEST(DeviceRuntime, BlamesAnAlgorithmIfTheGpuWorks) {
  FakeCuda cuda;
  FakeLibrary library{.passed_over = {{"forward", "first", "cannot be compiled: no"}}};
  DeviceRuntime runtime(cuda.api(), 0, library.open());
  EXPECT_EQ(runtime.make_convolution({}, {})->passed_over().size(), 1u) << "no stream is made yet";
  const Stream stream = runtime.make_stream();
  const auto convolution = runtime.make_convolution({}, {});
  library.refuses = true;
  try {
    convolution->run(stream, {});
    ADD_FAILURE() << "it ran";
  } catch (const AlgorithmRefused& refused) {
    EXPECT_EQ(refused.why(), "cannot be started: no");
    EXPECT_STREQ(refused.what(),
                 "--device cuda: on GPU 0 (Fake H100): cuDNN: cudnnBackendExecute failed: no");
  }
  const auto expect_lost = [&](const std::function<void()>& call) {
    try {
      call();
      ADD_FAILURE() << "it worked";
    } catch (const AlgorithmRefused&) {
      ADD_FAILURE() << "the algorithm is not to blame";
    } catch (const base::Error& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("cudaErrorIllegalAddress, 700"), HasSubstr("must end")));
    }
  };
  cuda.failing_call = static_cast<int>(cuda.calls.size()) + 2;  // behind cudaSetDevice
  cuda.failing_status = kCudaErrorIllegalAddress;
  expect_lost([&] { convolution->run(stream, {}); });
}

TEST(DeviceRuntime, ALostGpuPassesNoAlgorithmOver) {
  for (const bool has_stream : {false, true}) {
    FakeCuda cuda;
    FakeLibrary library{.passed_over = {{"forward", "first", "cannot be compiled: no"}}};
    DeviceRuntime runtime(cuda.api(), 0, library.open());
    if (has_stream) (void)runtime.make_stream();
    cuda.failing_call = static_cast<int>(cuda.calls.size()) + 2;
    cuda.failing_status = kCudaErrorIllegalAddress;
    EXPECT_THAT(error_of([&] { (void)runtime.make_convolution({}, {}); }), HasSubstr("which must end"));
  }
}

TEST(DeviceRuntime, AllocatesWholeUnitsAndSaysWhatIsFreeWhenThereIsTooLittle) {
  FakeCuda cuda;
  FakeLibrary library;
  cuda.memory_bytes = std::size_t{9} << 20;
  DeviceRuntime runtime(cuda.api(), 0, library.open());
  (void)runtime.allocate(1);
  EXPECT_EQ(cuda.used_bytes, std::size_t{2} << 20);
  (void)runtime.allocate((2 << 20) + 1);
  EXPECT_EQ(cuda.used_bytes, std::size_t{6} << 20);
  EXPECT_EQ(cuda.used_bytes, allocated_bytes(1) + allocated_bytes((2 << 20) + 1));
  EXPECT_THAT(error_of([&] { (void)runtime.allocate(8 << 20); }),
              AllOf(HasSubstr("cudaMalloc of 0.008 GB failed on GPU 0 (Fake H100): out of memory"),
                    HasSubstr("0.00 of 0.01 GB are free; give a smaller batch")));
  (void)runtime.allocate(1);  // the error is not sticky, and nothing of it is left
  EXPECT_EQ(cuda.api().cudaGetLastError(), kCudaSuccess);
}

TEST(DeviceRuntime, AnErrorThatWasSaidIsNotLeftForTheNextCall) {
  FakeCuda cuda;
  FakeLibrary library;
  DeviceRuntime runtime(cuda.api(), 0, library.open());
  const Stream stream = runtime.make_stream();
  auto* memory = runtime.allocate(1);
  cuda.failing_call = static_cast<int>(cuda.calls.size()) + 2;  // behind cudaSetDevice
  cuda.failing_status = kCudaErrorInvalidValue;
  EXPECT_THAT(error_of([&] { runtime.fill_bytes(stream, memory, 0, 1); }),
              HasSubstr("cudaMemsetAsync failed"));
  EXPECT_EQ(cuda.api().cudaGetLastError(), kCudaSuccess);
}

TEST(DeviceRuntime, TwoOnOneThreadKeepTheirDevices) {
  FakeCuda cuda;
  FakeLibrary library;
  DeviceRuntime first(cuda.api(), 0, library.open()), second(cuda.api(), 1, library.open());
  const Stream a = first.make_stream(), b = second.make_stream();
  first.synchronize(a);
  EXPECT_EQ(cuda.current_device, 0);
  second.synchronize(b);
  EXPECT_EQ(cuda.current_device, 1);
}

TEST(DeviceRuntime, FactsNameDeviceAndLibraries) {
  FakeCuda cuda;
  FakeLibrary library;
  const DeviceRuntime runtime(cuda.api(), 0, library.open());
  const auto facts = runtime.facts();
  EXPECT_TRUE(facts.is_gpu);
  EXPECT_EQ(facts.name, "Fake H100");
  EXPECT_EQ(facts.compute_capability, 90);
  EXPECT_EQ(facts.multiprocessors, 132);
  EXPECT_EQ(facts.memory_bytes, std::int64_t{8} << 30);
  EXPECT_EQ(facts.libraries, "CUDA 13.0 (driver for 13.0), cuDNN 9.99.0");
}

TEST(DeviceRuntime, FactsCountItsOwnBlocksApartFromWhatElseIsInUse) {
  FakeCuda cuda;
  FakeLibrary library;
  cuda.used_bytes = std::size_t{3} << 20;  // of another process
  DeviceRuntime runtime(cuda.api(), 1, library.open());
  EXPECT_EQ(runtime.facts().index, 1);
  EXPECT_EQ(runtime.facts().allocated_bytes, 0);
  (void)runtime.allocate(5);
  (void)runtime.allocate(std::size_t{3} << 20);
  (void)runtime.allocate_pinned(1000);
  const auto facts = runtime.facts();
  EXPECT_EQ(facts.allocated_bytes, std::int64_t{6} << 20) << "one unit of 2 MiB, and two";
  EXPECT_EQ(facts.memory_bytes - facts.free_memory_bytes, std::int64_t(cuda.used_bytes));
}

TEST(DeviceOfWorker, WorkersTakeTurns) {
  EXPECT_EQ(device_of_worker(0, 2), 0);
  EXPECT_EQ(device_of_worker(3, 2), 1);
  EXPECT_EQ(device_of_worker(3, 1), 0);
}

}  // namespace
}  // namespace paceline::engine::cuda
