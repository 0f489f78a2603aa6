#pragma once

/// Whether a file that this program wrote is still as it was written.

#include <filesystem>
#include <string>
#include <vector>

namespace paceline::cli {

enum class FileState {
  ok,       ///< every byte was checked against a sum, or the whole structure where the format has none
  damaged,  ///< it is not what was written, or cannot be read
  unknown,  ///< of no kind that can be checked
};
[[nodiscard]] const char* name(FileState state);

struct FileCheck {
  std::filesystem::path path;
  FileState state = FileState::unknown;
  std::string why;  ///< what was checked, or what is wrong; one line
};

/// Checkpoints, records, events, lists of images, packs (tar archives of images), kernel caches; links to one
/// of them.
///
/// Cost     reads the file once; of a pack it decodes every image
/// Errors   none: what cannot be read is damaged
[[nodiscard]] FileCheck verify_file(const std::filesystem::path& path);

/// All files in `directory` and below that verify_file() knows, in the order of their paths. `others` counts
/// the rest.
[[nodiscard]] std::vector<FileCheck> verify_directory(const std::filesystem::path& directory,
                                                      std::size_t& others);

}  // namespace paceline::cli
