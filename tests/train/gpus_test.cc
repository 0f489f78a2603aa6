#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "base/error.h"
#include "comm/fake_wire.h"
#include "comm/process_group.h"
#include "fixture.h"
#include "measure/disturbance.h"
#include "measure/fake_gpus.h"

namespace paceline::train {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// Trainings whose GPUs are watched: the engine is the CUDA engine on the processor, the GPUs are made up.
class WatchedGpus : public TrainingTest {
 protected:
  [[nodiscard]] Options on_gpus(int workers, const std::string& out = "") const {
    Options options = small(out);
    options.device = "cuda-on-host";
    options.workers = workers;
    return options;
  }

  /// A GPU for each worker; all read what `reading` gives.
  [[nodiscard]] MadeUpBackend with_gpus(std::function<base::GpuReading(std::size_t)> reading) {
    auto backend = backend_of("cuda-on-host");
    backend.made_up->on_gpus = [this, reading](int workers) -> measure::OpenGpus {
      return [this, workers, reading]() -> std::unique_ptr<base::GpuSource> {
        std::vector<base::GpuIdentity> gpus;
        for (int i = 0; i < workers; ++i)
          gpus.push_back({.index = i, .workers = {i}, .name = "made-up GPU", .watts_limit = 700});
        return std::make_unique<measure::FakeGpus>(gpus, [this, reading](std::size_t gpu) {
          ++readings_;
          return reading(gpu);
        });
      };
    };
    return backend;
  }
  std::atomic<int> readings_{0};
};

TEST_F(WatchedGpus, StandInTheRecordOneForEachRank) {
  const auto options = on_gpus(2, "o");
  const auto backend = with_gpus([&](std::size_t gpu) {
    return base::GpuReading{
        .utilisation = gpu == 0 ? 0.9 : 0.8, .used_bytes = 5, .watts = 300, .processes = {{}}};
  });
  const auto record = run(options, backend, {}, {});
  EXPECT_EQ(record.status, "complete");
  ASSERT_TRUE(record.gpus.has_value());
  ASSERT_EQ(record.gpus->size(), 2U);
  EXPECT_THAT((*record.gpus)[0].ranks, ElementsAre(0));
  EXPECT_THAT((*record.gpus)[1].ranks, ElementsAre(1));
  EXPECT_THAT((*record.gpus)[1].course.utilisation, testing::Each(0.8));
  EXPECT_EQ((*record.gpus)[1].watts_limit, 700);
  EXPECT_NE(measure::disturbance_of(record), measure::Disturbance::disturbed);
  EXPECT_THAT(record.notes, Not(Contains(HasSubstr("did not report everything"))));
  const auto kept = measure::read_record(options.out / "record.json");
  EXPECT_EQ(kept.gpus->size(), 2U);
}

// Two processes of two hosts as threads, joined by the fake network.
TEST_F(WatchedGpus, OfSeveralProcessesAllStandInTheRecordOfTheFirst) {
  const auto network = std::make_shared<comm::FakeNetwork>(2);
  std::array<measure::Record, 2> records;
  const auto work = [&](int process) {
    comm::FakeWire wire(network, process);
    comm::ProcessGroup joined(wire, {.shared_memory = false}, [](const std::string&) {});
    auto backend = with_gpus([&](std::size_t) { return base::GpuReading{.celsius = 40 + process}; });
    backend.place.process = process;
    backend.place.processes = 2;
    backend.place.hosts = 2;
    backend.place.is_beside_first = process == 0;
    backend.place.host = process == 0 ? "a" : "b";
    backend.made_up->on_communicators = [&](int ranks, std::chrono::seconds deadline) {
      joined.set_ranks_each(ranks);
      return comm::host_staging(comm::make_local(ranks, {.deadline = deadline, .across = &joined}));
    };
    records[static_cast<std::size_t>(process)] = run(on_gpus(2), backend, {}, {});
  };
  {
    const std::jthread other([&] { work(1); });
    work(0);
  }
  ASSERT_TRUE(records[0].gpus.has_value());
  ASSERT_EQ(records[0].gpus->size(), 2U);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const auto& gpu = (*records[0].gpus)[rank];
    EXPECT_EQ(gpu.host, rank == 0 ? "a" : "b");
    EXPECT_THAT(gpu.ranks, ElementsAre(static_cast<int>(rank)));
    EXPECT_THAT(gpu.course.celsius, testing::Each(40.0 + static_cast<double>(rank)));
  }
}

TEST_F(WatchedGpus, AreReadOverTheMeasuredWindowAlone) {
  auto options = on_gpus(1);
  options.steps = 0;
  options.window_steps = 4;
  options.warmup_steps = 6;
  std::atomic<double> celsius{10};
  Progress progress;
  progress.step = [&](std::int64_t, std::int64_t, double, double) {
    while (readings_ < 1) std::this_thread::yield();  // one was cold, before the window
    celsius = 50;
  };
  const auto record =
      run(options, with_gpus([&](std::size_t) { return base::GpuReading{.celsius = celsius.load()}; }), {},
          progress);
  ASSERT_EQ(record.gpus->size(), 1U);
  EXPECT_GE((*record.gpus)[0].readings, 1);
  EXPECT_THAT((*record.gpus)[0].course.celsius, testing::Each(50.0));
}

TEST_F(WatchedGpus, GiveTheSameBitsAsNoWatch) {
  Options options = on_gpus(2);
  const auto without = checkpoint_of(options, "without");
  options.out = directory_ / "with";
  (void)run(options, with_gpus([](std::size_t) { return base::GpuReading{}; }), {}, {});
  EXPECT_EQ(base::read_file(options.out / "checkpoint-00000010.safetensors"), without);
}

TEST_F(WatchedGpus, WhatIsNotToldIsANoteAndEndsNothing) {
  const auto failing = with_gpus(
      [](std::size_t) { return base::GpuReading{.failures = {"nvmlDeviceGetPowerUsage: Unknown Error"}}; });
  const auto record = run(on_gpus(2), failing, {}, {});
  EXPECT_EQ(record.status, "complete");
  EXPECT_THAT(record.notes,
              Contains("the GPUs did not report everything: nvmlDeviceGetPowerUsage: Unknown Error"));
  auto without_driver = backend_of("cuda-on-host");
  without_driver.made_up->on_gpus = [](int) -> measure::OpenGpus {
    return []() -> std::unique_ptr<base::GpuSource> {
      base::fail(base::ErrorKind::device, "NVML: nvmlInit_v2: Driver Not Loaded");
    };
  };
  const auto blind = run(on_gpus(1), without_driver, {}, {});
  EXPECT_EQ(blind.status, "complete");
  EXPECT_FALSE(blind.gpus.has_value());
  EXPECT_THAT(blind.notes,
              Contains("the GPUs did not report everything: NVML: nvmlInit_v2: Driver Not Loaded"));
}

TEST_F(WatchedGpus, AnotherProgramOnOneDisturbsTheRun) {
  const auto record = run(on_gpus(1), with_gpus([](std::size_t) {
                            return base::GpuReading{.processes = {{{.pid = ::getpid(), .name = "paceline"},
                                                                   {.pid = 41, .name = "python3"}}}};
                          }),
                          {}, {});
  EXPECT_EQ(measure::disturbance_of(record), measure::Disturbance::disturbed);
  EXPECT_THAT(measure::text_about_disturbance(record), HasSubstr("python3 (process 41) was on GPU 0 too"));
}

TEST_F(WatchedGpus, TheWatchEndsWithTheRun) {
  (void)run(on_gpus(1), with_gpus([](std::size_t) { return base::GpuReading{}; }), {}, {});
  const int at_end = readings_;
  std::this_thread::sleep_for(2 * measure::GpuWatch::kPeriod);
  EXPECT_EQ(readings_, at_end);
}

TEST_F(WatchedGpus, OnTheProcessorThereIsNoKey) {
  const auto record = train(small());
  EXPECT_FALSE(record.gpus.has_value());
  EXPECT_THAT(measure::to_json(record), Not(HasSubstr("\"gpus\"")));
}

}  // namespace
}  // namespace paceline::train
