#pragma once

/// Inspects images of a store: kinds and sizes, broken images, duplicates.

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/image/dataset.h"
#include "data/image/decode.h"
#include "data/image/scan.h"

namespace paceline::data {

/// Two samples with equal content; `first` is the earliest such sample.
struct DuplicatePair {
  std::int64_t first = 0, second = 0;
};

/// Whether the contents of samples `a` and `b`, which have equal hashes, are equal.
using IsEqual = std::function<bool(std::int64_t a, std::int64_t b)>;

/// The samples whose content an earlier one has too.
///
/// Cost     a comparison for each of them, however many are alike, and one for each collision of hashes
[[nodiscard]] std::vector<DuplicatePair> find_equal(std::span<const std::uint64_t> hashes,
                                                    const IsEqual& is_equal);

/// The samples of `other` whose content is also in the set of `hashes`. `is_equal_inside` compares two
/// samples of that set, `is_equal` one of it with one of `other`.
[[nodiscard]] std::vector<DuplicatePair> find_equal(std::span<const std::uint64_t> hashes,
                                                    const IsEqual& is_equal_inside,
                                                    std::span<const std::uint64_t> other,
                                                    const IsEqual& is_equal);

struct BrokenEntry {
  std::size_t at = 0;  ///< in the inspected list
  std::string name, reason;
};

/// Decodes all of `images` (in `store`) at full size, those of 16 bits by `range`; returns those that fail,
/// in order, whatever the number of threads.
[[nodiscard]] std::vector<BrokenEntry> find_broken(const ImageStore& store,
                                                   std::span<const std::uint32_t> images, int threads,
                                                   const std::optional<Range>& range = {});

/// find_broken() with a cache by image names and range: the cells of a study open the same folder several
/// times. An image that breaks after the first search is found when it is read.
///
/// Threads  any number; one searches while the others wait
class BrokenImageCache {
 public:
  [[nodiscard]] std::vector<BrokenEntry> find(const ImageStore& store, std::span<const std::uint32_t> images,
                                              int threads, const std::optional<Range>& range = {});

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::vector<BrokenEntry>> known_;  ///< by hash of the images' names
};

/// The contents of one part of a data set.
struct PartReport {
  std::int64_t images = 0;
  std::vector<std::int64_t> per_class;        ///< [classes]
  std::vector<int> heights, widths;           ///< of each image that has a header, in order
  std::map<std::string, std::int64_t> kinds;  ///< "JPEG RGB": how many
  std::int64_t encoded_bytes = 0;
  std::int64_t turned = 0;            ///< by EXIF
  std::vector<BrokenEntry> broken;    ///< without `decode`: only faults of headers
  std::vector<std::uint64_t> hashes;  ///< of each image's encoded bytes
};

/// Reads every image of `set`; with `decode` all pixels too, otherwise only the headers.
[[nodiscard]] PartReport inspect(const ImageDataset& set, int classes, bool decode, int threads);

/// What is known of one image.
struct ImageFacts {
  ImageHeader header;  ///< height 0: it has none
  bool grey = false;   ///< red, green and blue are equal everywhere, up to JPEG's rounding
  bool plain = false;  ///< its corners have one colour: an object on a plain background
  std::string broken;  ///< why it cannot be read or decoded; "" if it can
};

/// Decodes the images `samples` of `set`, at the smallest scale with 32 pixels a side. The order of the
/// results is that of `samples`.
[[nodiscard]] std::vector<ImageFacts> examine_images(const ImageDataset& set,
                                                     std::span<const std::int64_t> samples, int threads);

/// Two images with the same bytes.
struct Duplicate {
  std::string first, second;
  bool same_label = true;
};

/// The images of `second` that are also in `first`, byte for byte. With one set given twice: its duplicates.
[[nodiscard]] std::vector<Duplicate> find_duplicates(const ImageDataset& first,
                                                     const PartReport& first_report,
                                                     const ImageDataset& second,
                                                     const PartReport& second_report);

/// The same without reports.
///
/// Cost     the size of every file, and reads of files that share their size with another
[[nodiscard]] std::vector<Duplicate> find_duplicates(const ImageDataset& first, const ImageDataset& second,
                                                     int threads);

}  // namespace paceline::data
