#pragma once

/// Lays out text for a terminal: line breaks, padding, colours.

#include <string>
#include <vector>

namespace paceline::report {

struct Style {
  int width = 110;
  bool colour = false;

  [[nodiscard]] std::string paint(const char* code, const std::string& text) const;
  [[nodiscard]] std::string bold(const std::string& text) const { return paint("1", text); }
  [[nodiscard]] std::string dim(const std::string& text) const { return paint("2", text); }
  [[nodiscard]] std::string good(const std::string& text) const { return paint("32", text); }
  [[nodiscard]] std::string warning(const std::string& text) const { return paint("33", text); }
};

[[nodiscard]] std::vector<std::string> words_of(const std::string& text);
/// `text` broken between words into lines of at most `width` columns; a longer word gets its own line.
[[nodiscard]] std::vector<std::string> wrapped(const std::string& text, std::size_t width);
/// The same as one text with line ends; the first line begins with `first`, later ones with `indent` blanks.
[[nodiscard]] std::string broken(const std::string& text, const std::string& first, std::size_t indent,
                                 int width);
/// Pads with blanks to `width` columns, after the text (`left`) or before it.
[[nodiscard]] std::string padded(const std::string& text, std::size_t width, bool left);

}  // namespace paceline::report
