#pragma once

/// Tables that name images and say their classes: CSV, TSV, and lists "NAME CLASS".

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/image/listing.h"
#include "data/spec.h"

namespace paceline::data {

/// Finds the images that cells of a table name: by path or by name, each with or without its ending, or by
/// the end of a path.
class ImageFinder {
 public:
  /// `top`: the folder that holds the images, whose own name may begin a cell.
  ImageFinder(const ImageListing& images, const std::filesystem::path& top);
  /// All that `cell` may mean; one that has just this path comes alone.
  [[nodiscard]] std::vector<std::uint32_t> find(std::string_view cell) const;

 private:
  const ImageListing& images_;
  std::string top_;                                              ///< ends with '/'
  std::unordered_multimap<std::string, std::uint32_t> by_name_;  ///< names without ending
};

struct LabelTable {
  std::string path;
  bool has_header = true;
  std::vector<std::string> names{};              ///< of the columns; without a header the first line's cells
  std::vector<std::vector<std::string>> rows{};  ///< without the header, each as long as `names`
  std::vector<std::size_t> lines{};              ///< of each row, from 1
  std::size_t image = 0;                         ///< the column that names images
  std::size_t found = 0;                         ///< rows whose image is there
  /// "'breed'", or "2 (from 1)" without a header.
  [[nodiscard]] std::string column(std::size_t i) const;
  /// The column of this name, or of this number from 1; nullopt if there is none.
  [[nodiscard]] std::optional<std::size_t> find_column(const std::string& name) const;
};

/// `image`: what the column of the images is called, or its number; "": the one that names most images.
///
/// Errors   Error(data) with file, line and rule: no table, lines of different lengths, a column that is not
///          there, no cell that names an image
[[nodiscard]] LabelTable read_label_table(const std::filesystem::path& path, const ImageFinder& images,
                                          const std::string& image = "");

/// How a table says the class of an image.
struct LabelColumns {
  std::vector<std::size_t> columns{};  ///< one; or several of 0 and 1, named after the classes
  std::string why_not{};               ///< why no column is the class's
  [[nodiscard]] bool are_one_hot() const { return columns.size() > 1; }
  [[nodiscard]] std::string of(const LabelTable& table, const std::vector<std::string>& row) const;
};
/// The column that most likely holds the class: by its name, else the only one whose texts come again and
/// again; or the columns of 0 and 1 of which each row has one 1.
[[nodiscard]] LabelColumns label_columns(const LabelTable& table);

/// A table beside the images that names some of them.
struct FoundTable {
  std::string file;                    ///< its name in the folder
  std::vector<std::string> classes{};  ///< sorted
  std::string why_not{};               ///< "FILE: why its classes are not clear"
};
/// Those directly in `folder`, by name.
///
/// Cost     where there is a table, the names of all images
[[nodiscard]] std::vector<FoundTable> find_label_tables(const std::filesystem::path& folder);

/// Assigns images to parts and classes by the table that the option `labels` names (in the folder, else where
/// the path leads); `image` and `label` name its columns.
///
/// The part of an image: the column `split`; else the folder of its path that is called as a part; else what
/// the table is called after. Where the table names no training image, those of the folder train/ are taken,
/// each of the class of the first folder below. Images that have no label are left out, with a note. Without
/// another part `test_part` of every class is the test set.
///
/// Errors   Error(usage): no such column; Error(data) with file and line: an image without a label, with two,
/// or
///          with a part that is unclear; a class that training lacks; one class only; no training image
[[nodiscard]] Arranged arrange_by_table(const Spec& spec, const ImageListing& images, double test_part);

}  // namespace paceline::data
