#include "analysis/steps/gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/compare/cell.h"
#include "golden/gpus.h"

namespace paceline::analysis {
namespace {

using golden::make_gpu_record;
using measure::Record;
using testing::ElementsAre;
using testing::Pair;

GpuUses uses_of(const std::vector<Record>& records) {
  const auto cells = make_cells(records);
  EXPECT_EQ(cells.size(), 1U);
  return gpu_uses(cells.at(0)).value();
}

TEST(GpuUses, TakesMeansAndPeaksOfAWindow) {
  const auto uses = uses_of({make_gpu_record({})});
  ASSERT_EQ(uses.gpus.size(), 1U);
  const auto& gpu = uses.gpus[0];
  EXPECT_DOUBLE_EQ(gpu.utilisation.value(), 0.9);
  EXPECT_DOUBLE_EQ(gpu.sm_mhz.value(), 1940);
  EXPECT_DOUBLE_EQ(gpu.used_bytes.value(), 4e9);
  EXPECT_DOUBLE_EQ(gpu.celsius.value(), 61);
  EXPECT_DOUBLE_EQ(gpu.watts.value(), 300);
  EXPECT_EQ(gpu.link, "");
  EXPECT_THAT(gpu.held_back.value(), testing::IsEmpty());
}

// Compute is 0.4 + 0.8 + 0.01 s of a step of 1.22 s; an evaluation is no step.
TEST(GpuUses, BusyIsThePartOfTheStepsInWhichTheLedgerComputes) {
  auto record = make_gpu_record({});
  const auto cells = make_cells(std::span(&record, 1));
  EXPECT_NEAR(gpu_uses(cells.at(0))->gpus[0].busy.value(), 1.21 / 1.22, 1e-12);
  record.ranks[0].phases[static_cast<std::size_t>(measure::Phase::evaluation)] += 100;
  EXPECT_NEAR(gpu_uses(cells.at(0))->gpus[0].busy.value(), 1.21 / 1.22, 1e-12);
}

// 128 images a step of 1.22 s at 300 W.
TEST(GpuUses, ImagesPerJouleAreImagesOverTheEnergyOfTheWindow) {
  const auto one = uses_of({make_gpu_record({.jitter = {1, 1, 1, 1}})});
  EXPECT_NEAR(one.gpus[0].images_per_j.value(), 128 / 1.22 / 300, 1e-9);
  EXPECT_TRUE(one.gpus[0].is_energy_counted);
  EXPECT_NEAR(one.images_per_j.value(), 128 / 1.22 / 300, 1e-9);
  const auto two = uses_of({make_gpu_record({.workers = 2, .jitter = {1, 1, 1, 1}})});
  EXPECT_NEAR(two.gpus[1].images_per_j.value(), 128 / 1.22 / 300, 1e-9) << "of its rank alone";
  EXPECT_NEAR(two.images_per_j.value(), 256 / 1.22 / 600, 1e-9);
}

TEST(GpuUses, JoinsRepeats) {
  std::vector<Record> records{make_gpu_record({.repeat = 0}), make_gpu_record({.repeat = 1})};
  auto& gpu = records[1].gpus->front();
  gpu.course.utilisation = {0.5, 0.5, 0.5, 0.5};
  gpu.course.celsius = {80};
  gpu.energy_j = 400;
  gpu.energy_by = "power";
  gpu.held_back = std::map<std::string, double>{{"power cap", 0.5}};
  const auto uses = uses_of(records);
  ASSERT_EQ(uses.gpus.size(), 1U);
  EXPECT_DOUBLE_EQ(uses.gpus[0].utilisation.value(), 0.7);
  EXPECT_DOUBLE_EQ(uses.gpus[0].celsius.value(), 80);
  EXPECT_DOUBLE_EQ(uses.gpus[0].watts.value(), 250);
  EXPECT_FALSE(uses.gpus[0].is_energy_counted);
  EXPECT_THAT(uses.gpus[0].held_back.value(), ElementsAre(Pair("power cap", 0.25)));
}

TEST(GpuUses, WhatIsNotToldIsEmpty) {
  auto record = make_gpu_record({});
  measure::GpuRecord untold{.index = 0, .ranks = {0}};
  record.gpus = {untold};
  const auto gpu = uses_of({record}).gpus[0];
  EXPECT_FALSE(gpu.utilisation || gpu.used_bytes || gpu.watts || gpu.images_per_j || gpu.sm_mhz ||
               gpu.celsius || gpu.held_back);
  EXPECT_TRUE(gpu.busy.has_value()) << "the ledger knows";
}

TEST(GpuUses, PowerWithoutEnergyGivesWattsAndNoImagesPerJoule) {
  auto record = make_gpu_record({});
  record.gpus->front().energy_j.reset();
  const auto uses = uses_of({record});
  EXPECT_DOUBLE_EQ(uses.gpus[0].watts.value(), 300);
  EXPECT_FALSE(uses.gpus[0].images_per_j || uses.images_per_j);
}

TEST(GpuUses, RanksThatShareAGpuHaveNoBusyShareOfTheirOwn) {
  auto record = make_gpu_record({.workers = 2, .jitter = {1, 1, 1, 1}});
  record.gpus->resize(1);
  record.gpus->front().ranks = {0, 1};
  const auto uses = uses_of({record});
  EXPECT_FALSE(uses.gpus[0].busy.has_value());
  EXPECT_NEAR(uses.gpus[0].images_per_j.value(), 256 / 1.22 / 300, 1e-9);
}

TEST(GpuUses, SaysALinkBelowWhatItCouldBe) {
  auto record = make_gpu_record({});
  record.gpus->front().pcie = base::PcieLink{.generation = 5, .width = 8};
  EXPECT_EQ(uses_of({record}).gpus[0].link, "PCIe 5 x8 of 5 x16");
}

TEST(GpuUses, OfTheProcessorThereAreNone) {
  const std::vector<Record> records{golden::make_record({})};
  const auto cells = make_cells(records);
  EXPECT_FALSE(gpu_uses(cells[0]).has_value());
}

}  // namespace
}  // namespace paceline::analysis
