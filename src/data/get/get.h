#pragma once

/// `paceline data get`: downloads, checks and unpacks public data sets.

#include <filesystem>
#include <string>
#include <vector>

#include "data/get/download.h"

namespace paceline::data {

/// A data set as it is published.
struct Package {
  std::string name;       ///< "fashion-mnist"
  std::string directory;  ///< below the cache, "fashion-mnist"
  std::string format;     ///< the format of its spec: "mnist"
  std::string source;     ///< the publisher, for messages
  std::vector<RemoteFile>
      files;  ///< .tar.gz archives and .gz files are unpacked, .tar archives are kept as they are
  std::string read_in_place;  ///< the one of these files that a spec names; empty: it names the directory
};

/// All packages. Sizes and hashes are those of the publishers' files; docs/formats.md says where they come
/// from.
[[nodiscard]] const std::vector<Package>& packages();
[[nodiscard]] std::vector<std::string> package_names();

/// How to get a data set that has no package because its publisher changes the files ("fruits-360"); empty if
/// `name` is unknown.
[[nodiscard]] std::string how_to_get(const std::string& name);

struct Got {
  std::filesystem::path directory;
  std::string spec;        ///< what to train with: "mnist:/cache/mnist"
  bool was_there = false;  ///< an earlier get has downloaded it
};

/// Downloads `package` and unpacks it to cache/directory, completely or not at all: files are downloaded next
/// to it and unpacked into a folder that is then renamed. A note in the folder keeps the hashes, so the next
/// get recognises it.
///
/// Errors   Error(data): as download(); a folder of that name that get did not make; a full disk
[[nodiscard]] Got get(const Package& package, const std::filesystem::path& cache,
                      const DownloadOptions& options);

}  // namespace paceline::data
