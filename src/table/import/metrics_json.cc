/// Reads metrics of trainers in JSON: lines of objects, also behind other text and as Python prints them;
/// lists of objects or of [time, step, value]; the state of a trainer with its history; objects of columns.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/text.h"
#include "table/import/import.h"
#include "table/import/metrics_log.h"

namespace paceline::table {
namespace {

using nlohmann::json;

bool begins_word(char one) { return std::isalpha(static_cast<unsigned char>(one)) != 0 || one == '_'; }

bool belongs_to_word(char one) {
  return std::isalnum(static_cast<unsigned char>(one)) != 0 || one == '_' || one == '.';
}

/// `text` as JSON, with what Python writes otherwise: 'single' quotes, None, NaN, and calls such as
/// tensor(0.5), which become texts.
class PythonText {
 public:
  explicit PythonText(std::string_view text) : text_(text) {}

  std::string as_json() {
    while (at_ < text_.size()) {
      const char one = text_[at_];
      if (one == '"' || one == '\'')
        take_quoted(one);
      else if (std::isdigit(static_cast<unsigned char>(one)) != 0)
        take_number();
      else if (begins_word(one))
        take_word();
      else if (one == '-' && at_ + 1 < text_.size() && begins_word(text_[at_ + 1]))
        take_word();
      else {
        json_ += one;
        ++at_;
      }
    }
    return std::move(json_);
  }

 private:
  void add_escaped(char one) {
    if (one == '"') json_ += '\\';
    json_ += one;
  }

  void take_quoted(char quote) {
    json_ += '"';
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        if (text_[at_ + 1] != '\'') json_ += '\\';
        json_ += text_[++at_];
      } else {
        add_escaped(text_[at_]);
      }
    }
    json_ += '"';
    if (at_ < text_.size()) ++at_;
  }

  void take_number() {  // with the "e" of an exponent, which begins no word
    for (; at_ < text_.size() && (belongs_to_word(text_[at_]) || text_[at_] == '-' || text_[at_] == '+');
         ++at_)
      json_ += text_[at_];
  }

  void take_word() {
    const auto begin = at_++;
    while (at_ < text_.size() && belongs_to_word(text_[at_])) ++at_;
    const auto word = text_.substr(begin, at_ - begin);
    if (word == "true" || word == "false" || word == "null") {
      json_ += word;
    } else if (word == "None") {
      json_ += "null";
    } else if (word == "True" || word == "False") {
      json_ += word == "True" ? "true" : "false";
    } else {
      json_ += '"';
      json_ += word;
      if (at_ < text_.size() && text_[at_] == '(') take_call();
      json_ += '"';
    }
  }

  /// Through the bracket that closes the call, or nothing of it.
  void take_call() {
    std::size_t open = 0, end = at_;
    for (; end < text_.size() && text_[end] != '\n'; ++end) {
      open += text_[end] == '(' ? 1 : 0;
      if (text_[end] == ')' && --open == 0) break;
    }
    if (end >= text_.size() || text_[end] != ')') return;
    for (; at_ <= end; ++at_) add_escaped(text_[at_]);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string json_;
};

json parsed(std::string_view text) {
  auto value = json::parse(text, nullptr, false);
  if (!value.is_discarded()) return value;
  return json::parse(PythonText(text).as_json(), nullptr, false);
}

/// Whether an object names an epoch or a step, and has another figure.
bool is_entry(const json& object) {
  if (!object.is_object()) return false;
  bool has_key = false;
  std::size_t figures = 0;
  for (const auto& [name, value] : object.items()) {
    has_key = has_key || (metric_key_of(name) && text_of(value));
    figures += text_of(value) || value.is_object() ? 1 : 0;
  }
  return has_key && figures > 1;
}

void add_entry(MetricLog& log, const json& object, std::size_t line) {
  std::vector<MetricCell> entry;
  const auto add = [&](const std::string& name, const json& value) {
    if (auto text = text_of(value); text && !text->empty())
      entry.push_back({log.number_of(name), std::move(*text), line, 0});
  };
  for (const auto& [name, value] : object.items()) {
    add(name, value);
    if (!value.is_object()) continue;
    for (const auto& [inner, figure] : value.items()) add(name + "." + inner, figure);
  }
  if (!entry.empty()) log.entries.push_back(std::move(entry));
}

/// The first list of entries in an object: "log_history" of a trainer's state. Null if there is none.
const json* history_in(const json& object) {
  for (const auto& [name, value] : object.items())
    if (value.is_array() && !value.empty() && std::any_of(value.begin(), value.end(), is_entry))
      return &value;
  return nullptr;
}

/// Whether each member of an object is a column: a list of values, or an object of values by number.
bool has_columns(const json& object) {
  if (!object.is_object() || object.empty()) return false;
  std::size_t columns = 0;
  for (const auto& [name, value] : object.items()) {
    if (!value.is_structured() || value.empty()) continue;
    if (!std::all_of(value.begin(), value.end(), [](const json& one) { return one.is_primitive(); }))
      return false;
    columns += has_any(name, {"loss", "acc"}) || metric_key_of(name) ? 1 : 0;
  }
  return columns > 0;
}

void add_columns(MetricLog& log, const json& object) {
  std::map<std::size_t, std::vector<MetricCell>> entries;
  for (const auto& [name, column] : object.items()) {
    if (!column.is_structured()) continue;
    std::size_t number = 0;
    for (const auto& [key, value] : column.items()) {
      auto place = number++;
      if (column.is_object()) {
        const auto row = read_number(key);
        if (!row || row->value < 0 || row->value > 1e9) continue;
        place = static_cast<std::size_t>(row->value);
      }
      if (auto text = text_of(value); text && !text->empty())
        entries[place].push_back({log.number_of(name), std::move(*text), place + 1, 0});
    }
  }
  for (auto& [place, entry] : entries) log.entries.push_back(std::move(entry));
}

/// Reads a file that is one value. False: it is none that holds metrics.
bool take_document(MetricLog& log, const json& document) {
  log.counts_entries = true;
  std::size_t number = 0;
  if (is_entry(document) && history_in(document) == nullptr) {
    add_entry(log, document, 1);
  } else if (document.is_array()) {
    for (const auto& one : document) {
      ++number;
      if (one.is_object()) add_entry(log, one, number);
      if (!one.is_array() || one.size() != 3 ||
          !std::all_of(one.begin(), one.end(), [](const json& value) { return value.is_number(); }))
        continue;
      add_entry(log, {{"Wall time", one[0]}, {"Step", one[1]}, {"Value", one[2]}}, number);
    }
  } else if (const auto* history = document.is_object() ? history_in(document) : nullptr;
             history != nullptr) {
    for (const auto& one : *history) add_entry(log, one, ++number);
  } else if (has_columns(document)) {
    add_columns(log, document);
  }
  return !log.entries.empty();
}

/// The object in a line, behind whatever stands before it.
struct LineObject {
  std::string_view prefix;
  json object;
};
std::optional<LineObject> object_in(std::string_view line) {
  const auto end = line.rfind('}');
  auto begin = line.find("{\"");
  begin = std::min(begin, line.find("{'"));
  begin = std::min(begin, line.find("{ \""));
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return std::nullopt;
  auto object = parsed(line.substr(begin, end - begin + 1));
  if (!is_entry(object)) return std::nullopt;
  return LineObject{.prefix = line.substr(0, begin), .object = std::move(object)};
}

/// Whether the beginning of one JSON value looks like metrics.
bool is_document(std::string_view head) {
  const auto first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || (head[first] != '{' && head[first] != '[')) return false;
  // Files of this program, also where another has sorted their keys.
  if (has_any(head, {"\"paceline", "\"communication\""})) return false;
  const auto behind = head.find_first_not_of(" \t\r\n", first + 1);
  if (head[first] == '[' && behind != std::string_view::npos && head[behind] == '[') return true;
  return has_any(head,
                 {"\"log_history\"", "\"epoch\"", "\"Epoch\"", "\"step\"", "\"_step\"", "\"global_step\"",
                  "\"iter\"", "\"iteration\"", "\"loss\"", "\"val_loss\"", "\"accuracy\"", "\"train_loss\""});
}

}  // namespace

bool has_metrics_json(std::string_view text) {
  if (is_document(text)) return true;
  if (text.find("\"paceline") != std::string_view::npos) return false;
  while (!text.empty())
    if (const auto line = take_line(text); line.find('{') != std::string_view::npos && object_in(line))
      return true;
  return false;
}

MetricLog metrics_of_json(std::string_view text, const std::string& where) {
  MetricLog log;
  if (is_document(text))
    if (const auto document = parsed(text); !document.is_discarded() && take_document(log, document))
      return log;
  log = {};
  FirstRank ranks(text);
  std::size_t number = 0, left_out = 0;
  std::string first;
  for (auto rest = text; !rest.empty();) {
    const auto line = take_line(rest);
    ++number;
    if (trimmed(line).empty()) continue;
    if (auto found = object_in(line)) {
      if (ranks.takes(found->prefix)) add_entry(log, found->object, number);
    } else if (++left_out == 1) {
      first = fmt::format("line {}: '{}'", number, shown_line(line));
    }
  }
  if (log.entries.empty())
    base::fail(
        base::ErrorKind::data,
        "{}: it holds no JSON object or list with an epoch or a step and other figures{}; was the training ended "
        "early?",
        where, first.empty() ? "" : fmt::format("; not understood is {}", first));
  if (auto note = ranks.note(); !note.empty()) log.notes.push_back(std::move(note));
  if (left_out > 0)
    log.notes.push_back(fmt::format("{} no metrics left out, the first in {}",
                                    base::counted(left_out, "line that holds", "lines that hold"), first));
  return log;
}

}  // namespace paceline::table
