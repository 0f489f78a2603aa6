#pragma once

/// What `paceline init` finds in a folder of the user's own.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace paceline::cli {

/// Where the test set comes from.
enum class TestFrom { folder, validation_folder, cut };

struct DataLook {
  std::string
      spec;  ///< "folder:/home/me/birds,classes=top": what --data takes, without sizes and augmentation
  bool has_sizes = false;  ///< images in files, of sizes of their own; else all are of `format`
  data::ImageFormat format;
  std::vector<std::string> class_names;
  std::vector<std::int64_t> per_class;  ///< [classes]: training images
  std::int64_t train = 0, validation = 0, test = 0;
  TestFrom test_from = TestFrom::folder;
  std::vector<std::string> notes;  ///< how the folder was understood

  // Of images in files, a sample of all parts, evenly over each.
  std::int64_t looked_at = 0;
  std::vector<int> short_sides, long_sides;   ///< ascending, of each that has a header
  std::map<std::string, std::int64_t> kinds;  ///< "JPEG RGB": how many
  std::int64_t grey = 0, plain = 0;           ///< as data::ImageLook
  std::vector<std::string> broken;            ///< "FILE: why"

  bool sought_duplicates = false;                   ///< there are few enough images
  std::int64_t across_parts = 0, inside_train = 0;  ///< images that another one is, byte for byte
  std::vector<std::string> duplicates;              ///< the first of those across parts: "A = B"
  std::int64_t contradicting = 0;                   ///< of all of them, those under another class

  [[nodiscard]] int classes() const { return static_cast<int>(class_names.size()); }
  [[nodiscard]] std::int64_t all() const { return train + validation + test; }
  [[nodiscard]] bool looked_at_all() const { return looked_at == all(); }
  [[nodiscard]] int median_side() const;  ///< of the shorter sides
  [[nodiscard]] std::int64_t fewest() const;
  [[nodiscard]] std::int64_t most() const;
  [[nodiscard]] bool is_mostly_grey() const;
  [[nodiscard]] bool is_mostly_plain() const;
};

/// The images that are decoded at most, and those among which duplicates are looked for.
inline constexpr std::int64_t kMostLookedAt = 16'384, kMostCompared = 16'384;

/// Looks at what `path` names: a folder or a tar archive of images, or the files of CIFAR-10 or MNIST.
///
/// Cost     the names of all images; decodes kMostLookedAt of them on `threads` threads, reads those of equal
///          length where there are at most kMostCompared
/// Errors   Error(data), Error(usage): nothing is there, one class only, no images, images without classes
///          (with what else lies there, and the way from it to class folders), a path that no spec can hold;
///          more than a tenth of the images looked at are broken
[[nodiscard]] DataLook look_at_data(const std::string& path, int threads);

}  // namespace paceline::cli
