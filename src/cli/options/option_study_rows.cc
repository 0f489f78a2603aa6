/// The rows of options about what is varied and timed, and which files are written.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include "cli/options/option_rows.h"

#include <algorithm>

#include "base/error.h"
#include "cli/options/options.h"
#include "study/study.h"
#include "table/table.h"

namespace paceline::cli {
namespace {

const std::vector<std::string> kModes{"weak", "strong", "both"};
const std::vector<std::string> kCompared{"remedies", "workers"};
const std::vector<std::string> kChoosers{"validation"};
const std::vector<std::string> kParts{"test", "validation"};
const std::vector<std::string> kFailures{"regressed"};

constexpr const char* kCells = "What is varied and timed";
constexpr const char* kOutput = "Output";
constexpr const char* kServed = "What is served";

std::string templates_in_words() {
  return fmt::format("print a table to fill in: {}", fmt::join(table::template_names(), ", "));
}

/// Parses lines COLUMN=TEXT.
void set_facts(Settings& settings, std::string_view text) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto one = text.substr(0, end);
    const auto equals = one.find('=');
    if (equals == std::string_view::npos || equals == 0)
      base::fail(base::ErrorKind::usage, "must be COLUMN=TEXT, such as workers=8, got '{}'", one);
    settings.import.set[std::string(one.substr(0, equals))] = one.substr(equals + 1);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void read_bounds(Settings& settings, std::string_view text) {
  settings.report.bounds.clear();
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    settings.report.bounds.push_back(report::read_bound(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::string expectations_in_words() {
  return fmt::format(
      "a bound for a figure, such as 'efficiency>=0.9'; may be given several times. Ends with exit code 1 where one "
      "fails, with 2 where one was not measured or is not decided. Figures: {}",
      report::names_of_figures());
}

void choose_batches(Settings& settings, std::string_view text) {
  for (auto* axes : {&settings.study.sweep, &settings.study.scale}) {
    axes->automatic_batches = text == "auto";
    if (!axes->automatic_batches) axes->batches = whole_numbers(text, 1, kLargestBatch);
  }
}

std::string variants_in_words() {
  return fmt::format(
      "converge: the remedies to train beside the baseline and the large batch, such as "
      "linear+warmup,linear+warmup+zero-gamma (default: six); words: {}; or an option of the learning rule, "
      "weight-decay=1e-4",
      study::remedy_words());
}

Settings::CellPart cell_part_of(std::string_view text) {
  constexpr int kMostParts = 10'000;
  const auto slash = text.find('/');
  if (slash == std::string_view::npos)
    base::fail(base::ErrorKind::usage, "must be I/N, such as 1/4 for the first of four parts, got '{}'",
               text);
  const auto parts = whole_number_in(text, "N", text.substr(slash + 1), 1, kMostParts);
  const auto number = whole_number_in(text, "I", text.substr(0, slash), 1, parts);
  return {.number = static_cast<int>(number), .of = static_cast<int>(parts)};
}

constexpr Option kStudyRows[] = {
    {"batches", "LIST|auto", kCells,
     "batch sizes to compare, such as 32,128,512; auto: doubled until memory or the data set ends (sweep)",
     kTimed, [](S& s, Text t) { choose_batches(s, t); },
     [](const S& s) { return fmt::format("{}", fmt::join(s.study.scale.batches, ",")); }},
    {"mode", "MODE", kCells,
     "weak: --batches are local, the global batch grows with the workers; strong: they are global; or both",
     kScale | kStudy, [](S& s, Text t) { s.study.scale.mode = kModes[one_of(t, kModes)]; },
     [](const S& s) { return s.study.scale.mode; }},
    {"repeats", "N", kCells, "runs of every cell, interleaved; an interval needs at least 3", kStudies,
     [](S& s, Text t) {
       s.study.sweep.repeats = s.study.scale.repeats = s.study.converge.repeats = small(t, 1, 1000);
     },
     [](const S& s) {
       return whole(s.command == kConverge ? s.study.converge.repeats : s.study.scale.repeats);
     }},
    {"window-steps", "K", kCells, "time K steps instead of a whole epoch (train also stops after them)",
     kTrain | kTimed, [](S& s, Text t) { s.train.window_steps = whole_number(t, 1); },
     [](const S& s) { return whole_or_none(std::max<std::int64_t>(0, s.train.window_steps)); }},
    {"warmup-steps", "K", kCells, "steps before the clock starts", kTrain | kTimed,
     [](S& s, Text t) { s.train.warmup_steps = whole_number(t, 0); },
     [](const S& s) { return whole(s.train.warmup_steps); }},
    {"window-seconds", "X", kCells,
     "timed steps that take longer stop early, after at least 3 of them; 0: no limit", kTrain | kTimed,
     [](S& s, Text t) { s.train.window_seconds = decimal(t); },
     [](const S& s) { return as_text(s.train.window_seconds); }},
    {"compare", "WHAT", kCells,
     "what converge compares: remedies of one large batch, or workers: a training for each number of "
     "workers, each with the baseline's local batch, with its learning rate kept and scaled linearly",
     kConverge | kStudy,
     [](S& s, Text t) {
       // In the table's order --workers was set before.
       s.study.converge.workers = one_of(t, kCompared) == 1 ? s.study.scale.workers : std::vector<int>{};
     },
     [](const S& s) { return kCompared[s.study.converge.workers.empty() ? 0 : 1]; }},
    {"baseline-batch", "B", kCells,
     "converge: the global batch that the others are compared with; with --compare workers: the local batch of every worker",
     kConverge | kStudy,
     [](S& s, Text t) { s.study.converge.baseline_batch = whole_number(t, 1, kLargestBatch); },
     [](const S& s) { return whole(s.study.converge.baseline_batch); }},
    {"large-batch", "B", kCells, "converge: the large global batch whose accuracy is to be kept",
     kConverge | kStudy,
     [](S& s, Text t) { s.study.converge.large_batch = whole_number(t, 1, kLargestBatch); },
     [](const S& s) { return whole(s.study.converge.large_batch); }},
    {"choose-on", "PART", kCells,
     "the set on which candidates are compared, by accuracy or, if that is equal, by loss: validation; the test set is read once, with "
     "the chosen configuration",
     kSearch, [](S&, Text t) { (void)one_of(t, kChoosers); }, [](const S&) { return kChoosers.front(); }},
    {"seeds", "N", kCells,
     "trainings of every candidate, with seeds --seed, --seed + 1 and on; intervals include their "
     "spread",
     kSearch, [](S& s, Text t) { s.study.search.seeds = small(t, 1, 1000); },
     [](const S& s) { return whole(s.study.search.seeds); }},
    {"halving", "", kCells,
     "successive halving: all candidates train for a few epochs, the worse half is dropped, the "
     "others continue from their checkpoints for twice as many; off: a grid, all are trained "
     "completely",
     kSearch, [](S& s, Text t) { s.study.search.halving = truth(t); },
     [](const S& s) { return yes_no(s.study.search.halving); }},
    {"variants", "LIST", kCells, variants_in_words, kConverge | kStudy, choose_variants,
     [](const S& s) { return fmt::format("{}", fmt::join(s.study.converge.variants, "; ")); }},
    {"quick", "", kCells,
     "the short form: for a recipe its table [quick]; for a study sizes that take a minute and a half "
     "on two quiet cores, and two and a half beside other programs",
     kRuns, [](S& s, Text t) { s.study.quick = truth(t); }, [](const S& s) { return yes_no(s.study.quick); }},
    {"with-sweep", "", kCells, "time the batch sizes on one worker", kStudy,
     [](S& s, Text t) { s.study.with_sweep = truth(t); },
     [](const S& s) { return yes_no(s.study.with_sweep); }},
    {"with-scale", "", kCells, "compare the numbers of workers", kStudy,
     [](S& s, Text t) { s.study.with_scale = truth(t); },
     [](const S& s) { return yes_no(s.study.with_scale); }},
    {"with-comm", "", kCells,
     "time the all-reduce alone, for each message size, some seconds for each number of workers", kStudy,
     [](S& s, Text t) { s.study.with_comm = truth(t); },
     [](const S& s) { return yes_no(s.study.with_comm); }},
    {"with-converge", "", kCells, "measure the effect of a large batch on the accuracy", kStudy,
     [](S& s, Text t) { s.study.with_converge = truth(t); },
     [](const S& s) { return yes_no(s.study.with_converge); }},
    {"only-cells", "I/N", kCells,
     "run only part I of N of the cells, for jobs that share a study: give each its own --out, and "
     "report joins them (sbatch --array does all of it)",
     kStudies, [](S& s, Text t) { s.cell_part = cell_part_of(t); },
     [](const S& s) {
       return s.cell_part.of == 0 ? std::string() : fmt::format("{}/{}", s.cell_part.number, s.cell_part.of);
     },
     kNoRival, false},
    {"measure-again", "N", kCells,
     "at most so many cells that decide the answer are measured again, in a quiet moment if there is one, "
     "where other programs worked meanwhile; 0: none",
     kTimed, [](S& s, Text t) { s.study.most_repeats = static_cast<std::size_t>(whole_number(t, 0)); },
     [](const S& s) { return whole(static_cast<std::int64_t>(s.study.most_repeats)); }},
    {"out", "DIR", kOutput,
     "directory for records, checkpoints and reports, made if needed; study continues what is there; "
     "train and comm refuse a directory with another run, unless train resumes it",
     kRuns | kComm | kEvaluate, [](S& s, Text t) { s.train.out = t; },
     [](const S& s) { return s.train.out.string(); }},
    {"resume", "PATH", kOutput,
     "continue from a checkpoint: a file, or the newest undamaged one of a directory; auto: continue "
     "what is in --out, begin if there is nothing, end with 0 if it is complete: one command for "
     "every start",
     kTrain,
     [](S& s, Text t) {
       s.train.resume_auto = t == "auto";
       s.train.resume = s.train.resume_auto ? Text() : t;
     },
     [](const S& s) { return s.train.resume_auto ? std::string("auto") : s.train.resume.string(); }},
    {"checkpoints", "", kOutput, "write checkpoints (into --out)", kTrain,
     [](S& s, Text t) { s.train.save_checkpoints = truth(t); },
     [](const S& s) { return yes_no(s.train.save_checkpoints); }},
    {"checkpoint-every", "N", kOutput,
     "interval between checkpoints: 500steps, 60s or 2epochs (a bare number: epochs)", kTrain,
     [](S& s, Text t) {
       const auto interval = train::checkpoint_interval(t);
       if (!interval)
         base::fail(
             base::ErrorKind::usage,
             "must be a number above 0 of steps, seconds or epochs, such as 500steps, 60s or 1epochs (the "
             "same as 1), got '{}'",
             t);
       s.train.checkpoint_every = *interval;
     },
     [](const S& s) { return train::text_of(s.train.checkpoint_every); }},
    {"keep-checkpoints", "K", kOutput,
     "how many of the last checkpoints to keep, besides that of the best epoch on validation", kTrain,
     [](S& s, Text t) { s.train.keep_checkpoints = small(t, 1, 1000000); },
     [](const S& s) { return whole(s.train.keep_checkpoints); }},
    {"log-steps", "", kOutput, "keep the loss of every step in the record", kTrainings,
     [](S& s, Text t) { s.train.log_steps = truth(t); },
     [](const S& s) { return yes_no(s.train.log_steps); }},
    {"json", "", kOutput,
     "print only the record on standard output (a list, if there are several; runs: the runs, "
     "verify: the files), everything else goes to standard error",
     kRuns | kComm | kEvaluate | kRunList | kVerify, [](S& s, Text t) { s.json = truth(t); },
     [](const S& s) { return yes_no(s.json); }},
    {"timeline", "FILE", kOutput,
     "every rank's spans on one time axis, in the Chrome trace format (open it with ui.perfetto.dev); its "
     "directory must exist",
     kTrain, [](S& s, Text t) { s.train.timeline = t; },
     [](const S& s) { return s.train.timeline.string(); }},
    {"tensorboard", "", kOutput,
     "event files for TensorBoard in tensorboard/ of --out: loss, accuracy, learning rate and images/s, by update "
     "and by epoch",
     kTrain, [](S& s, Text t) { s.tensorboard = truth(t); },
     [](const S& s) { return yes_no(s.tensorboard); }},
    {"tables", "", kOutput, "print all tables of the report, not its beginning alone; comm: each size",
     (kRuns & ~kTrain) | kComm | kEvaluate | kReport | kCompare, [](S& s, Text t) { s.tables = truth(t); },
     [](const S& s) { return yes_no(s.tables); }},
    {"html", "FILE", kOutput, "one self-contained page; its directory must exist", kReport | kCompare,
     [](S& s, Text t) { s.report.html = t; }, [](const S& s) { return s.report.html.string(); }, kNoRival,
     false},
    {"markdown", "FILE", kOutput, "the tables as Markdown; its directory must exist", kReport | kCompare,
     [](S& s, Text t) { s.report.markdown = t; }, [](const S& s) { return s.report.markdown.string(); },
     kNoRival, false},
    {"csv", "DIR", kOutput, "a CSV file for each table and plot, in this directory, which is made if needed",
     kReport | kCompare, [](S& s, Text t) { s.report.csv = t; },
     [](const S& s) { return s.report.csv.string(); }, kNoRival, false},
    {"records-csv", "FILE", kOutput,
     "a row per record, with stable names of columns and every setting: for pandas, R or a "
     "spreadsheet, and for paceline check",
     kReport, [](S& s, Text t) { s.report.records_csv = t; },
     [](const S& s) { return s.report.records_csv.string(); }, kNoRival, false},
    {"latex", "DIR", kOutput,
     "a LaTeX file for each table, in this directory, which is made if needed, and tables.tex, which shows them all; "
     "they need the package booktabs",
     kReport | kCompare, [](S& s, Text t) { s.report.latex = t; },
     [](const S& s) { return s.report.latex.string(); }, kNoRival, false},
    {"figures", "DIR", kOutput,
     "an SVG file for each figure of the page, in this directory, which is made if needed; and a PDF of each where "
     "rsvg-convert is installed",
     kReport, [](S& s, Text t) { s.report.figures = t; },
     [](const S& s) { return s.report.figures.string(); }, kNoRival, false},
    {"summary", "", kOutput,
     "print only a summary in Markdown on standard output, at most 25 lines, for the page of a CI's job; everything "
     "else goes to standard error",
     kReport | kCompare, [](S& s, Text t) { s.report.summary = truth(t); },
     [](const S& s) { return yes_no(s.report.summary); }, kNoRival, false},
    {.setting = "expect",
     .value = "BOUND",
     .group = kOutput,
     .help = expectations_in_words,
     .commands = kReport | kTrain | kStudies,
     .set = read_bounds,
     .get = [](const S&) { return std::string(); },
     .is_list = true},
    {"json", "FILE", kOutput, "the report as JSON, as the page reads it; its directory must exist",
     kReport | kCompare, [](S& s, Text t) { s.report.json = t; },
     [](const S& s) { return s.report.json.string(); }, kNoRival, false},
    {"json", "FILE", kOutput, "the findings as JSON (docs/check.md); its directory must exist", kCheck,
     [](S& s, Text t) { s.check.json = t; }, [](const S& s) { return s.check.json.string(); }, kNoRival,
     false},
    {"sarif", "FILE", kOutput, "the findings in SARIF, for CI systems; its directory must exist", kCheck,
     [](S& s, Text t) { s.check.sarif = t; }, [](const S& s) { return s.check.sarif.string(); }, kNoRival,
     false},
    {"strict", "", kOutput,
     "end with exit code 1 for warnings too, for claimed ratios that were compared with nothing, and if nothing was "
     "compared at all",
     kCheck, [](S& s, Text t) { s.check.strict = truth(t); },
     [](const S& s) { return yes_no(s.check.strict); }, kNoRival, false},
    {"why", "", kOutput, "list every finding, and every rule that was not checked with what it needs", kCheck,
     [](S& s, Text t) { s.check.shows_all = truth(t); }, [](const S& s) { return yes_no(s.check.shows_all); },
     kNoRival, false},
    {"same-machine", "", kOutput,
     "the tables and the records were measured on one machine: a row of a table may name a record's id as its "
     "baseline",
     kCheck | kReport, [](S& s, Text t) { s.report.is_same_machine = truth(t); },
     [](const S& s) { return yes_no(s.report.is_same_machine); }, kNoRival, false},
    {"template", "NAME", kOutput, templates_in_words, kCheck,
     [](S& s, Text t) {
       const auto names = table::template_names();
       s.check.template_name = names[one_of(t, names)];
     },
     [](const S& s) { return s.check.template_name; }, kNoRival, false},
    {"out", "FILE", kOutput, "the recipe that is written; its directory must exist", kInit,
     [](S& s, Text t) { s.init.out = t; }, [](const S& s) { return s.init.out.string(); }, kNoRival, false},
    {"force", "", kOutput, "overwrite an existing recipe", kInit,
     [](S& s, Text t) { s.init.force = truth(t); }, [](const S& s) { return yes_no(s.init.force); }, kNoRival,
     false},
    {"out", "FILE", kOutput, "the table that is written (default: standard output); its directory must exist",
     kImport, [](S& s, Text t) { s.import.out = t; }, [](const S& s) { return s.import.out.string(); },
     kNoRival, false},
    {.setting = "set",
     .value = "COLUMN=TEXT",
     .group = kOutput,
     .help =
         "what the files do not say, for all rows, such as workers=8; may be given several times. For "
         "metrics of a trainer also which column is meant, and its unit: accuracy=top1%, time_s=minutes[min]",
     .commands = kImport,
     .set = set_facts,
     .get = [](const S&) { return std::string(); },
     .in_recipes = false,
     .is_list = true},
    {"noise", "PERCENT", kOutput,
     "differences below this, in percent, count as noise, however precisely they were measured", kCompare,
     [](S& s, Text t) { s.compare.noise = decimal(t, {.least = 0, .most = 100}) / 100; },
     [](const S& s) { return as_text(100 * s.compare.noise); }, kNoRival, false},
    {"fail-on", "regressed", kOutput,
     "end with exit code 1 where a time or an accuracy regressed, for a CI; with 2 where nothing could be "
     "compared",
     kCompare, [](S& s, Text t) { s.compare.fails_on_regressed = one_of(t, kFailures) == 0; },
     [](const S& s) { return std::string(s.compare.fails_on_regressed ? "regressed" : ""); }, kNoRival,
     false},
    {"part", "PART", kOutput, "what is evaluated: test or validation", kEvaluate,
     [](S& s, Text t) { s.evaluate.part = kParts[one_of(t, kParts)]; },
     [](const S& s) { return s.evaluate.part; }, kNoRival, false},
    {"mistakes", "N", kOutput, "how many of the most confident mistakes are listed", kEvaluate,
     [](S& s, Text t) { s.evaluate.mistakes = small(t, 0, 100000); },
     [](const S& s) { return whole(s.evaluate.mistakes); }, kNoRival, false},
    {"decoded", "", kOutput,
     "pack: store pixels instead of JPEG and PNG files: several times larger, but not decoded when "
     "read",
     kData, [](S& s, Text t) { s.data.decoded = truth(t); },
     [](const S& s) { return yes_no(s.data.decoded); }, kNoRival, false},
    {"cache", "DIR", kOutput, "get: where the data set goes (default: paceline/ in the user's cache)", kData,
     [](S& s, Text t) { s.data.cache = t; }, [](const S& s) { return s.data.cache.string(); }, kNoRival,
     false},
    {"from", "URL", kOutput, "get: the address of a folder with the same files, instead of the publisher's",
     kData, [](S& s, Text t) { s.data.from = t; }, [](const S& s) { return s.data.from; }, kNoRival, false},
    {"kernels", "MODEL", kOutput,
     "list the implementation of each op of this model, its measured rate, and why no other was "
     "chosen",
     kDoctor, [](S& s, Text t) { s.doctor.kernels_model = t; },
     [](const S& s) { return s.doctor.kernels_model; }, kNoRival, false},
    {"measure", "", kOutput,
     "measure the memory's and the all-reduce's bandwidth, about two seconds, and the rates of --kernels",
     kDoctor, [](S& s, Text t) { s.doctor.measure = truth(t); },
     [](const S& s) { return yes_no(s.doctor.measure); }, kNoRival, false},
    {"yes", "", kOutput, "rm: remove without asking", kRunList, [](S& s, Text t) { s.runs.yes = truth(t); },
     [](const S& s) { return yes_no(s.runs.yes); }, kNoRival, false},
    {"host", "ADDRESS", kServed,
     "address to listen on; whoever reaches it and has the token can read all runs", kServe,
     [](S& s, Text t) { s.serve.host = t; }, [](const S& s) { return s.serve.host; }, kNoRival, false},
    {"port", "N", kServed, "port to listen on; 0: any that is free", kServe,
     [](S& s, Text t) { s.serve.port = small(t, 0, 65535); }, [](const S& s) { return whole(s.serve.port); },
     kNoRival, false},
    {"token", "TEXT", kServed,
     "clients must send it, as ?token=TEXT or 'Authorization: Bearer TEXT' (default: PACELINE_TOKEN, else one is made "
     "and printed with the address); other users see it in the list of processes",
     kServe,
     [](S& s, Text t) {
       constexpr std::size_t kFewest = 8;
       if (t.size() < kFewest)
         base::fail(base::ErrorKind::usage, "must have at least {} characters, got {}", kFewest, t.size());
       s.serve.token = t;
     },
     [](const S& s) { return s.serve.token; }, Setting("token-file"), false},
    {"token-file", "FILE", kServed,
     "the token is the text of this file, which you alone may read (mode 0600)", kServe,
     [](S& s, Text t) { s.serve.token_file = t; }, [](const S& s) { return s.serve.token_file.string(); },
     Setting("token"), false},
    {"no-token", "", kServed,
     "answer without a token, on the loopback address alone: every user of this machine can then read all runs",
     kServe, [](S& s, Text t) { s.serve.has_no_token = truth(t); },
     [](const S& s) { return yes_no(s.serve.has_no_token); }, kNoRival, false},
};
static_assert(reads_all(kStudyRows, kStudyPart, Setting::count()),
              "a setting of this part of measure/setting.h has no row here");

}  // namespace

std::span<const Option> study_rows() { return kStudyRows; }

}  // namespace paceline::cli
