#include "report/build.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/compare/operating_point.h"
#include "report/answers/answers.h"
#include "report/answers/wording.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using analysis::Cell;
using analysis::Change;
using analysis::Pair;
using analysis::RunComparison;

Comparison::Word word_of_change(Change change) {
  using enum Comparison::Word;
  constexpr std::array kWords{improved, regressed, no_change, within_noise};  // in the order of Change
  return kWords[static_cast<std::size_t>(change)];
}

std::vector<const Cell*> pointers_to(const std::vector<Cell>& cells) {
  std::vector<const Cell*> pointers;
  for (const Cell& cell : cells) pointers.push_back(&cell);
  return pointers;
}

/// The best cell that may be recommended; null if there is none.
const Cell* best_of(const std::vector<Cell>& cells) {
  return analysis::operating_point(pointers_to(cells)).best();
}

/// 0.083 -> "8", 0.0042 -> "0.4": percent without its sign.
std::string points_of_ratio(double ratio) {
  const double percent = 100 * ratio;
  return std::abs(percent) < 9.95 ? fmt::format("{:.1f}", percent) : fmt::format("{:.0f}", percent);
}

/// "12 % faster [8, 16]": relative to 1, with the smaller end of the interval first.
std::string faster(const analysis::Estimate& ratio) {
  const bool is_faster = ratio.median >= 1;
  const auto part = [&](double value) { return points_of_ratio(is_faster ? value - 1 : 1 - value); };
  std::string text = fmt::format("{} % {}", part(ratio.median), is_faster ? "faster" : "slower");
  if (analysis::has_interval(ratio))
    text += fmt::format(" [{}, {}]", part(is_faster ? ratio.low : ratio.high),
                        part(is_faster ? ratio.high : ratio.low));
  return text;
}

/// With ~ in front if other programs worked, or may have worked.
std::string rate_of_cell(const Cell& cell) {
  return fmt::format("{}{} images/s", cell.disturbance == measure::Disturbance::none ? "" : "~",
                     number(cell.images_per_s.median));
}

/// Whether the interval of the ratio is so wide that no figure of it is worth saying: two runs that differ by
/// half give [0.1, 16].
bool says_nothing(const Pair& pair) {
  constexpr double kWidest = 4;
  return is_open(pair) && pair.ratio.high > kWidest * pair.ratio.low;
}

Comparison::Row row_of_pair(const Pair& pair) {
  Comparison::Row row{
      .name = words_for(*pair.a),
      .word = pair.is_compared() ? word_of_change(pair.change) : Comparison::Word::not_compared,
      .before = rate_of_cell(*pair.a),
      .after = rate_of_cell(*pair.b),
      .why = fmt::format("{}", fmt::join(pair.refusals, "; "))};
  // A ratio of what may not be compared is no figure.
  if (!pair.is_compared()) return row;
  if (is_open(pair)) row.word = Comparison::Word::not_decided;
  if (says_nothing(pair)) {
    row.word = Comparison::Word::not_compared;
    row.why = "its runs differ too much: more of them (--repeats 5), with nothing else running";
    return row;
  }
  row.ratio = pair.ratio.median;
  row.mark = mark_of_pair(pair);
  take_interval(row, pair.ratio);
  return row;
}

/// What the words mean (as in the benchmark library Criterion).
std::string text_about_words(const RunComparison& comparison, double noise) {
  std::string text = fmt::format(
      "Ratio: images a second of B over those of A, with the 95 % interval. Improved and regressed: all of it "
      "lies more than {} % from 1; no change: it holds 1; within noise: the difference is there, and may be "
      "smaller than that.",
      points_of_ratio(noise));
  if (std::ranges::any_of(comparison.pairs, &Pair::is_of_one_run))
    text += fmt::format(
        " Where each side has one run, its interval does not hold what runs differ by: {} % are asked for "
        "there; --repeats 3 measures it.",
        points_of_ratio(std::max(noise, analysis::kNoiseOfOneRun)));
  if (std::ranges::any_of(comparison.pairs,
                          [](const Pair& pair) { return pair.is_compared() && !mark_of_pair(pair).empty(); }))
    text += " ~ and hollow: other programs worked, or may have worked, meanwhile.";
  return text;
}

/// "18 cells on both sides: 12 improved, 1 regressed, 5 without change. 2 on one side only."
std::string text_about_numbers(const RunComparison& comparison) {
  std::vector<std::string> parts;
  const long open = std::ranges::count_if(comparison.pairs, is_open);
  for (const Change change : {Change::improved, Change::regressed, Change::no_change, Change::within_noise})
    if (const auto number =
            static_cast<long>(comparison.number_of(change)) - (change == Change::no_change ? open : 0);
        number > 0)
      parts.push_back(fmt::format("{} {}", number, text_of(word_of_change(change))));
  if (open > 0) parts.push_back(fmt::format("{} not decided", open));
  const auto refused = std::ranges::count(comparison.pairs, false, &Pair::is_compared);
  if (refused > 0) parts.push_back(fmt::format("{} not compared", refused));
  std::string text = fmt::format("{} on both sides", counted(comparison.pairs.size(), "cell"));
  if (!parts.empty()) text += fmt::format(": {}", fmt::join(parts, ", "));
  if (!comparison.unpaired.empty()) text += fmt::format("; {} on one side only", comparison.unpaired.size());
  return text + ".";
}

/// A sentence if the best cells of A and B differ.
std::string text_about_best(const RunComparison& comparison) {
  const Cell* const a = best_of(comparison.a);
  const Cell* const b = best_of(comparison.b);
  if (a == nullptr || b == nullptr) return "";
  const Pair* const pair = comparison.pair_of(a);
  if (pair != nullptr && pair->b == b) return "";
  const std::string there = fmt::format("B's best cell is another: {}, {}", words_for(*b), rate_of_cell(*b));
  const Pair* const own = comparison.pair_of(b);
  // Throughputs of different models cannot be compared.
  const bool is_comparable =
      (pair != nullptr && pair->is_compared()) || (own != nullptr && own->is_compared());
  if (!is_comparable) return there + ".";
  return fmt::format("{}, {:.2f}× that of A's best, {}.", there,
                     b->images_per_s.median / a->images_per_s.median, words_for(*a));
}

Table differences_table(const RunComparison& comparison) {
  Table table{.id = "compare-settings",
              .title = "What differs",
              .definition = "Entries of the set-up that differ between the cells of a pair.",
              .columns = {{"name", "setting", "", Format::text},
                          {"a", "A", "", Format::text},
                          {"b", "B", "", Format::text},
                          {"pairs", "pairs", "", Format::integer}}};
  for (const auto& row : comparison.differences)
    table.rows.push_back({words(row.name), words(row.a), words(row.b), value(row.pairs)});
  return table;
}

Table unpaired_table(const RunComparison& comparison) {
  Table table{.id = "compare-unpaired",
              .title = "On one side only",
              .definition = "Cells that one side measured and the other did not.",
              .columns = {{"name", "cell", "", Format::text},
                          {"side", "measured in", "", Format::text},
                          {"images_per_s", "throughput", "images/s", Format::rate},
                          {"why", "the other side", "", Format::text}}};
  for (const auto& one : comparison.unpaired)
    table.rows.push_back({words(words_for(*one.cell)), words(one.is_of_a ? "A" : "B"),
                          figure(one.cell->images_per_s), words(one.why)});
  return table;
}

/// "84.2 % ± 0.4": mean over seeds and standard error.
std::string accuracy_text(const analysis::Variant& variant) {
  return fmt::format("{} ± {:.1f}", percent(variant.accuracy), 100 * variant.standard_error);
}

std::optional<Table> accuracy_table(const RunComparison& comparison) {
  Table table{.id = "compare-accuracy",
              .title = "Accuracy",
              .definition =
                  "Test accuracy after the last epoch: mean over seeds ± standard error. Improved and "
                  "regressed: a difference that is clear (above two standard errors, more of few seeds); "
                  "within noise: it is, but of one seed, and seeds differ.",
              .columns = {{"name", "training", "", Format::text},
                          {"a", "A", "", Format::text},
                          {"b", "B", "", Format::text},
                          {"difference", "B - A", "points", Format::text},
                          {"seeds", "seeds, A and B", "", Format::text},
                          {"word", "verdict", "", Format::text}}};
  for (const Pair& pair : comparison.pairs) {
    if (!pair.accuracy) continue;
    const auto& accuracy = *pair.accuracy;
    std::string gained = "-", word;
    if (accuracy.difference) {
      gained = fmt::format("{:+.1f} ± {:.1f}", 100 * accuracy.difference->value,
                           100 * accuracy.difference->standard_error);
      word = text_of(word_of_change(accuracy.change));
    } else {
      word = fmt::format("not compared: {}", fmt::join(accuracy.refusals, "; "));
    }
    table.rows.push_back({words(words_for(*pair.a)), words(accuracy_text(accuracy.a)),
                          words(accuracy_text(accuracy.b)), words(gained),
                          words(fmt::format("{}, {}", accuracy.a.seeds, accuracy.b.seeds)), words(word)});
  }
  if (table.rows.empty()) return std::nullopt;
  return table;
}

/// A refusal shared by all pairs is shown at the top: then nothing is compared.
void add_warnings_of_comparison(Document& document, const RunComparison& comparison,
                                const CompareOptions& options) {
  document.warnings = options.remarks;
  if (comparison.pairs.empty()) {
    document.warnings.push_back(
        "Nothing is compared: no cell was measured on both sides with the same workers and batches.");
    return;
  }
  if (std::ranges::none_of(comparison.pairs, &Pair::is_compared))
    document.warnings.push_back(
        fmt::format("No time is compared: {}.", fmt::join(comparison.pairs.front().refusals, "; ")));
}

}  // namespace

std::string headline(const RunComparison& comparison, double noise) {
  const Cell* const best = best_of(comparison.a);
  const Pair* const pair = best == nullptr ? nullptr : comparison.pair_of(best);
  if (best == nullptr) {
    if (comparison.a.empty()) return "A holds no run";
    const auto cells = pointers_to(comparison.a);
    auto why = text_about_no_best(analysis::operating_point(cells), cells);
    why.erase(why.find_last_not_of('.') + 1);
    return fmt::format("Nothing to compare with in A: {}", why);
  }
  if (pair == nullptr) return fmt::format("The best cell of A, {}, was not measured in B", words_for(*best));
  const std::string where = fmt::format("at the best cell of A, {}", words_for(*best));
  if (!pair->is_compared()) return fmt::format("Not compared {}: {}", where, pair->refusals.front());
  switch (pair->change) {
    case Change::improved:
    case Change::regressed:
      return fmt::format("B is {} {}", faster(pair->ratio), where);
    case Change::within_noise:
      return fmt::format(
          "B is {} {}: within the noise of {} %", faster(pair->ratio), where,
          points_of_ratio(pair->is_of_one_run ? std::max(noise, analysis::kNoiseOfOneRun) : noise));
    case Change::no_change:
      if (says_nothing(*pair)) return fmt::format("Not decided {}: its runs differ too much", where);
      return fmt::format("{} {}: {:.2f} [{:.2f}, {:.2f}] times A",
                         is_open(*pair) ? "Not decided" : "No change", where, pair->ratio.median,
                         pair->ratio.low, pair->ratio.high);
  }
  return "";
}

Document build_comparison(const RunComparison& comparison, const CompareOptions& options) {
  Document document;
  document.title = fmt::format("Paceline: {} against {}", options.b, options.a);
  document.subtitle = fmt::format("A is {}, B is {}", options.a, options.b);
  add_warnings_of_comparison(document, comparison, options);
  std::vector<const measure::Record*> records;
  for (const auto* side : {&comparison.a, &comparison.b})
    for (const auto& cell : *side)
      for (const auto* of_cell : {&cell.records, &cell.lost})
        records.insert(records.end(), of_cell->begin(), of_cell->end());
  document.trust = text_about_checksums(records);
  Section section{.id = "compare", .title = "What changed?"};
  Comparison block{.id = "compare-times",
                   .finding = headline(comparison, options.noise),
                   .note = text_about_words(comparison, options.noise),
                   .name_of_ratio = "images/s, B over A"};
  for (const Pair& pair : comparison.pairs) block.rows.push_back(row_of_pair(pair));
  document.sections.push_back(answer_of_comparison(comparison, options));
  section.blocks.push_back(plain(text_about_numbers(comparison)));
  if (const auto best = text_about_best(comparison); !best.empty()) section.blocks.push_back(plain(best));
  if (!block.rows.empty()) section.blocks.push_back(std::move(block));
  add_block(section.blocks, accuracy_table(comparison));
  if (comparison.differences.empty() && !comparison.pairs.empty())
    section.blocks.push_back(plain("Nothing of the set-ups differs: these are repeats of one another."));
  if (!comparison.differences.empty()) section.blocks.push_back(differences_table(comparison));
  if (!comparison.unpaired.empty()) section.blocks.push_back(unpaired_table(comparison));
  document.sections.push_back(std::move(section));
  if (!options.command.empty()) document.facts.emplace_back("report made by", options.command);
  return document;
}

}  // namespace paceline::report
