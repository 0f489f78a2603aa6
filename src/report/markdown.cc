#include <fmt/format.h>

#include "report/document.h"
#include "report/terminal_text.h"
#include "report/text.h"

namespace paceline::report {
namespace {

void append_markdown(std::string& out, const Paragraph& paragraph) {
  const auto begin = word_of<Paragraph::Tone::warning>(paragraph.tone, {"", "- ", "> **Warning:** "});
  out += fmt::format("{}{}\n\n", begin, without_markup(paragraph.text));
}

void append_markdown(std::string& out, const Table& table) {
  out += "### " + without_markup(table.title) + "\n\n";
  if (!table.definition.empty()) out += without_markup(table.definition) + "\n\n";
  out += "|";
  for (const Column& column : table.columns) out += fmt::format(" {} |", markdown_cell(heading(column)));
  out += "\n|";
  for (const Column& column : table.columns) out += column.format == Format::text ? " --- |" : " ---: |";
  out += "\n";
  for (const auto& row : table.rows) {
    out += "|";
    for (std::size_t i = 0; i < row.size(); ++i)
      out += fmt::format(" {} |", markdown_cell(one_line(cell_text(row[i], table.columns[i].format))));
    out += "\n";
  }
  out += "\n";
  for (const std::string& footnote : table.footnotes) out += "- " + without_markup(footnote) + "\n";
  if (!table.footnotes.empty()) out += "\n";
}

/// Plots are only on the page; their points are in the tables. Here the caption is written.
void append_markdown(std::string& out, const Plot& plot) {
  if (!plot.caption.empty())
    out += "*" + without_markup(plot.title) + ".* " + without_markup(plot.caption) + "\n\n";
}

void append_markdown(std::string& out, const Figure& figure) {
  out += fmt::format("*{}.* {}\n\n", without_markup(figure.finding), without_markup(figure.note));
}
void append_markdown(std::string& out, const Timeline& timeline) {
  constexpr int kWidth = 100;
  out += fmt::format("*{}.* {}\n\n```\n{}```\n\n", without_markup(timeline.finding),
                     without_markup(timeline.note), drawn_in_letters(timeline, kWidth));
}
/// Other drawings as tables.
template <typename Drawing>
void append_markdown(std::string& out, const Drawing& drawing) {
  for (const Table& table : tables_of(drawing)) append_markdown(out, table);
}

void append_command(std::string& out, const std::string& command) {
  if (command.empty()) return;
  std::string fence = "```";  // longer than any fence inside
  while (command.find(fence) != std::string::npos) fence += '`';
  out += fence + "\n" + command + "\n" + fence + "\n\n";
}

void append_markdown(std::string& out, const Answer& answer) {
  if (answer.question.empty()) {
    out += fmt::format("**{}** {}\n\n", without_markup(answer.figure), without_markup(answer.sentence));
    return append_command(out, answer.command);
  }
  out += fmt::format("- {} **{}** ({} {}) {}\n\n", without_markup(answer.question),
                     without_markup(figure_with_unit(answer)), sign_of(answer.certainty),
                     without_markup(chip_or_word(answer)), without_markup(answer.sentence));
}

void append_markdown(std::string& out, const Next& next) {
  if (!next.steps.empty()) out += "### What to do next\n\n";
  for (const auto& step : next.steps) {
    out += fmt::format("{}{}. {}\n\n", without_markup(step.title),
                       step.seconds ? fmt::format(" ({})", duration(*step.seconds)) : "",
                       without_markup(step.why));
    append_command(out, step.command);
  }
  for (const std::string& sentence : next.not_answered)
    out += "- Not answered here: " + without_markup(sentence) + "\n";
  if (!next.not_answered.empty()) out += "\n";
}

}  // namespace

std::string to_markdown(const Document& document) {
  std::string out = "# " + without_markup(document.title) + "\n\n";
  if (!document.subtitle.empty()) out += without_markup(document.subtitle) + "\n\n";
  if (!document.trust.empty()) out += "How far to trust it: " + without_markup(document.trust) + "\n\n";
  for (const std::string& warning : document.warnings)
    out += "> **Warning:** " + without_markup(warning) + "\n\n";
  if (!document.expectations.empty()) append_markdown(out, as_table(document.expectations));
  for (const Section& section : document.sections) {
    out += "## " + without_markup(section.title) + "\n\n";
    for (const Block& block : section.blocks)
      std::visit([&](const auto& one) { append_markdown(out, one); }, block);
  }
  if (!document.facts.empty()) {
    out += "## Circumstances\n\n| what | value |\n| --- | --- |\n";
    for (const auto& [what, value] : document.facts)
      out += "| " + markdown_cell(what) + " | " + markdown_cell(value) + " |\n";
  }
  return out;
}

}  // namespace paceline::report
