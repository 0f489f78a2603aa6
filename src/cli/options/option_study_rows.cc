/// The rows of options about what is varied and timed, and which files are written.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "base/error.h"
#include "cli/options/option_rows.h"
#include "study/study.h"
#include "table/table.h"

namespace paceline::cli {
namespace {

using train::Options;
using Study = study::StudyOptions;

const std::vector<std::string> kCompared{"remedies", "workers", "shuffle", "batches"};
const std::vector<std::string> kChoosers{"validation"};
const std::vector<std::string> kFailures{"regressed"};

constexpr const char* kOutput = "Output";
constexpr const char* kServed = "What is served";

/// "3x224x224".
graph::Shape shape_named(std::string_view text) {
  graph::Shape shape;
  char end = 0;
  if (std::sscanf(std::string(text).c_str(), "%6dx%6dx%6d%c", &shape.channels, &shape.height, &shape.width,
                  &end) != 3 ||
      shape.channels < 1 || shape.height < 1 || shape.width < 1)
    base::fail(ErrorKind::usage, "must be channels x height x width, such as 3x224x224, got '{}'", text);
  return shape;
}

std::string templates_in_words() {
  return fmt::format("print a table to fill in: {}", fmt::join(table::template_names(), ", "));
}

/// Parses lines COLUMN=TEXT.
void set_facts(Settings& settings, std::string_view text) {
  for (const auto& one : lines_of(text)) {
    const auto equals = one.find('=');
    if (equals == std::string::npos || equals == 0)
      base::fail(ErrorKind::usage, "must be COLUMN=TEXT, such as workers=8, got '{}'", one);
    settings.import.set[one.substr(0, equals)] = one.substr(equals + 1);
  }
}

void read_bounds(Settings& settings, std::string_view text) {
  settings.report.bounds.clear();
  for (const auto& one : lines_of(text)) settings.report.bounds.push_back(report::read_bound(one));
}

std::string expectations_in_words() {
  return fmt::format(
      "a bound for a figure, such as 'efficiency>=0.9'; may be given several times. Ends with exit code 1 "
      "where one fails, with 2 where one was not measured or is not decided. Figures: {}",
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
    base::fail(ErrorKind::usage, "must be I/N, such as 1/4 for the first of four parts, got '{}'", text);
  const auto parts = whole_number_in(text, "N", text.substr(slash + 1), 1, kMostParts);
  const auto number = whole_number_in(text, "I", text.substr(0, slash), 1, parts);
  return {.number = static_cast<int>(number), .of = static_cast<int>(parts)};
}

constexpr Row kCellRows[] = {
    {"batches", "LIST|auto", kCells,
     "batch sizes to compare, such as 32,128,512; auto: doubled until memory or the data set ends, beyond the memory two more in micro-batches (sweep); "
     "converge: the global batches of --compare batches",
     kTimed | kConverge,
     Field<S>([](S& s, Text t) { choose_batches(s, t); },
              [](const S& s) {
                const auto& axes = s.study;
                return fmt::format(
                    "{}",
                    fmt::join(s.command == kConverge ? axes.converge.batches : axes.scale.batches, ","));
              })},
    {"mode", "MODE", kCells,
     "weak: --batches are local, the global batch grows with the workers; strong: they are global; or both",
     kScale | kStudy, at<&S::study, &Study::scale, &study::Axes::mode>({.words = "weak|strong|both"})},
    {"repeats", "N", kCells, "runs of every cell, interleaved; an interval needs at least 3", kStudies,
     Field<S>(
         [](S& s, Text t) {
           s.study.sweep.repeats = s.study.scale.repeats = s.study.converge.repeats =
               static_cast<int>(whole_number(t, 1, 1000));
         },
         [](const S& s) {
           return std::to_string(s.command == kConverge ? s.study.converge.repeats : s.study.scale.repeats);
         })},
};

constexpr Row kStudyRows[] = {
    {"compare", "WHAT", kCells,
     "what converge compares: remedies of one large batch, or workers: a training for each number of "
     "workers, each with the baseline's local batch, with its learning rate kept and scaled linearly; or shuffle: "
     "--shuffle global, and windows of 1, 8 and 64 shards; or batches: how many steps each of --batches needs to "
     "--target, at the best of --rates learning rates",
     kConverge | kStudy,
     Field<S>(
         [](S& s, Text t) {
           // In the table's order --workers and --batches were set before.
           const auto what = one_of(t, kCompared);
           s.study.converge.workers = what == 1 ? s.study.scale.workers : std::vector<int>{};
           s.study.converge.shuffle = what == 2;
           s.study.converge.batches = what == 3 ? s.study.scale.batches : std::vector<std::int64_t>{};
         },
         [](const S& s) {
           const auto& converge = s.study.converge;
           return kCompared[!converge.batches.empty()  ? 3
                            : converge.shuffle         ? 2
                            : converge.workers.empty() ? 0
                                                       : 1];
         })},
    {"baseline-batch", "B", kCells,
     "converge: the global batch that the others are compared with; with --compare workers: the local batch of every worker",
     kConverge | kStudy,
     at<&S::study, &Study::converge, &study::ConvergeAxes::baseline_batch>(
         {.least = 1, .most = kLargestBatch})},
    {"large-batch", "B", kCells, "converge: the large global batch whose accuracy is to be kept",
     kConverge | kStudy,
     at<&S::study, &Study::converge, &study::ConvergeAxes::large_batch>({.least = 1, .most = kLargestBatch})},
    {"rates", "N", kCells,
     "converge --compare batches: learning rates of each batch, in factors of two around --lr times the square root of "
     "(batch / --lr-batch)",
     kConverge, at<&S::study, &Study::converge, &study::ConvergeAxes::rates>({.least = 3, .most = 100})},
    {"choose-on", "PART", kCells,
     "the set on which candidates are compared, by accuracy or, if that is equal, by loss: validation; the "
     "test set is read once, with the chosen configuration",
     kSearch,
     Field<S>([](S&, Text t) { (void)one_of(t, kChoosers); }, [](const S&) { return kChoosers.front(); })},
    {"seeds", "N", kCells,
     "trainings of every candidate, with seeds --seed, --seed + 1 and on; intervals include their spread",
     kSearch, at<&S::study, &Study::search, &study::SearchOptions::seeds>({.least = 1, .most = 1000})},
    {"seeds", "N", kCells,
     "trainings of every configuration, with seeds --seed, --seed + 1 and on, as --repeats", kConverge,
     at<&S::study, &Study::converge, &study::ConvergeAxes::repeats>({.least = 1, .most = 1000})},
    {"halving", "", kCells,
     "successive halving: all candidates train for a few epochs, the worse half is dropped, the others "
     "continue from their checkpoints for twice as many; off: a grid, all are trained completely",
     kSearch, at<&S::study, &Study::search, &study::SearchOptions::halving>()},
    {"variants", "LIST", kCells, variants_in_words, kConverge | kStudy,
     Field<S>([](S& s, Text t) { choose_variants(s, t); },
              [](const S& s) { return fmt::format("{}", fmt::join(s.study.converge.variants, "; ")); })},
    {"quick", "", kCells,
     "the short form: for a recipe its table [quick]; for a study sizes that take a minute and a half on two "
     "quiet cores, and two and a half beside other programs",
     kRuns, at<&S::study, &Study::quick>()},
    {"with-sweep", "", kCells, "time the batch sizes on one worker", kStudy,
     at<&S::study, &Study::with_sweep>()},
    {"with-scale", "", kCells, "compare the numbers of workers", kStudy, at<&S::study, &Study::with_scale>()},
    {"with-comm", "", kCells,
     "time the all-reduce alone, for each message size, some seconds for each number of workers", kStudy,
     at<&S::study, &Study::with_comm>()},
    {"with-converge", "", kCells, "measure the effect of a large batch on the accuracy", kStudy,
     at<&S::study, &Study::with_converge>()},
    {"only-cells", "I/N", kCells,
     "run only part I of N of the cells, for jobs that share a study: give each its own --out, and report "
     "joins them (sbatch --array does all of it)",
     kStudies,
     Field<S>([](S& s, Text t) { s.cell_part = cell_part_of(t); },
              [](const S& s) {
                return s.cell_part.of == 0 ? std::string()
                                           : fmt::format("{}/{}", s.cell_part.number, s.cell_part.of);
              }),
     kOnlyTyped},
    {"measure-again", "N", kCells,
     "at most so many cells that decide the answer are measured again, in a quiet moment if there is one, "
     "where other programs worked meanwhile; 0: none",
     kTimed, at<&S::study, &Study::most_repeats>()},
    {"out", "DIR", kOutput,
     "directory for records, checkpoints and reports, made if needed; study continues what is there; train "
     "and comm refuse a directory with another run, unless train resumes it",
     kRuns | kComm | kEvaluate, at<&S::train, &Options::out>()},
    {"resume", "PATH", kOutput,
     "continue from a checkpoint: a file, or the newest undamaged one of a directory; auto: continue what is "
     "in --out, begin if there is nothing, end with 0 if it is complete: one command for every start",
     kTrain,
     Field<S>(
         [](S& s, Text t) {
           s.train.resume_auto = t == "auto";
           s.train.resume = s.train.resume_auto ? Text() : t;
         },
         [](const S& s) { return s.train.resume_auto ? std::string("auto") : s.train.resume.string(); })},
    {"checkpoints", "", kOutput, "write checkpoints (into --out)", kTrain,
     at<&S::train, &Options::save_checkpoints>()},
    {"checkpoint-every", "N", kOutput,
     "interval between checkpoints: 500steps, 60s or 2epochs (a bare number: epochs)", kTrain,
     Field<S>(
         [](S& s, Text t) {
           const auto interval = train::checkpoint_interval(t);
           if (!interval)
             base::fail(
                 ErrorKind::usage,
                 "must be a number above 0 of steps, seconds or epochs, such as 500steps, 60s or 1epochs "
                 "(the same as 1), got '{}'",
                 t);
           s.train.checkpoint_every = *interval;
         },
         [](const S& s) { return train::text_of(s.train.checkpoint_every); })},
    {"keep-checkpoints", "K", kOutput,
     "how many of the last checkpoints to keep, besides that of the best epoch on validation", kTrain,
     at<&S::train, &Options::keep_checkpoints>({.least = 1, .most = 1000000})},
    {"log-steps", "", kOutput, "keep the loss of every step in the record", kTrainings,
     at<&S::train, &Options::log_steps>()},
    {"json", "", kOutput,
     "print only the record on standard output (a list, if there are several; runs: the runs, verify: the "
     "files), everything else goes to standard error",
     kRuns | kComm | kEvaluate | kRunList | kVerify | kModel, at<&S::json>()},
    {"timeline", "FILE", kOutput,
     "every rank's spans on one time axis, in the Chrome trace format (open it with ui.perfetto.dev); its "
     "directory must exist",
     kTrain, at<&S::train, &Options::timeline>()},
    {"tensorboard", "", kOutput,
     "event files for TensorBoard in tensorboard/ of --out: loss, accuracy, learning rate and images/s, by "
     "update and by epoch",
     kTrain, at<&S::tensorboard>()},
    {"tables", "", kOutput, "print all tables of the report, not its beginning alone; comm: each size",
     (kRuns & ~kTrain) | kComm | kEvaluate | kReport | kCompare, at<&S::tables>()},
    {"html", "FILE", kOutput, "one self-contained page; its directory must exist", kReport | kCompare,
     at<&S::report, &S::Report::html>()},
    {"markdown", "FILE", kOutput, "the tables as Markdown; its directory must exist", kReport | kCompare,
     at<&S::report, &S::Report::markdown>()},
    {"csv", "DIR", kOutput, "a CSV file for each table and plot, in this directory, which is made if needed",
     kReport | kCompare, at<&S::report, &S::Report::csv>()},
    {"records-csv", "FILE", kOutput,
     "a row per record, with stable names of columns and every setting: for pandas, R or a spreadsheet, and "
     "for paceline check",
     kReport, at<&S::report, &S::Report::records_csv>()},
    {"mllog", "DIR", kOutput,
     "a log for each training in the lines that MLPerf's tools read, in this directory, which is made if needed; it says "
     "that it is no submission",
     kReport, at<&S::report, &S::Report::mllog>()},
    {"latex", "DIR", kOutput,
     "a LaTeX file for each table, in this directory, which is made if needed, and tables.tex, which shows "
     "them all; they need the package booktabs",
     kReport | kCompare, at<&S::report, &S::Report::latex>()},
    {"figures", "DIR", kOutput,
     "an SVG file for each figure of the page, in this directory, which is made if needed; and a PDF of each "
     "where rsvg-convert is installed",
     kReport, at<&S::report, &S::Report::figures>()},
    {"summary", "", kOutput,
     "print only a summary in Markdown on standard output, at most 25 lines, for the page of a CI's job; "
     "everything else goes to standard error",
     kReport | kCompare, at<&S::report, &S::Report::summary>()},
    {"expect", "BOUND", kOutput, expectations_in_words, kReport | kTrain | kStudies,
     Field<S>([](S& s, Text t) { read_bounds(s, t); }, [](const S&) { return std::string(); }), kList},
    {"margin", "POINTS", kOutput,
     "by how many points of a percent a training may be less accurate than the baseline and still be called no worse; "
     "chosen before its accuracy is known",
     kReport | kConverge | kStudy,
     Field<S>([](S& s, Text t) { s.report.margin = decimal(t, {.most = 100, .open_below = true}) / 100; },
              [](const S& s) { return base::as_text(100 * s.report.margin); })},
    {"json", "FILE", kOutput, "the report as JSON, as the page reads it; its directory must exist",
     kReport | kCompare, at<&S::report, &S::Report::json>()},
    {"json", "FILE", kOutput, "the findings as JSON (docs/check.md); its directory must exist", kCheck,
     at<&S::check, &S::Check::json>()},
    {"sarif", "FILE", kOutput, "the findings in SARIF, for CI systems; its directory must exist", kCheck,
     at<&S::check, &S::Check::sarif>()},
    {"strict", "", kOutput,
     "end with exit code 1 for warnings too, for claimed ratios that were compared with nothing, and if "
     "nothing was compared at all",
     kCheck, at<&S::check, &S::Check::strict>()},
    {"why", "", kOutput, "list every finding, and every rule that was not checked with what it needs", kCheck,
     at<&S::check, &S::Check::shows_all>()},
    {"same-machine", "", kOutput,
     "the tables and the records were measured on one machine: a row of a table may name a record's id as "
     "its baseline",
     kCheck | kReport, at<&S::report, &S::Report::is_same_machine>()},
    {"template", "NAME", kOutput, templates_in_words, kCheck,
     Field<S>(
         [](S& s, Text t) {
           const auto names = table::template_names();
           s.check.template_name = names[one_of(t, names)];
         },
         [](const S& s) { return s.check.template_name; })},
    {"out", "FILE", kOutput, "the recipe that is written; its directory must exist", kInit,
     at<&S::init, &S::Init::out>()},
    {"force", "", kOutput, "overwrite an existing recipe", kInit, at<&S::init, &S::Init::force>()},
    {"out", "FILE", kOutput, "the table that is written (default: standard output); its directory must exist",
     kImport, at<&S::import, &S::Import::out>()},
    {"set", "COLUMN=TEXT", kOutput,
     "what the files do not say, for all rows, such as workers=8; may be given several times. For metrics of "
     "a trainer also which column is meant, and its unit: accuracy=top1%, time_s=minutes[min]",
     kImport, Field<S>([](S& s, Text t) { set_facts(s, t); }, [](const S&) { return std::string(); }), kList},
    {"noise", "PERCENT", kOutput,
     "differences below this, in percent, count as noise, however precisely they were measured", kCompare,
     Field<S>([](S& s, Text t) { s.compare.noise = decimal(t, {.least = 0, .most = 100}) / 100; },
              [](const S& s) { return base::as_text(100 * s.compare.noise); })},
    {"fail-on", "regressed", kOutput,
     "end with exit code 1 where a time or an accuracy regressed, for a CI; with 2 where nothing could be "
     "compared",
     kCompare,
     Field<S>([](S& s, Text t) { s.compare.fails_on_regressed = one_of(t, kFailures) == 0; },
              [](const S& s) { return s.compare.fails_on_regressed ? "regressed" : ""; })},
    {"part", "PART", kOutput, "what is evaluated: test or validation", kEvaluate,
     at<&S::evaluate, &train::EvaluationRequest::part>({.words = "test|validation"})},
    {"mistakes", "N", kOutput, "how many of the most confident mistakes are listed", kEvaluate,
     at<&S::evaluate, &train::EvaluationRequest::mistakes>({.most = 100000})},
    {"top", "K", kOutput, "how many classes are given for each image, the likeliest first", kClassify,
     at<&S::classify, &train::ClassifyRequest::top>({.least = 1, .most = 100000})},
    {"out", "FILE", kOutput,
     "a CSV file with a row for each image, instead of lines on standard output; its directory must exist",
     kClassify, at<&S::classified>()},
    {"columns", "ID,LABEL", kOutput,
     "the table in the form of a competition, with these names: the file's name without its ending (ID=file: with it), "
     "then the class; or a column for each class with its probability (NAME=CLASS where its name is not the class's)",
     kClassify, at<&S::submission_columns>()},
    {"sample-submission", "FILE", kOutput,
     "the table with the columns and the rows of this CSV file, as a competition gives one", kClassify,
     at<&S::sample_submission>()},
    {"decoded", "", kOutput,
     "pack: store pixels instead of JPEG and PNG files: several times larger, but not decoded when read",
     kData, at<&S::data, &S::DataOptions::decoded>()},
    {"shards", "N", kOutput,
     "pack: write a folder with N shards of training samples and as many of the others as keep their size, in "
     "WebDataset's form",
     kData, at<&S::data, &S::DataOptions::shards>({.least = 1, .most = 10000})},
    {"max-side", "PIXELS", kOutput,
     "pack: scale images with a longer side down to it, and store them as JPEG (default: all keep their bytes)",
     kData, at<&S::data, &S::DataOptions::max_side>({.least = 16, .most = 16384})},
    {"quality", "Q", kOutput, "pack: of the JPEG of images that are scaled down", kData,
     at<&S::data, &S::DataOptions::quality>({.least = 1, .most = 100})},
    {"keep-order", "", kOutput,
     "pack: training samples keep the order of the data set, instead of one drawn once, in which neighbours are of "
     "all classes",
     kData, at<&S::data, &S::DataOptions::keep_order>()},
    {"to", "DIR", kOutput, "stage: a directory of this host, for all its processes", kData,
     at<&S::data, &S::DataOptions::to>()},
    {"list", "FILE", kOutput,
     "verify: a CSV file with a row for each broken file, duplicate, class without images and pair of nearly equal "
     "class names",
     kData, at<&S::data, &S::DataOptions::list>()},
    {"cache", "DIR", kOutput, "get: where the data set goes (default: paceline/ in the user's cache)", kData,
     at<&S::data, &S::DataOptions::cache>()},
    {"from", "URL", kOutput, "get: the address of a folder with the same files, instead of the publisher's",
     kData, at<&S::data, &S::DataOptions::from>()},
    {"kernels", "MODEL", kOutput,
     "list the implementation of each op of this model, its measured rate, and why no other was chosen",
     kDoctor, at<&S::doctor, &S::Doctor::kernels_model>()},
    {"measure", "", kOutput,
     "measure the memory's and the all-reduce's bandwidth, about two seconds, and the rates of --kernels",
     kDoctor, at<&S::doctor, &S::Doctor::measure>()},
    {"input", "CxHxW", kOutput,
     "an image's channels, height and width (default: what the model was made for)", kModel | kDoctor,
     Field<S>([](S& s, std::string_view text) { s.model.input = shape_named(text); },
              [](const S& s) {
                return s.model.input.channels > 0 ? fmt::format("{}x{}x{}", s.model.input.channels,
                                                                s.model.input.height, s.model.input.width)
                                                  : std::string();
              })},
    {"classes", "N", kOutput, "number of classes", kModel | kDoctor,
     at<&S::model, &S::ModelRequest::classes>({.least = 2, .most = 1 << 20})},
    {"onnx", "FILE", kOutput, "export: the ONNX file that is written; its directory must exist, the file not",
     kModel, at<&S::model, &S::ModelRequest::onnx>()},
    {"raw-input", "", kOutput,
     "export: the model takes images that are normalised already (default: its first node normalises)",
     kModel, at<&S::model, &S::ModelRequest::is_raw_input>()},
    {"yes", "", kOutput, "rm: remove without asking", kRunList, at<&S::runs, &S::RunList::yes>()},
    {"host", "ADDRESS", kServed,
     "address to listen on; whoever reaches it and has the token can read all runs", kServe,
     at<&S::serve, &S::Serve::host>()},
    {"port", "N", kServed, "port to listen on; 0: any that is free", kServe,
     at<&S::serve, &S::Serve::port>({.most = 65535})},
    {"token", "TEXT", kServed,
     "clients must send it, as ?token=TEXT or 'Authorization: Bearer TEXT' (default: PACELINE_TOKEN, else "
     "one is made and printed with the address); other users see it in the list of processes",
     kServe,
     Field<S>(
         [](S& s, Text t) {
           constexpr std::size_t kFewest = 8;
           if (t.size() < kFewest)
             base::fail(ErrorKind::usage, "must have at least {} characters, got {}", kFewest, t.size());
           s.serve.token = t;
         },
         [](const S& s) { return s.serve.token; }),
     rival("token-file")},
    {"token-file", "FILE", kServed,
     "the token is the text of this file, which you alone may read (mode 0600)", kServe,
     at<&S::serve, &S::Serve::token_file>(), rival("token")},
    {"no-token", "", kServed,
     "answer without a token, on the loopback address alone: every user of this machine can then read all runs",
     kServe, at<&S::serve, &S::Serve::has_no_token>()},
};
static_assert(train::has_rows<S>(kCellRows, "batches", "repeats"));
static_assert(train::has_rows<S>(kStudyRows, "compare", "raw-input"));

}  // namespace

std::span<const Row> cell_rows() { return kCellRows; }
std::span<const Row> study_rows() { return kStudyRows; }

}  // namespace paceline::cli
