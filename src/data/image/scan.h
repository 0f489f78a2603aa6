#pragma once

/// The images below a folder, found by a directory walk or read from the manifest of an earlier walk.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/image/listing.h"

namespace paceline::data {

// Storage of a data set's encoded images: files of a folder or members of an archive.

/// Threads  all functions from any number at once
class ImageStore {
 public:
  virtual ~ImageStore() = default;
  [[nodiscard]] virtual std::int64_t size() const = 0;
  /// Where image `index` is stored, for messages.
  [[nodiscard]] virtual std::string name(std::int64_t index) const = 0;
  /// The same without the place of the folder or archive, which may move.
  [[nodiscard]] virtual std::string path_below(std::int64_t index) const { return name(index); }
  /// The encoded image: in place, or read into `buffer`. Valid as long as `buffer` and the store.
  ///
  /// Errors   Error(data): name and the system's reason
  [[nodiscard]] virtual std::span<const std::uint8_t> bytes(std::int64_t index,
                                                            std::vector<std::uint8_t>& buffer) const = 0;
  /// The length of the encoded image; 0 if it is unknown.
  [[nodiscard]] virtual std::int64_t stored_bytes(std::int64_t index) const {
    std::vector<std::uint8_t> buffer;
    return static_cast<std::int64_t>(bytes(index, buffer).size());
  }
  /// Where images are kept in several files: for each the number of the image after its last; else empty.
  [[nodiscard]] virtual std::span<const std::int64_t> shard_ends() const { return {}; }
};

struct FolderScan {
  /// A folder, and when an entry in it was last added, removed or renamed.
  struct Folder {
    std::string path;              ///< relative; "" is the top
    std::int64_t modified_ns = 0;  ///< on the file system's clock
    std::size_t images = 0;        ///< directly in it
  };
  ImageListing listing;         ///< in the order of the paths, a folder's images before its folders
  std::vector<Folder> folders;  ///< in the order of the walk
  std::int64_t passed_over = 0;
  std::vector<PassedOver>
      passed_over_in;  ///< by folder; read from a manifest, only of folders without images
};

/// The files `listing` below `top` ("": the current folder, or the root for paths that begin with '/').
[[nodiscard]] std::shared_ptr<const ImageStore> store_of_files(std::filesystem::path top,
                                                               ImageListing listing);

/// Walks through all folders below `top`. Skips names that begin with a dot.
///
/// Cost     reads each directory, and no file
/// Errors   Error(data): a folder that cannot be read, or folders more than 16 deep
[[nodiscard]] FolderScan scan_folder(const std::filesystem::path& top);

/// When an entry of `folder` was last added, removed or renamed; -1 if there is no such folder.
[[nodiscard]] std::int64_t modified_ns(const std::filesystem::path& folder);

inline constexpr const char* kManifestName = "paceline-manifest.txt";

/// Scans `top` and writes the result to top/paceline-manifest.txt. Returns the scan.
///
/// Errors   Error(data): as scan_folder; a name with a line end; the file cannot be written
FolderScan write_manifest(const std::filesystem::path& top);

/// Parses the text of a manifest; nothing if it is incomplete. Does not check that the folders are unchanged.
[[nodiscard]] std::optional<FolderScan> manifest_from(std::string_view text);

/// The manifest of `top`, if there is one and no folder has changed since. Otherwise nothing, and `why_not`
/// says why ("" if there is no manifest).
///
/// Cost     reads one file and the times of all folders, no image
[[nodiscard]] std::optional<FolderScan> read_manifest(const std::filesystem::path& top, std::string& why_not);

}  // namespace paceline::data
