#pragma once

#include <string>

#include "report/document.h"

namespace paceline::report {

/// A timeline drawn with letters: a line per lane, a letter per slice of time for the phase that takes most
/// of it, a blank if no phase takes a tenth of it. The length is above, the meaning of the letters below.
///
/// `width`: of the lines, at least 40
[[nodiscard]] std::string drawn_in_letters(const Timeline& timeline, int width);

}  // namespace paceline::report
