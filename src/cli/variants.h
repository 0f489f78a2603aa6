#pragma once

/// --variants of converge: which remedies of a large batch are trained.

#include <string_view>

#include "cli/settings.h"

namespace paceline::cli {

/// Reads "linear+warmup, linear+warmup+weight-decay=1e-4": the baseline and the large batch without remedy
/// come first, and then these. A piece key=value is any option of the learning rule.
///
/// Errors   Error(usage), the end of a sentence that begins with the option
void choose_variants(Settings& settings, std::string_view text);

}  // namespace paceline::cli
