#include <fmt/format.h>

#include "report/build.h"
#include "report/sections/sections.h"

namespace paceline::report {
namespace {

/// Only the file's name, so that the page does not reveal its folder.
std::string file_name(const table::Table& table) {
  const auto slash = table.where.find_last_of('/');
  return slash == std::string::npos ? table.where : table.where.substr(slash + 1);
}

}  // namespace

Document build_with_tables(std::span<const measure::Record> records, std::span<const table::Table> tables,
                           const BuildOptions& options) {
  Document document;
  if (!records.empty()) {
    document = build(records, options);
  } else {
    const auto home = home_here();
    document.title =
        options.title.empty() ? fmt::format("Paceline: {}", file_name(tables.front())) : options.title;
    document.subtitle = "measured by other programs";
    document.expectations = judge_bounds({}, options.bounds);
    for (const auto& remark : options.remarks) document.warnings.push_back(without_paths(remark, home));
    if (!options.command.empty())
      document.facts.emplace_back("report made by", without_homes(options.command, home));
  }
  std::vector<Section> sections;
  for (const auto& table : tables) {
    auto one = table;
    one.where = file_name(table);
    sections.push_back(check_section(one));
    if (auto parts = table_parts_section(one)) sections.push_back(std::move(*parts));
    if (tables.size() < 2) continue;  // with several tables each section names its table and has its own id
    const std::string suffix = fmt::format("-{}", &table - tables.data() + 1);
    for (auto i = sections.size(); i-- > 0 && !sections[i].title.ends_with(')');) {
      sections[i].title += fmt::format(" ({})", one.where);
      sections[i].id += suffix;
      for (auto& block : sections[i].blocks) {
        if (auto* shown = std::get_if<Table>(&block)) shown->id += suffix;
        if (auto* plot = std::get_if<Plot>(&block)) plot->id += suffix;
      }
    }
  }
  document.sections.insert(document.sections.end(), std::make_move_iterator(sections.begin()),
                           std::make_move_iterator(sections.end()));
  return document;
}

}  // namespace paceline::report
