#pragma once

/// Lays out text for a terminal: line breaks, padding, colours.

#include <string>
#include <vector>

#include "report/document.h"

namespace paceline::report {

/// Draws a timeline with letters: a line per lane, and in it a letter per slice of time, for the phase that
/// takes most of the slice, or a blank if no phase takes a tenth of it. The total time is written above the
/// lines, the meaning of the letters below.
///
/// `width`: characters of a line with its label; values below 40 count as 40
[[nodiscard]] std::string drawn_in_letters(const Timeline& timeline, int width);

/// A bar per ratio, at most 12 of them, of more the mean of neighbours: "▄" is about 1, each higher one a
/// quarter more, "█" 2 or more.
[[nodiscard]] std::string drawn_in_bars(const std::vector<double>& ratios);

struct Style {
  int width = 110;
  bool colour = false;

  [[nodiscard]] std::string paint(const char* code, const std::string& text) const;
  [[nodiscard]] std::string bold(const std::string& text) const { return paint("1", text); }
  [[nodiscard]] std::string dim(const std::string& text) const { return paint("2", text); }
  [[nodiscard]] std::string good(const std::string& text) const { return paint("32", text); }
  [[nodiscard]] std::string warning(const std::string& text) const { return paint("33", text); }
};

/// `text` broken between words at `width`; its first line begins with `first`, later ones with `indent`
/// blanks.
[[nodiscard]] std::string broken(const std::string& text, const std::string& first, std::size_t indent,
                                 int width);
/// Pads with blanks to `width` columns, after the text (`left`) or before it.
[[nodiscard]] std::string padded(const std::string& text, std::size_t width, bool left);

// Writes the answers of a report on one screen of a terminal: what to do, the questions, the best figures,
// caveats, and what to do next. At most 25 lines at 100 columns.

inline constexpr const char* kAnswerSection = "answer";

/// Whether it is a section of answers. With several models there are several: "answer", "answer-2".
[[nodiscard]] bool is_answer(const Section& section);
[[nodiscard]] bool has_answers(const Document& document);

/// Title and circumstances, then the contents of the sections of answers. From the fourth on, warnings are
/// counted, not printed.
[[nodiscard]] std::string answer_screen(const Document& document, const Style& style);

}  // namespace paceline::report
