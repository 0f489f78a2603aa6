#include "report/conclusions.h"

#include <algorithm>
#include <cctype>

#include "analysis/cells.h"

namespace paceline::report {
namespace {

using analysis::Mode;
using analysis::ScalingGroup;
using analysis::ScalingRow;

/// Of a group: the most workers with a core each; else the most workers. Of as many, what is remarked least
/// against the baseline: one version, not two.
const ScalingRow* largest(const ScalingGroup& group) {
  const ScalingRow* best = nullptr;
  for (const ScalingRow& row : group.rows) {
    if (row.is_baseline || !row.has_ratios) continue;
    const bool is_alike = best != nullptr && best->cell->workers == row.cell->workers &&
                          best->cell->oversubscribed == row.cell->oversubscribed;
    if (is_alike && row.verdict.remarks.size() > best->verdict.remarks.size()) continue;
    if (best == nullptr || !row.cell->oversubscribed || best->cell->oversubscribed) best = &row;
  }
  return best;
}

/// The words of a sentence, without its numbers.
std::string shape_of(const std::string& text) {
  std::string shape;
  for (const char letter : text)
    if (std::isdigit(static_cast<unsigned char>(letter)) == 0 && letter != '+' && letter != '-')
      shape += letter;
  return shape;
}

}  // namespace

void add_remark(std::vector<Remark>& remarks, analysis::Finding finding, const std::string& record) {
  const std::string shape = shape_of(finding.text);
  for (Remark& other : remarks) {
    if (shape_of(other.finding.text) != shape) continue;
    other.records.push_back(record);
    return;
  }
  Remark& fresh = remarks.emplace_back();
  fresh.finding = std::move(finding);
  fresh.records.push_back(record);
}

Conclusions::Stopped Conclusions::stopped(std::string_view kind) const {
  Stopped result;
  for (const auto& record : records) {
    if (record.kind != kind) continue;
    ++result.records;
    result.unmeasured += record.status == "interrupted" ? 1 : 0;
  }
  return result;
}

Conclusions conclude(std::span<const measure::Record> records) {
  Conclusions result;
  result.records = records;
  result.cells = analysis::make_cells(records);
  result.weak = analysis::scaling(result.cells, Mode::weak);
  result.strong = analysis::scaling(result.cells, Mode::strong);
  result.sweep = analysis::sweep(result.cells);
  result.convergence = analysis::convergence(result.cells);
  for (const auto& record : records)
    for (auto& finding : analysis::check(record)) add_remark(result.remarks, std::move(finding), record.id);
  return result;
}

const ScalingRow* headline(const Conclusions& conclusions) {
  std::int64_t wanted = 0;
  if (conclusions.sweep && conclusions.sweep->knee)
    wanted = conclusions.sweep->points[*conclusions.sweep->knee].cell->local_batch;
  for (const auto* groups : {&conclusions.weak, &conclusions.strong}) {
    const ScalingRow *best = nullptr, *at_knee = nullptr;
    for (const ScalingGroup& group : *groups) {
      const ScalingRow* row = largest(group);
      if (row == nullptr) continue;
      if (group.batch == wanted) at_knee = row;  // of several versions the last
      best = row;                                // groups come by batch: the largest stays
    }
    if (at_knee != nullptr) return at_knee;
    if (best != nullptr) return best;
  }
  return nullptr;
}

}  // namespace paceline::report
