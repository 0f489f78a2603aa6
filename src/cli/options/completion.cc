#include "cli/options/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace paceline::cli {
namespace {

/// The options of a command that have a value: "--lr --data".
std::string names_with_a_value(Command command) {
  std::vector<std::string> names;
  for (const auto& option : options())
    if ((option.commands & command) && !option.value.empty())
      names.push_back(fmt::format("--{}", option.name()));
  return fmt::format("{}", fmt::join(names, " "));
}

std::string names_to_type(Command command) {
  std::vector<std::string> names;
  for (const auto& option : options())
    if (option.commands & command) names.push_back("--" + typed_form(option, command).name);
  names.emplace_back("--help");
  return fmt::format("{}", fmt::join(names, " "));
}

std::string names_of(std::span<const CommandRow> commands) {
  return base::joined(commands, " ", &CommandRow::name);
}

std::string bash_script(std::span<const CommandRow> commands) {
  std::string text = fmt::format(
      R"(# Completion of paceline for bash, written by: paceline completion bash
_paceline() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} at=1 i names= takes= first=
  COMPREPLY=()
  if [[ ${{COMP_WORDS[1]}} == launch || ${{COMP_WORDS[1]}} == sbatch ]]; then
    for ((i = 2; i < COMP_CWORD; i++)); do
      if [[ ${{COMP_WORDS[i]}} == -- ]]; then at=$((i + 1)) && break; fi
    done
  fi
  if ((COMP_CWORD == at)); then
    COMPREPLY=($(compgen -W '{}' -- "$word"))
    return
  fi
  case ${{COMP_WORDS[at]}} in
)",
      names_of(commands));
  for (const auto& one : commands)
    text += fmt::format("    {}) names='{}' takes='{}' first='{}' ;;\n", one.name, names_to_type(one.command),
                        names_with_a_value(one.command), fmt::join(actions_of(one.command), " "));
  text += R"(  esac
  if [[ " $takes " == *" $before "* ]]; then
    case $before in
)";
  std::vector<std::string_view> said;
  for (const auto& option : options()) {
    const auto words = words_of_value(option);
    if (words.empty() || std::ranges::find(said, option.name()) != said.end()) continue;
    said.push_back(option.name());
    text += fmt::format("      --{}) COMPREPLY=($(compgen -W '{}' -- \"$word\")) ;;\n", option.name(),
                        fmt::join(words, " "));
  }
  return text + R"(    esac
  elif [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$names" -- "$word"))
  elif ((COMP_CWORD == at + 1)) && [[ $first ]]; then
    COMPREPLY=($(compgen -W "$first" -- "$word"))
  fi
}
# Where there is nothing to say, names of files.
complete -o default -F _paceline paceline
)";
}

/// `text` inside of '...' of a shell, with a backslash before each of `special`.
std::string quoted(std::string_view text, std::string_view special) {
  std::string result;
  for (const char letter : text) {
    if (special.find(letter) != special.npos) result += '\\';
    result += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  }
  return result;
}

std::string zsh_script(std::span<const CommandRow> commands) {
  std::string text =
      "#compdef paceline\n"
      "# Completion of paceline for zsh, written by: paceline completion zsh\n"
      "_paceline() {\n"
      "  local at=2 mark\n"
      "  local -a commands\n"
      "  if [[ $words[2] == (launch|sbatch) ]]; then\n"
      "    mark=${words[(i)--]}\n"
      "    (( mark < CURRENT )) && at=$(( mark + 1 ))\n"
      "  fi\n"
      "  if (( CURRENT == at )); then\n"
      "    commands=(\n";
  for (const auto& one : commands)
    text += fmt::format("      '{}:{}'\n", one.name, quoted(beginning_of(std::string(one.summary)), ":\\"));
  text +=
      "    )\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  words=(\"${(@)words[at,-1]}\")\n"
      "  (( CURRENT -= at - 1 ))\n"
      "  case $words[1] in\n";
  for (const auto& one : commands) {
    text += fmt::format("    {}) _arguments \\\n", one.name);
    for (const auto& option : options()) {
      if (!(option.commands & one.command)) continue;
      const auto words = words_of_value(option);
      const auto value = option.value.empty() ? std::string()
                         : words.empty()
                             ? fmt::format(":{}:_files", quoted(option.value, ":\\"))
                             : fmt::format(":{}:({})", quoted(option.value, ":\\"), fmt::join(words, " "));
      const auto form = typed_form(option, one.command);
      text += fmt::format("      '{}--{}[{}]{}' \\\n", option.rules.is_list ? "*" : "", form.name,
                          quoted(form.help, "[]\\"), value);
    }
    const auto first = actions_of(one.command);
    text += first.empty() ? "      '*:file:_files' ;;\n"
                          : fmt::format("      '1:what:({})' '*:file:_files' ;;\n", fmt::join(first, " "));
  }
  return text + "  esac\n}\n_paceline \"$@\"\n";
}

std::string fish_script(std::span<const CommandRow> commands) {
  std::string text = R"(# Completion of paceline for fish, written by: paceline completion fish
# Whether the command of the line is one of the arguments; without any: whether it has none yet.
function __paceline_is
    set -l words (commandline -opc)
    set -l at 2
    if contains -- "$words[2]" launch sbatch
        set -l mark (contains -i -- -- $words)
        and set at (math $mark + 1)
    end
    if test (count $argv) -eq 0
        test (count $words) -lt $at
    else
        test (count $words) -ge $at
        and contains -- $words[$at] $argv
    end
end
)";
  for (const auto& one : commands)
    text += fmt::format("complete -c paceline -n __paceline_is -f -a {} -d '{}'\n", one.name,
                        quoted(beginning_of(std::string(one.summary)), ""));
  for (const auto& one : commands)
    if (const auto first = actions_of(one.command); !first.empty())
      text += fmt::format("complete -c paceline -n '__paceline_is {}' -a '{}'\n", one.name,
                          fmt::join(first, " "));
  for (const auto& option : options()) {
    // A switch that is on for one command and off for another has two names, each with its takers.
    std::vector<std::pair<TypedForm, std::string>> forms;
    for (const auto& one : commands) {
      if (!(option.commands & one.command)) continue;
      const auto form = typed_form(option, one.command);
      const auto same = [&](const auto& known) { return known.first.name == form.name; };
      if (const auto found = std::ranges::find_if(forms, same); found != forms.end())
        found->second += fmt::format(" {}", one.name);
      else
        forms.push_back({form, std::string(one.name)});
    }
    const auto words = words_of_value(option);
    const auto value = option.value.empty() ? std::string()
                       : words.empty()      ? std::string(" -r")
                                            : fmt::format(" -x -a '{}'", fmt::join(words, " "));
    for (const auto& [form, takers] : forms)
      text += fmt::format("complete -c paceline -n '__paceline_is {}' -l {}{} -d '{}'\n", takers, form.name,
                          value, quoted(form.help, ""));
  }
  return text;
}

}  // namespace

std::vector<std::string> actions_of(Command command) {
  if (command == kCompletion) return {"bash", "zsh", "fish"};
  if (command == kRunList) return {"list", "show", "rm"};
  if (command == kModel) return {"list", "show", "export"};
  if (command == kReference) return {"make", "check"};
  if (command == kData) return {"info", "verify", "pack", "stage", "manifest", "get"};
  return {};
}

std::vector<std::string> words_of_value(const Option& option) {
  constexpr std::string_view kOfWords = "abcdefghijklmnopqrstuvwxyz0123456789-";
  const auto words = train::words_of(option.value);
  const bool are_words = std::ranges::all_of(words, [&](const std::string& word) {
    return !word.empty() && word.find_first_not_of(kOfWords) == std::string::npos;
  });
  return are_words ? words : std::vector<std::string>();
}

std::string completion_script(const std::string& shell, std::span<const CommandRow> commands) {
  if (shell == "bash") return bash_script(commands);
  return shell == "zsh" ? zsh_script(commands) : fish_script(commands);
}

}  // namespace paceline::cli
