#pragma once

/// The names of document.h's enums in JSON and the page.

#include <string>
#include <string_view>

#include "report/document.h"

namespace paceline::report {

[[nodiscard]] std::string_view name(Format format);
[[nodiscard]] std::string_view name(PlotKind kind);
[[nodiscard]] std::string_view name(Paragraph::Tone tone);
[[nodiscard]] std::string_view name(Certainty certainty);
[[nodiscard]] std::string_view name(Comparison::Word word);

/// Words and signs for users: "≈ tie", "! careful", "improved", "no change".
[[nodiscard]] std::string_view sign_of(Certainty certainty);
[[nodiscard]] std::string text_of(Certainty certainty);
[[nodiscard]] std::string text_of(Comparison::Word word);

}  // namespace paceline::report
