#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <compare>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/image/scan.h"
#include "init/data_facts.h"
#include "table/table.h"

namespace paceline::init {
namespace {

namespace fs = std::filesystem;

/// A larger file is hardly a list of names and labels.
constexpr std::uintmax_t kMostBytes = std::uintmax_t{256} << 20;

/// The tables directly in `folder`, by name.
std::vector<fs::path> tables_in(const fs::path& folder) {
  std::vector<fs::path> tables;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (const auto ending = base::lower_case(entry.path().extension().string());
        (ending == ".csv" || ending == ".tsv") && entry.is_regular_file(none))
      tables.push_back(entry.path());
  std::ranges::sort(tables);
  return tables;
}

/// Where an image that a cell names is: before and behind the cell's text.
struct Place {
  std::string before, behind;
  auto operator<=>(const Place&) const = default;
};

/// Images by their path, name, and name without ending.
class ImageNames {
 public:
  explicit ImageNames(const data::ImageListing& images) {
    for (std::size_t i = 0; i < images.size(); ++i) {
      const auto path = images.path(i);
      const std::string name(images.name(i));
      const auto folder = path.substr(0, path.size() - name.size());
      const auto dot = name.rfind('.');
      add(path, {});
      add(name, {folder, ""});
      add(name.substr(0, dot), {folder, name.substr(dot)});
      add(path.substr(0, path.size() - name.size() + dot), {"", name.substr(dot)});
    }
  }
  [[nodiscard]] const Place* find(const std::string& cell) const {
    const auto found = places_.find(cell);
    return found == places_.end() ? nullptr : &found->second;
  }

 private:
  void add(const std::string& name, Place place) { places_.emplace(name, std::move(place)); }
  std::map<std::string, Place, std::less<>> places_;
};

std::string trimmed_cell(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

/// A table that names images of the folder.
struct LabelTable {
  fs::path path;
  char between = ',';
  bool has_header = true;
  bool is_plain = true;              ///< no quotes, blank lines or cells that a shell would read otherwise
  std::vector<std::string> names{};  ///< of the columns
  std::vector<std::vector<std::string>> rows{};
  std::size_t image = 0;     ///< the column that names images
  std::size_t found = 0;     ///< rows whose image is there
  std::set<Place> places{};  ///< of these
  [[nodiscard]] std::string column(std::size_t i) const {
    return has_header ? fmt::format("'{}'", names[i]) : fmt::format("{} (from 1)", i + 1);
  }
};

/// The rows of `lines` whose cell of `column` names an image.
std::size_t count_images(const std::vector<std::vector<std::string>>& lines, std::size_t column,
                         const ImageNames& images) {
  return static_cast<std::size_t>(
      std::ranges::count_if(lines, [&](const auto& line) { return images.find(line[column]) != nullptr; }));
}

/// Nothing if it is no table, or names no image of the folder.
std::optional<LabelTable> read_label_table(const fs::path& path, const ImageNames& images) {
  LabelTable table{.path = path};
  std::error_code unknown;
  if (fs::file_size(path, unknown) > kMostBytes || unknown) return std::nullopt;
  std::vector<table::CsvLine> lines;
  std::string text;
  try {
    text = base::read_file(path);
    if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
    table.between = table::csv_separator(text);
    lines = table::read_csv(text, path.string());
  } catch (const base::Error&) {
    return std::nullopt;
  }
  if (lines.size() < 2 || lines.front().size() < 2) return std::nullopt;
  table.is_plain = text.find('"') == std::string::npos && text.find("\n\n") == std::string::npos &&
                   text.find("\n\r\n") == std::string::npos && text.find('\\') == std::string::npos;
  for (const auto& line : lines) {
    if (line.size() != lines.front().size()) return std::nullopt;
    auto& row = table.rows.emplace_back();
    for (const auto& cell : line) {
      row.push_back(trimmed_cell(cell.text));
      // A shell joins tabs that follow each other, and keeps blanks.
      if (row.back() != cell.text || (row.back().empty() && table.between == '\t')) table.is_plain = false;
    }
  }
  for (std::size_t i = 0; i < lines.front().size(); ++i)
    if (const auto found = count_images(table.rows, i, images); found > table.found) {
      table.found = found;
      table.image = i;
    }
  if (table.found == 0) return std::nullopt;
  table.names = table.rows.front();
  table.has_header = images.find(table.names[table.image]) == nullptr;
  if (table.has_header) table.rows.erase(table.rows.begin());
  for (const auto& row : table.rows)
    if (const auto* place = images.find(row[table.image])) table.places.insert(*place);
  return table;
}

/// 0 or 1, also as "1.0"; nothing for other texts.
std::optional<int> bit_of(const std::string& text) {
  double value = -1;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || (value != 0 && value != 1))
    return std::nullopt;
  return static_cast<int>(value);
}

/// How a table says the class of an image.
struct Labels {
  std::vector<std::size_t> columns;  ///< one; or several of 0 and 1, named after the classes
  std::string why_not;  ///< no column is the class's, or the labels cannot be folders; "": they can
  [[nodiscard]] bool are_one_hot() const { return columns.size() > 1; }
  [[nodiscard]] std::string of(const LabelTable& table, const std::vector<std::string>& row) const {
    if (!are_one_hot()) return row[columns.front()];
    for (const auto i : columns)
      if (bit_of(row[i]) == 1) return table.names[i];
    return "";
  }
};

std::set<std::string> values_of(const LabelTable& table, std::size_t column) {
  std::set<std::string> values;
  for (const auto& row : table.rows) values.insert(row[column]);
  return values;
}

/// The column that most likely holds the class: by its name, else the only one whose texts come again and
/// again.
Labels one_column(const LabelTable& table) {
  std::vector<std::size_t> candidates;
  const std::size_t columns = table.names.size(), rows = table.rows.size();
  for (std::size_t i = 0; i < columns; ++i) {
    if (i == table.image) continue;
    const auto values = values_of(table, i).size();
    if (values >= 2 && (columns == 2 || 2 * values <= rows)) candidates.push_back(i);
  }
  for (const char* word :
       {"label", "class", "category", "target", "breed", "species", "diagnosis", "variety"})
    for (std::size_t i = 0; i < columns && table.has_header; ++i)
      if (i != table.image && base::lower_case(table.names[i]).find(word) != std::string::npos &&
          values_of(table, i).size() >= 2)
        return {.columns = {i}, .why_not = ""};
  if (candidates.size() == 1) return {.columns = candidates, .why_not = ""};
  std::vector<std::string> named;
  for (const auto i : candidates) named.push_back(table.column(i));
  return {.columns = {},
          .why_not = candidates.empty() ? "no other column has texts that come again and again, as classes do"
                                        : fmt::format("which of the columns {} is the class is not clear",
                                                      fmt::join(named, ", "))};
}

Labels labels_of(const LabelTable& table) {
  std::vector<std::size_t> bits;
  for (std::size_t i = 0; i < table.names.size() && table.has_header; ++i)
    if (i != table.image &&
        std::ranges::all_of(table.rows, [&](const auto& row) { return bit_of(row[i]).has_value(); }))
      bits.push_back(i);
  auto labels = one_column(table);
  const bool is_of_bits = bits.size() > 1 && (labels.columns.empty() ||
                                              std::ranges::find(bits, labels.columns.front()) != bits.end());
  if (is_of_bits) {
    const auto odd = std::ranges::count_if(table.rows, [&](const auto& row) {
      return std::ranges::count_if(bits, [&](std::size_t i) { return bit_of(row[i]) == 1; }) != 1;
    });
    std::vector<std::string> named;
    for (const auto i : bits) named.push_back(table.column(i));
    labels = {.columns = bits, .why_not = ""};
    if (odd > 0)
      labels.why_not = fmt::format(
          "its columns {} hold 0 and 1, and {} of {} rows have not exactly one 1: an image of several classes, or of "
          "none, cannot be learned here",
          fmt::join(named, ", "), odd, table.rows.size());
  }
  if (!labels.why_not.empty()) return labels;
  for (const auto& row : table.rows)
    if (const auto label = labels.of(table, row);
        label.empty() || label.front() == '.' || label.find_first_of("/\n") != std::string::npos) {
      labels.why_not =
          fmt::format("the label '{}' of '{}' cannot be the name of a folder", label, row[table.image]);
      break;
    }
  return labels;
}

/// The shell line; it reads the cells of a line into c0, c1, ...
std::string shell_line(const LabelTable& table, std::size_t label) {
  std::string names;
  for (std::size_t i = 0; i < table.names.size(); ++i) names += fmt::format("{}c{}", i == 0 ? "" : " ", i);
  const auto& place = *table.places.begin();
  return fmt::format(
      "cd {} && tail -n +{} {} | tr -d '\\r' | while IFS={} read -r {}; do mkdir -p \"by-class/$c{}\" && ln -sf "
      "\"$PWD/{}$c{}{}\" \"by-class/$c{}/\"; done; paceline init by-class",
      base::shell_word(table.path.parent_path().string()), table.has_header ? 2 : 1,
      base::shell_word(table.path.filename().string()),
      table.between == '\t' ? "$'\\t'" : fmt::format("'{}'", table.between), names, label, place.before,
      table.image, place.behind, label);
}

/// The same in Python, which reads quoted cells, and finds images in several folders.
std::string python_line(const LabelTable& table, const Labels& labels) {
  const auto label = labels.are_one_hot() ? fmt::format("t[0][next(i for i in ({}) if float(r[i])==1)]",
                                                        fmt::join(labels.columns, ","))
                                          : fmt::format("r[{}]", labels.columns.front());
  return fmt::format(
      "cd {} && python3 -c 'import csv,os,sys; t=[r for r in "
      "csv.reader(open(sys.argv[1],newline=\"\",encoding=\"utf-8-sig\"),delimiter=\"{}\") if r]; f={{}}; "
      "[f.setdefault(k,p) for d,_,s in os.walk(\".\") if \"by-class\" not in d for n in s if "
      "n.lower().endswith((\".jpg\",\".jpeg\",\".png\",\".ppm\")) for p in [os.path.join(d,n)[2:]] for k in "
      "(p,n,n.rpartition(\".\")[0],p.rpartition(\".\")[0])]; "
      "[os.makedirs(\"by-class/\"+c,exist_ok=True) or os.path.lexists(l) or os.symlink(os.path.abspath(p),l) for r in "
      "t[{}:] if r[{}].strip() in f for p in [f[r[{}].strip()]] for c in [{}.strip()] for l in "
      "[\"by-class/\"+c+\"/\"+os.path.basename(p)]]' {}; paceline init by-class",
      base::shell_word(table.path.parent_path().string()),
      table.between == '\t' ? "\\t" : std::string(1, table.between), table.has_header ? 1 : 0, table.image,
      table.image, label, base::shell_word(table.path.filename().string()));
}

bool is_for_a_shell(const LabelTable& table) {
  if (!table.is_plain || table.places.size() != 1 || table.found != table.rows.size()) return false;
  const auto& place = *table.places.begin();
  return (place.before + place.behind).find_first_of("\"$`\\") == std::string::npos;
}

std::string way_from(const LabelTable& table, const Labels& labels) {
  const auto head = fmt::format("{} is a table: its column {} names images", table.path.string(),
                                table.column(table.image));
  if (!labels.why_not.empty())
    return fmt::format(
        "{}, but {}; make a folder for each class, and put the images or links to them into it", head,
        labels.why_not);
  std::vector<std::string> named;
  for (const auto i : labels.columns) named.push_back(table.column(i));
  const bool shell = is_for_a_shell(table) && !labels.are_one_hot();
  return fmt::format(
      "{}, and {} {}{}. Tables are not read; this makes a folder of links for each class, and goes on{}:\n  {}",
      head, fmt::join(named, ", "),
      labels.are_one_hot()
          ? "look like the classes, of which each row has one"
          : (table.has_header ? "looks like their class" : "looks like the column of their class"),
      table.found == table.rows.size() ? ""
                                       : fmt::format("; {} of {} rows name no image here",
                                                     table.rows.size() - table.found, table.rows.size()),
      shell ? "" : " (with Python 3)",
      shell ? shell_line(table, labels.columns.front()) : python_line(table, labels));
}

}  // namespace

std::string way_from_label_table(const std::string& folder, const data::ImageListing& images) {
  const auto tables = tables_in(folder);
  if (tables.empty()) return "";
  const ImageNames names(images);
  std::string no_way;
  for (const auto& path : tables) {
    const auto table = read_label_table(path, names);
    if (!table) continue;
    const auto labels = labels_of(*table);
    if (labels.why_not.empty()) return way_from(*table, labels);
    if (no_way.empty()) no_way = way_from(*table, labels);
  }
  return no_way;
}

std::string note_on_label_table(const std::string& folder, const std::vector<std::string>& classes) {
  std::error_code none;
  if (!fs::is_directory(folder, none)) return "";
  const auto tables = tables_in(folder);
  if (tables.empty()) return "";
  const ImageNames names(data::scan_folder(folder).listing);
  for (const auto& path : tables) {
    const auto table = read_label_table(path, names);
    if (!table) continue;
    const auto labels = labels_of(*table);
    if (!labels.why_not.empty()) continue;
    std::set<std::string> values;
    for (const auto& row : table->rows) values.insert(labels.of(*table, row));
    if (values != std::set<std::string>(classes.begin(), classes.end()))
      return fmt::format(
          "{} is a table that names images: the classes here are the folders, not its column{} {}",
          path.string(), labels.are_one_hot() ? "s" : "", table->column(labels.columns.front()));
  }
  return "";
}

}  // namespace paceline::init
