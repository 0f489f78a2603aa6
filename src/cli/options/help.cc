#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "cli/options/arguments.h"
#include "cli/screen/screen.h"
#include "data/dataset.h"
#include "data/get/get.h"

namespace paceline::cli {
namespace {

constexpr std::size_t kLeft = 30;  ///< columns for the option's name
constexpr int kWidest = 100;       ///< the most columns of a line
constexpr int kWidthOfHelp = 80;   ///< columns of a line without a terminal

/// `text` behind `left`, broken between words and indented to the right column.
std::string two_columns(std::string left, std::string_view text, std::size_t width) {
  std::string result = left;
  result += left.size() + 2 > kLeft ? "\n" + std::string(kLeft, ' ') : std::string(kLeft - left.size(), ' ');
  std::size_t column = kLeft;
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    const auto word = text.substr(0, end);
    if (column > kLeft && column + word.size() > width) {
      result.back() = '\n';  // the blank behind the word before
      result += std::string(kLeft, ' ');
      column = kLeft;
    }
    result += word;
    column += word.size() + 1;
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!text.empty()) result += ' ';
  }
  return result + "\n";
}

}  // namespace

std::string usage_line(Command command) {
  const auto name = command_name(command);
  if (command & kRuns) return fmt::format("paceline {} [RECIPE.toml] [options]", name);
  if (command == kEvaluate)
    return "paceline evaluate CHECKPOINT [options]   CHECKPOINT: a .safetensors file, or a training's "
           "directory (its best epoch, else its last)\nOptions that are not given are taken from the record "
           "beside the checkpoint.";
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
  if (command == kImport)
    return "paceline import FILE.. [options]       FILE: what another program measured; all ranks' files of one run "
           "together";
  if (command == kCompare)
    return "paceline compare A B [options]         A, B: a record, or a directory that holds some; B over A";
  if (command == kInit)
    return "paceline init DIR [options]             DIR: a folder for each class, train/ and test/, a tar archive, "
           "or files of CIFAR-10 or MNIST";
  if (command == kData)
    return "paceline data info|verify SPEC         SPEC: " + data::known_specs() +
           "\n"
           "paceline data pack SPEC FILE.tar      one file of all images of a folder, read in place by "
           "folder:FILE.tar\n"
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

std::string help_text(Command command) {
  std::string text = usage_line(command) + "\n";
  if (command & kRuns)
    text += "\nA recipe is a TOML file of the same options (global-batch = 128); the command line wins.\n";
  if (command == kSearch)
    text +=
        "\nOptions of the rule, the model, the batch and the like take lists here, such as --lr 0.1,0.03; every "
        "combination\nis trained, and the best on the validation part is chosen.\n";
  const auto width = static_cast<std::size_t>(std::min(terminal_width(STDOUT_FILENO, kWidthOfHelp), kWidest));
  const Settings settings = defaults(command);
  std::string group;
  for (const auto& option : options()) {
    if (!(option.commands & command)) continue;
    if (option.group != group) text += fmt::format("\n{}\n", group = option.group);
    const auto present = option.get(settings);
    const auto help = option.help.text();
    if (option.value.empty()) {
      const bool on = present == "true";
      text += two_columns(fmt::format("  --{}{}", on ? "no-" : "", option.name()),
                          on ? fmt::format("without: {}", help) : help, width);
    } else {
      text += two_columns(fmt::format("  --{} {}", option.name(), option.value),
                          present.empty() ? help : fmt::format("{} [{}]", help, present), width);
    }
  }
  return text;
}

}  // namespace paceline::cli
