#pragma once

/// --variants of converge: parses which remedies of a large batch to train.

#include <string_view>

#include "cli/options/settings.h"

namespace paceline::cli {

/// Parses "linear+warmup, linear+warmup+weight-decay=1e-4". The baseline and the large batch without a remedy
/// come first, then these. A piece key=value may set any option of the learning rule.
///
/// Errors   Error(usage): the end of a sentence that begins with the option
void choose_variants(Settings& settings, std::string_view text);

}  // namespace paceline::cli
