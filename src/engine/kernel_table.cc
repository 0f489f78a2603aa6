#include "engine/kernel_table.h"

namespace paceline::engine {
namespace {

constexpr std::string_view kHeadOfTable = "paceline kernels, format 1\n";

/// Removes the first line from `text` and returns it without its end; empty if there is no complete line.
std::optional<std::string_view> take_line(std::string_view& text) {
  const auto end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const auto line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

}  // namespace

bool is_kernel_table(std::string_view text) { return text.starts_with(kHeadOfTable); }

std::optional<KernelTable> kernel_table_from(std::string_view text) {
  if (!is_kernel_table(text)) return std::nullopt;
  text.remove_prefix(kHeadOfTable.size());
  const auto machine = take_line(text);
  if (!machine) return std::nullopt;
  KernelTable table{.machine = std::string(*machine), .algorithms = {}};
  while (const auto line = take_line(text)) {
    const auto space = line->find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    const std::string word(line->substr(0, space)), rest(line->substr(space + 1));
    if (word == "end") {
      if (!text.empty() || rest != std::to_string(table.algorithms.size())) return std::nullopt;
      return table;
    }
    if (word.empty()) return std::nullopt;
    table.algorithms[rest] = word;
  }
  return std::nullopt;  // incomplete
}

std::string as_text(const KernelTable& table) {
  std::string text(kHeadOfTable);
  text += table.machine + "\n";
  for (const auto& [problem, algorithm] : table.algorithms)
    text.append(algorithm).append(" ").append(problem).append("\n");
  return text + "end " + std::to_string(table.algorithms.size()) + "\n";
}

}  // namespace paceline::engine
