// What --precision auto takes on a kind of processor, by made-up measurements and by those of the program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "engine/cpu/processor_kind.h"
#include "engine/make.h"

namespace paceline::engine::cpu {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A row of the family 1 of vendor "v".
PrecisionRow row(int model, double ratio, std::string_view units = "u") {
  return {.vendor = "v",
          .units = units,
          .family = 1,
          .model = model,
          .bf16_over_fp32 = ratio,
          .record = "r.json"};
}

ProcessorKind kind(int model, const std::string& units = "u") {
  return {.vendor = "v", .family = 1, .model = model, .units = units};
}

Precision precision_for(const ProcessorKind& of, const std::vector<PrecisionRow>& table) {
  return prefers(of, table).precision;
}

TEST(PrecisionTable, TakesWhatWasFasterOnThisKind) {
  const std::vector table{row(1, 0.5), row(2, 0.99), row(3, 1.0), row(4, 1.04)};
  EXPECT_EQ(precision_for(kind(1), table), Precision::bf16);
  EXPECT_EQ(precision_for(kind(2), table), Precision::bf16);
  EXPECT_EQ(precision_for(kind(3), table), Precision::f32);
  EXPECT_EQ(precision_for(kind(4), table), Precision::f32);
  EXPECT_THAT(prefers(kind(1), table).reason, AllOf(HasSubstr("0.50 of fp32's time"), HasSubstr("(r.json)")));
  EXPECT_THAT(prefers(kind(4), table).reason, HasSubstr("1.04 of fp32's time"));
}

TEST(PrecisionTable, TakesBf16OnAnUnmeasuredKindOnlyIfAllRowsOfItsUnitsDo) {
  EXPECT_EQ(precision_for(kind(9), {row(1, 0.5), row(2, 0.9)}), Precision::bf16);
  EXPECT_EQ(precision_for(kind(9), {row(1, 0.5), row(2, 1.1)}), Precision::f32);
  EXPECT_EQ(precision_for(kind(9), {row(2, 1.1), row(1, 0.5)}), Precision::f32) << "in any order";
  EXPECT_EQ(precision_for(kind(9), {row(1, 0.5), row(2, 1.1, "other")}), Precision::bf16)
      << "other units say nothing";
  EXPECT_EQ(precision_for(kind(9), {row(1, 0.5, "other")}), Precision::f32);
  EXPECT_EQ(precision_for(kind(9), {}), Precision::f32);
  EXPECT_THAT(prefers(kind(9), std::vector{row(1, 1.1)}).reason,
              AllOf(HasSubstr("(v-1-9-u)"), HasSubstr("--precision bf16 tries it")));
}

TEST(PrecisionTable, KnowsAKindByVendorFamilyModelAndUnits) {
  const std::vector table{row(1, 0.5), row(2, 1.1)};  // by themselves they give fp32
  auto other = kind(1);
  other.vendor = "w";
  EXPECT_EQ(precision_for(other, table), Precision::f32);
  other = kind(1);
  other.family = 2;
  EXPECT_EQ(precision_for(other, table), Precision::f32);
  EXPECT_EQ(precision_for(kind(1, "other"), table), Precision::f32);
}

/// bf16's time over fp32's in a record of bench/precision_turns.py or bench/step_vs_torch.py.
double ratio_in(const std::string& record) {
  const auto json =
      nlohmann::json::parse(base::read_file(std::string(PACELINE_SOURCE_DIR) + "/results/records/" + record));
  if (json.contains("cells")) {
    for (const auto& cell : json["cells"])
      if (cell["model"] == "resnet18-cifar" && cell["batch"] == 128) return cell["ratio"];
    ADD_FAILURE() << record << " has no cell of resnet18-cifar at batch 128";
    return 0;
  }
  double fp32 = 0, bf16 = 0;  // images/s
  for (const auto& result : json["results"])
    (result["precision"] == "fp32" ? fp32 : bf16) = result["our_images_per_s"];
  EXPECT_EQ(json["batch"], 128);
  return fp32 / bf16;
}

TEST(PrecisionTable, HasTheFiguresOfItsRecordsAndEachKindOnce) {
  std::set<std::string> kinds;
  for (const auto& row : precision_table()) {
    EXPECT_NEAR(row.bf16_over_fp32, ratio_in(std::string(row.record)), 0.005) << row.record;
    const ProcessorKind of{std::string(row.vendor), row.family, row.model, std::string(row.units)};
    EXPECT_TRUE(kinds.insert(name_of(of)).second) << name_of(of);
  }
  EXPECT_FALSE(kinds.empty());
}

TEST(PrecisionTable, IsWhatTheEngineFollows) {
  const auto here = engine::auto_precision("cpu");
  if (here.reason.find("no units for bf16") != std::string::npos) {
    EXPECT_EQ(here.precision, Precision::f32);
    return;
  }
  const auto preferred = prefers(processor_here());
  EXPECT_EQ(here.precision, preferred.precision);
  EXPECT_EQ(here.reason, preferred.reason);
}

TEST(PrecisionTable, SaysNothingOfEnginesThatEmulateBf16) {
  for (const char* device : {"reference", "cuda-on-host"})
    EXPECT_EQ(engine::auto_precision(device).precision, Precision::f32) << device;
}

}  // namespace

namespace {

// No bound on what a machine reaches: only that the figures are of what they say they are of.
TEST(Peak, IsMeasuredInBothUnits) {
  const auto one = measure_peak(1, Precision::f32);
  EXPECT_GT(one.flops_per_s, 1e8);
  EXPECT_LT(one.flops_per_s, 1e13);  // of one core
  EXPECT_GT(one.bytes_per_s, 1e8);
  EXPECT_LT(one.bytes_per_s, 1e13);
  EXPECT_GT(measure_peak(2, Precision::f32).flops_per_s, 1e8);
}

}  // namespace
}  // namespace paceline::engine::cpu
