#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "report/document.h"
#include "report/page.h"
#include "report/text.h"

// Points and rows are written as one list per field: a study has thousands of numbers, and repeated names
// would be most of the file.

namespace paceline::report {
namespace {

using Json = nlohmann::ordered_json;

/// Seven digits: more than any figure here is accurate to, and half the size of all digits. JSON has no NaN
/// and no infinity, so a value that is not finite is left out.
Json json_number(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  constexpr double kExact = 1e15;  // whole numbers such as bytes and parameters stay exact
  if (*value == std::trunc(*value) && std::abs(*value) < kExact) return static_cast<std::int64_t>(*value);
  return std::strtod(fmt::format("{:.7g}", *value).c_str(), nullptr);
}

bool is_nothing(const Json& value) {
  return value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty()) ||
         (value.is_number() && value == 0);
}

/// Writes one field of all `things` into `into`, unless it is empty in all of them.
template <typename Thing, typename Get>
void add_list(Json& into, const char* name, const std::vector<Thing>& things, Get get,
              bool is_always_there = false) {
  Json list = Json::array();
  bool is_empty = true;
  for (const Thing& thing : things) {
    list.push_back(get(thing));
    is_empty = is_empty && is_nothing(list.back());
  }
  if (!is_empty || is_always_there) into[name] = std::move(list);
}

Json json(const Series& series);
Json json(const Next::Step& step);
Json json(const Figure::Mark& mark);
Json json(const Figure::View& view);
Json json(const Waterfall::Change& change);
Json json(const Waterfall::Bar& bar);
Json json(const Comparison::Row& row);
Json json(const Strip::Window& window);
Json json(const Expectation& one);

template <typename Thing>
Json list_of(const std::vector<Thing>& things) {
  Json list = Json::array();
  for (const Thing& thing : things) list.push_back(json(thing));
  return list;
}

Json json(const Axis& axis) { return {{"label", axis.label}, {"unit", axis.unit}, {"log", axis.log}}; }

Json json(const Series& series) {
  Json one{{"name", series.name}, {"dashed", series.dashed}, {"hidden", series.hidden}};
  add_list(
      one, "x", series.points, [](const Point& point) { return json_number(point.x); }, true);
  add_list(
      one, "y", series.points, [](const Point& point) { return json_number(point.y); }, true);
  add_list(one, "low", series.points, [](const Point& point) { return json_number(point.low); });
  add_list(one, "high", series.points, [](const Point& point) { return json_number(point.high); });
  add_list(one, "mark", series.points, [](const Point& point) { return Json(point.mark); });
  add_list(one, "record", series.points, [](const Point& point) { return Json(point.record); });
  add_list(one, "n", series.points, [](const Point& point) { return Json(point.n); });
  return one;
}

Json json(const Paragraph& paragraph) {
  return {{"type", "paragraph"}, {"tone", std::string(name(paragraph.tone))}, {"text", paragraph.text}};
}

Json json(const Table& table) {
  Json columns = Json::array();
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    Json one{{"key", column.key},
             {"label", column.label},
             {"unit", column.unit},
             {"format", std::string(name(column.format))},
             {"group", column.group}};
    const auto cells = [&](const char* field, auto get) {
      add_list(one, field, table.rows, [&](const auto& row) { return get(row[i]); });
    };
    cells("text", [](const TableCell& cell) { return Json(cell.text); });
    cells("value", [](const TableCell& cell) { return json_number(cell.value); });
    cells("low", [](const TableCell& cell) { return json_number(cell.low); });
    cells("high", [](const TableCell& cell) { return json_number(cell.high); });
    cells("mark", [](const TableCell& cell) { return Json(cell.mark); });
    cells("note", [](const TableCell& cell) { return Json(cell.note); });
    columns.push_back(std::move(one));
  }
  return {{"type", "table"},
          {"id", table.id},
          {"title", table.title},
          {"definition", table.definition},
          {"footnotes", table.footnotes},
          {"rows", table.rows.size()},
          {"columns", std::move(columns)}};
}

Json json(const Plot& plot) {
  return {{"type", "plot"},
          {"id", plot.id},
          {"kind", std::string(name(plot.kind))},
          {"title", plot.title},
          {"caption", plot.caption},
          {"x", json(plot.x)},
          {"y", json(plot.y)},
          {"series", list_of(plot.series)},
          {"categories", plot.categories}};
}

Json json(const Answer& answer) {
  Json one{{"type", "answer"},
           {"id", answer.id},
           {"question", answer.question},
           {"certainty", std::string(name(answer.certainty))},
           {"chip", answer.chip},
           {"figure", answer.figure},
           {"unit", answer.unit},
           {"sentence", answer.sentence},
           {"value", json_number(answer.value)},
           {"low", json_number(answer.low)},
           {"high", json_number(answer.high)},
           {"n", answer.n},
           {"evidence", answer.evidence},
           {"records", answer.records},
           {"command", answer.command}};
  if (answer.bars.values.size() > 1) {
    Json values = Json::array();
    for (const double value : answer.bars.values) values.push_back(json_number(value));
    one["bars"] = {
        {"title", answer.bars.title}, {"values", std::move(values)}, {"chosen", answer.bars.chosen}};
  }
  return one;
}

Json json(const Next::Step& step) {
  return {{"title", step.title},
          {"why", step.why},
          {"command", step.command},
          {"seconds", json_number(step.seconds)}};
}

Json json(const Next& next) {
  return {{"type", "next"}, {"steps", list_of(next.steps)}, {"not_answered", next.not_answered}};
}

Json json(const Figure::Mark& mark) {
  return {{"axis", std::string(1, mark.axis)},
          {"low", json_number(mark.low)},
          {"high", json_number(mark.high)},
          {"label", mark.label}};
}

Json json(const Figure::View& view) {
  Json one{{"name", view.name},
           {"x", json(view.x)},
           {"y", json(view.y)},
           {"series", list_of(view.series)},
           {"marks", list_of(view.marks)}};
  if (!view.finding.empty()) one["finding"] = view.finding;
  if (!view.note.empty()) one["note"] = view.note;
  return one;
}

/// The fields with which all drawings begin.
template <typename Drawing>
Json begun(const char* type, const Drawing& drawing) {
  return {{"type", type}, {"id", drawing.id}, {"finding", drawing.finding}, {"note", drawing.note}};
}

Json json_numbers(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double one : values) list.push_back(json_number(one));
  return list;
}

Json json(const analysis::ClosedForm& form) {
  Json workers = Json::array(), batches = Json::array();
  for (const auto& one : form.workers)
    workers.push_back({{"workers", one.workers},
                       {"largest", json_numbers(one.largest)},
                       {"latency", json_numbers(one.latency_s)},
                       {"moving", json_numbers(one.moving_s)}});
  for (const auto& one : form.batches) {
    std::vector<double> compute, work, data_wait, queue;
    for (const auto& own : one.own) {
      compute.push_back(own.compute_s);
      work.push_back(own.work_s);
      data_wait.push_back(own.data_wait_s);
      queue.push_back(own.queue_s);
    }
    batches.push_back({{"batch", json_number(one.batch)},
                       {"missed", json_number(one.missed_s)},
                       {"loader", json_number(one.loader_s)},
                       {"compute", json_numbers(compute)},
                       {"work", json_numbers(work)},
                       {"data_wait", json_numbers(data_wait)},
                       {"queue", json_numbers(queue)}});
  }
  return {{"backward_part", json_number(form.backward_part)},
          {"ready", json_numbers(form.ready)},
          {"workers", std::move(workers)},
          {"batches", std::move(batches)}};
}

Json json(const Figure& figure) {
  Json one = begun("figure", figure);
  one["views"] = list_of(figure.views);
  if (figure.recomputed) one["recomputed"] = json(*figure.recomputed);
  return one;
}

Json json(const Waterfall::Change& change) {
  return {{"name", change.name},
          {"seconds", json_number(change.seconds)},
          {"hint", change.hint},
          {"low", json_number(change.low)},
          {"high", json_number(change.high)},
          {"noise", change.is_noise}};
}

Json json(const Waterfall::Bar& bar) {
  Json parts = Json::array();
  for (const double part : bar.parts) parts.push_back(json_number(part));
  return {{"name", bar.name}, {"seconds", json_number(bar.step_s)}, {"parts", std::move(parts)}};
}

Json json(const Waterfall& waterfall) {
  Json one = begun("waterfall", waterfall);
  one["from"] = {{"name", waterfall.from_name}, {"seconds", json_number(waterfall.from)}};
  one["to"] = {{"name", waterfall.to_name}, {"seconds", json_number(waterfall.to)}};
  one["changes"] = list_of(waterfall.changes);
  one["bars"] = list_of(waterfall.bars);
  return one;
}

Json json(const Timeline& timeline) {
  Json one = begun("timeline", timeline);
  one["lanes"] = timeline.lanes;
  one["phases"] = timeline.phases;
  auto& spans = one["spans"] = Json::object();
  add_list(
      spans, "lane", timeline.spans, [](const auto& span) { return Json(span.lane); }, true);
  add_list(
      spans, "phase", timeline.spans, [](const auto& span) { return Json(span.phase); }, true);
  add_list(
      spans, "begin", timeline.spans, [](const auto& span) { return json_number(span.begin); }, true);
  add_list(
      spans, "end", timeline.spans, [](const auto& span) { return json_number(span.end); }, true);
  return one;
}

Json json(const Comparison::Row& row) {
  Json one{{"name", row.name},
           {"word", std::string(name(row.word))},
           {"ratio", json_number(row.ratio)},
           {"low", json_number(row.low)},
           {"high", json_number(row.high)},
           {"before", row.before},
           {"after", row.after},
           {"why", row.why}};
  if (!row.mark.empty()) one["mark"] = row.mark;
  return one;
}

Json json(const Comparison& comparison) {
  Json one = begun("comparison", comparison);
  one["name_of_ratio"] = comparison.name_of_ratio;
  one["rows"] = list_of(comparison.rows);
  return one;
}

Json json(const Strip::Window& window) {
  return {{"name", window.name},
          {"record", window.record},
          {"mark", window.mark},
          {"begin", json_number(window.begin_s)},
          {"seconds", json_number(window.seconds)},
          {"typical", json_number(window.typical_s)},
          {"others", json_number(window.others_cores)},
          {"low", window.low},
          {"middle", window.middle},
          {"high", window.high}};
}

Json json(const Strip& strip) {
  Json one = begun("strip", strip);
  one["windows"] = list_of(strip.windows);
  return one;
}

Json json(const Expectation& one) {
  return {{"text", one.text},
          {"verdict", std::string(name(one.verdict))},
          {"figure", one.figure},
          {"mark", one.mark},
          {"why", one.why},
          {"value", json_number(one.value)},
          {"low", json_number(one.low)},
          {"high", json_number(one.high)}};
}

Json json(const Heatmap& heatmap) {
  Json one = begun("heatmap", heatmap);
  one["row_label"] = heatmap.row_label;
  one["column_label"] = heatmap.column_label;
  one["value"] = {{"label", heatmap.value.label},
                  {"unit", heatmap.value.unit},
                  {"format", std::string(name(heatmap.value.format))}};
  one["rows"] = heatmap.rows;
  one["columns"] = heatmap.columns;
  one["confusion"] = heatmap.is_confusion;
  auto& cells = one["cells"] = Json::object();
  add_list(
      cells, "value", heatmap.cells, [](const auto& cell) { return json_number(cell.value); }, true);
  add_list(cells, "low", heatmap.cells, [](const auto& cell) { return json_number(cell.low); });
  add_list(cells, "high", heatmap.cells, [](const auto& cell) { return json_number(cell.high); });
  add_list(cells, "mark", heatmap.cells, [](const auto& cell) { return Json(cell.mark); });
  add_list(cells, "note", heatmap.cells, [](const auto& cell) { return Json(cell.note); });
  return one;
}

Json json(const Gallery& gallery) {
  Json pictures = Json::array();
  for (const auto& picture : gallery.pictures) pictures.push_back(base64(picture));
  return {{"type", "gallery"}, {"table", json(gallery.table)}, {"pictures", std::move(pictures)}};
}

}  // namespace

std::string to_json(const Document& document) {
  Json sections = Json::array();
  for (const Section& section : document.sections) {
    Json blocks = Json::array();
    for (const Block& block : section.blocks)
      blocks.push_back(std::visit([](const auto& one) { return json(one); }, block));
    sections.push_back({{"id", section.id},
                        {"title", section.title},
                        {"folded", section.is_folded},
                        {"blocks", std::move(blocks)}});
  }
  Json facts = Json::array();
  for (const auto& [fact, value] : document.facts) facts.push_back({{"name", fact}, {"value", value}});
  Json root = {{"schema", "paceline-report-2"}, {"title", document.title},
               {"subtitle", document.subtitle}, {"circumstances", document.circumstances},
               {"trust", document.trust},       {"warnings", document.warnings},
               {"facts", std::move(facts)},     {"sections", std::move(sections)}};
  if (!document.expectations.empty()) root["expectations"] = list_of(document.expectations);
  // A record may contain a path in another encoding; invalid bytes are replaced so that the report can be
  // written.
  return root.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace paceline::report
