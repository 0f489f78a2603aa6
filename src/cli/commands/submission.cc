#include "cli/commands/submission.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/csv.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace paceline::cli {
namespace {

using base::ErrorKind;

constexpr const char* kWholeName = "file";

bool is_number(const std::string& text) { return base::to_number<double>(text).has_value(); }

std::string name_in(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string without_ending(const std::string& name) {
  const auto dot = name.rfind('.');
  return dot == std::string::npos || dot == 0 ? name : name.substr(0, dot);
}

/// "'a', 'b', 'c' and 4 more"
std::string some_of_ids(const std::vector<std::string>& ids) {
  constexpr std::size_t kMost = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, ids.size()); ++i)
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", base::visible(ids[i]));
  return ids.size() > kMost ? fmt::format("{} and {} more", text, ids.size() - kMost) : text;
}

}  // namespace

Submission::Submission(const std::string& columns, const std::filesystem::path& sample) : sample_(sample) {
  for (std::size_t begin = 0; begin <= columns.size() && !columns.empty();) {
    const auto end = std::min(columns.find(',', begin), columns.size());
    const auto word = columns.substr(begin, end - begin);
    const auto equals = std::min(word.find('='), word.size());
    columns_.push_back(
        {.name = word.substr(0, equals), .stands_for = word.substr(std::min(equals + 1, word.size()))});
    if (columns_.back().name.empty() || (equals < word.size() && columns_.back().stands_for.empty()))
      base::fail(ErrorKind::usage, "--columns {}: a column is NAME or NAME=CLASS, not '{}'; correct it",
                 columns, word);
    begin = end + 1;
  }
  if (!columns_.empty() && (columns_.size() < 2 || (!columns_.front().stands_for.empty() &&
                                                    columns_.front().stands_for != kWholeName)))
    base::fail(
        ErrorKind::usage,
        "--columns {}: the first column is the id, ID or ID=file, and others follow, such as id,label; "
        "correct it",
        columns);
  if (!sample_.empty()) read_sample();
}

void Submission::read_sample() {
  const auto where = sample_.string();
  const auto lines = base::read_csv(base::read_file(sample_), where);
  if (lines.size() < 2 || lines.front().size() < 2)
    base::fail(
        ErrorKind::data,
        "{}: a sample submission has a line of names, an id first, and a row for each image; this one has {} "
        "of {}",
        where, base::counted(lines.size(), "line"),
        base::counted(lines.empty() ? 0 : lines.front().size(), "column"));
  std::vector<Column> named;
  for (const auto& cell : lines.front()) named.push_back({.name = cell.text, .stands_for = {}});
  if (columns_.empty()) columns_ = named;
  if (!std::ranges::equal(columns_, named, {}, &Column::name, &Column::name)) {
    base::fail(ErrorKind::usage, "--columns: the columns of {} are {}; write these, with =CLASS where needed",
               where, fmt::join(base::texts_of(named, &Column::name), ","));
  }
  has_numbers_ = true;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto& line = lines[i];
    if (line.size() != named.size())
      base::fail(ErrorKind::data, "{}:{}: has {} cells, but there are {} columns; correct the file", where,
                 line.front().line, line.size(), named.size());
    if (!row_of_.emplace(line.front().text, ids_.size()).second)
      base::fail(ErrorKind::data, "{}:{}: the id '{}' is there twice; correct the file", where,
                 line.front().line, base::visible(line.front().text));
    ids_.push_back(line.front().text);
    has_numbers_ = has_numbers_ && is_number(line[1].text);
  }
  first_label_ = lines[1][1].text;
}

void Submission::set_classes(const std::vector<std::string>& classes) {
  const auto is_class = [&](const std::string& name) {
    return std::ranges::find(classes, name) != classes.end();
  };
  const bool is_single = columns_.size() == 2;
  for (std::size_t i = 1; i < columns_.size(); ++i) {
    auto& column = columns_[i];
    if (column.stands_for.empty() && is_class(column.name)) column.stands_for = column.name;
    if (column.stands_for.empty() && is_single) {
      column.is_label = true;
      continue;
    }
    if (!is_class(column.stands_for))
      base::fail(
          ErrorKind::usage,
          "the column '{}' is a probability, but {} is none of the {} classes, '{}' to '{}'; --columns names "
          "each column's class: {}=CLASS",
          column.name, column.stands_for.empty() ? "its name" : "'" + column.stands_for + "'", classes.size(),
          classes.front(), classes.back(), column.name);
  }
  if (is_single && columns_[1].is_label && has_numbers_ && !std::ranges::all_of(classes, is_number))
    base::fail(
        ErrorKind::data,
        "{}: its column '{}' holds numbers, such as {}, but the classes have names, '{}' to '{}'; if it is the "
        "probability of a class, name that: --columns {},{}=CLASS",
        sample_.string(), columns_[1].name, first_label_, classes.front(), classes.back(), columns_[0].name,
        columns_[1].name);
}

/// With a sample the form of the name that is an id in it.
std::string Submission::id_of(const std::string& path) const {
  const auto name = name_in(path), stem = without_ending(name);
  if (sample_.empty()) return columns_.front().stands_for == kWholeName ? name : stem;
  for (const auto& form : {name, stem, path})
    if (row_of_.contains(form)) return form;
  return stem;
}

void Submission::add(const train::ClassifiedImage& image) {
  Row row{.file = image.file, .cells = {}};
  for (std::size_t i = 1; i < columns_.size(); ++i) {
    const auto& column = columns_[i];
    if (column.is_label) {
      row.cells += "," + base::csv_cell(image.classes.front().first);
      continue;
    }
    const auto found =
        std::ranges::find(image.classes, column.stands_for, [](const auto& one) { return one.first; });
    base::expects(found != image.classes.end(), "an image has all classes");
    row.cells += fmt::format(",{:.8g}", found->second);
  }
  const auto id = id_of(image.path);
  if (!sample_.empty() && !row_of_.contains(id)) {
    left_over_.push_back(id);
    return;
  }
  const auto [at, is_new] = rows_.emplace(id, std::move(row));
  if (!is_new)
    base::fail(ErrorKind::data,
               "{} and {} have one id, '{}'; a row belongs to one image: give those of one folder, or write "
               "--columns {}=file,... where their endings differ",
               at->second.file, image.file, base::visible(id), columns_.front().name);
  order_.push_back(id);
}

std::string Submission::text() const {
  std::vector<std::string> missing;
  std::ranges::copy_if(ids_, std::back_inserter(missing),
                       [&](const auto& id) { return !rows_.contains(id); });
  if (!missing.empty())
    base::fail(ErrorKind::data,
               "{}: {} of its {} ids have no image that was classified: {}; give those images too ({})",
               sample_.string(), missing.size(), ids_.size(), some_of_ids(missing),
               left_over_.empty() ? "all that were given are in it"
                                  : "of those given it lacks " + some_of_ids(left_over_));
  auto text = base::joined(columns_, ",", [](const Column& one) { return base::csv_cell(one.name); }) + "\n";
  for (const auto& id : sample_.empty() ? order_ : ids_)
    text += base::csv_cell(id) + rows_.at(id).cells + "\n";
  return text;
}

std::string Submission::left_over() const {
  if (left_over_.empty()) return "";
  return fmt::format("{}: {} left out, whose ids it lacks: {}", sample_.string(),
                     base::counted(left_over_.size(), "image is", "images are"), some_of_ids(left_over_));
}

}  // namespace paceline::cli
