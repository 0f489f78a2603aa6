#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "cli/options/layers.h"
#include "cli/options/toml_file.h"

namespace paceline::cli {
namespace {

using base::ErrorKind;

bool known_anywhere(std::string_view name) {
  for (const auto& option : options())
    if (option.name() == name && option.in_recipes) return true;
  return false;
}

/// Looks for a model file first beside the recipe that names it, so that both can be moved together.
std::string beside(const std::string& recipe, const std::string& model) {
  const auto path = std::filesystem::path(recipe).parent_path() / model;
  std::error_code unreadable;
  return model.ends_with(".toml") && std::filesystem::is_regular_file(path, unreadable) ? path.string()
                                                                                        : model;
}

/// Reads `table` in the order of the file, so that the first mistake in it is reported. Keys that only other
/// commands accept are added to `unused`.
std::vector<Assignment> read_keys(const toml::table& table, const std::string& file, Command command,
                                  std::string& unused) {
  std::vector<std::pair<toml::source_index, Assignment>> found;
  for (const auto& [toml_key, node] : table) {
    const std::string key(toml_key.str());
    const auto line = toml_key.source().begin.line;
    const std::string where = fmt::format("{}:{}: {}", file, line, key);
    const Option* option = find_option(key, command);
    if (key == "quick" && node.is_table()) continue;  // read separately
    if (node.is_table())
      base::fail(ErrorKind::usage,
                 "{}:{}: the only table of a recipe is [quick], but here is [{}]; write its keys at the top "
                 "level",
                 file, line, key);
    if (option != nullptr && !option->in_recipes)
      base::fail(ErrorKind::usage, "{} is for the command line only; remove the line", where);
    if (option == nullptr && known_anywhere(key)) {
      unused += (unused.empty() ? "" : ", ") + key;
      continue;
    }
    if (option == nullptr) base::fail(ErrorKind::usage, "{} {}", where, why_unknown(key, command, ""));
    if (const auto* list = node.as_array(); list != nullptr && list->size() > 1 &&
                                            option->setting == "workers" &&
                                            option->value.find("LIST") == std::string::npos)
      base::fail(ErrorKind::usage,
                 "{} is a list, and {} takes one number; paceline scale RECIPE compares several", where,
                 command_name(command));
    auto typed = typed_text(node);
    if (!typed)
      base::fail(ErrorKind::usage, "{} must be a text, a number, true or false, or a list of them", where);
    if (option->value.empty() && !node.is_boolean())
      base::fail(ErrorKind::usage, "{} must be true or false, got '{}'", where, *typed);
    if (option->setting == "model") typed = beside(file, *typed);
    found.push_back({line, {option, *typed, where}});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Assignment> result;
  for (auto& [line, assignment] : found) result.push_back(std::move(assignment));
  return result;
}

}  // namespace

Recipe read_recipe(const std::filesystem::path& path, Command command) {
  const std::string file = path.string();
  std::error_code unreadable;
  if (!std::filesystem::exists(path, unreadable))
    base::fail(ErrorKind::usage,
               "{}: there is no such recipe; the ones that come with Paceline are in recipes/", file);
  const toml::table table = parse_toml(path);

  if (table["layer"].is_array())
    base::fail(
        ErrorKind::usage,
        "{}: looks like a model file, since it has layers; a recipe holds options. Give it as --model {}",
        file, file);
  Recipe recipe;
  const toml::table* const quick = table["quick"].as_table();
  if (quick != nullptr) recipe.quick = read_keys(*quick, file, command, recipe.unused);
  recipe.has_quick = quick != nullptr;
  recipe.given = read_keys(table, file, command, recipe.unused);
  for (const auto* layer : {&recipe.given, &recipe.quick}) check_layer(command, *layer);
  std::string names;
  for (const auto& assignment : recipe.given)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", assignment.option->name());
  recipe.summary = fmt::format("{} sets {}", file, names.empty() ? "nothing" : names);
  if (!recipe.unused.empty())
    recipe.unused = fmt::format("{}: {} does not use {}", file, command_name(command), recipe.unused);
  return recipe;
}

}  // namespace paceline::cli
