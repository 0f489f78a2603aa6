#include "comm/nccl/nccl.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "comm/nccl/imitation.h"
#include "comm/probe.h"
#include "engine/cuda/engine.h"
#include "engine/cuda/ordered_runtime.h"
#include "engine/cuda/runtime/memory.h"
#include "fixture.h"
#include "forwarding_engine.h"
#include "train/prepare/memory.h"
#include "train/prepare/prepare.h"
#include "train/run_ranks.h"

namespace paceline::train {
namespace {

using comm::nccl::Imitation;
using engine::cuda::CapturedSection;
using engine::cuda::HostRuntimeOptions;
using engine::cuda::HostStream;
using engine::cuda::OrderedRuntime;
using engine::cuda::Stream;
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

/// The collectives that ranks have posted on their devices and that have not ended.
class InFlight {
 public:
  std::chrono::milliseconds patience{10000};  ///< before a wait counts as one that never ends
  void begin() {
    const std::lock_guard lock(mutex_);
    ++count_;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }
  void wait_until_none() {
    std::unique_lock lock(mutex_);
    if (!none_.wait_for(lock, patience, [this] { return count_ == 0; }))
      base::fail(base::ErrorKind::device, "an allocation waits for collectives, and they for this rank");
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  int count_ = 0;
};

/// A device that copies to other devices of the process: what allocates waits until all of them are idle.
class WaitingRuntime final : public OrderedRuntime {
 public:
  /// `refuses`: whether what allocates or captures after the warm-up is refused, as the host runtime does.
  WaitingRuntime(InFlight& in_flight, bool refuses, const HostRuntimeOptions& options)
      : OrderedRuntime(options), in_flight_(in_flight), refuses_(refuses) {}
  [[nodiscard]] Stream make_stream() override {
    streams_.push_back(OrderedRuntime::make_stream());
    return streams_.back();
  }
  [[nodiscard]] std::byte* allocate(std::size_t bytes) override {
    wait_for_all_devices();
    return OrderedRuntime::allocate(bytes);
  }
  [[nodiscard]] std::byte* allocate_pinned(std::size_t bytes) override {
    wait_for_all_devices();
    return OrderedRuntime::allocate_pinned(bytes);
  }
  [[nodiscard]] CapturedSection capture(Stream stream, const std::function<void()>& post) override {
    wait_for_all_devices();
    return OrderedRuntime::capture(stream, post);
  }

 private:
  void wait_for_all_devices() {
    if (is_sealed_ && refuses_) return;
    seal(false);
    for (const Stream stream : streams_) synchronize(stream);
    in_flight_.wait_until_none();
  }

  InFlight& in_flight_;
  const bool refuses_;
  std::vector<Stream> streams_;
};

/// Trainings of the CUDA engine on the processor, joined by an imitated NCCL; streams run in a random order,
/// and an allocation waits for all devices.
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
      auto runtime = runtime_of(worker);
      const OrderedRuntime& kept = *runtime;
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

  [[nodiscard]] std::unique_ptr<OrderedRuntime> runtime_of(int worker) {
    return std::make_unique<WaitingRuntime>(
        in_flight_, refuses_,
        HostRuntimeOptions{.order = StreamOrder::random, .seed = static_cast<std::uint64_t>(worker) + 7});
  }

  measure::Record train_joined(const Options& options) {
    weights_.clear();
    return run(options, joined_backend(), {}, {});
  }

  InFlight in_flight_;
  bool refuses_ = true;
  Imitation library_{[this](void* stream, std::function<void()> work) {
    const auto& here = *static_cast<HostStream*>(stream);
    in_flight_.begin();
    here.runtime.post(here.stream, "a collective", [this, work = std::move(work)] {
      work();
      in_flight_.end();
    });
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
    const RunParts parts{graph, source, planner, circumstances_of(source, planner),
                         memory_limits(planner, 1)};
    const auto plan = plan_run(options, resolve(options, parts.conditions), parts);
    std::int64_t gathered = 0;
    for (const auto& line : plan.lines)
      if (line.purpose == "gathered parts of shards") gathered += line.bytes;
    EXPECT_GT(gathered, 0);
    EXPECT_EQ(joined - allocated_[0], gathered) << (is_auto ? "buckets by measurement" : "given buckets");
  }
}

/// As before there was reserve(): the first collective of a step allocates its buffer, here that of rank 1
/// once rank 0 has posted its own.
class Unprepared final : public comm::Forwarding {
 public:
  Unprepared(std::unique_ptr<Communicator> inner, const Imitation& library)
      : Forwarding(std::move(inner)), library_(library) {}
  void reserve(std::size_t) override {}
  std::unique_ptr<comm::Pending> all_reduce(base::Array src, base::Array dst) override {
    while (rank() == 1 && library_.calls_of(0, "ncclAllGather") == 0) check();
    return inner().all_reduce(src, dst);
  }

 private:
  const Imitation& library_;
};

TEST_F(NcclTraining, WithoutReservingAStepAllocatesBesideCollectives) {
  auto backend = joined_backend();
  backend.made_up->on_communicators = [this, join = backend.made_up->on_communicators](
                                          int ranks, std::chrono::seconds deadline) {
    auto joined = join(ranks, deadline);
    for (auto& one : joined) one = std::make_unique<Unprepared>(std::move(one), library_);
    return joined;
  };
  Options options = on_devices(2);
  options.shard = 4;
  for (const bool is_refused : {true, false}) {
    refuses_ = is_refused;
    in_flight_.patience = std::chrono::milliseconds(100);
    try {
      (void)run(options, backend, {}, {});
      FAIL() << "nothing was allocated";
    } catch (const base::Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(is_refused ? "an allocation came after the warm-up"
                                                     : "an allocation waits for collectives, and they"));
    }
  }
}

TEST_F(NcclTraining, AllocationsWaitForCollectivesOfAllRanks) {
  in_flight_.patience = std::chrono::milliseconds(100);
  const auto ranks = joined_backend().made_up->communicators(2, std::chrono::seconds(60));
  std::vector<std::string> errors(2);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      try {
        const auto memory = engine::cuda::open_memory(runtime_of(static_cast<int>(rank)), "cuda-on-host");
        const auto array = ranks[rank]->array(8, *memory);
        ranks[rank]->barrier();
        std::unique_ptr<comm::Pending> sum;
        if (rank == 0) sum = ranks[rank]->all_reduce(array.array());
        ranks[rank]->barrier();
        if (rank == 1) (void)memory->allocate(8);
        if (rank == 1) sum = ranks[rank]->all_reduce(array.array());
        sum->wait();
        (void)sum->timing();
      } catch (const base::Error& error) {
        errors[rank] = error.what();
        ranks[rank]->abort(error.what());
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_THAT(errors[1], HasSubstr("an allocation waits for collectives, and they for this rank"));
}

// As `paceline comm` measures them.
TEST_F(NcclTraining, MeasuredCollectivesAllocateNothing) {
  const auto backend = joined_backend();
  for (const bool is_nccl : {true, false}) {
    if (!is_nccl) backend.made_up->on_communicators = nullptr;
    const auto ranks = backend.made_up->communicators(2, std::chrono::seconds(60));
    run_ranks(ranks, [&](std::size_t rank) {
      auto owned = runtime_of(static_cast<int>(rank));
      OrderedRuntime& runtime = *owned;
      const auto memory = engine::cuda::open_memory(std::move(owned), "cuda-on-host");
      const auto whole = ranks[rank]->array(64, *memory), apart = memory->allocate(64);
      ranks[rank]->barrier();
      runtime.seal(true);
      for (const auto& trial : comm::kTrials)
        for (const std::size_t count : {16, 64})
          EXPECT_TRUE(comm::probe(*ranks[rank], trial, count, 1, 3, {whole.array(), apart.array()}).correct);
      ranks[rank]->barrier();
    });
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
