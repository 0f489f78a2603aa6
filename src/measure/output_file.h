#pragma once

/// Checks output files that the user names, so that a typing error overwrites no input.

#include <filesystem>
#include <string_view>

namespace paceline::measure {

/// Refuses the file that `option` ("--html") names if its directory does not exist, or if the existing file
/// looks like an input: a record, a checkpoint, events, a recipe, or a file that is no text (images,
/// archives). Older outputs are replaced.
///
/// Errors   Error(data): option, file, what the existing file is
void require_output(const std::filesystem::path& file, std::string_view option);

}  // namespace paceline::measure
