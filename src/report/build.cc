#include "report/build.h"

#include <fmt/format.h>

namespace paceline::report {

Document build(std::span<const measure::Record> records, const BuildOptions& options) {
  Document document;
  document.title = options.title.empty() ? "Paceline report" : options.title;
  if (records.empty()) {
    document.warnings.push_back("There are no records: nothing was measured.");
    return document;
  }
  const measure::Record& first = records.front();
  document.subtitle = fmt::format("{} on {}, {} records", first.model.name, first.data.name, records.size());
  if (!options.command.empty()) document.facts.emplace_back("command", options.command);
  return document;
}

}  // namespace paceline::report
