#pragma once

/// The words by which JSON and the page know the enums of document.h.

#include <string_view>

#include "report/document.h"

namespace paceline::report {

[[nodiscard]] std::string_view name(Format format);
[[nodiscard]] std::string_view name(PlotKind kind);
[[nodiscard]] std::string_view name(Paragraph::Tone tone);

}  // namespace paceline::report
