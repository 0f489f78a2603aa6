#include "measure/setting.h"

namespace paceline::measure {

std::optional<Setting> Setting::find(std::string_view key) {
  const auto row = setting_table::row_of(key);
  return row == count() ? std::nullopt : std::optional(at(row));
}

const std::string* find_text(const SettingTexts& texts, Setting setting) {
  const auto found = texts.find(std::string(setting.key()));
  return found == texts.end() ? nullptr : &found->second;
}

std::optional<SettingRole> role_of(std::string_view key) {
  const auto setting = Setting::find(key);
  return setting ? std::optional(setting->role()) : std::nullopt;
}

bool is_of_execution(std::string_view key) {
  const auto role = role_of(key);
  return role == SettingRole::execution || role == SettingRole::cores;
}

bool is_of_window(std::string_view key) { return role_of(key) == SettingRole::window; }

}  // namespace paceline::measure
