#include "train/prepare/memory.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "train/fixture.h"
#include "train/forwarding_engine.h"
#include "train/prepare/prepare.h"
#include "train/step/buckets.h"

namespace paceline::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Place = graph::MemoryPlan::Place;

constexpr std::int64_t kGiga = 1'000'000'000;

/// Plans for a device of `gigabytes` that `share` workers use: a sample takes 1 GB there and 1 kB here.
MadeUpBackend with_device(std::int64_t gigabytes, int share = 1) {
  auto backend = backend_of("reference");
  backend.made_up->on_plan = [](const graph::Graph&, const engine::CompileOptions& options) {
    graph::MemoryPlan plan;
    plan.lines = {{"activations", options.batch * kGiga, Place::device},
                  {"weights", 2 * kGiga, Place::device},
                  {"pinned buffers", options.batch * std::int64_t{1000}, Place::host}};
    return plan;
  };
  backend.made_up->on_device = [=](int) {
    return DeviceShare{.info = {.name = "a GPU",
                                .libraries = "its library 1.0",
                                .memory_bytes = (gigabytes + 1) * kGiga,
                                .free_memory_bytes = gigabytes * kGiga},
                       .workers = share};
  };
  return backend;
}

class DeviceMemory : public TrainingTest {
 protected:
  [[nodiscard]] Options of_batch(std::int64_t local_batch, int workers = 1) const {
    Options options = small();
    options.data = "synthetic,train=4096,test=16";
    options.global_batch = 0;
    options.local_batch = local_batch;
    options.workers = workers;
    return options;
  }
  static std::string refused(const Options& options, const Backend& backend) {
    try {
      (void)run(options, backend, {}, {});
    } catch (const base::Error& error) {
      EXPECT_EQ(error.kind(), base::ErrorKind::device);
      return error.what();
    }
    return "accepted";
  }
};

TEST_F(DeviceMemory, IsALimitOfItsOwnAndTheSentenceNamesPlaceNeedLimitAndTheLargestBatch) {
  EXPECT_EQ(
      refused(of_batch(100), with_device(80)),
      "memory: the plan for 1 worker x local batch 100 is 102.00 GB of device memory (a GPU) and 80.00 GB "
      "of it are free; the largest local batch that fits is 78, and --micro-batch 50 computes this batch in parts "
      "that fit");
  EXPECT_EQ(
      refused(of_batch(100), with_device(24)),
      "memory: the plan for 1 worker x local batch 100 is 102.00 GB of device memory (a GPU) and 24.00 GB "
      "of it are free; the largest local batch that fits is 22, and --micro-batch 20 computes this batch in parts "
      "that fit");
  EXPECT_EQ(largest_batch(of_batch(1), with_device(80)), 78);
  EXPECT_EQ(largest_batch(of_batch(1), with_device(24)), 22);
  EXPECT_THAT(refused(of_batch(100), with_device(1)), HasSubstr("not even the smallest batch fits"));
  auto in_parts = of_batch(100);
  in_parts.micro_batch = 50;
  EXPECT_THAT(refused(in_parts, with_device(24)),
              HasSubstr("of it are free; --micro-batch 20 computes this batch in parts that fit"));
}

TEST_F(DeviceMemory, IsSharedByTheWorkersOfADevice) {
  EXPECT_EQ(largest_batch(of_batch(1, 2), with_device(80, 2)), 38);
  EXPECT_THAT(refused(of_batch(100, 2), with_device(80, 2)),
              AllOf(HasSubstr("2 workers x local batch 100 is 204.00 GB of device memory (a GPU, shared by 2 "
                              "workers)"),
                    HasSubstr("the largest local batch that fits is 38")));
  EXPECT_EQ(largest_batch(of_batch(1, 2), with_device(80, 1)), 78) << "each worker has its own";
}

/// What the plan says of a purpose, in bytes; 0 where it says nothing.
std::int64_t planned(const Options& options, const Backend& backend, const std::string& purpose) {
  const auto source = open_data(options, backend);
  const auto graph = make_graph(options, source);
  const RunParts parts{graph, source, backend, circumstances_of(source, backend),
                       memory_limits(backend, options.workers)};
  const auto plan = plan_run(options, resolve(options, parts.conditions), parts);
  std::int64_t bytes = 0;
  for (const auto& line : plan.lines)
    if (line.purpose == purpose) {
      EXPECT_EQ(line.place, Place::device);
      bytes += line.bytes;
    }
  return bytes;
}

TEST_F(DeviceMemory, HoldsWhatSumsAmongGpusTake) {
  auto backend = with_device(80);
  backend.device_sum_bytes = kGiga / 2;
  const char* const buffers = "NCCL's buffers";
  const char* const parts = "gathered parts of shards";
  EXPECT_EQ(planned(of_batch(4, 2), backend, buffers), kGiga / 2);
  EXPECT_EQ(planned(of_batch(4, 1), backend, buffers), 0) << "one worker sums with nobody";
  EXPECT_EQ(planned(of_batch(4, 2), with_device(80), buffers), 0) << "sums go over the host";
  EXPECT_EQ(planned(of_batch(4, 2), backend, parts), 0) << "without shards nothing is gathered";
  auto shared = with_device(80, 2);
  shared.device_sum_bytes = kGiga / 2;
  EXPECT_EQ(planned(of_batch(4, 2), shared, buffers), 0) << "workers that share a GPU go over the host";
  shared.made_up->on_device = [](int) {
    return DeviceShare{.info = {.memory_bytes = 81 * kGiga, .free_memory_bytes = 80 * kGiga},
                       .workers = 1,
                       .is_any_shared = true};
  };
  EXPECT_EQ(planned(of_batch(4, 2), shared, buffers), 0) << "also beside others that share one";
  Options shards = of_batch(4, 4);
  shards.shard = 4;
  shards.model = short_head();
  const auto graph = make_graph(shards, open_data(shards, backend));
  const std::int64_t all = graph::flat_layout(graph).elements;
  // One buffer for the longest bucket.
  for (const double megabytes : {1e-6, 1e-3, 2e-3, 4e-3, 8e-3, 1.0}) {
    shards.bucket_mb = megabytes;
    const Buckets buckets =
        cut_buckets(graph::flat_layout(graph), static_cast<std::int64_t>(megabytes * 1e6));
    std::int64_t longest = 0;
    for (std::size_t i = 0; i < buckets.count(); ++i)
      longest = std::max(longest, buckets.bytes(i) + (i + 1 == buckets.count() ? 4 * 8 : 0));  // votes
    EXPECT_EQ(planned(shards, backend, parts), 4 * longest) << megabytes << ", of each of 4 workers";
  }
  shards.bucket_auto = true;
  EXPECT_EQ(planned(shards, backend, parts), 4 * 4 * (all + 8)) << "all of the gradient is tried";
}

TEST_F(DeviceMemory, WithShardsTheLargestBatchIsAPowerOfTwoOfThem) {
  Options options = of_batch(4);
  options.shard = 4;  // the engine's batch is the shard: what grows is on the host
  EXPECT_GT(largest_batch(options, with_device(80)), 78);
}

TEST_F(DeviceMemory, StandsInSetupsApartFromTheHosts) {
  const auto fits = inspect(of_batch(10), with_device(80));
  EXPECT_EQ(fits.excess, "");
  ASSERT_TRUE(fits.memory.device.has_value());
  EXPECT_EQ(fits.memory.device->plan_bytes, 12 * kGiga);
  EXPECT_EQ(fits.memory.device->available_bytes, 80 * kGiga);
  EXPECT_LT(fits.memory.plan_bytes, kGiga);
  EXPECT_FALSE(fits.memory.exceeds_what_there_is());
  const auto exceeds = inspect(of_batch(100), with_device(80));
  EXPECT_THAT(exceeds.excess, HasSubstr("102.00 GB of device memory"));
  EXPECT_TRUE(exceeds.memory.exceeds_what_there_is());
}

/// Says of its device's memory what a test wants.
class WithDeviceMemory final : public ForwardingEngine {
 public:
  WithDeviceMemory(std::unique_ptr<engine::Engine> engine, engine::DeviceMemoryUse use)
      : ForwardingEngine(std::move(engine)), use_(std::move(use)) {}
  [[nodiscard]] std::optional<engine::DeviceMemoryUse> device_memory() const override { return use_; }

 private:
  const engine::DeviceMemoryUse use_;
};

/// The use that the record of two workers has, of which the first says `first`, the second `second`.
std::optional<measure::Record::Memory::Device::Use> recorded_use(Options options, MadeUpBackend backend,
                                                                 const engine::DeviceMemoryUse& first,
                                                                 const engine::DeviceMemoryUse& second) {
  backend.made_up->on_compile = [&](const graph::Graph& graph, const engine::CompileOptions& how) {
    return std::make_unique<WithDeviceMemory>(engine::compile("reference", graph, how),
                                              how.worker_on_host == 0 ? first : second);
  };
  options.out /= first.device + second.device;
  const auto record = run(options, backend, {}, {});
  const auto again = measure::read_record(options.out / "record.json");
  EXPECT_EQ(again.memory.device.value().use.value().used_bytes, record.memory.device.value().use->used_bytes);
  return record.memory.device->use;
}

TEST_F(DeviceMemory, IsMeasuredIntoTheRecordAtTheEnd) {
  Options options = of_batch(4, 2);
  options.steps = 2;
  options.out = directory_ / "use";
  const engine::DeviceMemoryUse first{"0", 81 * kGiga, 9 * kGiga, 3 * kGiga};
  const auto shared =
      recorded_use(options, with_device(80, 2), first, {"0", 81 * kGiga, 8 * kGiga, 4 * kGiga});
  ASSERT_TRUE(shared.has_value());
  EXPECT_EQ(shared->total_bytes, 81 * kGiga);
  EXPECT_EQ(shared->used_bytes, 9 * kGiga) << "each saw the whole device, one of them more";
  EXPECT_EQ(shared->engines_bytes, 7 * kGiga);

  const auto fullest = recorded_use(options, with_device(80), first, {"1", 24 * kGiga, 8 * kGiga, 4 * kGiga});
  ASSERT_TRUE(fullest.has_value());
  EXPECT_EQ(fullest->total_bytes, 24 * kGiga);
  EXPECT_EQ(fullest->engines_bytes, 4 * kGiga);
}

TEST_F(DeviceMemory, OfTheHostIsSaidToBeTheHosts) {
  MemoryLimits limits = memory_limits(with_device(80), 1);
  limits.host = 1000;
  graph::MemoryPlan plan;
  plan.lines = {{"loader", 2 * kGiga, Place::host}, {"activations", kGiga, Place::device}};
  EXPECT_EQ(excess(plan, limits), "2.00 GB of host memory and this process may use 0.00 GB");
  limits.device.reset();
  EXPECT_THAT(excess(plan, limits), Not(HasSubstr("of host memory")));
}

/// As the CUDA engine plans for a GPU, but for the workspace that cuDNN's choice takes there.
TEST_F(DeviceMemory, EndsTheBatchesOfTheCudaEngine) {
  Options options = of_batch(64);
  options.model = "resnet18-cifar";
  options.data = "synthetic,train=200000,test=16";
  options.precision = "bf16";
  std::int64_t smaller = 0;
  for (const std::int64_t gigabytes : {24, 80}) {
    auto backend = with_device(gigabytes);
    backend.made_up->on_plan = [](const graph::Graph& graph, const engine::CompileOptions& how) {
      auto plan = engine::plan("cuda-on-host", graph, how);
      for (auto& line : plan.lines)
        if (line.purpose != "pinned buffers" && line.purpose != "host copies of weights and optimizer state")
          line.place = Place::device;
      return plan;
    };
    const std::int64_t largest = largest_batch(options, backend);
    RecordProperty(fmt::format("largest_at_{}_GB", gigabytes), std::to_string(largest));
    EXPECT_GT(largest, smaller);
    smaller = largest;
    options.local_batch = largest;
    EXPECT_EQ(inspect(options, backend).excess, "");
    options.local_batch = largest + 1;
    EXPECT_THAT(refused(options, backend),
                HasSubstr(fmt::format("and {}.00 GB of it are free; the largest local batch that fits is {}",
                                      gigabytes, largest)));
  }
}

/// A device without memory of its own computes in the host's: its lines count there.
TEST_F(DeviceMemory, WithoutAnyIsTheHosts) {
  auto backend = with_device(80);
  backend.made_up->on_device = [](int) { return DeviceShare{.info = {.name = "processor (no GPU)"}}; };
  const auto limits = memory_limits(backend, 1);
  EXPECT_FALSE(limits.device.has_value());
  const auto setup = inspect(of_batch(10), backend);
  EXPECT_FALSE(setup.memory.device.has_value());
  EXPECT_GT(setup.memory.plan_bytes, 12 * kGiga);
  EXPECT_EQ(setup.plan.total_bytes(Place::device), 0);
}

}  // namespace
}  // namespace paceline::train
