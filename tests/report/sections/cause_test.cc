#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <regex>

#include "report/build.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using golden::make_record;
using measure::Record;

/// Cells of a sweep and of a scaling, whose product, copy and ceilings may have been slowed by other
/// programs, or may be those of another precision.
std::vector<Record> random_records(std::mt19937_64& random) {
  const auto between = [&](double low, double high) {
    return low * std::pow(high / low, std::uniform_real_distribution<double>(0, 1)(random));
  };
  std::vector<Record> records;
  for (const int workers : {1, 2})
    for (const std::int64_t batch : {32, 128})
      for (int repeat = 0; repeat < 1 + static_cast<int>(random() % 3); ++repeat) {
        auto record = make_record({.kind = workers == 1 ? "sweep" : "scale",
                                   .workers = workers,
                                   .local_batch = batch,
                                   .repeat = repeat,
                                   .forward = between(0.01, 1),
                                   .exposed_transfer = workers == 1 ? 0 : between(0.001, 0.1),
                                   .communication = workers == 1 ? 0 : 0.2,
                                   .transfer = workers == 1 ? 0 : between(0.001, 0.1),
                                   .jitter = std::vector<double>(1 + random() % 9, 1.0)});
        record.model.training_flops = 1'000'000'000;
        record.model.bytes_a_sample = static_cast<std::int64_t>(between(1e6, 1e9));
        record.model.bytes_a_step = 100'000'000;
        record.peak = measure::PeakRecord{.threads = 2,
                                          .precision = random() % 4 == 0 ? "bf16" : "fp32",
                                          .flops_per_s = between(1e8, 1e13),
                                          .bytes_per_s = between(1e8, 1e12)};
        if (workers > 1) record.communication.memory_ceiling_gb_per_s = between(1e-3, 100);
        records.push_back(std::move(record));
      }
  return records;
}

TEST(Cause, NoShareIsAboveAWhole) {
  std::mt19937_64 random(7);
  const std::regex share(
      R"(([0-9.,]+) %( \\?\[[^\]]*\])? of (what the same|the measured|the peak|its peak|the ceiling))");
  int shares = 0;
  for (int i = 0; i < 200; ++i) {
    const auto records = random_records(random);
    const Document document = build(records);
    for (const Table* table : all<Table>(document))
      for (std::size_t k = 0; k < table->columns.size(); ++k) {
        EXPECT_NE(table->columns[k].label, "of the peak");
        if (table->columns[k].label != "of the ceiling") continue;
        for (const auto& row : table->rows) {
          shares += row[k].value ? 1 : 0;
          EXPECT_LE(row[k].value.value_or(0), 1) << i;
          EXPECT_LE(row[k].high.value_or(0), 1) << i;
        }
      }
    for (const std::string& text : {to_markdown(document), to_terminal(document)})
      for (std::sregex_iterator found(text.begin(), text.end(), share), end; found != end; ++found)
        EXPECT_LE(std::stod((*found)[1]), 100) << i << ": " << found->str();
  }
  EXPECT_GT(shares, 50);
}

}  // namespace
}  // namespace paceline::report
