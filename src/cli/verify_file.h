#pragma once

/// Checks whether a file that this program wrote is undamaged.

#include <filesystem>
#include <string>
#include <vector>

namespace paceline::cli {

enum class FileState {
  ok,       ///< every byte matches a checksum, or the whole structure is valid if the format has none
  damaged,  ///< it has changed, or cannot be read
  unknown,  ///< of a kind that cannot be checked
};
[[nodiscard]] const char* name(FileState state);

struct FileCheck {
  std::filesystem::path path;
  FileState state = FileState::unknown;
  std::string why;  ///< what was checked, or what is wrong; one line
};

/// Checks checkpoints, records, events, manifests, packs (tar archives of images), kernel caches, and links
/// to them.
///
/// Cost     reads the file once; decodes every image of a pack
/// Errors   none: a file that cannot be read counts as damaged
[[nodiscard]] FileCheck verify_file(const std::filesystem::path& path);

/// Checks all files in `directory` and below that verify_file() knows, ordered by path. `others` counts the
/// rest.
[[nodiscard]] std::vector<FileCheck> verify_directory(const std::filesystem::path& directory,
                                                      std::size_t& others);

}  // namespace paceline::cli
