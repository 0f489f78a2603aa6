#pragma once

/// Examines a folder of the user's images for `paceline init`.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/image/listing.h"

namespace paceline::init {

/// Where the test set comes from.
enum class TestFrom { folder, validation_folder, cut };

struct DataFacts {
  std::string
      spec;  ///< "folder:/home/me/birds,classes=top": the value for --data, without sizes and augmentation
  bool has_sizes = false;  ///< images in files of different sizes; otherwise all have `format`
  data::ImageFormat format;
  std::vector<std::string> class_names;
  std::vector<std::int64_t> per_class;  ///< [classes]: training images
  std::int64_t train = 0, validation = 0, test = 0;
  TestFrom test_from = TestFrom::folder;
  std::vector<std::string> notes;  ///< how the folder was interpreted

  // For images in files: figures of a sample, spread evenly over each part.
  std::int64_t looked_at = 0;
  std::vector<int> short_sides, long_sides;   ///< ascending; of images with a valid header
  std::map<std::string, std::int64_t> kinds;  ///< "JPEG RGB": their number
  std::int64_t grey = 0, plain = 0;           ///< as in data::ImageFacts
  std::int64_t turned = 0;                    ///< by EXIF
  std::vector<std::string> broken;            ///< "FILE: why"

  bool sought_duplicates = false;                   ///< whether there were few enough images to compare
  std::int64_t across_parts = 0, inside_train = 0;  ///< images that duplicate another one, byte for byte
  std::vector<std::string> duplicates;              ///< the first of those across parts: "A = B"
  std::int64_t contradicting = 0;                   ///< duplicates with different classes

  [[nodiscard]] int classes() const { return static_cast<int>(class_names.size()); }
  [[nodiscard]] std::int64_t all() const { return train + validation + test; }
  [[nodiscard]] bool looked_at_all() const { return looked_at == all(); }
  [[nodiscard]] int median_side() const;  ///< of the shorter sides
  [[nodiscard]] std::int64_t fewest() const;
  [[nodiscard]] std::int64_t most() const;
  [[nodiscard]] bool is_mostly_grey() const;
  [[nodiscard]] bool is_mostly_plain() const;
};

/// The largest number of images that are decoded, and that are compared for duplicates.
inline constexpr std::int64_t kMostLookedAt = 16'384, kMostCompared = 16'384;

/// Examines `path`: a folder or a tar archive of images, or the files of CIFAR-10 or MNIST.
///
/// Cost     the names of all images; decodes kMostLookedAt of them on `threads` threads; with at most
///          kMostCompared images, reads those of equal length
/// Errors   Error(data), Error(usage): nothing is there, only one class, no images, images without classes
///          (with what else is there, and how to make class folders), a path that a spec cannot contain; more
///          than a tenth of the decoded images are broken
[[nodiscard]] DataFacts inspect_data(const std::string& path, int threads);

}  // namespace paceline::init
