#pragma once

/// `paceline data get`: the data sets that their publishers give away, downloaded, checked and unpacked.

#include <filesystem>
#include <string>
#include <vector>

#include "data/get/download.h"

namespace paceline::data {

/// A data set as its publisher packs it.
struct Package {
  std::string name;       ///< "fashion-mnist"
  std::string directory;  ///< below the cache, "fashion-mnist"
  std::string format;     ///< what a spec of it begins with: "mnist"
  std::string source;     ///< who published it, for people
  std::vector<RemoteFile>
      files;  ///< .tar.gz archives and .gz files are unpacked, .tar archives are kept as they are
  std::string read_in_place;  ///< the file of these that a spec names; empty: it names the directory
};

/// The table. Sizes and sums are those of the publishers' files; where they are known from is in
/// docs/formats.md.
[[nodiscard]] const std::vector<Package>& packages();
[[nodiscard]] std::vector<std::string> package_names();

/// How people get a set that has no package, because its publisher gives no file whose content stays the same
/// ("fruits-360"); empty where nothing is known of `name`.
[[nodiscard]] std::string how_to_get(const std::string& name);

struct Got {
  std::filesystem::path directory;
  std::string spec;        ///< what to train with: "mnist:/cache/mnist"
  bool was_there = false;  ///< by an earlier get of the same files: nothing was downloaded
};

/// Brings `package` into cache/directory, whole or not at all: files are downloaded beside it, unpacked into
/// a folder that is then renamed, and removed. A note in it keeps the sums, so that the next get knows it.
///
/// Errors   Error(data): what download() says; a folder of that name that get did not make; a full disk
[[nodiscard]] Got get(const Package& package, const std::filesystem::path& cache,
                      const DownloadOptions& options);

}  // namespace paceline::data
