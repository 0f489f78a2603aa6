#pragma once

/// Looking through all images of a store: what they are, which are broken, which come twice.

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "data/image/dataset.h"
#include "data/image/store.h"

namespace paceline::data {

struct BrokenEntry {
  std::size_t at = 0;  ///< in the list that was looked through
  std::string name, reason;
};

/// Decodes every one of `images` (in `store`) at its full size; returns those that fail, in order, whatever
/// the number of threads.
[[nodiscard]] std::vector<BrokenEntry> find_broken(const ImageStore& store,
                                                   std::span<const std::uint32_t> images, int threads);

/// find_broken, once for the same names: every cell of a study opens its folder, several times, and would
/// decode all of it each time. An image that breaks after the first search is found when it is read.
///
/// Threads  any number; the others wait for one that searches
class BrokenImageCache {
 public:
  [[nodiscard]] std::vector<BrokenEntry> find(const ImageStore& store, std::span<const std::uint32_t> images,
                                              int threads);

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::vector<BrokenEntry>> known_;  ///< by hash of the images' names
};

/// What one part of a data set holds.
struct PartReport {
  std::int64_t images = 0;
  std::vector<std::int64_t> per_class;        ///< [classes]
  std::vector<int> heights, widths;           ///< of each image that has a header, in order
  std::map<std::string, std::int64_t> kinds;  ///< "JPEG RGB": how many
  std::int64_t encoded_bytes = 0;
  std::vector<BrokenEntry> broken;    ///< without `decode`: only what the headers show
  std::vector<std::uint64_t> hashes;  ///< of each image's encoded bytes
};

/// Reads every image of `set`; with `decode` all their pixels too, otherwise only the headers.
[[nodiscard]] PartReport inspect(const ImageDataset& set, int classes, bool decode, int threads);

/// Two images with the same bytes.
struct Duplicate {
  std::string first, second;
  bool same_label = true;
};

/// The images of `second` that `first` has too, byte for byte; or, with one set given twice, its repetitions.
[[nodiscard]] std::vector<Duplicate> find_duplicates(const ImageDataset& first,
                                                     const PartReport& first_report,
                                                     const ImageDataset& second,
                                                     const PartReport& second_report);

}  // namespace paceline::data
