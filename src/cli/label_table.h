#pragma once

/// Folders that init cannot read as they are: what lies in them, and the way from there to class folders.

#include <string>

namespace paceline::cli {

/// A sentence for a folder that no data spec reads: a table of labels beside the images, with the line of
/// shell that makes a folder of links for each class of it, or files of a kind that is not read. "" where
/// nothing of that is there.
///
/// Cost     the names of all images; reads the first lines of a table
[[nodiscard]] std::string way_to_class_folders(const std::string& folder);

}  // namespace paceline::cli
