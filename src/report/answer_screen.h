#pragma once

/// Writes the answers of a report on one screen of a terminal: what to do, the questions, the best figures,
/// caveats, and what to do next. At most 25 lines at 100 columns.

#include <string>

#include "report/document.h"
#include "report/terminal_text.h"

namespace paceline::report {

inline constexpr const char* kAnswerSection = "answer";

/// Whether it is a section of answers. With several models there are several: "answer", "answer-2".
[[nodiscard]] bool is_answer(const Section& section);
[[nodiscard]] bool has_answers(const Document& document);

/// Title and circumstances, then the contents of the sections of answers. From the fourth on, warnings are
/// counted, not printed.
[[nodiscard]] std::string answer_screen(const Document& document, const Style& style);

}  // namespace paceline::report
