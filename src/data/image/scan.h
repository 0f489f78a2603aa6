#pragma once

/// The images below a folder: found by walking through it, or read from a manifest that an earlier walk left.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/image/listing.h"

namespace paceline::data {

struct FolderScan {
  /// A folder that was looked into, and when something in it last came, went or was renamed.
  struct Folder {
    std::string path;              ///< relative; "" is the top
    std::int64_t modified_ns = 0;  ///< of the file system's clock
    std::size_t images = 0;        ///< that lie in it, not below
  };
  ImageListing listing;         ///< in the order of the paths, a folder's images before its folders
  std::vector<Folder> folders;  ///< in the order of the walk
  std::int64_t passed_over = 0;
};

/// Walks through all folders below `top`. Names that begin with a dot are left out.
///
/// Cost     a directory read for each folder, and no look at any file
/// Errors   Error(data): a folder that cannot be read, or folders more than 16 deep
[[nodiscard]] FolderScan scan_folder(const std::filesystem::path& top);

/// When something in `folder` last came, went or was renamed; -1 where there is no such folder.
[[nodiscard]] std::int64_t modified_ns(const std::filesystem::path& folder);

inline constexpr const char* kManifestName = "paceline-manifest.txt";

/// Scans `top` and writes what it found into top/paceline-manifest.txt. Returns the scan.
///
/// Errors   Error(data): as scan_folder; a name that holds a line end; the file cannot be written
FolderScan write_manifest(const std::filesystem::path& top);

/// What the text of a manifest says; nothing where it is no whole one. Whether the folders are still so is
/// not looked at.
[[nodiscard]] std::optional<FolderScan> manifest_from(std::string_view text);

/// What the manifest of `top` says, if there is one and no folder has changed since. Otherwise nothing, and
/// `why_not` says why ("" where there is no manifest).
///
/// Cost     reads one file and looks at each folder, not at the images
[[nodiscard]] std::optional<FolderScan> read_manifest(const std::filesystem::path& top, std::string& why_not);

}  // namespace paceline::data
