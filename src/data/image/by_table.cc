#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/image/label_table.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;
using base::ErrorKind;

/// What the table says of an image.
struct Said {
  std::size_t line = 0;  ///< 0: nothing
  std::string label;
  std::optional<Split> part;
};

/// The first folder of a path that is called as a part, and what is below it.
struct FolderPart {
  Split split;
  std::string_view below;
};
std::optional<FolderPart> part_in(std::string_view path) {
  for (auto slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/')) {
    const auto below = path.substr(slash + 1);
    if (const auto split = split_of(path.substr(0, slash))) return FolderPart{*split, below};
    path = below;
  }
  return std::nullopt;
}

std::optional<Split> split_in(std::string_view path) {
  const auto part = part_in(path);
  return part ? std::optional(part->split) : std::nullopt;
}

constexpr const char* kPartWords[kSplits] = {"train", "val", "test"};

std::string table_path(const Spec& spec) {
  const auto& file = spec.options.at("labels");
  const auto inside = fs::path(spec.directory) / file;
  if (base::is_file(inside)) return inside.string();
  if (base::is_file(file)) return file;
  base::fail(ErrorKind::data,
             "data '{}': there is no table '{}' in {} and none of this path; give its path below DIR",
             spec.text, file, spec.directory);
}

LabelColumns columns_of(const Spec& spec, const LabelTable& table) {
  if (const auto name = spec.option("label").value_or(""); !name.empty()) {
    const auto column = table.find_column(name);
    if (!column)
      base::fail(ErrorKind::usage, "data '{}': {} has no column '{}'{}", spec.text, table.path, name,
                 base::suggestion(name, table.names));
    return {.columns = {*column}};
  }
  auto columns = label_columns(table);
  if (!columns.why_not.empty())
    base::fail(ErrorKind::data, "data '{}': {}: {}; name the column: label=COLUMN (or its number, from 1)",
               spec.text, table.path, columns.why_not);
  return columns;
}

/// Collects what the rows say, one image after the other.
class Rows {
 public:
  Rows(const LabelTable& table, const ImageListing& images, const ImageFinder& finder)
      : table_(table), images_(images), finder_(finder), said_(images.size()) {
    for (std::size_t i = 0; i < table.names.size() && table.has_header; ++i)
      if (base::lower_case(table.names[i]) == "split") split_ = i;
  }

  void read(const LabelColumns& columns) {
    for (std::size_t r = 0; r < table_.rows.size(); ++r) add(r, columns);
  }

  [[nodiscard]] const std::vector<Said>& said() const { return said_; }
  void note(std::vector<std::string>& notes) const {
    if (missing_ > 0)
      notes.push_back(fmt::format("{} of {} rows of {} name no image here, the first in line {}: '{}'",
                                  missing_, table_.rows.size(), table_.path, first_missing_line_,
                                  base::visible(first_missing_.substr(0, 80))));
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(std::size_t row, fmt::format_string<Args...> format, Args&&... args) const {
    base::fail(ErrorKind::data, "{}: line {}: {}", table_.path, table_.lines[row],
               fmt::format(format, std::forward<Args>(args)...));
  }

  void add(std::size_t r, const LabelColumns& columns) {
    const auto& row = table_.rows[r];
    const auto& cell = row[table_.image];
    const auto part = part_of_row(r);
    auto found = finder_.find(cell);
    if (found.size() > 1 && part)
      std::erase_if(found, [&](auto image) { return split_in(images_.path(image)) != part; });
    if (found.size() > 1)
      fail(r, "'{}' may be '{}' or '{}'; write the path below the folder", cell, images_.path(found[0]),
           images_.path(found[1]));
    if (found.empty()) {
      if (missing_++ == 0) {
        first_missing_ = cell;
        first_missing_line_ = table_.lines[r];
      }
      return;
    }
    const auto label = columns.of(table_, row);
    if (label.empty()) fail(r, "the image '{}' has no label; write one, or remove the line", cell);
    auto& said = said_[found.front()];
    if (said.line > 0 && (said.label != label || said.part != part))
      fail(
          r,
          "the image '{}' is '{}' here, and '{}' in line {}; an image has one class and one part: remove a line",
          cell, label, said.label, said.line);
    if (part) refuse_contradiction(r, *part, found.front());
    said = {.line = table_.lines[r], .label = label, .part = part};
  }

  [[nodiscard]] std::optional<Split> part_of_row(std::size_t r) const {
    if (!split_) return std::nullopt;
    const auto& text = table_.rows[r][*split_];
    const auto part = split_of(text);
    if (!part)
      fail(r, "its part is '{}', but a part is train, val or test; correct the column 'split'", text);
    return part;
  }

  /// A table that moves images out of the test folder, or into it, was hardly meant so.
  void refuse_contradiction(std::size_t r, Split part, std::uint32_t image) const {
    const auto path = images_.path(image);
    const auto of_path = split_in(path);
    if (of_path && *of_path != part && (part == kTest || *of_path == kTest))
      fail(r, "'{}' is of the part {} by its column 'split', but lies in a folder of {}; correct one of them",
           path, kPartWords[part], kPartWords[*of_path]);
  }

  const LabelTable& table_;
  const ImageListing& images_;
  const ImageFinder& finder_;
  std::optional<std::size_t> split_;
  std::vector<Said> said_;  ///< [image]
  std::size_t missing_ = 0, first_missing_line_ = 0;
  std::string first_missing_;
};

/// Gives each image that the table names a part where no column says one. Returns whether there are parts.
bool find_parts(const Spec& spec, const LabelTable& table, const ImageListing& images,
                std::vector<Said>& said) {
  std::string with, without;
  bool has_column = false;
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (said[i].line == 0) continue;
    has_column = has_column || said[i].part.has_value();
    const auto path = images.path(i);
    (split_in(path) ? with : without) = path;
  }
  if (has_column) return true;
  const auto named = part_name(fs::path(table.path).stem().string());
  if (with.empty() && (!named || named->split == kTrain)) return false;
  if (!with.empty() && !without.empty())
    base::fail(
        ErrorKind::data,
        "data '{}': '{}' lies in a folder of a part, but '{}' in none, so the part of the second is unclear; add a "
        "column 'split' with train, val or test to {}",
        spec.text, with, without, table.path);
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (said[i].line == 0) continue;
    said[i].part = with.empty() ? named->split : split_in(images.path(i));
  }
  return true;
}

/// Takes the images of train/CLASS/ that a list of validation or test images does not name.
void add_training_folders(const Spec& spec, const LabelTable& table, const ImageListing& images,
                          std::vector<Said>& said) {
  std::int64_t added = 0;
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (said[i].line > 0) continue;
    const auto path = images.path(i);
    const auto part = part_in(path);
    if (!part || part->split != kTrain) continue;
    const auto slash = part->below.find('/');
    if (slash == std::string_view::npos) continue;
    said[i] = {.line = SIZE_MAX, .label = std::string(part->below.substr(0, slash)), .part = kTrain};
    ++added;
  }
  if (added == 0)
    base::fail(
        ErrorKind::data,
        "data '{}': {} names no training image, and there is none in train/CLASS/ either; give the table of the "
        "training images, or the folder above train/",
        spec.text, table.path);
}

void require_classes(const Spec& spec, const LabelTable& table, const std::vector<std::string>& classes,
                     std::size_t trained) {
  constexpr std::size_t kFewImages = 20;
  if (classes.size() < 2)
    base::fail(
        ErrorKind::data,
        "data '{}': {} has one class for training ('{}'), but a classifier needs at least two; name another "
        "column: label=COLUMN",
        spec.text, table.path, classes.empty() ? "" : classes.front());
  if (trained > kFewImages && 2 * classes.size() > trained)
    base::fail(
        ErrorKind::data,
        "data '{}': {} has {} classes for {} training images ('{}', '{}', ...), so its label column is hardly the "
        "class; name another: label=COLUMN",
        spec.text, table.path, classes.size(), trained, classes[0], classes[1]);
}

}  // namespace

Arranged arrange_by_table(const Spec& spec, const ImageListing& images, double test_part) {
  const ImageFinder finder(images, spec.directory);
  const auto table = read_label_table(table_path(spec), finder, spec.option("image").value_or(""));
  Rows rows(table, images, finder);
  rows.read(columns_of(spec, table));
  Arranged arranged;
  rows.note(arranged.notes);
  auto said = rows.said();
  arranged.has_parts = find_parts(spec, table, images, said);
  const auto has = [&](Split split) {
    return std::ranges::any_of(said, [&](const Said& one) { return one.line > 0 && one.part == split; });
  };
  if (arranged.has_parts && !has(kTrain)) add_training_folders(spec, table, images, said);

  std::map<std::string, std::int32_t> labels;
  std::size_t trained = 0, unnamed = 0, first_unnamed = 0;
  for (std::size_t i = 0; i < said.size(); ++i)
    if (said[i].line == 0) {
      first_unnamed = unnamed++ == 0 ? i : first_unnamed;
    } else if (said[i].part.value_or(kTrain) == kTrain) {
      labels.emplace(said[i].label, 0);
      ++trained;
    }
  for (auto& [name, label] : labels) {
    label = static_cast<std::int32_t>(arranged.class_names.size());
    arranged.class_names.push_back(name);
  }
  require_classes(spec, table, arranged.class_names, trained);
  ArrangedPart* const parts[kSplits] = {&arranged.train, &arranged.validation, &arranged.test};
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (said[i].line == 0) continue;
    const auto found = labels.find(said[i].label);
    if (found == labels.end())
      base::fail(
          ErrorKind::data,
          "{}: line {}: the class '{}' of '{}' is not among the {} classes to train on ('{}', ...); every class of "
          "the validation and test sets must have training images",
          table.path, said[i].line, said[i].label, images.path(i), labels.size(), labels.begin()->first);
    ArrangedPart& part = *parts[said[i].part.value_or(kTrain)];
    part.images.push_back(static_cast<std::uint32_t>(i));
    part.labels.push_back(found->second);
  }
  if (unnamed > 0)
    arranged.notes.push_back(fmt::format("left out: {} that {} does not name, the first '{}'",
                                         base::counted(static_cast<std::int64_t>(unnamed), "image"),
                                         table.path, images.path(first_unnamed)));
  finish_parts(spec.text, arranged, test_part);
  return arranged;
}

}  // namespace paceline::data
