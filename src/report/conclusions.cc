#include "report/conclusions.h"

#include <algorithm>
#include <cctype>

#include "analysis/target/target_question.h"
#include "base/error.h"
#include "measure/setting.h"

namespace paceline::report {
namespace {

using analysis::Mode;
using analysis::ScalingGroup;
using analysis::ScalingRow;

/// The words of a sentence, without its numbers.
std::string shape_of_sentence(const std::string& text) {
  std::string shape;
  for (const char letter : text)
    if (std::isdigit(static_cast<unsigned char>(letter)) == 0 && letter != '+' && letter != '-')
      shape += letter;
  return shape;
}

std::vector<LossesOfGroup> losses_of_groups(const Conclusions& conclusions) {
  std::vector<LossesOfGroup> all;
  for (const Mode mode : {Mode::weak, Mode::strong})
    for (const ScalingGroup& group : conclusions.scaling(mode)) {
      if (group.baseline == nullptr) continue;
      LossesOfGroup losses{.group = &group, .mode = mode, .rows = {}};
      const auto alone = analysis::cells_alone(conclusions.cells, *group.baseline);
      for (const ScalingRow& row : group.rows)
        if (!row.is_baseline && row.has_ratios)
          losses.rows.push_back(analysis::efficiency_loss(*group.baseline, *row.cell, mode, alone));
      if (!losses.rows.empty()) all.push_back(std::move(losses));
    }
  return all;
}

/// Of each target with a curve and with predicted steps.
void answer_targets(Conclusions& conclusions) {
  for (const auto& target : conclusions.targets)
    for (const auto& prediction : conclusions.predictions) {
      if (!target.fit || !prediction) continue;
      const auto& subject = prediction->model.subject;
      if (subject.model != target.model || subject.data != target.data) continue;
      try {
        const auto asked = analysis::target_question(target, prediction->model, prediction->forecast.request);
        auto found = analysis::answer(asked.question);
        if (found.points.empty()) continue;
        conclusions.answered_targets.push_back(
            {.target = target, .answer = std::move(found), .lacks_link = asked.lacks_link});
      } catch (const base::Error&) {
        // No step of a batch of the curve was timed.
      }
    }
}

}  // namespace

void add_remark(std::vector<Remark>& remarks, analysis::Finding finding, const std::string& record) {
  const std::string shape = shape_of_sentence(finding.text);
  for (Remark& other : remarks) {
    if (shape_of_sentence(other.finding.text) != shape) continue;
    other.records.push_back(record);
    return;
  }
  remarks.push_back({.finding = std::move(finding), .records = {record}});
}

Conclusions::Stopped Conclusions::stopped_study() const {
  Stopped result;
  for (const auto& record : records) {
    if (record.kind != "sweep" && record.kind != "scale" && record.kind != "converge") continue;
    ++result.records;
    result.unmeasured += record.status == "interrupted" ? 1 : 0;
  }
  return result;
}

std::vector<RowOfGroup> Conclusions::rows_of_scaling() const {
  std::vector<RowOfGroup> rows;
  for (const auto* groups : {&weak, &strong})
    for (const ScalingGroup& group : *groups)
      for (const ScalingRow& row : group.rows) rows.push_back({&group, &row});
  return rows;
}

bool Conclusions::is_scaled(const analysis::Cell& cell) const {
  return std::ranges::any_of(rows_of_scaling(), [&](const auto& one) { return one.row->cell == &cell; });
}

Conclusions conclude(std::span<const measure::Record> records, double margin) {
  Conclusions result;
  result.records = records;
  result.cells = analysis::make_cells(records);
  result.weak = analysis::scaling(result.cells, Mode::weak);
  result.strong = analysis::scaling(result.cells, Mode::strong);
  result.losses = losses_of_groups(result);
  result.sweeps = analysis::sweeps(result.cells);
  result.subjects = analysis::by_subject(result.cells);
  result.convergence = analysis::convergence(result.cells, margin);
  result.targets = analysis::steps_to_target(result.cells);
  for (const auto& record : records)
    for (auto& finding : analysis::check(record)) add_remark(result.remarks, std::move(finding), record.id);
  return result;
}

void add_predictions(Conclusions& conclusions, const std::optional<analysis::AddedLink>& emulated) {
  constexpr std::int64_t kMostWorkers = 256;
  for (const auto& subject : conclusions.subjects) {
    auto& prediction = conclusions.predictions.emplace_back();
    std::vector<analysis::Cell> cells;
    bool is_compared = false, is_emulated = false;
    for (const auto* cell : subject.cells) {
      if (!cell->is_measured()) continue;
      cells.push_back(*cell);
      is_compared = is_compared || cell->kind == "sweep" || cell->kind == "scale";
      const auto* link = measure::find_text(cell->record().settings, "emulate-link");
      is_emulated = is_emulated || (link != nullptr && !link->empty());
    }
    if (!is_compared || (is_emulated && !emulated)) continue;
    try {
      auto model = analysis::step_model(cells);
      analysis::ForecastRequest request;
      request.workers = analysis::worker_grid(model.fewest(), std::max(kMostWorkers, 2L * model.most()));
      request.step = {.mode = analysis::Mode::weak, .batch = model.usual_batch()};
      if (is_emulated) request.emulated = emulated;
      auto forecast = analysis::forecast(model, request);
      prediction.emplace(PredictedWorkers{std::move(model), std::move(forecast)});
    } catch (const base::Error&) {
      // Records of several machines, precisions or kernels: each has its own tables, and none a prediction.
    }
  }
  answer_targets(conclusions);
}

}  // namespace paceline::report
