#include "table/import/import.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "base/nearest.h"
#include "table/import/gz_file.h"

namespace paceline::table {
namespace {

namespace fs = std::filesystem;
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
