#include <nlohmann/json.hpp>

#include <cmath>

#include "report/document.h"
#include "report/names.h"

namespace paceline::report {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no NaN and no infinity: what is not finite is missing.
Json number(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  return *value;
}

Json json(const TableCell& cell) {
  return {{"text", cell.text},         {"value", number(cell.value)}, {"low", number(cell.low)},
          {"high", number(cell.high)}, {"mark", cell.mark},           {"note", cell.note}};
}

Json json(const Column& column) {
  return {{"key", column.key},
          {"label", column.label},
          {"unit", column.unit},
          {"format", std::string(name(column.format))}};
}

Json json(const Axis& axis) { return {{"label", axis.label}, {"unit", axis.unit}, {"log", axis.log}}; }

Json json(const Point& point) {
  return {{"x", number(point.x)},
          {"y", number(point.y)},
          {"low", number(point.low)},
          {"high", number(point.high)},
          {"mark", point.mark}};
}

Json json(const Series& series) {
  Json points = Json::array();
  for (const Point& point : series.points) points.push_back(json(point));
  return {{"name", series.name}, {"points", std::move(points)}, {"dashed", series.dashed}};
}

Json json(const Paragraph& paragraph) {
  return {{"type", "paragraph"}, {"tone", std::string(name(paragraph.tone))}, {"text", paragraph.text}};
}

Json json(const Table& table) {
  Json columns = Json::array();
  for (const Column& column : table.columns) columns.push_back(json(column));
  Json rows = Json::array();
  for (const auto& row : table.rows) {
    Json cells = Json::array();
    for (const TableCell& cell : row) cells.push_back(json(cell));
    rows.push_back(std::move(cells));
  }
  return {{"type", "table"},
          {"id", table.id},
          {"title", table.title},
          {"definition", table.definition},
          {"columns", std::move(columns)},
          {"rows", std::move(rows)},
          {"footnotes", table.footnotes}};
}

Json json(const Plot& plot) {
  Json series = Json::array();
  for (const Series& one : plot.series) series.push_back(json(one));
  return {{"type", "plot"},
          {"id", plot.id},
          {"kind", std::string(name(plot.kind))},
          {"title", plot.title},
          {"caption", plot.caption},
          {"x", json(plot.x)},
          {"y", json(plot.y)},
          {"series", std::move(series)},
          {"categories", plot.categories}};
}

}  // namespace

std::string to_json(const Document& document) {
  Json sections = Json::array();
  for (const Section& section : document.sections) {
    Json blocks = Json::array();
    for (const Block& block : section.blocks)
      blocks.push_back(std::visit([](const auto& one) { return json(one); }, block));
    sections.push_back({{"id", section.id}, {"title", section.title}, {"blocks", std::move(blocks)}});
  }
  Json facts = Json::array();
  for (const auto& [fact, value] : document.facts) facts.push_back({{"name", fact}, {"value", value}});
  const Json root = {{"schema", "paceline-report-1"}, {"title", document.title},
                     {"subtitle", document.subtitle}, {"warnings", document.warnings},
                     {"facts", std::move(facts)},     {"sections", std::move(sections)}};
  // A record may carry a path in another encoding: a report that cannot be written helps nobody.
  return root.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace paceline::report
