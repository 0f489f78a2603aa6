/// Bandwidths against links, algorithms, batches and message sizes.

#include "check/mistakes.h"

namespace paceline::check::mistakes {
namespace {

using sound::Column;
using sound::Draw;
using sound::forget;
using sound::printed;
using sound::Row;
using sound::SoundTable;

SoundTable table_with_bandwidth(std::uint64_t seed) { return sound::draw_table(seed + 5000000, true); }

/// A link that is too narrow for the claim by `factor`, printed both ways where that is asked for.
std::optional<Made> narrow_link(std::uint64_t seed, bool both) {
  auto sound = table_with_bandwidth(seed);
  auto& row = sound.table.rows.back();
  if (!row.knows("claimed_bandwidth") || row.text("bandwidth_is") == "algbw") return std::nullopt;
  Draw draw(seed);
  const double link = *row.value("claimed_bandwidth") / draw.between(1.04, 1.95);
  row.set("link", printed(link * (both ? 2 : 1), 6));
  row.set("link_unit", row.text("bandwidth_unit"));
  row.set("link_is", both ? "both-ways" : "one-way");
  return Made{sound.table, row.name(), link};
}

std::optional<Made> share_of_both(std::uint64_t seed) {
  auto sound = table_with_bandwidth(seed);
  auto& row = sound.table.rows.back();
  if (!row.knows("claimed_bandwidth") || row.text("bandwidth_is") == "algbw") return std::nullopt;
  Draw draw(seed);
  const double link = *row.value("claimed_bandwidth") * draw.between(1.1, 4);
  row.set("link", printed(link * 2, 5));
  row.set("link_unit", row.text("bandwidth_unit"));
  row.set("link_is", "both-ways");
  row.set("claimed_utilisation", printed(*row.value("claimed_bandwidth") / link / 2, 3));
  return Made{sound.table, row.name(), *row.value("claimed_bandwidth") / link};
}

std::optional<Made> no_ring(std::uint64_t seed) {
  auto sound = table_with_bandwidth(seed);
  auto& row = sound.table.rows.back();
  if (!row.knows("claimed_bandwidth") || row.text("bandwidth_is") == "algbw") return std::nullopt;
  Draw draw(seed);
  row.set("algorithm", draw.one_of({"parameter server", "DataParallel", "gather and broadcast", "star"}));
  row.set("bandwidth_is", "busbw");
  const double n = *row.value("workers");
  return Made{sound.table, row.name(), *row.value("claimed_bandwidth") * n / (n - 1)};
}

std::optional<Made> flat_over_batches(std::uint64_t seed) {
  Draw draw(seed + 77);
  auto table = sound::batch_table(draw);
  forget(table, {"claimed_bandwidth", "compute_s"});
  const double seconds = *table.rows.back().value("communication_s");
  for (auto& row : table.rows) {
    const double one = seconds * draw.between(1, 1.6);
    row.set("time_s", printed(one * 10, 4));
    row.set("communication_s", printed(one, 4));
  }
  return Made{table, table.rows.back().name(), {}};
}

/// Messages with busbw that grows with their size.
sound::Table messages(std::uint64_t seed) {
  for (std::uint64_t k = 0;; ++k) {
    Draw draw(seed * 131 + k);
    auto table = sound::message_table(draw);
    if (table.rows.size() >= 4 && table.rows.front().text("bandwidth_is") == "busbw") return table;
  }
}

std::optional<Made> mean_over_sizes(std::uint64_t seed) {
  auto table = messages(seed);
  double mean = 0;
  for (const auto& row : table.rows)
    mean += *row.value("claimed_bandwidth") / static_cast<double>(table.rows.size());
  const double largest = *table.rows.back().value("claimed_bandwidth");
  if (std::abs(mean / largest - 1) < 0.06 || mean <= 0) return std::nullopt;
  auto row = table.rows.back();
  for (const Column column :
       {Column("message_bytes"), Column("time_s"), Column("time_of"), Column("wrong_elements")})
    row.set(column, "");
  row.set("run", "average");
  row.set("claimed_bandwidth", printed(mean, 4));
  table.rows.push_back(row);
  return Made{table, "average", largest};
}

std::optional<Made> wrong_results(std::uint64_t seed) {
  auto table = messages(seed);
  auto& row = table.rows[seed % table.rows.size()];
  row.set("wrong_elements", 1.0 + static_cast<double>(seed % 1000));
  return Made{table, row.name(), {}};
}

std::optional<Made> of_one_rank(std::uint64_t seed) {
  auto table = messages(seed);
  for (auto& row : table.rows) row.set("workers", 1);
  return Made{table, table.rows.front().name(), 0.0};
}

}  // namespace

std::vector<Mistake> of_bandwidth() {
  return {
      {"more than the link", "bandwidth.link", [](auto seed) { return narrow_link(seed, false); }},
      {"more than one way", "bandwidth.link", [](auto seed) { return narrow_link(seed, true); }},
      {"share of both ways", "bandwidth.link", share_of_both},
      {"no ring", "bandwidth.algorithm", no_ring},
      {"flat over batches", "bandwidth.trend", flat_over_batches},
      {"mean over sizes", "bandwidth.average", mean_over_sizes},
      {"wrong results", "bandwidth.wrong", wrong_results},
      {"one rank", "bandwidth.one-rank", of_one_rank},
  };
}

}  // namespace paceline::check::mistakes
