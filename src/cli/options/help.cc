#include "cli/options/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "cli/options/arguments.h"
#include "cli/screen/screen.h"
#include "data/dataset.h"
#include "data/get/get.h"

namespace paceline::cli {
namespace {

/// `text` escaped for roff, as one line of input.
std::string in_roff(std::string_view text) {
  std::string result;
  const bool begins_as_a_request = !text.empty() && (text.front() == '.' || text.front() == '\'');
  if (begins_as_a_request) result += "\\&";
  for (const char letter : text) {
    if (letter == '\\')
      result += "\\e";
    else if (letter == '-')
      result += "\\-";
    else if (letter == '\n')
      result += ' ';
    else if (letter != '`')  // drops the backquotes of Markdown
      result += letter;
  }
  return result;
}

/// An example, whose lines are not joined.
std::string example_in_roff(const std::string& text) {
  std::string result = ".nf\n";
  for (const auto& line : base::lines_of(text)) result += in_roff(line) + "\n";
  return result + ".fi\n";
}

constexpr const char* kExitStatus =
    R"(.SH EXIT STATUS
.TP
0
done
.TP
1
check, compare, predict --score, reference check: they found what they were asked to look for
.TP
2
usage: the command line, a recipe or the site file
.TP
3
data: a file cannot be read or written, or the loss is no longer finite
.TP
4
device: memory, threads or a device
.TP
5
communication: a process is lost, or a deadline passed; worth another try
.TP
70, 134
a bug in paceline
.TP
129, 130, 143
stopped by SIGHUP, SIGINT or SIGTERM; the record of what was done is kept
)";

constexpr const char* kFiles =
    R"(.SH FILES
.TP
.I /etc/paceline/site.toml
.TQ
.I ~/.config/paceline/site.toml
defaults of a site for every command: tables [sbatch], [launch] and [data]. The command line wins over a recipe,
a recipe over these files, and the second of them over the first. They cannot set what would change a figure.
.TP
.I ~/.cache/paceline
measured kernels, lists of images, downloads; PACELINE_CACHE names another folder
)";

constexpr std::size_t kLeft = 30;  ///< columns for the option's name
constexpr int kWidest = 100;       ///< the most columns of a line
constexpr int kWidthOfHelp = 80;   ///< columns of a line without a terminal

/// Options that most people need first: the short help has these.
constexpr std::string_view kMain[] = {
    "model",       "data",    "workers", "local-batch", "global-batch", "batches", "baseline-batch",
    "large-batch", "epochs",  "lr",      "device",      "precision",    "quick",   "plan",
    "out",         "resume",  "tables",  "html",        "csv",          "json",    "strict",
    "fail-on",     "halving", "nodes",   "submit",      "directory",    "n",       "hosts",
    "port",        "by",      "script",  "kernels",     "top"};

/// `text` behind `left`, broken between words and indented to the right column.
std::string two_columns(const std::string& left, std::string_view text, std::size_t width) {
  std::string result = left.size() + 2 > kLeft ? left + "\n" : fmt::format("{:{}}", left, kLeft);
  for (const auto& line : base::wrapped(text, width - kLeft))
    result += (result.ends_with('\n') ? std::string(kLeft, ' ') : "") + line + "\n";
  return result;
}

/// The usage of a command, a line for each form.
std::string usage_line(Command command) {
  const auto name = command_name(command);
  if (command & kRuns) return fmt::format("paceline {} [RECIPE.toml] [options]", name);
  if (command == kEvaluate)
    return "paceline evaluate CHECKPOINT [options]   CHECKPOINT: a .safetensors file, or a training's "
           "directory (its best epoch, else its last)\nOptions that are not given are taken from the record "
           "beside the checkpoint.";
  if (command == kModel)
    return "paceline model list                    every model that --model takes by name\n"
           "paceline model show MODEL              its layers; MODEL: a name, or a file of layers\n"
           "paceline model export CHECKPOINT --onnx FILE   its trained model, for ONNX Runtime, OpenCV ...; "
           "CHECKPOINT: a .safetensors file, or a training's directory";
  if (command == kClassify)
    return "paceline classify CHECKPOINT IMAGE..   CHECKPOINT: a .safetensors file, or a training's directory; "
           "IMAGE: a file, a folder or tar archive of images, shards:PATTERN";
  if (command == kRunList)
    return "paceline runs list [DIR]               runs below DIR (default: paceline-out)\n"
           "paceline runs show RUN..               one run: what, how far, its best figures\n"
           "paceline runs rm RUN..                 removes what a run left; RUN: its directory";
  if (command == kServe)
    return "paceline serve [DIR] [options]         DIR: where runs are (default: paceline-out), or one run";
  if (command == kReport)
    return "paceline report RECORD.. [options]     RECORD: a file, or a directory that holds some";
  if (command == kExplain)
    return "paceline explain RECORD..               RECORD: a file, or a directory that holds some";
  if (command == kVerify)
    return "paceline verify PATH.. [options]       PATH: a checkpoint, record, pack or kernel cache, or a directory";
  if (command == kCheck)
    return "paceline check FILE.. [options]        FILE: a record, a directory of records, a table, or what another "
           "program measured\npaceline check --template NAME          a table to fill in";
  if (command == kPredict)
    return "paceline predict FILE.. [options]      FILE: a record, a directory of records, or a table of steps\n"
           "paceline predict --score P.json FILE.. whether measured steps lie where P.json predicted them";
  if (command == kTarget)
    return "paceline target RECORD.. --accuracy A [options]   RECORD: of converge --compare batches, and of scale or study";
  if (command == kReference)
    return "paceline reference make RECORD.. --accuracy A --out F.json   what trainings of now need is the reference\n"
           "paceline reference check RECORD.. --against F.json           whether these need as many epochs";
  if (command == kImport)
    return "paceline import FILE.. [options]       FILE: what another program measured; all ranks' files of one run "
           "together";
  if (command == kCompare)
    return "paceline compare [A] B [options]       A, B: a record, or a directory that holds some; B over A; without A: "
           "the run before B of its kind";
  if (command == kInit)
    return "paceline init DIR [options]             DIR: a folder for each class, train/ and test/, a tar archive, "
           "or files of CIFAR-10 or MNIST";
  if (command == kData)
    return "paceline data info|verify SPEC         SPEC: " + data::known_specs() +
           "\n"
           "paceline data pack SPEC FILE.tar      one file of all images of a folder, read in place by "
           "folder:FILE.tar\n"
           "paceline data pack SPEC DIR --shards N a folder of shards, in WebDataset's form\n"
           "paceline data stage SPEC --to DIR      a verified copy on this host; the last line is its spec\n"
           "paceline data manifest folder:DIR      a list of the images in DIR, so that no start walks "
           "through it\n"
           "paceline data get NAME                 NAME: " +
           fmt::format("{}, from their publishers", fmt::join(data::package_names(), ", "));
  if (command & (kLaunch | kSbatch))
    return fmt::format("paceline {} [options] -- train|sweep|scale|converge|study|comm{} ...", name,
                       command == kLaunch ? "|doctor" : "");
  if (command == kCompletion)
    return "paceline completion bash|zsh|fish      on standard output; bash: eval \"$(paceline completion bash)\"";
  if (command == kManual) return "paceline man                           paceline man | man -l -";
  return fmt::format("paceline {} [options]", name);
}

}  // namespace

std::string manual_page(std::span<const CommandRow> commands, const std::string& version) {
  std::string text = fmt::format(
      ".TH PACELINE 1 \"\" \"paceline {}\" \"User Commands\"\n"
      ".SH NAME\npaceline \\- trains image classifiers with data parallelism and explains how the training scales\n"
      ".SH SYNOPSIS\n.B paceline\n.I COMMAND\n[\\fIRECIPE.toml\\fR] [\\fIoptions\\fR]\n"
      ".SH COMMANDS\n",
      in_roff(version));
  for (const auto& one : commands)
    text += fmt::format(".TP\n.B {}\n{}\n.RS\n{}.RE\n", one.name, in_roff(one.summary),
                        example_in_roff(usage_line(one.command)));
  text += ".SH OPTIONS\nThe commands that take an option are named after it.\n";
  std::string_view group;
  for (const auto& option : options()) {
    if (option.group != group) text += fmt::format(".SS \"{}\"\n", in_roff(group = option.group));
    text += option.value.empty()
                ? fmt::format(".TP\n\\fB\\-\\-{0}\\fR, \\fB\\-\\-no\\-{0}\\fR\n", in_roff(option.name()))
                : fmt::format(".TP\n\\fB\\-\\-{}\\fR \\fI{}\\fR\n", in_roff(option.name()),
                              in_roff(option.value));
    const auto present = defaults_of(option);
    text += in_roff(option.help.text()) + "\n";
    text += fmt::format(".br\n({}{}{})\n", in_roff(commands_that_take(option)),
                        present.empty() ? "" : "; default: ", in_roff(present));
  }
  return text + kFiles + kExitStatus;
}

std::string help_text(Command command, bool is_short) {
  std::string text = usage_line(command) + "\n";
  if (command & kRuns && !is_short)
    text += "\nA recipe is a TOML file of the same options (global-batch = 128); the command line wins.\n";
  if (command == kSearch && !is_short)
    text +=
        "\nOptions of the rule, the model, the batch and the like take lists here, such as --lr 0.1,0.03; every "
        "combination\nis trained, and the best on the validation part is chosen.\n";
  const auto width = static_cast<std::size_t>(std::min(terminal_width(STDOUT_FILENO, kWidthOfHelp), kWidest));
  std::string group;
  constexpr int kFew = 12;
  const bool has_few =
      std::ranges::count_if(options(), [&](const auto& option) { return option.commands & command; }) <= kFew;
  int left_out = 0;
  for (const auto& option : options()) {
    if (!(option.commands & command)) continue;
    if (is_short && !has_few && std::ranges::find(kMain, option.name()) == std::end(kMain)) {
      ++left_out;
      continue;
    }
    if (option.group != group && !is_short) text += fmt::format("\n{}\n", group = option.group);
    const auto [name, help, present] = typed_form(option, command, is_short);
    text += two_columns(fmt::format("  --{}{}{}", name, option.value.empty() ? "" : " ", option.value),
                        present.empty() ? help : fmt::format("{} [{}]", help, present), width);
  }
  if (left_out > 0)
    text += fmt::format("  {} more, and all of each: paceline {} --help\n", left_out, command_name(command));
  return text;
}

}  // namespace paceline::cli
