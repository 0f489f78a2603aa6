/// The whole engine on a GPU's runtime, whose CUDA and cuDNN are made up: what it computes, and what becomes
/// of each call that fails.

#include "engine/cuda/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/cuda/cudnn/convolution.h"
#include "engine/cuda/cudnn/fake_cudnn.h"
#include "engine/cuda/device/fake_cuda.h"
#include "engine/cuda/kernels/host.h"
#include "engine/cuda/runtime/device_runtime.h"
#include "engine/cuda/runtime/host_runtime.h"
#include "engine/reference/toy.h"

namespace paceline::engine::cuda {
namespace {

using cudnn::test::FakeCudnn;
using test::FakeCuda;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

constexpr int kBatch = 4;

/// The host's loops as a device's convolutions.
class HostLibrary final : public ConvolutionLibrary {
 public:
  HostLibrary(FakeCuda& cuda, NativeStream streams, bool computes)
      : cuda_(cuda), streams_(std::move(streams)), computes_(computes) {}
  [[nodiscard]] std::string version() const override { return "host loops"; }
  [[nodiscard]] std::unique_ptr<Convolution> make(const ConvProblem& problem, const std::string&) override {
    return std::make_unique<One>(*this, problem);
  }
  [[nodiscard]] ConvCandidates candidates(const ConvProblem&) override {
    return {.algorithms = {"host-loops"}, .left_out = {}};
  }

 private:
  class One final : public Convolution {
   public:
    One(const HostLibrary& owner, const ConvProblem& problem) : owner_(owner), problem_(problem) {}
    [[nodiscard]] std::size_t workspace_bytes() const override { return 0; }
    [[nodiscard]] std::string algorithm() const override { return "host-loops"; }
    void run(Stream stream, const ConvOperands& operands) override {
      if (owner_.computes_)
        owner_.cuda_.put(static_cast<CudaStreamHandle>(owner_.streams_(stream)),
                         [problem = problem_, operands] { convolve_on_host(problem, operands); });
    }

   private:
    const HostLibrary& owner_;
    ConvProblem problem_;
  };
  FakeCuda& cuda_;
  NativeStream streams_;
  bool computes_;
};

OpenConvolutions host_convolutions(FakeCuda& cuda, bool computes) {
  return [&cuda, computes](const NativeStream& streams) {
    return std::make_unique<HostLibrary>(cuda, streams, computes);
  };
}

/// Convolution, batch norm, pooling and a dense layer: few calls, each kind of them.
graph::Graph small_model() {
  graph::Builder model("small");
  int value = model.conv2d(model.input({3, 4, 4}), "conv", {.channels = 4, .padding = 1});
  value = model.relu(model.batch_norm(value, "norm"));
  value = model.global_average_pool(value);
  model.loss(model.dense(value, "fc", {.features = 4}), 0);
  return model.finish();
}

CompileOptions options() {
  CompileOptions options;
  options.batch = kBatch;
  options.rule.kind = UpdateKind::adamw;
  return options;
}

/// What a training leaves: its losses and its weights. Its steps are captured sections.
std::vector<double> train(const graph::Graph& graph, std::unique_ptr<Runtime> runtime,
                          int* trained = nullptr) {
  const auto engine = compile(graph, options(), std::move(runtime), {.name = "cuda"});
  toy::initialise(*engine, 3);
  engine->weights_changed();
  std::vector<double> left;
  const std::int64_t whole = engine->layout().elements;
  engine->cut_backward({&whole, 1});
  engine->warm_up({.steps = WarmUp::Steps::queued, .views = 1});
  for (std::uint64_t step = 0; step < 2; ++step) {
    const toy::Samples samples(graph, static_cast<std::int64_t>(step) * kBatch, kBatch);
    left.push_back(engine->forward(samples.step(1.0 / kBatch, step)).loss);
    engine->backward({});
    engine->update(options().rule, 0.1, static_cast<std::int64_t>(step) + 1);
  }
  StepQueue& queue = *engine->step_queue();
  for (std::uint64_t step = 2; step < 4; ++step) {
    const toy::Samples samples(graph, static_cast<std::int64_t>(step) * kBatch, kBatch);
    queue.forward(samples.step(1.0 / kBatch, step), {},
                  {.rule = options().rule, .lr = 0.1, .number = static_cast<std::int64_t>(step) + 1});
    engine->backward({});
    queue.update();
  }
  for (int step = 2; step < 4; ++step) left.push_back(queue.collect().local.loss);
  engine->fetch();
  const toy::Samples samples(graph, 100, kBatch);
  left.push_back(engine->evaluate(samples.images, samples.labels, kBatch).loss);
  left.insert(left.end(), engine->weights().begin(), engine->weights().end());
  if (trained != nullptr) ++*trained;
  return left;
}

TEST(EngineOnADevicesRuntime, ComputesTheBitsOfTheHostRuntime) {
  FakeCuda cuda;
  cuda.run_kernel = [](int kernel, const void* arguments, const Grid& grid) {
    run_on_host(kernel, arguments, grid);
  };
  const auto graph = toy::every_op();
  const auto expected = train(graph, std::make_unique<HostRuntime>());
  EXPECT_EQ(train(graph, std::make_unique<DeviceRuntime>(cuda.api(), 0, host_convolutions(cuda, true))),
            expected);
  EXPECT_EQ(cuda.left(), "");
}

TEST(EngineOnADevicesRuntime, TrainsInFp32WithoutBf16) {
  FakeCuda cuda;
  cuda.capability = 75;
  cuda.run_kernel = [](int kernel, const void* arguments, const Grid& grid) {
    run_on_host(kernel, arguments, grid);
  };
  const auto graph = small_model();
  const auto open = [&] {
    return std::make_unique<DeviceRuntime>(cuda.api(), 0, host_convolutions(cuda, true));
  };
  EXPECT_EQ(train(graph, open()), train(graph, std::make_unique<HostRuntime>()));
  CompileOptions in_bf16 = options();
  in_bf16.precision = Precision::bf16;
  try {
    (void)compile(graph, in_bf16, open());
    ADD_FAILURE() << "it was compiled";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::usage);
    EXPECT_STREQ(
        error.what(),
        "--precision bf16: GPU 0 (Fake H100) has compute capability 7.5, and bf16 needs 8.0 (Ampere) or "
        "later; give --precision fp16 or fp32");
  }
  auto in_fp16 = options();
  in_fp16.precision = Precision::f16;
  (void)compile(graph, in_fp16, open());
  EXPECT_EQ(cuda.left(), "");
  cuda.capability = 80;
  (void)compile(graph, in_bf16, open());
}

TEST(EngineOnADevicesRuntime, PlansWhatItAllocatesAndRoomForDriverAndLibraries) {
  FakeCuda cuda;
  const auto engine = compile(toy::every_op(), options(),
                              std::make_unique<DeviceRuntime>(cuda.api(), 0, host_convolutions(cuda, true)),
                              {.name = "cuda"});
  const graph::MemoryPlan plan = engine->plan();
  const auto others = std::find_if(plan.lines.begin(), plan.lines.end(),
                                   [](const auto& line) { return line.purpose == "driver and libraries"; });
  ASSERT_NE(others, plan.lines.end());
  EXPECT_EQ(others->place, graph::MemoryPlan::Place::device);
  // The fake counts pinned memory too: weights of classes are copied from there.
  EXPECT_EQ(plan.total_bytes() - others->bytes, static_cast<std::int64_t>(cuda.used_bytes));
}

TEST(EngineOnADevicesRuntime, MeasuringItsKernelsSaysWhatCannotBeCaptured) {
  for (const bool refuses : {false, true}) {
    FakeCuda cuda;
    cuda.fresh_byte = 0;
    const auto engine = compile(
        small_model(), options(),
        std::make_unique<DeviceRuntime>(cuda.api(), 0, host_convolutions(cuda, false)), {.name = "cuda"});
    cuda.refuses_captures = refuses;
    const KernelChoice row = engine->measured_kernels().back();
    EXPECT_EQ(row.op, "step");
    EXPECT_EQ(row.implementation, refuses ? "launch by launch" : "captured sections");
    if (refuses) {
      EXPECT_THAT(row.reason, AllOf(HasSubstr("the launch of kernel"), HasSubstr("op conv")));
    } else {
      EXPECT_EQ(row.reason, "");
      EXPECT_GT(cuda.graph_launches, 0);
    }
  }
}

TEST(EngineOnADevicesRuntime, EachCallOfCudaThatFailsIsOneSentenceAndLeavesNothing) {
  const auto graph = small_model();
  int with_step = 0, in_warm_up = 0, with_op = 0, failures = 0;
  for (int call = 1;; ++call) {
    FakeCuda cuda;
    cuda.fresh_byte = 0;  // nothing computes here: it is the calls that count
    cuda.failing_call = call;
    int trained = 0;
    std::string text;
    try {
      (void)train(graph, std::make_unique<DeviceRuntime>(cuda.api(), 1, host_convolutions(cuda, false)),
                  &trained);
    } catch (const base::Error& error) {
      text = error.what();
      EXPECT_EQ(error.kind(), base::ErrorKind::device);
    }
    ASSERT_EQ(cuda.left(), "") << "call " << call << ", " << cuda.failed_call();
    if (!cuda.failed()) break;
    if (trained > 0) {  // it fails while all is given back: nothing is lost
      EXPECT_EQ(text, "");
      continue;
    }
    ++failures;
    const auto name = cuda.failed_call() == "launch" ? "the launch of kernel" : cuda.failed_call();
    ASSERT_THAT(text, AllOf(testing::StartsWith("--device cuda: "), HasSubstr(name), HasSubstr("on GPU 1")))
        << "call " << call;
    EXPECT_EQ(text.find('\n'), std::string::npos);
    const bool is_of_warm_up = text.find(", in the warm-up") != std::string::npos;
    in_warm_up += is_of_warm_up ? 1 : 0;
    with_step += is_of_warm_up || text.find(", in step ") != std::string::npos ? 1 : 0;
    with_op += text.find(", op ") != std::string::npos ? 1 : 0;
    const bool stepping = std::count(cuda.calls.begin(), cuda.calls.begin() + call, "launch") > 4;
    if (stepping) {
      EXPECT_THAT(text, AnyOf(HasSubstr(", in step "), HasSubstr(", in the warm-up")))
          << "call " << call << ", " << name;
    }
  }
  EXPECT_GT(failures, 200);
  EXPECT_GT(with_step, failures / 2);
  EXPECT_GT(in_warm_up, failures / 4);
  EXPECT_GT(with_op, failures / 4);
}

TEST(EngineOnADevicesRuntime, EachCallOfCudnnThatFailsIsOneSentenceAndLeavesNothing) {
  const auto graph = small_model();
  int failures = 0, tolerated = 0;
  for (int call = 0;; ++call) {
    FakeCuda cuda;
    cuda.fresh_byte = 0;
    FakeCudnn library;
    library.engines[cudnn::HeuristicsMode::b] = {{.index = 1}, {.index = 2}};
    library.failing_call = call;
    int trained = 0;
    std::string text;
    try {
      (void)train(graph,
                  std::make_unique<DeviceRuntime>(cuda.api(), 0,
                                                  cudnn::open_cudnn(library.api(), workspace_limit(0))),
                  &trained);
    } catch (const base::Error& error) {
      text = error.what();
      EXPECT_EQ(error.kind(), base::ErrorKind::device);
    }
    ASSERT_EQ(cuda.left(), "") << "call " << call << ", " << library.failed_call;
    EXPECT_EQ(library.created, library.destroyed) << "call " << call << ", " << library.failed_call;
    EXPECT_EQ(library.handles, 0);
    if (library.failed_call.empty()) break;
    if (trained > 0) {  // what destroys, or an engine for which there is another
      EXPECT_EQ(text, "");
      ++tolerated;
      continue;
    }
    ++failures;
    ASSERT_THAT(text, AllOf(testing::StartsWith("--device cuda: on GPU 0 (Fake H100)"),
                            HasSubstr(library.failed_call)))
        << "call " << call;
    EXPECT_EQ(text.find('\n'), std::string::npos);
    if (library.failed_call == "cudnnBackendExecute") {
      EXPECT_THAT(text, AllOf(AnyOf(HasSubstr("in step "), HasSubstr("in the warm-up")), HasSubstr("op ")));
    }
  }
  EXPECT_GT(failures, 200);
  EXPECT_GT(failures, tolerated);
}

}  // namespace
}  // namespace paceline::engine::cuda
