#include "table/import/import.h"

#include <fmt/format.h>
#include <zlib.h>

#include "base/error.h"
#include "base/text.h"

namespace paceline::table {

void GzFile::Close::operator()(void* file) const { gzclose(static_cast<gzFile>(file)); }

GzFile::GzFile(const std::filesystem::path& path) {
  // A folder can be opened, but reads as an empty file.
  if (std::error_code none; !std::filesystem::is_directory(path, none))
    file_.reset(gzopen(path.c_str(), "rb"));
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
  } catch (const nlohmann::json::exception& error) {
    base::fail(base::ErrorKind::data, "{}: {}; was it cut?", path.string(), error.what());
  }
}

const nlohmann::json& member(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(key);
  return found == object.end() ? kNone : *found;
}

std::optional<std::string> text_at(const nlohmann::json& object, const char* key) {
  const auto& found = member(object, key);
  if (found.is_string()) return std::string(trimmed(found.get_ref<const std::string&>()));
  return found.is_number() ? std::optional(found.dump()) : std::nullopt;
}

std::optional<double> number_at(const nlohmann::json& object, const char* key) {
  const auto& found = member(object, key);
  if (found.is_number()) return found.get<double>();
  const auto text = text_at(object, key);
  const auto number = text ? read_number(*text) : std::nullopt;
  return number ? std::optional(number->value) : std::nullopt;
}

namespace {

using base::ErrorKind;
using base::fail;

const Importer& importer_of(const fs::path& path) {
  if (const auto* importer = find_importer(begin_of(path))) return *importer;
  std::string names;
  for (const auto& one : importers()) names += (names.empty() ? "" : ", ") + std::string(one.name);
  fail(ErrorKind::data,
       "{}: is not one of the files that this program reads: {}; fill in a table by hand ('paceline check "
       "--template scaling')",
       path.string(), names);
}

/// Facts from the user fill gaps in the files; they never replace what the files say.
void fill_in(Table& table, const GivenFacts& given) {
  for (const auto& [name, text] : given) {
    if (name.starts_with(kSettingPrefix)) {
      for (auto& row : table.rows) row.settings.try_emplace(name.substr(kSettingPrefix.size()), text);
      continue;
    }
    const auto column = Column::find(name);
    if (!column) {
      std::vector<std::string> known;
      for (std::size_t i = 0; i < Column::count(); ++i) known.emplace_back(Column::at(i).name());
      const auto near = base::nearest_name(name, known);
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
  // nccl-tests is recognised. CSVs of metrics come last: a comma and the word epoch or step is enough for
  // them.
  static const std::array kImporters{kineto(),           nccl_tests_json(), ddp_benchmark(),
                                     horovod_timeline(), nccl_tests_text(), metrics_csv()};
  return kImporters;
}

const Importer* find_importer(std::string_view head) {
  for (const auto& one : importers())
    if (one.is_it(head)) return &one;
  return nullptr;
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
