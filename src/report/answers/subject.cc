#include "report/answers/answers.h"

namespace paceline::report {
namespace {

/// The row of scaling that a cell is, with ratios to a baseline of fewer workers.
void find_row(Subject& subject) {
  for (const auto* groups : {&subject.conclusions.weak, &subject.conclusions.strong})
    for (const auto& group : *groups)
      for (const auto& row : group.rows)
        if (row.cell == subject.best() && row.has_ratios && !row.is_baseline) {
          subject.group = &group;
          subject.row = &row;
          return;
        }
}

}  // namespace

Subject subject_of(const Conclusions& conclusions, const analysis::CellGroup& cells) {
  Subject subject{conclusions, cells, analysis::operating_point(cells.cells)};
  if (subject.best() != nullptr) find_row(subject);
  return subject;
}

}  // namespace paceline::report
