#pragma once

/// Events of a run in progress, one JSON object per line: DIR/events.jsonl (docs/formats.md). Trainings and
/// studies write them; `runs`, `serve` and TensorBoard files are made from them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace paceline::measure {

inline constexpr const char* kEventsFile = "events.jsonl";
inline constexpr const char* kEventsSchema = "paceline-events-1";

/// One event: a name and its fields, in the order in which they are written.
class Event {
 public:
  using Value = std::variant<std::string, std::int64_t, double, bool>;

  /// An event of now.
  explicit Event(std::string name);
  Event(std::string name, double at) : name_(std::move(name)), at_(at) {}

  // Adds a field. Empty optionals and numbers that are not finite are left out.
  Event& set(std::string key, std::string value);
  Event& set(std::string key, const char* value) { return set(std::move(key), std::string(value)); }
  Event& set(std::string key, double value);
  Event& set(std::string key, std::int64_t value);
  Event& set(std::string key, int value) { return set(std::move(key), std::int64_t{value}); }
  Event& set(std::string key, bool value);
  template <typename T>
  Event& set(std::string key, const std::optional<T>& value) {
    return value ? set(std::move(key), *value) : *this;
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] double at() const { return at_; }  ///< UTC, seconds since 1970
  [[nodiscard]] const std::vector<std::pair<std::string, Value>>& fields() const { return fields_; }

  // The value of a field; nothing if there is none of that type.
  [[nodiscard]] std::optional<double> number(std::string_view key) const;
  [[nodiscard]] std::optional<std::int64_t> whole(std::string_view key) const;
  [[nodiscard]] std::optional<std::string> text(std::string_view key) const;
  [[nodiscard]] bool is_true(std::string_view key) const;

 private:
  [[nodiscard]] const Value* find(std::string_view key) const;

  std::string name_;
  double at_;
  std::vector<std::pair<std::string, Value>> fields_;
};

/// One line, without its end. Bytes that are not UTF-8 are replaced.
[[nodiscard]] std::string to_json(const Event& event);

/// Parses a line; nothing if it is no event, or incomplete. Skips fields of other types (lists, objects,
/// null). Texts are escaped by base::visible().
[[nodiscard]] std::optional<Event> event_from_json(std::string_view line);

}  // namespace paceline::measure
