#include "cli/options/manual.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/options/arguments.h"

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
  for (std::string_view rest = text; !rest.empty();) {
    const auto end = std::min(rest.find('\n'), rest.size());
    result += in_roff(rest.substr(0, end)) + "\n";
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return result + ".fi\n";
}

constexpr const char* kExitStatus =
    R"(.SH EXIT STATUS
.TP
0
done
.TP
1
check, compare: they found what they were asked to look for
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

}  // namespace

std::string manual_page(std::span<const CommandWords> commands, const std::string& version) {
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

}  // namespace paceline::cli
