#pragma once

#include <string>

#include "report/document.h"

namespace paceline::report {

/// Draws a timeline with letters: a line per lane, and in it a letter per slice of time, for the phase that
/// takes most of the slice, or a blank if no phase takes a tenth of it. The total time is written above the
/// lines, the meaning of the letters below.
///
/// `width`: characters of a line with its label; values below 40 count as 40
[[nodiscard]] std::string drawn_in_letters(const Timeline& timeline, int width);

}  // namespace paceline::report
