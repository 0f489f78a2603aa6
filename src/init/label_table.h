#pragma once

/// Makes suggestions for folders that `paceline init` cannot read: how to make class folders from what is
/// there.

#include <string>

namespace paceline::init {

/// A sentence for a folder that no data spec can read. For a table of labels beside the images it has the
/// shell line that makes a folder of links for each class; it also names files of unsupported kinds. "" if
/// there are neither.
///
/// Cost     the names of all images; reads the first lines of a table
[[nodiscard]] std::string way_to_class_folders(const std::string& folder);

}  // namespace paceline::init
