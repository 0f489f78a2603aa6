#include "analysis/predict/forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "analysis/predict/predicted_step.h"
#include "analysis/predict/simulate_workers.h"
#include "analysis/predict/step_model.h"
#include "analysis/simulated_steps.h"
#include "base/error.h"

namespace paceline::analysis {
namespace {

using testing::HasSubstr;

struct LinkOfTest {
  double latency_s = 0, bytes_per_s = 0;
  [[nodiscard]] BucketLink among(int workers) const {
    const double n = workers;
    return {.alpha_s = 2 * (n - 1) * latency_s,
            .seconds_per_byte = bytes_per_s > 0 ? 2 * (n - 1) / n / bytes_per_s : 0};
  }
  [[nodiscard]] AddedLink added() const {
    return {.latency_s = Range::of(latency_s), .bytes_per_s = Range::of(bytes_per_s)};
  }
};

SimulatedRun with_workers(SimulatedRun run, int workers, const LinkOfTest& link) {
  run.workers = workers;
  run.link = link.among(workers);
  return run;
}

struct Study {
  std::vector<measure::Record> records;
  std::vector<Cell> cells;
  explicit Study(const std::vector<SimulatedRun>& runs, int repeats = 3) {
    for (const auto& run : runs) {
      auto some = simulate(run, repeats);
      records.insert(records.end(), some.begin(), some.end());
    }
    cells = make_cells(records);
  }
};

Forecast forecast_of(const SimulatedRun& run, const LinkOfTest& link, std::vector<std::int64_t> workers,
                     double batch = 32) {
  const Study study({with_workers(run, 1, link), with_workers(run, 2, link)});
  return forecast(step_model(study.cells), {.workers = std::move(workers),
                                            .step = {.batch = batch},
                                            .at_most = {},
                                            .cluster = {},
                                            .emulated = link.added()});
}

double measured_step(const SimulatedRun& run, const LinkOfTest& link, int workers) {
  const auto record = simulate(with_workers(run, workers, link));
  return SampledSteps(record).lines().total();
}

TEST(Forecast, NeverTakesAnUnknownLinkAsFree) {
  const Study study({SimulatedRun{}, with_workers({}, 2, {.latency_s = 1e-3, .bytes_per_s = 1e9})});
  const auto model = step_model(study.cells);
  Cluster cluster{.name = "test", .source = "test", .nodes = 8, .workers_per_node = 2};
  cluster.node_link.bytes_per_s = Range::of(1e9);
  const auto lacks = [&](std::int64_t workers) {
    const auto made = forecast(
        model,
        {.workers = {1, 2, 4}, .step = {.batch = 32}, .at_most = {}, .cluster = cluster, .emulated = {}});
    return point_at(made, workers)->lacks_link;
  };
  EXPECT_FALSE(lacks(2));
  EXPECT_TRUE(lacks(4));  // no network joins the nodes
  cluster.network.bytes_per_s = Range::of(1e9);
  EXPECT_FALSE(lacks(4));
  cluster.node_link = {};
  EXPECT_TRUE(lacks(2)) << "that two workers were measured elsewhere says nothing of this link";
}

TEST(Forecast, IsLessCertainBetweenMeasuredWorkers) {
  const LinkOfTest link{.latency_s = 1e-4, .bytes_per_s = 1e9};
  const Study study({with_workers({}, 1, link), with_workers({}, 8, link)});
  const auto made = forecast(step_model(study.cells), {.workers = {1, 2, 8, 16},
                                                       .step = {.batch = 32},
                                                       .at_most = {},
                                                       .cluster = {},
                                                       .emulated = link.added()});
  EXPECT_EQ(point_at(made, 8)->sigma, 0);
  EXPECT_NEAR(point_at(made, 2)->sigma, 0.015, 1e-9);
  EXPECT_NEAR(point_at(made, 16)->sigma, 0.015, 1e-9);
}

TEST(Forecast, GivesNoEpochShorterThanAStep) {
  const Study study({SimulatedRun{}});  // of 50,000 images
  const auto made = forecast(
      step_model(study.cells),
      {.workers = {1, 1562, 1563}, .step = {.batch = 32}, .at_most = {}, .cluster = {}, .emulated = {}});
  EXPECT_FALSE(point_at(made, 1562)->is_beyond_data);
  EXPECT_GE(point_at(made, 1562)->epoch_s.value, point_at(made, 1562)->step_s.value);
  EXPECT_TRUE(point_at(made, 1563)->is_beyond_data);
  EXPECT_EQ(point_at(made, 1563)->epoch_s.value, 0);
  EXPECT_THAT(made.unknown, testing::Contains(HasSubstr("50000 training images")));
}

TEST(Forecast, GridHasPowersHalvesAndEnds) {
  EXPECT_THAT(worker_grid(1, 20), testing::ElementsAre(1, 2, 3, 4, 6, 8, 12, 16, 20));
  EXPECT_LE(worker_grid(1, 4096).size(), 30U);
}

TEST(Forecast, OfOneAndTwoHoldsForSixteen) {
  struct Case {
    const char* name;
    SimulatedRun run;
    LinkOfTest link;
    LossPart limit;
  };
  const Case cases[]{
      {"latency", {}, {.latency_s = 2e-3, .bytes_per_s = 1e12}, LossPart::latency},
      {"bandwidth", {}, {.latency_s = 1e-6, .bytes_per_s = 4e7}, LossPart::transfer},
      {"straggler", {.straggler = 0.08}, {.latency_s = 1e-5, .bytes_per_s = 1e10}, LossPart::imbalance},
      {"jitter", {.jitter = 0.02, .steps = 400}, {.latency_s = 1e-5, .bytes_per_s = 1e10}, LossPart::jitter},
  };
  for (const auto& one : cases) {
    const auto made = forecast_of(one.run, one.link, {1, 2, 4, 8, 16});
    for (const int workers : {4, 8, 16}) {
      const auto* point = point_at(made, workers);
      const double truth = measured_step(one.run, one.link, workers);
      EXPECT_NEAR(point->step_s.value, truth, 0.03 * truth) << one.name << ' ' << workers;
      EXPECT_LE(point->step_s.low, truth) << one.name << ' ' << workers;
      EXPECT_GE(point->step_s.high, truth) << one.name << ' ' << workers;
    }
    ASSERT_TRUE(made.limit) << one.name;
    EXPECT_EQ(*made.limit, one.limit) << one.name << ": " << name(*made.limit);
  }
}

TEST(Forecast, IdealAndPartsAreTheStep) {
  for (const Mode mode : {Mode::weak, Mode::strong}) {
    const LinkOfTest link{.latency_s = 1e-3, .bytes_per_s = 1e8};
    SimulatedRun run{.straggler = 0.01, .jitter = 0.01};
    const Study study({with_workers(run, 1, link), with_workers(run, 2, link)});
    const auto made = forecast(step_model(study.cells), {.workers = {1, 2, 3, 8, 32},
                                                         .step = {.mode = mode, .batch = 64},
                                                         .at_most = {},
                                                         .cluster = {},
                                                         .emulated = link.added()});
    for (const auto& point : made.points) {
      const double sum =
          std::accumulate(point.step.parts.begin(), point.step.parts.end(), point.step.ideal_s);
      EXPECT_NEAR(sum, point.step_s.value, 1e-12);
      EXPECT_NEAR(point.efficiency.value, point.step.ideal_s / point.step_s.value, 1e-9);
      EXPECT_LE(point.step_s.low, point.step_s.value);
      EXPECT_GE(point.step_s.high, point.step_s.value);
    }
  }
}

TEST(Forecast, KneeIsTheLastToKeepEfficiency) {
  const LinkOfTest link{.latency_s = 1e-3, .bytes_per_s = 1e12};
  const auto made = forecast_of({}, link, worker_grid(1, 512));
  ASSERT_TRUE(made.knee.workers);
  EXPECT_FALSE(made.knee.is_beyond);
  const auto near = forecast_of({}, link, {*made.knee.workers, *made.knee.workers + 1});
  EXPECT_GE(near.points[0].efficiency.value, 0.8);
  EXPECT_LT(near.points[1].efficiency.value, 0.8);
  EXPECT_LE(made.knee.low, static_cast<double>(*made.knee.workers));
  EXPECT_GE(made.knee.high, static_cast<double>(*made.knee.workers));
}

TEST(Forecast, NextIsAffordableAndNotMeasured) {
  const auto made = forecast_of({}, {.latency_s = 1e-3, .bytes_per_s = 1e9}, worker_grid(1, 256));
  ASSERT_TRUE(made.next);
  EXPECT_GT(made.next->workers, 2);
  EXPECT_LE(made.next->workers, 8);
}

TEST(Forecast, MemoryAndEnergyFollowTheRecords) {
  const LinkOfTest link{.latency_s = 1e-3, .bytes_per_s = 1e9};
  Study study({with_workers({}, 1, link), with_workers({}, 2, link)});
  for (auto& record : study.records) {
    record.memory.plan_bytes = 4'000'000'000 * record.workers;  // of all workers of the one process
    record.gpus = {{.ranks = {0}, .seconds = 10, .energy_j = 1500}};
  }
  study.cells = make_cells(study.records);
  const auto model = step_model(study.cells);
  Cluster cluster{.name = "test", .source = "test", .nodes = 1, .workers_per_node = 8};
  cluster.memory_bytes = 3e9;
  cluster.node_link.latency_s = Range::of(link.latency_s);
  cluster.node_link.bytes_per_s = Range::of(link.bytes_per_s);
  const auto forecast_at = [&](double batch) {
    return forecast(
        model,
        {.workers = {1, 8}, .step = {.batch = batch}, .at_most = {}, .cluster = cluster, .emulated = {}});
  };
  const auto made = forecast_at(32);
  const auto& window = study.records.front().window;
  const double joules = 150 * window.wall_s / static_cast<double>(window.samples) * model.train_samples;
  for (const std::int64_t workers : {1, 8}) {
    const auto* point = point_at(made, workers);
    EXPECT_EQ(point->memory_bytes, 4e9);
    EXPECT_FALSE(point->fits) << "4 GB of 3";
    ASSERT_TRUE(point->epoch_joules);
    EXPECT_NEAR(*point->epoch_joules / (joules / point->efficiency.value), 1, 0.02) << workers;
  }
  EXPECT_GT(*point_at(made, 8)->epoch_joules, *point_at(made, 1)->epoch_joules)
      << "devices wait, and draw power";
  EXPECT_FALSE(point_at(forecast_at(48), 8)->memory_bytes) << "no plan is of this batch";
}

TEST(Forecast, StepWithoutANetworkIsABound) {
  const Study study({SimulatedRun{}, with_workers({}, 2, {.latency_s = 1e-4, .bytes_per_s = 1e9})});
  const auto made =
      forecast(step_model(study.cells),
               {.workers = {1, 2, 4}, .step = {.batch = 32}, .at_most = {}, .cluster = {}, .emulated = {}});
  EXPECT_FALSE(point_at(made, 2)->lacks_link);
  EXPECT_TRUE(point_at(made, 4)->lacks_link);
  EXPECT_THAT(made.unknown, testing::Contains(HasSubstr("the network between hosts was not measured")));
}

TEST(Forecast, SharingOfAnotherBatchIsCarried) {
  // Two workers on one node compute 1.2 times slower, measured at 32; asked is 64, whose compute alone is
  // twice.
  SimulatedRun small, large{.local_batch = 64, .forward = 0.2, .backward = 0.4};
  SimulatedRun shared = small, truth = large;
  shared.workers = truth.workers = 2;
  for (auto* run : {&shared, &truth}) {
    run->forward *= 1.2;
    run->backward *= 1.2;
  }
  const Study study({small, large, shared});
  const auto made =
      forecast(step_model(study.cells),
               {.workers = {2}, .step = {.batch = 64}, .at_most = {}, .cluster = {}, .emulated = {}});
  const double step = SampledSteps(simulate(truth)).lines().total();
  EXPECT_NEAR(point_at(made, 2)->step_s.value, step, 0.01 * step);
}

TEST(Forecast, TwiceTheBandwidthHalvesTheTransfer) {
  const LinkOfTest slow{.latency_s = 1e-6, .bytes_per_s = 4e7}, fast{.latency_s = 1e-6, .bytes_per_s = 8e7};
  const Study study({with_workers({}, 1, slow), with_workers({}, 2, slow)});
  ForecastRequest request{
      .workers = {1, 8}, .step = {.batch = 32}, .at_most = {}, .cluster = {}, .emulated = slow.added()};
  request.what_if.bandwidth = 2;
  const auto made = forecast(step_model(study.cells), request);
  const double truth = measured_step({}, fast, 8);
  EXPECT_NEAR(point_at(made, 8)->step_s.value, truth, 0.02 * truth);
}

TEST(Forecast, SharedStorageIsTheLimitItNames) {
  Study study({SimulatedRun{}, with_workers({}, 2, {})});
  for (auto& record : study.records) record.data.stored_bytes = 1e5;
  study.cells = make_cells(study.records);
  Cluster cluster{.name = "test", .source = "test", .nodes = 64, .workers_per_node = 1};
  cluster.network.bytes_per_s = Range::of(1e12);
  cluster.storage = Storage{.shared_bytes_per_s = Range::of(1e8)};  // 32 workers need 3.2 MB each: 1.02 s
  const auto made = forecast(
      step_model(study.cells),
      {.workers = {1, 2, 32}, .step = {.batch = 32}, .at_most = {}, .cluster = cluster, .emulated = {}});
  EXPECT_NEAR(point_at(made, 32)->step_s.value, 1.024, 0.02);
  ASSERT_TRUE(made.limit);
  EXPECT_EQ(*made.limit, LossPart::data_wait);
  EXPECT_EQ(made.limit_source, DataSource::shared_storage);
}

TEST(Forecast, SlowLoaderHidesTheLink) {
  // Each worker's loader takes half a second: a link that takes longer with more workers makes no step
  // longer.
  constexpr double kLoader_s = 0.5;
  const LinkOfTest link{.latency_s = 1e-3};
  Study study({});
  for (const int workers : {1, 2}) {
    auto run = with_workers({}, workers, link);
    run.data_wait += kLoader_s - SampledSteps(simulate(run)).lines().total();
    auto some = simulate(run, 3);
    for (auto& record : some)
      for (auto& rank : record.ranks) {
        rank.loader_threads = 1;
        rank.loader_prepare_s = kLoader_s * run.steps;
      }
    study.records.insert(study.records.end(), some.begin(), some.end());
  }
  study.cells = make_cells(study.records);
  const auto made = forecast(
      step_model(study.cells),
      {.workers = {1, 2, 16}, .step = {.batch = 32}, .at_most = {}, .cluster = {}, .emulated = link.added()});
  EXPECT_NEAR(point_at(made, 16)->step_s.value, kLoader_s, 0.01 * kLoader_s);
  ASSERT_TRUE(made.limit);
  EXPECT_EQ(*made.limit, LossPart::data_wait);
  EXPECT_EQ(made.limit_source, DataSource::loader);
}

Cluster ring_of(int nodes) {
  Cluster cluster{.name = "ring", .source = "test", .nodes = nodes, .workers_per_node = 1};
  cluster.network.bytes_per_s = Range::of(5e7);
  cluster.network.latency_s = Range::of(1e-4);
  cluster.algorithm = Algorithm::ring;
  return cluster;
}

TEST(Forecast, MessagesAgreeWithFormulas) {
  const Study study({SimulatedRun{}});
  const auto model = step_model(study.cells);
  ForecastRequest request{
      .workers = {1, 2, 8, 32}, .step = {.batch = 32}, .at_most = {}, .cluster = ring_of(32), .emulated = {}};
  const auto closed = forecast(model, request);
  request.fidelity = Fidelity::messages;
  const auto by_messages = forecast(model, request);
  EXPECT_GT(point_at(closed, 32)->step.reduce_s, 0.3);  // so that the comparison has something to compare
  for (const std::int64_t workers : {2, 8, 32})
    EXPECT_NEAR(point_at(by_messages, workers)->step.reduce_s, point_at(closed, workers)->step.reduce_s,
                0.01 * point_at(closed, workers)->step.reduce_s);
}

TEST(Forecast, DrawnWorkersMeanTheClosedForm) {
  const LinkOfTest link{.latency_s = 1e-4, .bytes_per_s = 1e9};
  const SimulatedRun run{.straggler = 0.05, .jitter = 0.01, .steps = 400};
  const Study study({with_workers(run, 1, link), with_workers(run, 2, link)});
  const auto model = step_model(study.cells);
  const auto made = forecast(
      model,
      {.workers = {1, 4, 32}, .step = {.batch = 32}, .at_most = {}, .cluster = {}, .emulated = link.added()});
  for (const auto& point : simulated_points(model, made, 400)) {
    EXPECT_NEAR(point.mean_s, point.closed_s, 0.01 * point.closed_s) << point.workers;
    EXPECT_LT(point.low_s, point.high_s);
  }
}

TEST(Forecast, NoErrorMakesStepsShorterThanIdeal) {
  const auto made = forecast_of({}, {.latency_s = 1e-7, .bytes_per_s = 1e12}, {1, 2, 4096});
  EXPECT_LE(point_at(made, 4096)->efficiency.high, 1.001);
  EXPECT_LT(point_at(made, 4096)->efficiency.low, 0.9);
}

TEST(Forecast, OtherMachinesAndModelsAreRefused) {
  const auto change = [](const auto& edit) {
    Study study({SimulatedRun{}, with_workers({}, 2, {})});
    edit(study.records);
    study.cells = make_cells(study.records);
    try {
      (void)step_model(study.cells);
    } catch (const base::Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(change([](auto& all) { all.back().model.name = "vgg11"; }), HasSubstr("vgg11"));
  EXPECT_THAT(change([](auto& all) { all.back().environment.cpu = "Other CPU"; }), HasSubstr("Other CPU"));
  EXPECT_THAT(change([](auto& all) { all.back().precision = "bf16"; }), HasSubstr("bf16"));
  EXPECT_THAT(change([](auto& all) { all.back().device = "cuda"; }), HasSubstr("cuda"));
  EXPECT_THAT(change([](auto& all) {
                for (auto& one : all) one.device = "cuda-on-host";
              }),
              HasSubstr("say nothing of a GPU"));
  EXPECT_THAT(change([](auto& all) {
                all.front().kernels = measure::KernelsRecord{"rules", {{"3x3", "winograd"}}};
                all.back().kernels = measure::KernelsRecord{"rules", {{"3x3", "gemm"}}};
              }),
              HasSubstr("two kernels for the layer '3x3'"));
}

TEST(Forecast, FarBatchesAreMarked) {
  std::vector<SimulatedRun> runs;
  for (const int batch : {16, 32, 64})
    runs.push_back({.local_batch = batch, .forward = 0.01 + 0.003 * batch, .backward = 0.02 + 0.006 * batch});
  const Study study(runs);
  const auto model = step_model(study.cells);
  const auto between = model.alone(48), far = model.alone(128);
  EXPECT_EQ(between.terms.size(), 3U) << "the line through all";
  EXPECT_FALSE(between.is_far);
  EXPECT_NEAR(between.at({})[Line::compute], 0.03 + 0.009 * 48, 1e-6);
  EXPECT_TRUE(far.is_far);
}

TEST(Forecast, RandomClustersGiveFiniteSteps) {
  const LinkOfTest link{.latency_s = 1e-4, .bytes_per_s = 1e9};
  const Study study({with_workers({.jitter = 0.01}, 1, link), with_workers({.jitter = 0.01}, 2, link)}, 1);
  const auto model = step_model(study.cells);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    base::Rng rng(seed, base::Purpose::test, 3);
    const auto range = [&](double low, double high) {
      const double a = low * std::pow(high / low, rng.uniform_f64());
      return Range{a, a * (1 + rng.uniform_f64())};
    };
    Cluster cluster{.name = "random", .nodes = 64, .workers_per_node = 1 + static_cast<int>(rng.below(8))};
    cluster.worker_speed = range(0.1, 10);
    cluster.worker_spread = {0, 0.1 * rng.uniform_f64()};
    for (Link* one : {&cluster.node_link, static_cast<Link*>(&cluster.network)}) {
      one->bytes_per_s = range(1e5, 1e12);
      one->latency_s = range(1e-7, 1e-2);
    }
    cluster.storage = Storage{.shared_bytes_per_s = range(1e6, 1e12)};
    const auto made = forecast(model, {.workers = {1, 2, 7, 64},
                                       .step = {.batch = 32},
                                       .at_most = {},
                                       .cluster = cluster,
                                       .emulated = {},
                                       .is_other_hardware = true});
    for (const auto& point : made.points) {
      EXPECT_TRUE(std::isfinite(point.step_s.low) && std::isfinite(point.step_s.high)) << seed;
      EXPECT_GT(point.step_s.low, 0) << seed;
      EXPECT_LE(point.step_s.low, point.step_s.high) << seed;
      EXPECT_LE(point.efficiency.value, 1.02) << seed;
    }
  }
}

TEST(Forecast, MoreWorkersThanSlotsAreRefused) {
  const Study study({SimulatedRun{}});
  Cluster cluster{.name = "small", .nodes = 2, .workers_per_node = 2};
  cluster.network.bytes_per_s = cluster.node_link.bytes_per_s = Range::of(1e9);
  EXPECT_THROW(
      (void)forecast(
          step_model(study.cells),
          {.workers = {8}, .step = {.batch = 32}, .at_most = {}, .cluster = cluster, .emulated = {}}),
      base::Error);
}

TEST(Forecast, ParsesWhatIsTried) {
  const auto parsed = parse_what_if("bandwidth=2x,latency=0.5x,batch=64");
  EXPECT_EQ(parsed.what_if.bandwidth, 2);
  EXPECT_EQ(parsed.what_if.latency, 0.5);
  EXPECT_EQ(parsed.batch, 64);
  for (const char* bad :
       {"bandwidth=2", "speed=2x", "bandwidth=0x", "bandwidth=-1x", "batch=2x", "bandwidth"})
    EXPECT_THROW((void)parse_what_if(bad), base::Error) << bad;
}

}  // namespace
}  // namespace paceline::analysis
