#include <fmt/format.h>

#include "report/answer_screen.h"
#include "report/answers/answers.h"

namespace paceline::report {
namespace {

template <typename Drawing>
void add_drawing(std::vector<Block>& blocks, std::optional<Drawing> drawing) {
  if (drawing) blocks.emplace_back(std::move(*drawing));
}

Section answer_section_of(const Subject& subject) {
  Section section{.id = kAnswerSection, .title = "Answer"};
  if (!subject.cells.name.empty()) section.title += ": " + subject.cells.name;
  auto& blocks = section.blocks;
  for (auto* const answer :
       {best_answer, batch_answer, workers_answer, limit_answer, network_answer, accuracy_answer})
    blocks.emplace_back(answer(subject));
  add_drawing(blocks, hero_figure(subject));
  blocks.emplace_back(next_steps(subject));
  return section;
}

Section evidence_of(const Subject& subject) {
  Section section{.id = "evidence", .title = "Evidence"};
  if (!subject.cells.name.empty()) section.title += ": " + subject.cells.name;
  add_drawing(section.blocks, batch_figure(subject));
  add_drawing(section.blocks, workers_figure(subject));
  add_drawing(section.blocks, step_waterfall(subject));
  for (Timeline& timeline : step_timelines(subject)) section.blocks.emplace_back(std::move(timeline));
  add_drawing(section.blocks, network_figure(subject));
  add_drawing(section.blocks, accuracy_figure(subject));
  return section;
}

}  // namespace

std::vector<Section> answer_sections(const Conclusions& conclusions) {
  std::vector<Section> sections, evidence;
  for (const auto& cells : conclusions.subjects) {
    const Subject subject = subject_of(conclusions, cells);
    sections.push_back(answer_section_of(subject));
    evidence.push_back(evidence_of(subject));
    if (sections.size() == 1) continue;
    for (Section* section : {&sections.back(), &evidence.back()})
      section->id += fmt::format("-{}", sections.size());
  }
  for (Section& section : evidence)
    if (!section.blocks.empty()) sections.push_back(std::move(section));
  if (!conclusions.cells.empty())
    sections.push_back({.id = "every-cell", .title = "Every cell", .blocks = {cells_table(conclusions)}});
  return sections;
}

}  // namespace paceline::report
