#pragma once

/// Data sets whose images are arrays in memory: read from NumPy's files (npz.cc) or from tables of pixels
/// (pixel_table.cc).

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/spec.h"

namespace paceline::data {

// Labels that are numbers.

/// Labels first .. first + count - 1.
struct LabelNumbers {
  int first = 0, count = 0;
  /// Their decimal numbers.
  [[nodiscard]] std::vector<std::string> names() const;
};
/// The numbers of the classes, from how often each label occurs in training. They begin at 0, or at 1 where
/// there is no 0, and each has an image: a damaged label hardly ever continues them.
///
/// Errors   Error(data) with `where` and the label that breaks this
[[nodiscard]] LabelNumbers number_classes(const std::string& where,
                                          const std::map<std::int64_t, std::int64_t>& counts);

/// The images of one part.
struct ArrayPart {
  std::string where;  ///< "a.npz: train_images", for messages
  ImageFormat format;
  std::vector<std::uint8_t> pixels;    ///< [labels.size()] images of `format`
  std::vector<std::int64_t> labels{};  ///< as they are stored
  std::string where_labels{};          ///< "a.npz: train_labels"
};
struct ArrayParts {
  std::optional<ArrayPart> train, validation, test;
  std::vector<std::string> left_out{};  ///< arrays of other names
};
/// The parts as a source, without name, description and normalisation. Without a test part the validation
/// part is the test set; without either the option `test` of every class is held back from training. Notes
/// say so.
///
/// Errors   Error(data): no training part, parts of different sizes, a label that training lacks
[[nodiscard]] Source source_of_arrays(const Spec& spec, ArrayParts parts);

// NumPy's files (npz.cc).

/// An array of a .npy file: a header that is checked, and the values in C order.
struct NpyArray {
  char kind = 'u';  ///< u, i, f, b as in NumPy's type strings
  int bytes = 1;    ///< of a value
  bool is_big_endian = false;
  std::vector<std::int64_t> shape{};
  std::span<const std::uint8_t> values{};  ///< of the file's bytes
};
/// Errors   Error(data) with `where`: no .npy file, another version, a header that is not NumPy's, pickled
///          objects, Fortran's order, more or fewer bytes than the header announces
[[nodiscard]] NpyArray parse_npy(const std::string& where, std::span<const std::uint8_t> bytes);

/// The parts that a .npz file holds under MedMNIST's names (train_images, train_labels, val_, test_) or
/// Keras's (x_train, y_train, ...).
///
/// Cost     all arrays of these names in memory
/// Errors   Error(data) with file, array, rule and what to do
[[nodiscard]] ArrayParts read_npz(const Spec& spec, const std::filesystem::path& path);

// Tables of pixels (pixel_table.cc).

/// A line an image: its label, then the grey values of a square image, row by row, as Kaggle's tables of
/// MNIST. A first line of names is passed over.
///
/// Errors   Error(data) with file, line and rule
[[nodiscard]] ArrayPart read_pixel_table(const std::filesystem::path& path);
/// Whether the file begins as such a table does: a name that begins with "label", and hundreds of others; or
/// as many numbers.
[[nodiscard]] bool is_pixel_table(const std::filesystem::path& path);

}  // namespace paceline::data
