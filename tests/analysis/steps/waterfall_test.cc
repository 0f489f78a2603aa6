#include "analysis/steps/waterfall.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "analysis/compare/cell.h"
#include "analysis/simulated_steps.h"
#include "analysis/steps/remedies.h"

namespace paceline::analysis {
namespace {

/// Cells of records that live as long.
struct Study {
  std::vector<measure::Record> records;
  std::vector<Cell> cells;

  explicit Study(const std::vector<std::vector<measure::Record>>& runs) {
    for (const auto& run : runs) records.insert(records.end(), run.begin(), run.end());
    cells = make_cells(records);
  }
  [[nodiscard]] const Cell& of(int workers, std::int64_t local_batch = 32) const {
    for (const Cell& cell : cells)
      if (cell.workers == workers && cell.local_batch == local_batch) return cell;
    ADD_FAILURE() << "no cell of " << workers << " workers";
    return cells.front();
  }
};

double sum(const EfficiencyLoss& loss) {
  double seconds = 0;
  for (const auto& part : loss.parts) seconds += part.seconds;
  return seconds;
}

/// The loss of two workers under what `change` does to their run, against one worker without it.
template <typename Change>
EfficiencyLoss loss_of_two(Change change) {
  SimulatedRun one, two{.workers = 2};
  change(two);
  const Study study({simulate(one, 3), simulate(two, 3)});
  return efficiency_loss(study.of(1), study.of(2), Mode::weak);
}

/// Their remedies, while their records are there.
template <typename Change>
Remedies remedies_of_two(Change change) {
  SimulatedRun one, two{.workers = 2};
  change(two);
  const Study study({simulate(one, 3), simulate(two, 3)});
  return remedies(efficiency_loss(study.of(1), study.of(2), Mode::weak));
}

TEST(Waterfall, PartsAreTheLossOfAnyRecords) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    base::Rng rng(seed, base::Purpose::test, 7);
    const auto draw = [&](double most) { return most * rng.uniform_f64(); };
    const bool is_weak = rng.below(2) == 0;
    const int workers = 2 + static_cast<int>(rng.below(4));
    SimulatedRun one{
        .scaling = is_weak ? "weak" : "strong", .forward = 0.01 + draw(1), .steps = 12, .seed = seed};
    one.local_batch = is_weak ? 32 : 32 * workers;
    SimulatedRun many{.scaling = one.scaling,
                      .workers = workers,
                      .forward = 0.01 + draw(1),
                      .backward = 0.01 + draw(2),
                      .data_wait = draw(0.3),
                      .copy = draw(0.1),
                      .update = draw(0.1),
                      .straggler = draw(0.5),
                      .jitter = draw(0.2),
                      .run_noise = 0.02,
                      .link = {.alpha_s = draw(0.1), .seconds_per_byte = draw(1e-7)},
                      .steps = 12,
                      .seed = seed};
    const int repeats = 1 + static_cast<int>(rng.below(4));
    const Study study({simulate(one, repeats), simulate(many, repeats)});
    const Mode mode = is_weak ? Mode::weak : Mode::strong;
    const auto loss = efficiency_loss(study.of(1, one.local_batch), study.of(workers), mode);
    ASSERT_NEAR(sum(loss), loss.loss_s(), 1e-9) << seed;
    ASSERT_NEAR(1 - loss.efficiency(), sum(loss) / loss.step_s, 1e-9) << seed;
    for (const auto& part : loss.parts) {
      ASSERT_LE(part.low.value(), part.seconds) << seed;
      ASSERT_GE(part.high.value(), part.seconds) << seed;
    }
  }
}

TEST(Waterfall, GivesTheSameIntervalAgain) {
  const auto noisy = [](SimulatedRun& run) { run.jitter = 0.02; };
  const auto first = loss_of_two(noisy), second = loss_of_two(noisy);
  EXPECT_EQ(first[LossPart::jitter].low, second[LossPart::jitter].low);
  EXPECT_LT(first[LossPart::jitter].low, first[LossPart::jitter].high);
}

TEST(Waterfall, OneBlockOfStepsHasNoInterval) {
  SimulatedRun one{.scaling = "weak", .steps = 3},
      many{.scaling = "weak", .workers = 2, .forward = 0.03, .steps = 3};
  const auto loss_of = [&](int repeats) {
    const Study study({simulate(one, repeats), simulate(many, repeats)});
    return efficiency_loss(study.of(1, one.local_batch), study.of(2), Mode::weak);
  };
  const auto short_one = loss_of(1), again = loss_of(2);
  for (const auto& part : short_one.parts) {
    EXPECT_FALSE(part.low || part.high);
    EXPECT_TRUE(part.is_within_noise()) << "nothing is known to be beyond it";
  }
  EXPECT_TRUE(again.parts.front().low) << "two repeats have extremes";
}

/// What is injected stands in its part, and the others move by less than two points.
template <typename Change>
void expect_injected(LossPart part, double seconds, Change change) {
  const auto noise = [](SimulatedRun& run) { run.jitter = 0.005; };
  const auto before = loss_of_two(noise), after = loss_of_two([&](SimulatedRun&run) {
                                            noise(run);
                                            change(run);
                                          });
  EXPECT_NEAR(after[part].seconds - before[part].seconds, seconds, 0.1 * seconds) << name(part);
  EXPECT_FALSE(after[part].is_within_noise()) << name(part);
  for (std::size_t i = 0; i < kLossParts; ++i) {
    if (i == static_cast<std::size_t>(part)) continue;
    EXPECT_LT(std::abs(after.parts[i].seconds / after.step_s - before.parts[i].seconds / before.step_s), 0.02)
        << name(part) << " moves " << name(static_cast<LossPart>(i));
  }
}

TEST(Waterfall, PutsWhatIsInjectedIntoItsPart) {
  expect_injected(LossPart::imbalance, 0.08, [](SimulatedRun& run) { run.straggler = 0.08; });
  expect_injected(LossPart::data_wait, 0.08, [](SimulatedRun& run) { run.data_wait += 0.08; });
  expect_injected(LossPart::sharing, 0.06, [](SimulatedRun& run) { run.forward += 0.06; });
  expect_injected(LossPart::update, 0.03, [](SimulatedRun& run) { run.update += 0.03; });
  // Three reductions of 20 ms, the last posted as backward ends: the others are hidden.
  expect_injected(LossPart::latency, 0.02, [](SimulatedRun& run) { run.link.alpha_s = 0.02; });
  // 120, 120 and 30 ms from 89 ms on, behind a backward of 200 ms.
  expect_injected(LossPart::transfer, 0.2 * 4 / 9 + 0.27 - 0.2,
                  [](SimulatedRun& run) { run.link.seconds_per_byte = 3e-8; });
}

TEST(Waterfall, OfASmallerBatchIsWhatOneWorkerPaysForItToo) {
  // A step of b images takes 20 ms + 2.5 ms b: with half the images 10 ms are lost, whoever computes them.
  const auto run = [](int workers, std::int64_t batch) {
    const double compute = 0.02 + 0.0025 * static_cast<double>(batch);
    return simulate({.scaling = "strong",
                     .workers = workers,
                     .local_batch = batch,
                     .forward = compute / 3,
                     .backward = 2 * compute / 3,
                     .data_wait = 0,
                     .copy = 0,
                     .update = 0,
                     .other = 0},
                    3);
  };
  const Study study({run(1, 128), run(1, 64), run(1, 32), run(2, 64)});
  const Cell& baseline = study.of(1, 128);
  const auto alone = cells_alone(study.cells, baseline);
  ASSERT_EQ(alone.size(), 2u);
  const auto loss = efficiency_loss(baseline, study.of(2, 64), Mode::strong, alone);
  EXPECT_FALSE(loss.batch_is_in_sharing);
  EXPECT_NEAR(loss[LossPart::smaller_batch].seconds, 0.01, 1e-9);
  EXPECT_NEAR(loss[LossPart::sharing].seconds, 0, 1e-9);
  // Between two batches, on the line between them.
  const std::vector<const Cell*> around{&study.of(1, 32)};
  const auto between = efficiency_loss(baseline, study.of(2, 64), Mode::strong, around);
  EXPECT_NEAR(between[LossPart::smaller_batch].seconds, 0.01, 1e-9);
  // Without any, both are one part, and it says so.
  const auto joined = efficiency_loss(baseline, study.of(2, 64), Mode::strong);
  EXPECT_TRUE(joined.batch_is_in_sharing);
  EXPECT_NEAR(joined[LossPart::sharing].seconds, 0.01, 1e-9);
}

TEST(Waterfall, IntervalsHoldTheTruth) {
  constexpr int kRuns = 50;
  std::array<int, kLossParts> held{};
  const BucketLink link{.alpha_s = 0.004, .seconds_per_byte = 1e-8};
  for (int run = 0; run < kRuns; ++run) {
    SimulatedRun one{.jitter = 0.01, .run_noise = 0.02, .seed = 100 + static_cast<std::uint64_t>(run)};
    SimulatedRun two = one;
    two.workers = 2;
    two.forward = 0.12;
    two.straggler = 0.01;
    two.data_wait = 0.011;
    two.link = link;
    const int repeats = 3 + run % 3;
    const Study study({simulate(one, repeats), simulate(two, repeats)});
    const auto loss = efficiency_loss(study.of(1), study.of(2), Mode::weak);
    // Exponentials x, y of mean m, y behind by s: E max(x, y + s) = s + m + m exp(-s / m) / 2.
    const double jitter = 0.01 * std::exp(-1) / 2;
    std::array<double, kLossParts> truth{};
    truth[static_cast<std::size_t>(LossPart::sharing)] = 0.02;
    truth[static_cast<std::size_t>(LossPart::imbalance)] = 0.01;
    truth[static_cast<std::size_t>(LossPart::jitter)] = jitter;
    truth[static_cast<std::size_t>(LossPart::data_wait)] = 0.01;
    // Buckets of 44, 44 and 14 ms, ready at 89, 178 and 200 ms: 35.8 ms are exposed. Without bytes 4 ms are,
    // without latency 27.8 ms: latency is the mean of 4 and 35.8 - 27.8.
    truth[static_cast<std::size_t>(LossPart::latency)] = 0.006;
    truth[static_cast<std::size_t>(LossPart::transfer)] = 0.2 * 8 / 9 + 0.044 + 0.014 - 0.2 - 0.006;
    for (std::size_t i = 0; i < kLossParts; ++i) {
      constexpr double kRounding = 1e-9;
      held[i] +=
          *loss.parts[i].low - kRounding <= truth[i] && truth[i] <= *loss.parts[i].high + kRounding ? 1 : 0;
    }
  }
  for (std::size_t i = 0; i < kLossParts; ++i) EXPECT_GE(held[i], 45) << name(static_cast<LossPart>(i));
}

TEST(Waterfall, OfOlderRecordsSaysWhatItCannotTellApart) {
  SimulatedRun one, two{.workers = 2, .straggler = 0.05, .jitter = 0.01};
  auto records = simulate(two, 3);
  for (auto& record : records) {
    for (auto& rank : record.ranks) rank.own_s.reset();
    for (auto& bucket : record.buckets) bucket.ready_s.reset();
  }
  const Study study({simulate(one, 3), records});
  const auto loss = efficiency_loss(study.of(1), study.of(2), Mode::weak);
  EXPECT_TRUE(loss.jitter_is_in_other);
  EXPECT_TRUE(loss.latency_is_in_transfer);
  EXPECT_NEAR(loss[LossPart::imbalance].seconds, 0.05, 0.005);
  EXPECT_EQ(loss[LossPart::jitter].seconds, 0);
  EXPECT_NEAR(sum(loss), loss.loss_s(), 1e-12);
}

const Remedy* find(const Remedies& all, RemedyKind kind) {
  for (const Remedy& one : all.list)
    if (one.kind == kind) return &one;
  return nullptr;
}

TEST(Remedies, OfAStragglerIsToReplaceIt) {
  const auto found = remedies_of_two([](SimulatedRun& run) { run.straggler = 0.08; });
  const Remedy* even = find(found, RemedyKind::even_ranks);
  ASSERT_NE(even, nullptr);
  EXPECT_NEAR(even->alone, 0.08 / (0.316 + 0.08), 1e-3);
  EXPECT_TRUE(even->is_bound);
}

TEST(Remedies, OfASlowLinkAreFewerBytesAndOtherBuckets) {
  const auto found = remedies_of_two([](SimulatedRun& run) {
    run.link = {.alpha_s = 0.001, .seconds_per_byte = 3e-8};  // 9 MB in 0.27 s, behind a backward of 0.2 s
  });
  const Remedy* link = find(found, RemedyKind::faster_link);
  ASSERT_NE(link, nullptr);
  EXPECT_NE(find(found, RemedyKind::bucket_size), nullptr);
  // What all give is shared out whole, and is no more than the step's exposed time.
  double shares = 0;
  for (const Remedy& one : found.list) shares += one.share;
  EXPECT_NEAR(shares, found.all, 1e-12);
  EXPECT_LT(found.interaction(), 0) << "a faster link leaves less for other buckets to hide";
}

/// As `change` makes the records of both: processes, over a link that is slow.
template <typename Change>
Remedies remedies_of_two_processes(Change change) {
  SimulatedRun one, two{.workers = 2};
  two.forward += 0.05;
  two.link = {.alpha_s = 0.001, .seconds_per_byte = 3e-8};
  auto alone = simulate(one, 3), both = simulate(two, 3);
  for (auto& record : both) record.communication.processes = 2;
  for (auto* records : {&alone, &both})
    for (auto& record : *records) change(record);
  const Study study({alone, both});
  return remedies(efficiency_loss(study.of(1), study.of(2), Mode::weak));
}

/// Fewer threads, or cores farther apart, change nothing for workers that compute on GPUs; and NCCL does not
/// round.
TEST(Remedies, OfGpusAreNeitherCoresNorWhatNcclCannotDo) {
  const auto of_processor = remedies_of_two_processes([](measure::Record&) {});
  EXPECT_NE(find(of_processor, RemedyKind::own_cores), nullptr);
  EXPECT_NE(find(of_processor, RemedyKind::bf16_gradients), nullptr);
  for (const bool has_nccl : {false, true}) {
    const auto of_gpus = remedies_of_two_processes([&](measure::Record& record) {
      record.device = "cuda";
      if (has_nccl && record.workers > 1) record.communication.communicator = "nccl";
    });
    EXPECT_EQ(find(of_gpus, RemedyKind::own_cores), nullptr);
    EXPECT_EQ(find(of_gpus, RemedyKind::bf16_gradients) == nullptr, has_nccl);
    EXPECT_NE(find(of_gpus, RemedyKind::faster_link), nullptr);
  }
}

TEST(Remedies, OfWaitingForDataIsAnotherLoaderThreadUnlessTheDeviceHasTheImages) {
  for (const bool on_device : {false, true}) {
    SimulatedRun one, two{.workers = 2};
    two.data_wait += 0.08;
    auto alone = simulate(one, 3), both = simulate(two, 3);
    for (auto* records : {&alone, &both})
      for (auto& record : *records) record.data.images_on = on_device ? "device" : "host";
    const Study study({alone, both});
    const auto found = remedies(efficiency_loss(study.of(1), study.of(2), Mode::weak));
    EXPECT_EQ(find(found, RemedyKind::loader_threads) == nullptr, on_device);
  }
}

TEST(Remedies, OfNoiseAreNone) {
  EXPECT_TRUE(remedies_of_two([](SimulatedRun&) {}).list.empty());
}

}  // namespace
}  // namespace paceline::analysis
