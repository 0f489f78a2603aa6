#include "data/image/label_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <system_error>

#include "base/csv.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/image/scan.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;
using base::ErrorKind;

/// A larger file is hardly a list of names and labels.
constexpr std::uintmax_t kMostTableBytes = std::uintmax_t{256} << 20;

std::string_view without_ending(std::string_view name) {
  return is_image_name(name) ? name.substr(0, name.rfind('.')) : name;
}

/// Whether `longer` is `end`, or a path that ends with it.
bool ends_with_path(std::string_view longer, std::string_view end) {
  return longer.ends_with(end) &&
         (longer.size() == end.size() || longer[longer.size() - end.size() - 1] == '/');
}

/// 0 or 1, also as "1.0"; nothing for other texts.
std::optional<int> bit_of(const std::string& text) {
  const auto value = base::to_number<double>(text);
  return value == 0 || value == 1 ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

std::set<std::string> values_of(const LabelTable& table, std::size_t column) {
  std::set<std::string> values;
  for (const auto& row : table.rows) values.insert(row[column]);
  return values;
}

/// "n01440764 1 2 3 4" of ImageNet's solution file, whose first word is the class.
bool is_prediction(const LabelTable& table, std::size_t column) {
  return table.has_header && table.names[column] == "PredictionString";
}

LabelColumns one_column(const LabelTable& table) {
  std::vector<std::size_t> candidates, of_words;
  const std::size_t columns = table.names.size(), rows = table.rows.size();
  for (std::size_t i = 0; i < columns; ++i) {
    if (i == table.image || (table.has_header && base::lower_case(table.names[i]) == "split")) continue;
    const auto values = values_of(table, i);
    if (values.size() < 2 || (columns > 2 && 2 * values.size() > rows)) continue;
    candidates.push_back(i);
    if (!std::ranges::all_of(values,
                             [](const auto& text) { return base::to_number<double>(text).has_value(); }))
      of_words.push_back(i);
  }
  for (const char* word : {"label", "class", "category", "target", "breed", "species", "diagnosis", "variety",
                           "predictionstring"})
    for (std::size_t i = 0; i < columns && table.has_header; ++i)
      if (i != table.image && base::lower_case(table.names[i]).find(word) != std::string::npos &&
          values_of(table, i).size() >= 2)
        return {.columns = {i}};
  if (candidates.size() > 1 && of_words.size() == 1) candidates = of_words;
  if (candidates.size() == 1) return {.columns = candidates};
  const auto named = base::joined(candidates, ", ", [&](std::size_t i) { return table.column(i); });
  return {.why_not = candidates.empty()
                         ? "no other column has texts that come again and again, as classes do"
                         : fmt::format("which of the columns {} is the class is not clear", named)};
}

/// The lines of a file: cells as they are separated in its first line, by blanks if it has no separator.
std::vector<base::CsvLine> lines_of_table(const std::string& text, const std::string& path) {
  const auto first = text.substr(0, text.find('\n'));
  if (first.find_first_of(",;\t") != std::string::npos || trimmed(first).find(' ') == std::string_view::npos)
    return base::read_csv(text, path);
  std::vector<base::CsvLine> lines;
  std::size_t number = 1;
  for (std::string_view rest = text; !rest.empty(); ++number) {
    const auto line = trimmed(take_line(rest));
    if (line.empty()) continue;
    const auto blank = std::min(line.find(' '), line.size());
    lines.push_back(
        {{.text = std::string(line.substr(0, blank)), .line = number, .column = 1},
         {.text = std::string(trimmed(line.substr(blank))), .line = number, .column = blank + 1}});
  }
  return lines;
}

}  // namespace

ImageFinder::ImageFinder(const ImageListing& images, const fs::path& top)
    : images_(images), top_(fs::absolute(top).lexically_normal().string()) {
  if (!top_.ends_with('/')) top_ += '/';
  by_name_.reserve(images.size());
  for (std::size_t i = 0; i < images.size(); ++i)
    by_name_.emplace(without_ending(images.name(i)), static_cast<std::uint32_t>(i));
}

std::vector<std::uint32_t> ImageFinder::find(std::string_view cell) const {
  while (cell.starts_with("./")) cell.remove_prefix(2);
  const auto name = last_part(cell);
  if (name.empty()) return {};
  const std::string stem(without_ending(name));
  std::vector<std::uint32_t> found;
  const auto [begin, end] = by_name_.equal_range(stem);
  for (auto it = begin; it != end; ++it) {
    std::string path = images_.path(it->second);
    if (stem.size() == name.size()) path = path.substr(0, path.rfind('.'));
    if (path == cell) return {it->second};
    // "test/1.jpg" is no "1.jpg" of another folder, but one of a folder test that was given.
    if (ends_with_path(top_ + path, cell)) found.push_back(it->second);
  }
  std::ranges::sort(found);
  return found;
}

std::string LabelTable::column(std::size_t i) const {
  return has_header ? fmt::format("'{}'", base::visible(names[i])) : fmt::format("{} (from 1)", i + 1);
}

std::optional<std::size_t> LabelTable::find_column(const std::string& name) const {
  if (has_header)
    if (const auto named = std::ranges::find(names, name); named != names.end())
      return static_cast<std::size_t>(named - names.begin());
  const auto number = base::to_number<std::size_t>(name);
  return number && *number >= 1 && *number <= names.size() ? std::optional(*number - 1) : std::nullopt;
}

LabelTable read_label_table(const fs::path& path, const ImageFinder& images, const std::string& image) {
  LabelTable table{.path = path.string()};
  std::error_code unknown;
  if (const auto bytes = fs::file_size(path, unknown); !unknown && bytes > kMostTableBytes)
    base::fail(ErrorKind::data, "{}: has {} bytes, which is too much for a table of labels (at most {})",
               table.path, bytes, kMostTableBytes);
  auto text = base::read_file(path);
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  if (text.find('\0') != std::string::npos)
    base::fail(ErrorKind::data,
               "{}: holds a byte of zero, so it is no table; give a file of comma-separated values",
               table.path);
  const auto lines = lines_of_table(text, table.path);
  if (lines.empty() || lines.front().size() < 2)
    base::fail(
        ErrorKind::data,
        "{}: is no table of labels: its first line has {}, but an image and its label are two; separate them by "
        "a comma, a tab or a blank",
        table.path, lines.empty() ? "no cell" : "one cell");
  for (const auto& line : lines) {
    if (line.size() != lines.front().size())
      base::fail(
          ErrorKind::data,
          "{}: line {} has {}, but the first has {}; quote a text with a comma (\"red, round\"), or complete the "
          "line",
          table.path, line.front().line, base::counted(static_cast<std::int64_t>(line.size()), "cell"),
          lines.front().size());
    auto& row = table.rows.emplace_back();
    for (const auto& cell : line) row.emplace_back(trimmed(cell.text));
    table.lines.push_back(line.front().line);
  }
  table.names = table.rows.front();
  const auto count = [&](std::size_t column) {
    return static_cast<std::size_t>(std::ranges::count_if(
        table.rows, [&](const auto& row) { return !images.find(row[column]).empty(); }));
  };
  if (!image.empty()) {
    const auto column = table.find_column(image);
    if (!column)
      base::fail(ErrorKind::usage, "{}: has no column '{}'{}", table.path, image,
                 base::suggestion(image, table.names));
    table.image = *column;
    table.found = count(*column);
  } else {
    for (std::size_t i = 0; i < table.names.size(); ++i)
      if (const auto hits = count(i); hits > table.found) {
        table.found = hits;
        table.image = i;
      }
  }
  if (table.found == 0)
    base::fail(
        ErrorKind::data,
        "{}: no cell{} names an image of the folder (the second line begins with '{}'); give the folder that the "
        "names are below",
        table.path, image.empty() ? "" : fmt::format(" of its column '{}'", image),
        base::visible(table.rows[std::min<std::size_t>(1, table.rows.size() - 1)].front().substr(0, 80)));
  table.has_header = images.find(table.names[table.image]).empty();
  if (table.has_header) {
    table.rows.erase(table.rows.begin());
    table.lines.erase(table.lines.begin());
  }
  return table;
}

std::string LabelColumns::of(const LabelTable& table, const std::vector<std::string>& row) const {
  if (!are_one_hot()) {
    const auto& label = row[columns.front()];
    return is_prediction(table, columns.front()) ? label.substr(0, label.find(' ')) : label;
  }
  for (const auto i : columns)
    if (bit_of(row[i]) == 1) return table.names[i];
  return "";
}

LabelColumns label_columns(const LabelTable& table) {
  std::vector<std::size_t> bits;
  for (std::size_t i = 0; i < table.names.size() && table.has_header; ++i)
    if (i != table.image &&
        std::ranges::all_of(table.rows, [&](const auto& row) { return bit_of(row[i]).has_value(); }))
      bits.push_back(i);
  auto labels = one_column(table);
  const bool is_of_bits = bits.size() > 1 && (labels.columns.empty() ||
                                              std::ranges::find(bits, labels.columns.front()) != bits.end());
  if (!is_of_bits) return labels;
  std::vector<std::size_t> odd;
  for (std::size_t r = 0; r < table.rows.size(); ++r)
    if (std::ranges::count_if(bits, [&](std::size_t i) { return bit_of(table.rows[r][i]) == 1; }) != 1)
      odd.push_back(table.lines[r]);
  const auto named = base::joined(bits, ", ", [&](std::size_t i) { return table.column(i); });
  labels = {.columns = bits};
  if (!odd.empty())
    labels.why_not = fmt::format(
        "its columns {} hold 0 and 1, and {} of {} rows have not exactly one 1 (the first in line {}): an image of "
        "several classes, or of none, cannot be learned here",
        named, odd.size(), table.rows.size(), odd.front());
  return labels;
}

std::vector<FoundTable> find_label_tables(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : base::entries_of(folder))
    if (const auto ending = base::lower_case(entry.path().extension().string());
        (ending == ".csv" || ending == ".tsv") && base::is_file(entry.path()))
      paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<FoundTable> found;
  if (paths.empty()) return found;
  ImageListing images;
  try {
    images = scan_folder(folder).listing;
  } catch (const base::Error&) {
    return found;  // it cannot be listed, which its reader says
  }
  const ImageFinder finder(images, folder);
  for (const auto& path : paths) {
    try {
      const auto table = read_label_table(path, finder);
      const auto columns = label_columns(table);
      FoundTable one{.file = path.filename().string()};
      if (!columns.why_not.empty())
        one.why_not = fmt::format("{} is a table: its column {} names images, but {}", path.string(),
                                  table.column(table.image), columns.why_not);
      std::set<std::string> classes;
      for (const auto& row : table.rows)
        if (one.why_not.empty()) classes.insert(columns.of(table, row));
      one.classes.assign(classes.begin(), classes.end());
      found.push_back(std::move(one));
    } catch (const base::Error&) {
      continue;  // no table, or none of these images
    }
  }
  return found;
}

}  // namespace paceline::data
