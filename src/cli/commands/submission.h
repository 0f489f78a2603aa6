#pragma once

/// The CSV file that a competition takes: an id and a class, or a probability for each class, a row an image.

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "train/classify.h"

namespace paceline::cli {

/// Its columns come from `columns` or from the sample that the competition gives, its rows from the images or
/// from the sample. The first column is the id: the file's name, without its ending unless `columns` begins
/// "ID=file"; with a sample in the form in which the sample has it. Each other column is a class's
/// probability, if it is named as a class or is written NAME=CLASS; a single other column is the class.
class Submission {
 public:
  /// `sample`: empty if there is none.
  ///
  /// Errors   Error(usage): a list of columns that has no such form, or is another than the sample's;
  ///          Error(data): the sample cannot be read, has no rows, or an id twice
  Submission(const std::string& columns, const std::filesystem::path& sample);

  /// Errors   Error(usage): a column that is none of `classes`; Error(data): the sample's class column holds
  ///          numbers, but the classes are none
  void set_classes(const std::vector<std::string>& classes);

  /// Requires  all classes of the image
  /// Errors    Error(data): another image has the same id
  void add(const train::ClassifiedImage& image);

  /// The whole file.
  ///
  /// Errors   Error(data): ids of the sample without an image
  [[nodiscard]] std::string text() const;
  /// A sentence about images whose ids the sample lacks; "" if there are none.
  [[nodiscard]] std::string left_over() const;

 private:
  struct Column {
    std::string name;
    std::string stands_for;  ///< behind '=' in `columns`
    bool is_label = false;   ///< otherwise a probability
  };
  void read_sample();
  [[nodiscard]] std::string id_of(const std::string& path) const;

  std::filesystem::path sample_;
  std::vector<Column> columns_;                ///< the first is the id
  std::vector<std::string> ids_;               ///< the sample's, in its order
  std::map<std::string, std::size_t> row_of_;  ///< [id], of the sample
  std::string first_label_;                    ///< what the sample's first row has in its second column
  bool has_numbers_ = false;                   ///< all rows have numbers there
  struct Row {
    std::string file;   ///< for messages
    std::string cells;  ///< all but the id
  };
  std::map<std::string, Row> rows_;  ///< [id]
  std::vector<std::string> order_;   ///< ids as they came
  std::vector<std::string> left_over_;
};

}  // namespace paceline::cli
