#pragma once

/// Files that the user names to be written: a typing error must cost neither a directory nor an input.

#include <filesystem>
#include <string_view>

namespace paceline::measure {

/// Refuses the file that `option` ("--html") names where its directory is not there, and where what stands
/// there is something that is read and not written here: a record, a checkpoint, events, a recipe, or a file
/// that is no text (images, archives). Older outputs of the same name are replaced, as ever.
///
/// Errors   Error(data): option, file, what stands there
void require_output(const std::filesystem::path& file, std::string_view option);

}  // namespace paceline::measure
