#include "init/label_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/shell_word.h"
#include "data/image/scan.h"
#include "table/csv.h"

namespace paceline::init {
namespace {

namespace fs = std::filesystem;

std::string in_small_letters(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// The first tables directly in `folder`.
std::vector<fs::path> tables_in(const fs::path& folder) {
  std::vector<fs::path> tables;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (const auto ending = in_small_letters(entry.path().extension().string());
        ending == ".csv" || ending == ".tsv")
      tables.push_back(entry.path());
  std::ranges::sort(tables);
  return tables;
}

/// Header and first line of `table`; empty if it has none.
std::optional<std::array<table::CsvLine, 2>> head_of(const fs::path& table) {
  std::ifstream file(table);
  std::string text, line;
  for (int i = 0; i < 2 && std::getline(file, line); ++i) text += line + "\n";
  try {
    auto lines = table::read_csv(text, table.string());
    if (lines.size() < 2 || lines[0].size() < 2 || lines[0].size() != lines[1].size()) return std::nullopt;
    return std::array{std::move(lines[0]), std::move(lines[1])};
  } catch (const base::Error&) {
    return std::nullopt;
  }
}

/// How to find the image that a cell of the table names: the path before the name, and the ending that the
/// name lacks.
struct Named {
  std::string before, behind;
};

std::optional<Named> find_image(const data::FolderScan& scan, const std::string& cell) {
  for (std::size_t i = 0; i < scan.listing.size(); ++i) {
    const auto path = scan.listing.path(i);
    if (path == cell) return Named{};
    const auto slash = path.rfind('/');
    const auto folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
    const auto name = path.substr(folder.size());
    if (name == cell) return Named{folder, ""};
    const auto dot = name.rfind('.');
    if (name.substr(0, dot) == cell) return Named{folder, name.substr(dot)};
  }
  return std::nullopt;
}

/// The column that most likely holds the class: by its name, else the first that is not the image's.
std::size_t label_column(const table::CsvLine& header, std::size_t image) {
  for (const char* word : {"label", "class", "category", "target", "breed", "species"})
    for (std::size_t i = 0; i < header.size(); ++i)
      if (i != image && in_small_letters(header[i].text).find(word) != std::string::npos) return i;
  return image == 0 ? 1 : 0;
}

/// The shell line; it reads the cells of a line into c0, c1, ...
std::string linking_line(const fs::path& table, const table::CsvLine& header, std::size_t image,
                         std::size_t label, const Named& named, char between) {
  std::string names;
  for (std::size_t i = 0; i < header.size(); ++i) names += fmt::format("{}c{}", i == 0 ? "" : " ", i);
  return fmt::format(
      "cd {} && tail -n +2 {} | tr -d '\\r\"' | while IFS={} read -r {}; do mkdir -p \"by-class/$c{}\" && ln -sf "
      "\"$PWD/{}$c{}{}\" \"by-class/$c{}/\"; done; paceline init by-class",
      base::shell_word(table.parent_path().string()), base::shell_word(table.filename().string()),
      between == '\t' ? "$'\\t'" : fmt::format("'{}'", between), names, label, named.before, image,
      named.behind, label);
}

char separator_of(const fs::path& table) {
  std::ifstream file(table);
  std::string line;
  std::getline(file, line);
  for (const char one : {',', ';', '\t'})
    if (line.find(one) != std::string::npos) return one;
  return ',';
}

std::string hint_of_table(const fs::path& table, const data::FolderScan& scan) {
  const auto head = head_of(table);
  if (!head) return "";
  const auto& [header, first] = *head;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const auto named = find_image(scan, first[i].text);
    if (!named || (named->before + named->behind).find_first_of("\"$`\\") != std::string::npos) continue;
    const auto label = label_column(header, i);
    return fmt::format(
        "{} is a table: its column '{}' names images, and '{}' looks like their class. Tables are not read; this makes "
        "a folder of links for each class, and goes on:\n  {}",
        table.string(), header[i].text, header[label].text,
        linking_line(table, header, i, label, *named, separator_of(table)));
  }
  return "";
}

/// Finds files in which other programs store images, down to `kDeep` folders.
std::string hint_of_other_files(const fs::path& folder) {
  constexpr int kDeep = 3;
  static const std::map<std::string, std::string> kKinds{{".npz", "arrays of NumPy"},
                                                         {".npy", "arrays of NumPy"},
                                                         {".h5", "HDF5"},
                                                         {".hdf5", "HDF5"},
                                                         {".parquet", "Parquet"},
                                                         {".tfrecord", "TFRecord"},
                                                         {".zip", "an archive of ZIP"},
                                                         {".webp", "WebP"},
                                                         {".bmp", "BMP"},
                                                         {".gif", "GIF"},
                                                         {".tif", "TIFF"},
                                                         {".tiff", "TIFF"},
                                                         {".heic", "HEIC"}};
  std::map<std::string, std::int64_t> counts;
  std::error_code none;
  for (fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, none),
       end;
       !none && entry != end; entry.increment(none)) {
    if (entry.depth() >= kDeep) entry.disable_recursion_pending();
    if (const auto ending = in_small_letters(entry->path().extension().string()); kKinds.contains(ending))
      ++counts[ending];
  }
  if (counts.empty()) return "";
  const auto most = std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; });
  return fmt::format(
      "{} file{} there {} in {} ({}), which this program does not read: write the images as JPEG or PNG "
      "files, a folder for each class{}",
      most->second, most->second == 1 ? "" : "s", most->second == 1 ? "ends" : "end", most->first,
      kKinds.at(most->first), most->first == ".zip" ? "; unpack it first" : "");
}

}  // namespace

std::string way_to_class_folders(const std::string& folder) {
  std::error_code none;
  if (!fs::is_directory(folder, none)) return "";
  try {
    const auto scan = data::scan_folder(folder);
    if (scan.listing.size() > 0)
      for (const auto& table : tables_in(folder))
        if (auto hint = hint_of_table(table, scan); !hint.empty()) return hint;
    if (scan.listing.size() > 0) return "";
  } catch (const base::Error&) {
    return "";  // an unreadable folder was already reported
  }
  return hint_of_other_files(folder);
}

}  // namespace paceline::init
