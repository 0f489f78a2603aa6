#include "analysis/steps/cause.h"

#include <gtest/gtest.h>

#include "analysis/compare/cell.h"
#include "golden/records.h"

namespace paceline::analysis {
namespace {

using golden::make_record;
using golden::Run;
using measure::Record;

/// A step of `batch` images: `image_s` an image forward and backward, `step_s` an update, whatever the batch.
Run swept(std::int64_t batch, double image_s, double step_s, double wait_s = 0) {
  return {.kind = "sweep",
          .scaling = "",
          .local_batch = batch,
          .forward = static_cast<double>(batch) * image_s / 3,
          .backward = static_cast<double>(batch) * image_s * 2 / 3,
          .update = step_s,
          .data_wait = wait_s,
          .copy = 0,
          .other = 0,
          .jitter = {1, 1, 1, 1, 1, 1, 1, 1}};
}

Record with_peak(Record record) {
  record.model.training_flops = 1'000'000'000;
  record.model.bytes_a_sample = 10'000'000;
  record.model.bytes_a_step = 100'000'000;
  record.peak =
      measure::PeakRecord{.threads = 2, .precision = "fp32", .flops_per_s = 200e9, .bytes_per_s = 20e9};
  return record;
}

struct Made {
  std::vector<Record> records;
  std::vector<Cell> cells;
  std::vector<BatchSeries> series;
  explicit Made(std::vector<Record> given)
      : records(std::move(given)), cells(make_cells(records)), series(batch_series(cells)) {}
};

TEST(Reach, HasRatesAndIntensity) {
  // 50 images of 20 ms: 1 s forward and backward; 0.25 s update.
  const Made made({with_peak(make_record(swept(50, 0.02, 0.25)))});
  ASSERT_EQ(made.series.size(), 1u);
  const Reach& reach = made.series[0].batches[0];
  EXPECT_NEAR(*reach.flops_per_s, 50e9, 1);
  EXPECT_NEAR(*reach.product_flops_per_s, 100e9, 1);  // one worker of one thread: half of two
  EXPECT_NEAR(*reach.bytes_per_s, (50 * 10e6 + 100e6) / 1.25, 1);
  EXPECT_NEAR(*reach.copy_bytes_per_s, 20e9, 1);
  EXPECT_NEAR(*reach.intensity, 50e9 / 600e6, 1e-9);
  EXPECT_EQ(reach.bound(), Bound::arithmetic);  // 83 FLOP/B, and product and copy balance at 5
  EXPECT_DOUBLE_EQ(reach.cell->full_steps(), 1000);
}

TEST(Reach, IsBoundWhicheverAlgorithmComputes) {
  auto record = with_peak(make_record(swept(50, 0.02, 0.25)));
  const auto bound_at = [&](double product, double copy) {
    record.peak->flops_per_s = 2 * product;  // of two threads; the worker has one
    record.peak->bytes_per_s = copy;
    return Made({record}).series[0].batches[0].bound();
  };
  EXPECT_EQ(bound_at(100e9, 100e9 / 20), Bound::arithmetic);  // 83 FLOP/B is four times 20
  EXPECT_EQ(bound_at(100e9, 100e9 / 40), Bound::either) << "with Winograd it may be memory";
  EXPECT_EQ(bound_at(100e9, 100e9 / 100), Bound::memory);
  EXPECT_EQ(bound_at(40e9, 40e9 / 100), Bound::either) << "bytes come faster than a copy: from caches";
  EXPECT_EQ(bound_at(12e9, 1e9), std::nullopt) << "steps of 50 GFLOP/s: something slowed the product";
}

TEST(Reach, IsSilentWhereNothingWasMeasuredOrOfAnotherPrecision) {
  auto record = with_peak(make_record(swept(50, 0.02, 0.25)));
  record.peak->precision = "bf16";
  EXPECT_FALSE(Made({record}).series[0].batches[0].bound());
  record.peak.reset();
  EXPECT_FALSE(Made({record}).series[0].batches[0].bound());
  record.model.bytes_a_sample.reset();
  EXPECT_FALSE(Made({record}).series[0].batches[0].intensity);
}

TEST(Reach, AnEpochWithoutDataLoadingIsTheRestOfItsSteps) {
  const Made made({make_record(swept(50, 0.02, 0.25, 0.25))});
  const Reach& reach = made.series[0].batches[0];
  EXPECT_NEAR(reach.epoch_without_data_s.median / made.cells[0].epoch_s.median, 1.25 / 1.5, 1e-9);
}

TEST(Cause, AddsUpAndNamesTheUpdateThatServesMoreImages) {
  const Made made({make_record(swept(10, 0.02, 0.1)), make_record(swept(100, 0.018, 0.1)),
                   make_record(swept(400, 0.018, 0.1))});
  ASSERT_EQ(made.series.size(), 1u);
  const auto cause = made.series[0].why_faster();
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->to->cell->local_batch, 400);
  EXPECT_NEAR(cause->before_s, 0.03, 1e-12);
  EXPECT_NEAR(cause->after_s, 0.01825, 1e-12);
  EXPECT_FALSE(cause->is_noise());
  double saved = 0;
  for (const auto& part : cause->parts) saved += part.saved_s();
  EXPECT_NEAR(saved, cause->before_s - cause->after_s, 1e-12);
  EXPECT_EQ(cause->parts[0].part, CausePart::update);
  EXPECT_NEAR(cause->parts[0].saved_s(), 0.00975, 1e-12);
  EXPECT_EQ(cause->parts[1].part, CausePart::forward_and_backward);
  EXPECT_FALSE(made.series[0].why_no_longer());  // the largest is the fastest
}

TEST(Cause, OfALargerBatchThatIsSlowerNamesWhatGrew) {
  const Made made({make_record(swept(10, 0.02, 0.1)), make_record(swept(100, 0.018, 0.1)),
                   make_record(swept(1000, 0.025, 0.1))});
  const auto ended = made.series[0].why_no_longer();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->from->cell->local_batch, 100);
  EXPECT_GT(ended->after_s, ended->before_s);
  EXPECT_EQ(ended->parts[0].part, CausePart::forward_and_backward);
}

TEST(BatchSeries, KeepSetUpsApart) {
  auto two = swept(20, 0.02, 0.1);
  two.workers = 2;
  golden::Run weak = swept(20, 0.02, 0.1);
  weak.kind = "scale";
  weak.scaling = "weak";
  const Made made({make_record(swept(10, 0.02, 0.1)), make_record(swept(20, 0.02, 0.1)), make_record(two),
                   make_record(weak)});
  ASSERT_EQ(made.series.size(), 3u);
  EXPECT_EQ(made.series[0].batches.size(), 2u);
  std::size_t all = 0;
  for (const auto& series : made.series) all += series.batches.size();
  EXPECT_EQ(all, made.cells.size());
}

TEST(BatchSeries, DoNotMixWaysOfJoining) {
  golden::Run run = swept(10, 0.02, 0.1), larger = swept(20, 0.02, 0.1);
  run.workers = larger.workers = 2;
  auto processes = make_record(larger);
  processes.communication.processes = 2;
  EXPECT_EQ(Made({make_record(run), make_record(larger)}).series.size(), 1u);
  EXPECT_EQ(Made({make_record(run), processes}).series.size(), 2u);
}

TEST(Reach, HasNoProductOfSeveralProcesses) {
  golden::Run run = swept(50, 0.02, 0.25);
  run.workers = 2;
  auto record = with_peak(make_record(run));
  EXPECT_TRUE(Made({record}).series[0].batches[0].bound());
  record.communication.processes = 2;
  EXPECT_FALSE(Made({record}).series[0].batches[0].bound());
}

}  // namespace
}  // namespace paceline::analysis
