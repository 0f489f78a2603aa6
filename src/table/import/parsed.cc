#include "table/import/parsed.h"

#include "base/error.h"
#include "table/import/gz_file.h"
#include "table/table.h"
#include "table/words.h"

namespace paceline::table {

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

}  // namespace paceline::table
