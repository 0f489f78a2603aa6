#include "measure/events.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/visible.h"
#include "measure/environment.h"

namespace paceline::measure {

Event::Event(std::string name) : Event(std::move(name), unix_now()) {}

Event& Event::set(std::string key, std::string value) {
  fields_.emplace_back(std::move(key), std::move(value));
  return *this;
}

Event& Event::set(std::string key, double value) {
  if (std::isfinite(value)) fields_.emplace_back(std::move(key), value);
  return *this;
}

Event& Event::set(std::string key, std::int64_t value) {
  fields_.emplace_back(std::move(key), value);
  return *this;
}

Event& Event::set(std::string key, bool value) {
  fields_.emplace_back(std::move(key), value);
  return *this;
}

const Event::Value* Event::find(std::string_view key) const {
  for (const auto& [name, value] : fields_)
    if (name == key) return &value;
  return nullptr;
}

std::optional<double> Event::number(std::string_view key) const {
  const Value* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* real = std::get_if<double>(value)) return *real;
  if (const auto* integer = std::get_if<std::int64_t>(value)) return static_cast<double>(*integer);
  return std::nullopt;
}

std::optional<std::int64_t> Event::whole(std::string_view key) const {
  const Value* const value = find(key);
  const auto* integer = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
  return integer == nullptr ? std::nullopt : std::optional(*integer);
}

std::optional<std::string> Event::text(std::string_view key) const {
  const Value* const value = find(key);
  const auto* string = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return string == nullptr ? std::nullopt : std::optional(*string);
}

bool Event::is_true(std::string_view key) const {
  const Value* const value = find(key);
  const auto* truth = value == nullptr ? nullptr : std::get_if<bool>(value);
  return truth != nullptr && *truth;
}

std::string to_json(const Event& event) {
  nlohmann::ordered_json json{{"event", event.name()}, {"at", std::round(event.at() * 1e3) / 1e3}};
  for (const auto& [key, value] : event.fields())
    std::visit([&, &name = key](const auto& one) { json[name] = one; }, value);
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<Event> event_from_json(std::string_view line) {
  const auto json = nlohmann::ordered_json::parse(line, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto name = json.find("event");
  const auto at = json.find("at");
  if (name == json.end() || !name->is_string() || at == json.end() || !at->is_number()) return std::nullopt;
  Event event(base::visible(name->get<std::string>()), at->get<double>());
  for (const auto& [key, value] : json.items()) {
    if (key == "event" || key == "at") continue;
    if (value.is_string()) event.set(key, base::visible(value.get<std::string>()));
    if (value.is_boolean()) event.set(key, value.get<bool>());
    if (value.is_number_float()) event.set(key, value.get<double>());
    if (value.is_number_integer()) event.set(key, value.get<std::int64_t>());
  }
  return event;
}

}  // namespace paceline::measure
