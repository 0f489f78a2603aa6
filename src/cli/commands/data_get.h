#pragma once

/// `paceline data get`.

#include "cli/settings.h"

namespace paceline::cli {

/// Downloads the package that settings.data names, opens it to see that it is whole, and prints the spec that
/// reads it. Returns the exit code; Ctrl-C keeps what has come.
///
/// Errors   Error(usage): an unknown name; Error(data): as data::get and data::open have them
int get_data(const Settings& settings);

}  // namespace paceline::cli
