#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "analysis/compare_runs.h"
#include "analysis/predict/score.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "check/check.h"
#include "cli/commands/commands.h"
#include "cli/reports.h"
#include "cli/screen/screen.h"
#include "measure/record_file.h"
#include "report/build.h"
#include "serve/run_book.h"
#include "table/table.h"

namespace paceline::cli {
namespace {

namespace fs = std::filesystem;

/// The remarks of one side, with its name in front.
void add_remarks(std::vector<std::string>& all, const fs::path& side,
                 const std::vector<std::string>& remarks) {
  for (const auto& remark : remarks) all.push_back(fmt::format("{}: {}", side.string(), remark));
}

/// Fails if nothing was compared, so that a CI does not pass by mistake.
void require_something_compared(const analysis::RunComparison& comparison) {
  const bool any = std::any_of(comparison.pairs.begin(), comparison.pairs.end(), [](const auto& pair) {
    return pair.is_compared() || (pair.accuracy && pair.accuracy->difference);
  });
  if (any) return;
  if (comparison.pairs.empty())
    base::fail(
        ErrorKind::usage,
        "--fail-on regressed: nothing was compared, since no cell was measured on both sides; give two "
        "studies of the same batches and workers");
  base::fail(ErrorKind::usage, "--fail-on regressed: nothing was compared; the first cell, {}: {}",
             comparison.pairs.front().name, comparison.pairs.front().refusals.front());
}

/// The last run before `b` beside it: of its kind, with its model and data.
///
/// Errors   Error(usage) when there is none; Error(data) when there is no `b`
fs::path run_before(const fs::path& b) {
  if (!fs::exists(b))
    base::fail(ErrorKind::data, "compare {0}: there is no such record or directory", b.string());
  auto folder = fs::weakly_canonical(b);
  if (fs::is_regular_file(folder)) folder = folder.parent_path();
  if (folder.filename() == "records") folder = folder.parent_path();
  const auto runs = serve::RunBook(folder.parent_path()).list();
  const auto own =
      std::ranges::find_if(runs, [&](const auto& run) { return fs::weakly_canonical(run.path) == folder; });
  const serve::Run* found = nullptr;
  for (const auto& run : runs) {
    if (own == runs.end() || &run == &*own || run.changed_at >= own->changed_at) continue;
    const auto& is = run.status;
    if (is.kind != own->status.kind || is.model != own->status.model || is.data != own->status.data) continue;
    if (found == nullptr || run.changed_at > found->changed_at) found = &run;
  }
  if (found == nullptr)
    base::fail(
        ErrorKind::usage,
        "compare {}: no earlier run of its kind, model and data is beside it in {}; give both: paceline "
        "compare A B",
        b.string(), folder.parent_path().string());
  return fs::proximate(found->path);
}

[[noreturn]] void refuse_without_records(const fs::path& prediction) {
  base::fail(
      ErrorKind::usage,
      "{} is a prediction: give the records that were measured since beside it; 'paceline predict --score' prints "
      "its scores alone",
      prediction.string());
}

/// Separates files of predictions from the rest.
std::pair<std::vector<fs::path>, std::vector<fs::path>> without_predictions(
    const std::vector<fs::path>& paths) {
  const auto is_prediction = [](const fs::path& path) {
    return base::is_file(path) && table::begin_of(path).find(fmt::format(
                                      "\"{}\"", analysis::Prediction::kSchema)) != std::string::npos;
  };
  std::vector<fs::path> rest, predictions;
  std::ranges::partition_copy(paths, std::back_inserter(predictions), std::back_inserter(rest),
                              is_prediction);
  if (rest.empty() && !predictions.empty()) refuse_without_records(predictions.front());
  return {std::move(rest), std::move(predictions)};
}

/// The scores that the files hold, and those that the records add.
std::vector<analysis::ScoredPrediction> scored(const std::vector<fs::path>& files,
                                               std::span<const measure::Record> records) {
  std::vector<analysis::ScoredPrediction> all;
  const auto cells = files.empty() ? std::vector<analysis::Cell>{} : analysis::make_cells(records);
  for (const auto& path : files) {
    const auto text = base::read_file(path);
    auto scores = analysis::score(analysis::prediction_from_json(text, path.string()), cells);
    auto with = analysis::prediction_from_json(analysis::with_scores(text, path.string(), scores.steps),
                                               path.string());
    all.push_back({.name = path.filename().string(),
                   .steps = std::move(with.scores),
                   .not_scored = std::move(scores.not_scored)});
  }
  return all;
}

/// The names of two paths that differ: "study-1" and "study-2", or with as many folders as it takes.
std::pair<std::string, std::string> names_of_sides(const fs::path& a, const fs::path& b) {
  auto [first, second] = std::pair(fs::weakly_canonical(a), fs::weakly_canonical(b));
  if (first == second) return {"A", "B"};
  std::string one, other;
  while (one == other && first.has_filename() && second.has_filename()) {
    one = first.filename().string() + (one.empty() ? "" : "/" + one);
    other = second.filename().string() + (other.empty() ? "" : "/" + other);
    first = first.parent_path();
    second = second.parent_path();
  }
  return {one, other};
}

}  // namespace

int compare_command(const Settings& settings) {
  Screen screen(settings.report.summary);
  auto paths = settings.report.records;
  if (paths.size() == 1) paths.insert(paths.begin(), run_before(paths.front()));
  const auto a = read_records({paths[0]});
  const auto b = read_records({paths[1]});
  const auto comparison = analysis::compare_runs(a.records, b.records, settings.compare.noise);
  const auto [name_a, name_b] = names_of_sides(paths[0], paths[1]);
  report::CompareOptions options{.a = name_a,
                                 .b = name_b,
                                 .b_path = paths[1].string(),
                                 .command = settings.typed,
                                 .noise = settings.compare.noise};
  add_remarks(options.remarks, paths[0], a.remarks);
  add_remarks(options.remarks, paths[1], b.remarks);
  const auto document = report::build_comparison(comparison, options);
  const auto written = write_reports(document, settings.report);
  if (settings.report.summary) std::fputs(report::to_summary(document).c_str(), stdout);
  if (written.empty() && !settings.report.summary) {
    say_report(document, settings.tables, screen);
    screen.say("--tables shows all of it; --html, --markdown, --csv and --json write it to files");
  } else {
    screen.say(report::headline(comparison, settings.compare.noise));
    for (const auto& remark : options.remarks) screen.say(remark);
    for (const auto& line : written) screen.say(line);
  }
  if (!settings.compare.fails_on_regressed) return 0;
  require_something_compared(comparison);
  const auto times = comparison.number_of(analysis::Change::regressed);
  const auto accuracies = comparison.accuracies_of(analysis::Change::regressed);
  if (times + accuracies == 0) return 0;
  screen.say("regressed: {} of {} times, {} accuracies; --fail-on regressed ends with exit code {}", times,
             comparison.pairs.size(), accuracies, kDoesNotHold);
  return kDoesNotHold;
}

int explain_command(const Settings& settings) {
  Screen screen(false);
  const auto [records, remarks] = read_records(settings.report.records);
  auto document = report::explain(records);
  document.warnings = remarks;
  screen.say(report::to_terminal(document, screen.width(), screen.colour()));
  return 0;
}

int report_command(const Settings& settings) {
  const bool summary = settings.report.summary;
  Screen screen(summary);
  const auto [paths, predictions] = without_predictions(settings.report.records);
  const auto inputs = read_inputs(paths, settings.report.is_same_machine);
  const auto& [records, remarks] = inputs.records;
  if (records.empty() && !predictions.empty()) refuse_without_records(predictions.front());
  const report::BuildOptions options{.title = "",
                                     .command = settings.typed,
                                     .remarks = remarks,
                                     .bounds = settings.report.bounds,
                                     .emulated = emulated_link(records),
                                     .margin = settings.report.margin,
                                     .scored = scored(predictions, records)};
  const auto document = inputs.tables.empty() ? report::build(records, options)
                                              : report::build_with_tables(records, inputs.tables, options);
  measure::require_output(settings.report.records_csv, "--records-csv");  // before anything is written
  auto written = write_reports(document, settings.report);
  if (const auto& file = settings.report.records_csv; !file.empty()) {
    const auto rows = check::table_of_records(records);
    base::write_file(file, table::to_plain_csv(rows));
    written.push_back(
        fmt::format("records:  {} ({})", file.string(), base::counted(rows.rows.size(), "row")));
  }
  if (const auto& directory = settings.report.mllog; !directory.empty()) {
    const auto logs = report::mllog_files(records);
    for (const auto& log : logs) base::write_file(directory / (log.name + ".log"), log.text);
    written.push_back(
        fmt::format("mllog:    {} ({})", directory.string(), base::counted(logs.size(), "training")));
  }
  if (summary) std::fputs(report::to_summary(document).c_str(), stdout);
  const bool is_shown = written.empty() && !summary;
  if (is_shown) say_report(document, settings.tables, screen);
  if (inputs.tables.empty() || !records.empty())
    screen.say("{} read", base::counted(records.size(), "record"));
  if (!inputs.tables.empty()) screen.say("{} read", base::counted(inputs.tables.size(), "table"));
  if (!is_shown)  // otherwise they are at the top of what is shown
    for (const auto& remark : remarks) screen.say(remark);
  for (const auto& line : written) screen.say(line);
  if (is_shown)
    screen.say(
        "--tables shows all of it; --html, --markdown, --csv, --json, --latex and --figures write it to files");
  return say_expectations(document, screen);
}

}  // namespace paceline::cli
