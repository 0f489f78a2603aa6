#include "report/conclusions.h"

#include <algorithm>
#include <cstdlib>

namespace paceline::report {
namespace {

using analysis::Mode;
using analysis::ScalingGroup;
using analysis::ScalingRow;

void gather(std::vector<Remark>& remarks, const measure::Record& record) {
  for (auto& finding : analysis::check(record)) {
    const auto same = std::find_if(remarks.begin(), remarks.end(),
                                   [&](const Remark& other) { return other.finding.text == finding.text; });
    if (same == remarks.end())
      remarks.push_back({.finding = std::move(finding), .records = {record.id}});
    else
      same->records.push_back(record.id);
  }
}

/// Of a group: the most workers with a core each; else the most workers.
const ScalingRow* largest(const ScalingGroup& group) {
  const ScalingRow* best = nullptr;
  for (const ScalingRow& row : group.rows) {
    if (row.is_baseline || !row.has_ratios) continue;
    if (best == nullptr || !row.cell->oversubscribed || best->cell->oversubscribed) best = &row;
  }
  return best;
}

}  // namespace

Conclusions conclude(std::span<const measure::Record> records) {
  Conclusions result;
  result.records = records;
  result.cells = analysis::make_cells(records);
  result.weak = analysis::scaling(result.cells, Mode::weak);
  result.strong = analysis::scaling(result.cells, Mode::strong);
  result.sweep = analysis::sweep(result.cells);
  result.convergence = analysis::convergence(result.cells);
  for (const auto& record : records) gather(result.remarks, record);
  return result;
}

const ScalingRow* headline(const Conclusions& conclusions) {
  std::int64_t wanted = 0;
  if (conclusions.sweep && conclusions.sweep->knee)
    wanted = conclusions.sweep->points[*conclusions.sweep->knee].cell->local_batch;
  for (const auto* groups : {&conclusions.weak, &conclusions.strong}) {
    const ScalingRow* best = nullptr;
    for (const ScalingGroup& group : *groups) {
      const ScalingRow* row = largest(group);
      if (row == nullptr) continue;
      if (group.batch == wanted) return row;
      best = row;  // groups come by batch: the largest stays
    }
    if (best != nullptr) return best;
  }
  return nullptr;
}

}  // namespace paceline::report
