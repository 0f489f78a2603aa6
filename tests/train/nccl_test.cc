#include "comm/nccl/nccl.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "comm/nccl/imitation.h"
#include "engine/cuda/engine.h"
#include "engine/cuda/runtime/host_runtime.h"
#include "fixture.h"
#include "forwarding_engine.h"
#include "train/prepare/memory.h"
#include "train/prepare/prepare.h"

namespace paceline::train {
namespace {

using comm::nccl::Imitation;
using engine::cuda::HostRuntime;
using engine::cuda::HostRuntimeOptions;
using engine::cuda::HostStream;
using engine::cuda::StreamOrder;
using testing::AllOf;
using testing::HasSubstr;

/// Leaves its weights to the test when it ends.
class Remembered final : public ForwardingEngine {
 public:
  Remembered(std::unique_ptr<engine::Engine> engine, std::function<void(std::span<const float>)> keep)
      : ForwardingEngine(std::move(engine)), keep_(std::move(keep)) {}
  ~Remembered() override {
    fetch();
    keep_(weights());
  }

 private:
  const std::function<void(std::span<const float>)> keep_;
};

/// Trainings of the CUDA engine on the processor, joined by an imitated NCCL; streams run in a random order.
class NcclTraining : public TrainingTest {
 protected:
  [[nodiscard]] Options on_devices(int workers) const {
    Options options = small();
    options.device = "cuda-on-host";
    options.workers = workers;
    options.global_batch = 16;
    options.steps = 20;
    options.bucket_mb = 0.004;  // several buckets even of this model
    return options;
  }

  [[nodiscard]] MadeUpBackend joined_backend() {
    auto backend = backend_of("cuda-on-host");
    backend.made_up->on_compile = [this](const graph::Graph& graph, const engine::CompileOptions& options) {
      const auto worker = options.worker_on_host;
      auto runtime = std::make_unique<HostRuntime>(
          HostRuntimeOptions{.order = StreamOrder::random, .seed = static_cast<std::uint64_t>(worker) + 7});
      const HostRuntime& kept = *runtime;
      return std::make_unique<Remembered>(
          engine::cuda::compile(graph, options, std::move(runtime), {.name = "cuda-on-host", .poison = true}),
          [this, worker, &kept](std::span<const float> weights) {
            const std::lock_guard lock(mutex_);
            weights_[worker].assign(weights.begin(), weights.end());
            allocated_[worker] = kept.allocated_bytes();
          });
    };
    backend.made_up->on_communicators = [](int ranks, std::chrono::seconds deadline) {
      return comm::nccl::around(
          comm::host_staging(comm::make_local(ranks, {.deadline = deadline})),
          {.open = []() -> const comm::nccl::Api& { return Imitation::api(); }, .deadline = deadline});
    };
    return backend;
  }

  measure::Record train_joined(const Options& options) {
    weights_.clear();
    return run(options, joined_backend(), {}, {});
  }

  Imitation library_{[](void* stream, std::function<void()> work) {
    const auto& here = *static_cast<HostStream*>(stream);
    here.runtime.post(here.stream, "a collective", std::move(work));
  }};
  std::mutex mutex_;
  std::map<int, std::vector<float>> weights_;  ///< by worker, at the end
  std::map<int, std::int64_t> allocated_;      ///< bytes of its runtime, at the end
};

TEST_F(NcclTraining, GivesTheSameWeightsOnBothRanksAndSaysWhoCarriedThem) {
  const auto record = train_joined(on_devices(2));
  EXPECT_EQ(record.status, "complete");
  EXPECT_EQ(record.communication.communicator, "nccl");
  EXPECT_THAT(record.communication.algorithm, HasSubstr("NCCL 2.28.9"));
  ASSERT_EQ(weights_.size(), 2u);
  EXPECT_EQ(weights_[0], weights_[1]);
  EXPECT_GE(library_.calls("ncclAllReduce"), 2 * 2 * 20) << "several buckets a step on each rank";
  EXPECT_EQ(library_.misuse(), "");
  EXPECT_EQ(library_.living_comms(), 0);
  // Two operands have but one sum, so that it is also that of the way over the host.
  const auto by_nccl = weights_[0];
  auto bounced = joined_backend();
  bounced.made_up->on_communicators = nullptr;
  (void)run(on_devices(2), bounced, {}, {});
  EXPECT_EQ(weights_[0], by_nccl);
}

TEST_F(NcclTraining, WithShardsGivesTheBitsOfOneWorker) {
  Options options = on_devices(1);
  options.shard = 4;
  (void)train_joined(options);
  const auto alone = weights_[0];
  ASSERT_FALSE(alone.empty());
  for (const int workers : {2, 4}) {
    options.workers = workers;
    const auto record = train_joined(options);
    EXPECT_THAT(record.communication.algorithm, HasSubstr("tree"));
    for (int worker = 0; worker < workers; ++worker)
      EXPECT_EQ(weights_[worker], alone) << "worker " << worker << " of " << workers;
  }
  EXPECT_GT(library_.calls("ncclAllGather"), 0);
  EXPECT_EQ(library_.calls("ncclAllReduce"), 0);
  EXPECT_EQ(library_.misuse(), "");
}

TEST_F(NcclTraining, WithShardsHoldsTheBuffersThatThePlanHas) {
  for (const bool is_auto : {false, true}) {
    Options options = on_devices(2);
    options.shard = 4;
    options.model = short_head();  // a short bucket before a longer one
    options.bucket_mb = 1e-6;
    options.bucket_auto = is_auto;
    (void)train_joined(options);
    const auto joined = allocated_[0];
    auto bounced = joined_backend();
    bounced.made_up->on_communicators = nullptr;
    (void)run(options, bounced, {}, {});
    // As on a device of its own for each worker.
    auto planner = joined_backend();
    planner.device_sum_bytes = 1;
    planner.made_up->on_device = [](int) {
      return DeviceShare{.info = {.memory_bytes = 1, .free_memory_bytes = std::int64_t{1} << 40}};
    };
    const auto source = open_data(options, planner);
    const auto graph = make_graph(options, source);
    const auto plan = plan_run(options, resolve(options, circumstances_of(source, planner)), graph, source,
                               planner, memory_limits(planner, 1));
    std::int64_t parts = 0;
    for (const auto& line : plan.lines)
      if (line.purpose == "gathered parts of shards") parts += line.bytes;
    EXPECT_GT(parts, 0);
    EXPECT_EQ(joined - allocated_[0], parts) << (is_auto ? "buckets by measurement" : "given buckets");
  }
}

TEST_F(NcclTraining, AFailureInTheMiddleEndsItWithRankAndCollective) {
  library_.fail(1, "ncclAllReduce", 9);
  try {
    (void)train_joined(on_devices(2));
    FAIL() << "the training went on";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("rank 1 of 2"), HasSubstr("all_reduce 9 of")));
    EXPECT_EQ(error.kind(), base::ErrorKind::comm);
  }
  EXPECT_EQ(library_.misuse(), "");
  EXPECT_EQ(library_.living_comms(), 0);
}

}  // namespace
}  // namespace paceline::train
