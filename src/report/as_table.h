#pragma once

/// Converts a report's drawings to tables, for renderers that cannot draw and for CSV.

#include "report/document.h"

namespace paceline::report {

[[nodiscard]] Table as_table(const Waterfall& waterfall);
/// Its bars, a row each: the parts of a step and the remainder to 1.
[[nodiscard]] Table bars_as_table(const Waterfall& waterfall);
/// A row per span, in the order of the spans.
[[nodiscard]] Table as_table(const Timeline& timeline);
[[nodiscard]] Table as_table(const Comparison& comparison);
/// The points of one view; its id is the figure's followed by the view's name.
[[nodiscard]] Plot as_plot(const Figure& figure, const Figure::View& view);

}  // namespace paceline::report
