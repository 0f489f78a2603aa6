#pragma once

#include <string>

#include "report/document.h"

namespace paceline::report {

/// A timeline as letters: a line a lane, a letter a slice of time, for the phase that takes most of it; a
/// blank where nothing takes a tenth of it. Above it how long that is, below it what the letters mean.
///
/// `width`: of the lines, at least 40
[[nodiscard]] std::string drawn_in_letters(const Timeline& timeline, int width);

}  // namespace paceline::report
