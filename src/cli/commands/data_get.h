#pragma once

/// Implements `paceline data get`, which downloads a public data set.

#include "cli/options/settings.h"

namespace paceline::cli {

/// Downloads the package that settings.data names, opens it to check it, and prints the spec that reads it.
/// Returns the exit code. Ctrl-C keeps what was downloaded.
///
/// Errors   Error(usage): an unknown name; Error(data): as data::get and data::open
int get_data(const Settings& settings);

}  // namespace paceline::cli
