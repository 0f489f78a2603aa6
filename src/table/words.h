#pragma once

/// Splits texts at blanks.

#include <string_view>
#include <vector>

namespace paceline::table {

inline constexpr std::string_view kBlanks = " \t\r\n";

/// `text` without blanks at its ends.
[[nodiscard]] inline std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// The words of `text`, separated by blanks.
[[nodiscard]] inline std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = text.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const auto end = text.find_first_of(kBlanks, at);
    words.push_back(text.substr(at, end - at));
    at = end == std::string_view::npos ? end : text.find_first_not_of(kBlanks, end);
  }
  return words;
}

/// Removes the first line from `text` and returns it without its end.
[[nodiscard]] inline std::string_view take_line(std::string_view& text) {
  const auto end = text.find('\n');
  auto line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace paceline::table
