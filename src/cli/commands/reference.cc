#include <fmt/format.h>

#include <algorithm>

#include "analysis/trainings/reference_curve.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/word_of.h"
#include "cli/commands/commands.h"
#include "cli/screen/screen.h"
#include "measure/environment.h"
#include "measure/statistics.h"

namespace paceline::cli {
namespace {

using analysis::ReferenceCheck;
using analysis::ReferenceCurve;
using analysis::ReferenceVerdict;
using analysis::RunsToAccuracy;

std::string target_text(const analysis::AccuracyTarget& target) {
  return fmt::format("{:g} % on the {}", 100 * target.accuracy,
                     target.of_validation.value_or(false) ? "validation set" : "test set");
}

/// "34.9 epochs (33 to 37)"
std::string epochs_text(const std::vector<double>& epochs) {
  const auto [low, high] = std::ranges::minmax(epochs);
  return fmt::format("{:.2f} epochs ({:g} to {:g})", measure::mean(epochs), low, high);
}

int make_reference(const Settings& settings, Screen& screen) {
  const auto& options = settings.reference;
  if (options.out.empty() || settings.accuracy <= 0)
    base::fail(
        ErrorKind::usage,
        "reference make needs {}: paceline reference make RECORDS --accuracy 0.97 --out reference.json",
        options.out.empty() ? "the file to write, --out" : "the accuracy to be reached, --accuracy");
  if (!options.against.empty())
    base::fail(ErrorKind::usage, "--against belongs to reference check; make writes --out");
  base::require_directory_of(options.out, "--out");
  const auto read = read_records(settings.report.records);
  const auto runs =
      analysis::runs_to_accuracy(read.records, {.accuracy = settings.accuracy, .of_validation = {}});
  const auto curve = analysis::reference_curve(runs, fmt::format("paceline {}", measure::version()));
  screen.say("reference   {} to {}", curve.points.front().benchmark, target_text(runs.target));
  std::size_t fewest = curve.points.front().epochs.size();
  for (const auto& point : curve.points) {
    screen.say("batch {}, {}: {}", point.batch, base::counted(point.epochs.size(), "run"),
               epochs_text(point.epochs));
    fewest = std::min(fewest, point.epochs.size());
  }
  for (const auto* sentences : {&read.remarks, &runs.not_used})
    for (const auto& sentence : *sentences) screen.say(sentence);
  base::write_file(options.out, to_json(curve));
  const auto most = static_cast<int>(fewest / 2);
  screen.say("wrote       {}; {} a batch are checked by: paceline reference check RECORDS --against {}",
             options.out.string(),
             most > analysis::kFewestRuns ? fmt::format("{} to {} runs", analysis::kFewestRuns, most)
                                          : fmt::format("{} runs", analysis::kFewestRuns),
             base::shell_word(options.out.string()));
  return 0;
}

std::string_view word_of_reference(ReferenceVerdict verdict) {
  return base::word_of<ReferenceVerdict::not_decided>(
      verdict, {"as the reference", "SLOWER: a regression", "FASTER: suspicious", "not decided"});
}

void say_batch(const ReferenceCheck& check, Screen& screen) {
  if (check.epochs > 0)
    screen.say("batch {}, {}: {:.2f} epochs, the reference {:.2f} {}; {:+.2f} [{:+.2f}, {:+.2f}]: {}",
               check.batch, base::counted(check.runs, "run"), check.epochs, check.reference,
               check.below == check.above
                   ? fmt::format("(of {})", check.reference_runs)
                   : fmt::format("(between batches {} and {})", check.below, check.above),
               check.epochs - check.reference, check.low, check.high, word_of_reference(check.verdict));
  else
    screen.say("batch {}, {}: {}", check.batch, base::counted(check.runs, "run"),
               word_of_reference(check.verdict));
  if (!check.not_decided.empty()) screen.say("batch {}: {}.", check.batch, check.not_decided);
  for (const auto& remark : check.remarks) screen.say("batch {}: {}.", check.batch, remark);
  if (check.verdict == ReferenceVerdict::faster && check.remarks.empty())
    screen.say(
        "batch {}: nothing in the records explains this. Look whether the images of training and evaluation are the "
        "same as those of the reference, and none is in both; if it is an improvement, make the reference anew.",
        check.batch);
}

int check_reference(const Settings& settings, Screen& screen) {
  const auto& options = settings.reference;
  if (options.against.empty())
    base::fail(
        ErrorKind::usage,
        "reference check needs the reference: paceline reference check RECORDS --against reference.json");
  if (!options.out.empty())
    base::fail(ErrorKind::usage, "--out belongs to reference make; check writes nothing");
  const auto curve =
      analysis::reference_from_json(base::read_file(options.against), options.against.string());
  if (curve.target && settings.accuracy > 0 && settings.accuracy != curve.target->accuracy)
    base::fail(ErrorKind::usage, "--accuracy {:g}: the reference {} is to {:g}; leave it out",
               settings.accuracy, options.against.string(), curve.target->accuracy);
  if (!curve.target && settings.accuracy <= 0)
    base::fail(ErrorKind::usage,
               "{} does not say which accuracy its trainings reached; give it, as in --accuracy 0.759",
               options.against.string());
  const auto read = read_records(settings.report.records);
  const auto runs = analysis::runs_to_accuracy(
      read.records,
      curve.target.value_or(analysis::AccuracyTarget{.accuracy = settings.accuracy, .of_validation = {}}));
  screen.say("reference   {} to {}; batches {} to {}", curve.points.front().benchmark,
             target_text(runs.target), curve.points.front().batch, curve.points.back().batch);
  const auto checks = analysis::check_against(curve, runs);
  for (const auto& check : checks) say_batch(check, screen);
  for (const auto* sentences : {&read.remarks, &runs.not_used})
    for (const auto& sentence : *sentences) screen.say(sentence);
  if (!curve.target)
    screen.say(
        "{} is not of 'paceline reference make': that its model, data and evaluations are those "
        "of the records is taken for granted.",
        options.against.string());
  const auto has = [&](auto... verdicts) {
    return std::ranges::any_of(
        checks, [&](const ReferenceCheck& check) { return ((check.verdict == verdicts) || ...); });
  };
  if (has(ReferenceVerdict::slower, ReferenceVerdict::faster)) return kDoesNotHold;
  return checks.empty() || has(ReferenceVerdict::not_decided) ? kUndecided : 0;
}

}  // namespace

int reference_command(const Settings& settings) {
  Screen screen(false);
  return settings.action == "make" ? make_reference(settings, screen) : check_reference(settings, screen);
}

}  // namespace paceline::cli
