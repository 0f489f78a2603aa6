#include "table/import/import.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace paceline::table {

void GzFile::Close::operator()(void* file) const { gzclose(static_cast<gzFile>(file)); }

GzFile::GzFile(const std::filesystem::path& path) {
  // A folder can be opened, but reads as an empty file.
  if (!base::is_folder(path)) file_.reset(gzopen(path.c_str(), "rb"));
  if (!file_)
    base::fail(base::ErrorKind::data, "{}: cannot be read; is it there, and yours to read?", path.string());
  gzbuffer(static_cast<gzFile>(file_.get()), static_cast<unsigned>(buffer_.size()));
}

GzFile::int_type GzFile::underflow() {
  auto* const file = static_cast<gzFile>(file_.get());
  const int read = is_damaged_ ? 0 : gzread(file, buffer_.data(), static_cast<unsigned>(buffer_.size()));
  int error = Z_OK;
  gzerror(file, &error);
  if (read < 0 || (error != Z_OK && error != Z_STREAM_END)) is_damaged_ = true;
  if (read <= 0) return traits_type::eof();
  taken_ += static_cast<std::size_t>(read);
  setg(buffer_.data(), buffer_.data(), buffer_.data() + read);
  return traits_type::to_int_type(buffer_[0]);
}

std::string content_of(const std::filesystem::path& path, std::size_t most_bytes) {
  GzFile file(path);
  std::string content;
  std::array<char, 64 << 10> part;
  for (std::streamsize got = 0; (got = file.sgetn(part.data(), part.size())) > 0;) {
    content.append(part.data(), static_cast<std::size_t>(got));
    if (content.size() > most_bytes)
      base::fail(base::ErrorKind::data,
                 "{}: its content is larger than {} MiB, more than such a file ever has; was it written by "
                 "another program?",
                 path.string(), most_bytes >> 20);
  }
  if (file.is_damaged())
    base::fail(base::ErrorKind::data, "{}: the gzip data is damaged or cut; fetch it again", path.string());
  return content;
}

namespace fs = std::filesystem;

nlohmann::json read_json(const fs::path& path, std::size_t most_bytes) {
  const auto content = content_of(path, most_bytes);
  try {
    return nlohmann::json::parse(content);
  } catch (const nlohmann::json::parse_error& error) {
    base::fail(base::ErrorKind::data, "{}: {}{}", path.string(), error.what(),
               error.byte > content.size() ? "; was it cut?" : "");
  } catch (const nlohmann::json::exception& error) {
    base::fail(base::ErrorKind::data, "{}: {}", path.string(), error.what());
  }
}

const nlohmann::json& member(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(key);
  return found == object.end() ? kNone : *found;
}

std::optional<std::string> text_of(const nlohmann::json& value) {
  if (value.is_string()) return std::string(trimmed(value.get_ref<const std::string&>()));
  return value.is_number() ? std::optional(value.dump()) : std::nullopt;
}

std::optional<std::string> text_at(const nlohmann::json& object, const char* key) {
  return text_of(member(object, key));
}

std::optional<double> number_at(const nlohmann::json& object, const char* key) {
  const auto& found = member(object, key);
  if (found.is_number()) return found.get<double>();
  const auto text = text_at(object, key);
  const auto number = text ? read_number(*text) : std::nullopt;
  return number ? std::optional(number->value) : std::nullopt;
}

Scatter scatter_of(std::vector<double> values) {
  std::ranges::sort(values);
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double one : values) squares += (one - mean) * (one - mean);
  return {.median = (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2,
          .sd = values.size() > 1 ? std::sqrt(squares / (n - 1)) : 0};
}

namespace {

using base::ErrorKind;
using base::fail;

const Importer& importer_of(const fs::path& path) {
  const auto head = begin_of(path);
  if (const auto* importer = find_importer(path, head)) return *importer;
  fail(ErrorKind::data, "{}: {}", path.string(), why_not_read(head));
}

/// What a file of another kind begins with, what it is, and what to do.
struct ForeignKind {
  std::string_view begin, is, next;
};
constexpr ForeignKind kForeignKinds[] = {
    {":W&B", "a binary log of Weights & Biases", "export the run's history as CSV or JSON lines"},
    {"PK\x03\x04", "an archive, such as a workbook of Excel or a checkpoint of PyTorch",
     "save the figures as CSV"},
    {"\xd0\xcf\x11\xe0", "a workbook of Excel", "save the sheet as CSV"},
    {"\xff\xfe", "text in UTF-16", "save it as UTF-8"},
    {"\xfe\xff", "text in UTF-16", "save it as UTF-8"},
    {"SQLite format 3", "a database of SQLite, such as Nsight Systems exports", "export the figures as CSV"},
    {"PAR1", "a Parquet file", "save the figures as CSV"},
    {"\x89HDF", "an HDF5 file", "save the figures as CSV"},
};

/// Facts from the user fill gaps in the files; they never replace what the files say.
void fill_in(Table& table, const GivenFacts& given) {
  for (const auto& [name, text] : given) {
    if (name.starts_with(kSettingPrefix)) {
      for (auto& row : table.rows) row.settings.try_emplace(name.substr(kSettingPrefix.size()), text);
      continue;
    }
    const auto column = Column::find(name);
    if (!column) {
      const auto near = base::nearest_name(name, base::texts_of(Column::all(), &Column::name));
      fail(ErrorKind::usage, "--set {}: there is no column '{}'{}", name, name,
           near ? fmt::format("; did you mean '{}'?", *near) : "; docs/check.md lists them");
    }
    for (auto& row : table.rows) {
      if (row.knows(*column)) continue;
      try {
        row.set(*column, text);
      } catch (const base::Error& error) {
        fail(ErrorKind::usage, "--set {}: {} {}", name, name, error.what());
      }
    }
  }
}

}  // namespace

std::string begin_of(const fs::path& path) {
  constexpr std::size_t kHead = 64 << 10;
  GzFile file(path);
  std::string head(kHead, '\0');
  head.resize(static_cast<std::size_t>(file.sgetn(head.data(), static_cast<std::streamsize>(head.size()))));
  return head;
}

std::span<const Importer> importers() {
  // The order matters. Traces come first, because they too contain the version of NCCL, by which the JSON of
  // nccl-tests is recognised. Metrics come last: a comma and the word epoch or step is enough for them.
  static const std::array kImporters{ddp_run(),       kineto(),           nccl_tests_json(),
                                     ddp_benchmark(), horovod_timeline(), nccl_tests_text(),
                                     metrics_csv(),   metrics_json()};
  return kImporters;
}

const Importer* find_importer(const fs::path& path, std::string_view head) {
  for (const auto& one : importers())
    if (one.is_it(head)) return &one;
  // A log may begin with the lines of other programs. A binary file is no log, and JSON names its format at
  // once.
  const auto first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || head[first] == '{' || head.find('\0') != std::string_view::npos)
    return nullptr;
  const auto text = plain_log(content_of(path));
  for (const auto& one : importers())
    if (one.is_in_logs && one.is_it(text)) return &one;
  return nullptr;
}

std::string why_not_read(std::string_view head) {
  // A TensorFlow record: the length and its checksum, then an event that names its version.
  constexpr std::size_t kVersionWithin = 64;
  if (head.substr(0, kVersionWithin).find("brain.Event:") != std::string_view::npos)
    return "is an event file of TensorBoard, which is not read: show its scalars in TensorBoard and download them "
           "as CSV or JSON ('Show data download links')";
  for (const auto& [begin, is, next] : kForeignKinds)
    if (head.starts_with(begin)) return fmt::format("is {}, which is not read: {}", is, next);
  auto rest = head;
  const auto line = trimmed(take_line(rest));
  return fmt::format(
      "is not one of the files that this program reads: {}. Its first line is '{}'; metrics need a column 'epoch' or "
      "'step'. Fill in a table by hand ('paceline check --template scaling')",
      base::joined(importers(), ", ", &Importer::name), shown_line(line));
}

std::string plain_log(std::string content) {
  std::string text;
  text.reserve(content.size());
  std::size_t at = content.starts_with("\xef\xbb\xbf") ? 3 : 0;
  for (; at < content.size(); ++at) {
    const char one = content[at];
    if (one == '\x1b' && at + 1 < content.size() && content[at + 1] == '[') {  // a colour: ESC [ 0 ; 32 m
      at += 2;
      while (at < content.size() && (content[at] < '@' || content[at] > '~') && content[at] != '\n') ++at;
      if (at < content.size() && content[at] == '\n') --at;
    } else if (one == '\r' && (at + 1 == content.size() || content[at + 1] == '\n')) {
      continue;
    } else {
      text += one;
    }
  }
  return text;
}

std::string shown_line(std::string_view line) {
  constexpr std::size_t kMost = 60;
  line = trimmed(line);
  return base::visible(line.substr(0, kMost)) + (line.size() > kMost ? "..." : "");
}

std::vector<Table> import_files(std::span<const fs::path> files, const GivenFacts& given) {
  std::vector<Table> tables;
  std::map<std::string_view, std::vector<fs::path>> joined;
  for (const auto& file : files) {
    const auto& importer = importer_of(file);
    if (importer.joins_files)
      joined[importer.name].push_back(file);
    else
      tables.push_back(importer.read({&file, 1}, given));
  }
  for (const auto& importer : importers())
    if (const auto found = joined.find(importer.name); found != joined.end())
      tables.push_back(importer.read(found->second, given));
  for (auto& table : tables) {
    GivenFacts facts = given;
    std::erase_if(facts, [&](const auto& fact) { return table.taken.contains(fact.first); });
    fill_in(table, facts);
  }
  return tables;
}

}  // namespace paceline::table
