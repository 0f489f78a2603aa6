#pragma once

/// Looking through images of a store, all or some: what they are, which are broken, which come twice.

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "data/image/dataset.h"
#include "data/image/decode.h"
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

/// What one image shows.
struct ImageLook {
  ImageHeader header;  ///< height 0: it has none
  bool grey = false;   ///< red, green and blue are the same everywhere, to within a JPEG's rounding
  bool plain = false;  ///< its corners are of one colour: a thing before a background
  std::string broken;  ///< why it cannot be read or decoded; "": it can
};

/// Decodes the images `samples` of `set`, at the least scale that shows 32 pixels a side; in their order,
/// whatever the number of threads.
[[nodiscard]] std::vector<ImageLook> look_at(const ImageDataset& set, std::span<const std::int64_t> samples,
                                             int threads);

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

/// The same without reports. Cost: a look at every file, and reads of those whose length comes twice
[[nodiscard]] std::vector<Duplicate> find_duplicates(const ImageDataset& first, const ImageDataset& second,
                                                     int threads);

}  // namespace paceline::data
