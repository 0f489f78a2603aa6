#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <functional>
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
Json json(double value) {
  if (!std::isfinite(value)) return nullptr;
  constexpr double kExact = 1e15;  // whole numbers such as bytes and parameters stay exact
  if (value == std::trunc(value) && std::abs(value) < kExact) return static_cast<std::int64_t>(value);
  return std::strtod(fmt::format("{:.7g}", value).c_str(), nullptr);
}
Json json(const std::optional<double>& value) { return value ? json(*value) : Json(nullptr); }
Json json(const std::string& text) { return text; }

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
    list.push_back(json(std::invoke(get, thing)));
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
Json json(const analysis::ClosedForm::Workers& one);
Json json(const analysis::ClosedForm::Batch& one);

template <typename Thing>
Json list_of(const std::vector<Thing>& things) {
  Json list = Json::array();
  for (const Thing& thing : things) list.push_back(json(thing));
  return list;
}

Json json(const Axis& axis) { return {{"label", axis.label}, {"unit", axis.unit}, {"log", axis.log}}; }

Json json(const Series& series) {
  Json one{{"name", series.name}, {"dashed", series.dashed}, {"hidden", series.hidden}};
  add_list(one, "x", series.points, &Point::x, true);
  add_list(one, "y", series.points, &Point::y, true);
  add_list(one, "low", series.points, &Point::low);
  add_list(one, "high", series.points, &Point::high);
  add_list(one, "mark", series.points, &Point::mark);
  add_list(one, "record", series.points, &Point::record);
  add_list(one, "n", series.points, &Point::n);
  return one;
}

Json json(const Paragraph& paragraph) {
  return {{"type", "paragraph"}, {"tone", name(paragraph.tone)}, {"text", paragraph.text}};
}

Json json(const Table& table) {
  Json columns = Json::array();
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    Json one{{"key", column.key},
             {"label", column.label},
             {"unit", column.unit},
             {"format", name(column.format)},
             {"group", column.group}};
    const auto cells = [&](const char* field, auto member) {
      add_list(one, field, table.rows, [&](const auto& row) { return row[i].*member; });
    };
    cells("text", &TableCell::text);
    cells("value", &TableCell::value);
    cells("low", &TableCell::low);
    cells("high", &TableCell::high);
    cells("mark", &TableCell::mark);
    cells("note", &TableCell::note);
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
          {"kind", name(plot.kind)},
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
           {"certainty", name(answer.certainty)},
           {"chip", answer.chip},
           {"figure", answer.figure},
           {"unit", answer.unit},
           {"sentence", answer.sentence},
           {"value", json(answer.value)},
           {"low", json(answer.low)},
           {"high", json(answer.high)},
           {"n", answer.n},
           {"evidence", answer.evidence},
           {"records", answer.records},
           {"command", answer.command}};
  if (const auto& bars = answer.bars; bars.values.size() > 1)
    one["bars"] = {{"title", bars.title}, {"values", list_of(bars.values)}, {"chosen", bars.chosen}};
  return one;
}

Json json(const Next::Step& step) {
  return {
      {"title", step.title}, {"why", step.why}, {"command", step.command}, {"seconds", json(step.seconds)}};
}

Json json(const Next& next) {
  return {{"type", "next"}, {"steps", list_of(next.steps)}, {"not_answered", next.not_answered}};
}

Json json(const Figure::Mark& mark) {
  return {{"axis", std::string(1, mark.axis)},
          {"low", json(mark.low)},
          {"high", json(mark.high)},
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

Json json(const analysis::ClosedForm::Workers& one) {
  return {{"workers", one.workers},
          {"largest", list_of(one.largest)},
          {"latency", list_of(one.latency_s)},
          {"moving", list_of(one.moving_s)}};
}

Json json(const analysis::ClosedForm::Batch& one) {
  using analysis::ClosedForm;
  Json batch{{"batch", json(one.batch)}, {"missed", json(one.missed_s)}, {"loader", json(one.loader_s)}};
  add_list(batch, "compute", one.own, &ClosedForm::Own::compute_s, true);
  add_list(batch, "work", one.own, &ClosedForm::Own::work_s, true);
  add_list(batch, "data_wait", one.own, &ClosedForm::Own::data_wait_s, true);
  add_list(batch, "queue", one.own, &ClosedForm::Own::queue_s, true);
  return batch;
}

Json json(const analysis::ClosedForm& form) {
  return {{"backward_part", json(form.backward_part)},
          {"ready", list_of(form.ready)},
          {"workers", list_of(form.workers)},
          {"batches", list_of(form.batches)}};
}

Json json(const Figure& figure) {
  Json one = begun("figure", figure);
  one["views"] = list_of(figure.views);
  if (figure.recomputed) one["recomputed"] = json(*figure.recomputed);
  return one;
}

Json json(const Waterfall::Change& change) {
  return {{"name", change.name},     {"seconds", json(change.seconds)}, {"hint", change.hint},
          {"low", json(change.low)}, {"high", json(change.high)},       {"noise", change.is_noise}};
}

Json json(const Waterfall::Bar& bar) {
  return {{"name", bar.name}, {"seconds", json(bar.step_s)}, {"parts", list_of(bar.parts)}};
}

Json json(const Waterfall& waterfall) {
  Json one = begun("waterfall", waterfall);
  one["from"] = {{"name", waterfall.from_name}, {"seconds", json(waterfall.from)}};
  one["to"] = {{"name", waterfall.to_name}, {"seconds", json(waterfall.to)}};
  one["changes"] = list_of(waterfall.changes);
  one["bars"] = list_of(waterfall.bars);
  return one;
}

Json json(const Timeline& timeline) {
  Json one = begun("timeline", timeline);
  one["lanes"] = timeline.lanes;
  one["phases"] = timeline.phases;
  auto& spans = one["spans"] = Json::object();
  add_list(spans, "lane", timeline.spans, &Timeline::Span::lane, true);
  add_list(spans, "phase", timeline.spans, &Timeline::Span::phase, true);
  add_list(spans, "begin", timeline.spans, &Timeline::Span::begin, true);
  add_list(spans, "end", timeline.spans, &Timeline::Span::end, true);
  return one;
}

Json json(const Comparison::Row& row) {
  Json one{{"name", row.name},     {"word", name(row.word)}, {"ratio", json(row.ratio)},
           {"low", json(row.low)}, {"high", json(row.high)}, {"before", row.before},
           {"after", row.after},   {"why", row.why}};
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
          {"begin", json(window.begin_s)},
          {"seconds", json(window.seconds)},
          {"typical", json(window.typical_s)},
          {"others", json(window.others_cores)},
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
  return {
      {"text", one.text}, {"verdict", name(one.verdict)}, {"figure", one.figure}, {"mark", one.mark},
      {"why", one.why},   {"value", json(one.value)},     {"low", json(one.low)}, {"high", json(one.high)}};
}

Json json(const Heatmap& heatmap) {
  Json one = begun("heatmap", heatmap);
  one["row_label"] = heatmap.row_label;
  one["column_label"] = heatmap.column_label;
  one["value"] = {
      {"label", heatmap.value.label}, {"unit", heatmap.value.unit}, {"format", name(heatmap.value.format)}};
  one["rows"] = heatmap.rows;
  one["columns"] = heatmap.columns;
  one["confusion"] = heatmap.is_confusion;
  auto& cells = one["cells"] = Json::object();
  add_list(cells, "value", heatmap.cells, &Heatmap::Cell::value, true);
  add_list(cells, "low", heatmap.cells, &Heatmap::Cell::low);
  add_list(cells, "high", heatmap.cells, &Heatmap::Cell::high);
  add_list(cells, "mark", heatmap.cells, &Heatmap::Cell::mark);
  add_list(cells, "note", heatmap.cells, &Heatmap::Cell::note);
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
