#include "cli/options/recipe.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/dataset.h"

namespace paceline::cli {
namespace {

/// A value as it would be typed on the command line. A number with a point keeps it, since 1.0 is no integer
/// there either. Lists are joined with `between`. Nothing if the value has no such form.
std::optional<std::string> typed_text(const toml::node& node, char between = ',') {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{:#}", number->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  if (const auto* list = node.as_array()) {
    std::string joined;
    for (const auto& element : *list) {
      const auto part = element.is_array() ? std::nullopt : typed_text(element);
      if (!part) return std::nullopt;
      if (!joined.empty()) joined += between;
      joined += *part;
    }
    return joined;
  }
  return std::nullopt;
}

/// Errors   Error(data) when it cannot be read; Error(usage) with file and line when it is not TOML
toml::table parse_toml(const std::filesystem::path& path) {
  const std::string text = base::read_file(path);
  try {
    return toml::parse(text, path.string());
  } catch (const toml::parse_error& error) {
    const std::string_view what = error.description();
    const bool ran_on = what.find("control character") != what.npos || what.find("end-of-file") != what.npos;
    base::fail(
        ErrorKind::usage, "{}:{}: not TOML: {}{}", path.string(), error.source().begin.line, what,
        ran_on ? "; most likely a quote is missing at the end of this line's text, or of one above" : "");
  }
}

/// The keys of each table of options, and the command to which they belong.
struct SiteTable {
  std::string_view name;
  Command command;
  std::vector<std::string> keys;
};

const std::vector<SiteTable>& tables() {
  static const std::vector<SiteTable> all{{"sbatch",
                                           kSbatch,
                                           {"account", "partition", "qos", "constraint", "memory", "time",
                                            "mail", "setup", "container", "stage", "mpi", "slurm"}},
                                          {"launch", kLaunch, {"by", "grace", "meet-within", "interface"}}};
  return all;
}

/// Whether recipes accept the option for some command. Such options determine what is run and how, so they
/// may change figures.
bool is_of_recipes(std::string_view key) {
  return std::ranges::any_of(
      options(), [&](const Option& option) { return option.name() == key && option.in_recipes(); });
}

/// Fails with the reason why `key` is not allowed at `where`.
[[noreturn]] void refuse_key(const std::string& where, std::string_view key, std::string_view table,
                             const std::vector<std::string>& known) {
  if (is_of_recipes(key))
    base::fail(
        ErrorKind::usage,
        "{}: a site file may not set {}, because it can change figures: the same command is to give the "
        "same ones everywhere; put it into a recipe, or type --{}",
        where, key, key);
  if (known.empty())
    base::fail(ErrorKind::usage,
               "{}: is outside of all tables; a site file has [sbatch], [launch] and [data]", where);
  base::fail(ErrorKind::usage, "{}: is not a key of [{}]{}", where, table, base::suggestion(key, known));
}

void take_table(const toml::table& table, const SiteTable& kind, const std::string& file, Command command,
                std::vector<Assignment>& given) {
  for (const auto& [toml_key, node] : table) {
    const std::string key(toml_key.str());
    const auto where = fmt::format("{}:{}: {}", file, toml_key.source().begin.line, key);
    if (std::ranges::find(kind.keys, key) == kind.keys.end()) refuse_key(where, key, kind.name, kind.keys);
    // meet-within is an option of the command that launch starts.
    const Command reader = find_option(key, kind.command) != nullptr ? kind.command : kTrain;
    const Option& option = *find_option(key, reader);
    const auto text = typed_text(node, option.rules.is_list ? '\n' : ',');
    if (!text) base::fail(ErrorKind::usage, "{} must be a text, a number or a list of them", where);
    check_layer(reader,
                {{&option, *text, where}});  // checked here, not only by the first command that uses it
    if (const Option* mine = find_option(key, command); mine != nullptr && mine->setting == option.setting)
      given.push_back({mine, *text, where});
  }
}

void take_data(const toml::table& table, const std::string& file, Site& site) {
  constexpr const char* kOfNames = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
  for (const auto& [toml_key, node] : table) {
    const std::string name(toml_key.str());
    const auto line = fmt::format("{}:{}", file, toml_key.source().begin.line);
    const auto* spec = node.as_string();
    if (name.empty() || name.find_first_not_of(kOfNames) != std::string::npos)
      base::fail(ErrorKind::usage, "{}: {}: a data set's name has letters, digits, '-' and '_' only", line,
                 name);
    if (spec == nullptr)
      base::fail(ErrorKind::usage, "{}: {} must be a text, what --data takes: {}", line, name,
                 data::known_specs());
    if (std::ranges::any_of(data::known_formats(), [&](const auto& one) { return one.name() == name; }))
      base::fail(ErrorKind::usage,
                 "{}: {} is already the name of a kind of data set for --data; choose another name", line,
                 name);
    site.data[name] = spec->get();
    site.data_where[name] = line;
  }
}

/// Looks for a file of layers or weights first beside the recipe that names it, so that they can be moved
/// together.
std::string beside(const std::string& recipe, const std::string& name) {
  const auto path = std::filesystem::path(recipe).parent_path() / name;
  return base::is_file(path) ? path.string() : name;
}

/// Reads `table` in the order of the file, so that the first mistake in it is reported. Keys that only other
/// commands accept are added to `unused`.
std::vector<Assignment> read_keys(const toml::table& table, const std::string& file, Command command,
                                  std::string& unused) {
  std::multimap<toml::source_index, Assignment> by_line;
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
    if (option != nullptr && !option->in_recipes())
      base::fail(ErrorKind::usage, "{} is for the command line only; remove the line", where);
    if (option == nullptr && is_of_recipes(key)) {
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
    if (option->setting == "weights" || (option->setting == "model" && typed->ends_with(".toml")))
      typed = beside(file, *typed);
    by_line.emplace(line, Assignment{option, *typed, where});
  }
  std::vector<Assignment> result;
  for (auto& [line, assignment] : by_line) result.push_back(std::move(assignment));
  return result;
}

}  // namespace

std::vector<std::filesystem::path> site_files() {
  std::vector<std::filesystem::path> files{"/etc/paceline/site.toml"};
  const auto variable = [](const char* name) {
    const char* text = std::getenv(name);
    return std::filesystem::path(text == nullptr ? "" : text);
  };
  if (const auto config = variable("XDG_CONFIG_HOME"); config.is_absolute())
    files.push_back(config / "paceline/site.toml");
  else if (const auto home = variable("HOME"); home.is_absolute())
    files.push_back(home / ".config/paceline/site.toml");
  std::erase_if(files, [](const auto& file) { return !base::is_there(file); });
  return files;
}

Site read_site(const std::vector<std::filesystem::path>& files, Command command) {
  Site site;
  for (const auto& path : files) {
    const auto file = path.string();
    std::vector<Assignment> given;
    for (const auto& [toml_key, node] : parse_toml(path)) {
      const std::string key(toml_key.str());
      const auto where = fmt::format("{}:{}: {}", file, toml_key.source().begin.line, key);
      const auto* table = node.as_table();
      const auto kind = std::ranges::find(tables(), key, &SiteTable::name);
      if (table != nullptr && kind != tables().end()) {
        take_table(*table, *kind, file, command, given);
      } else if (table != nullptr && key == "data") {
        take_data(*table, file, site);
      } else if (table == nullptr) {
        refuse_key(where, key, "", {});
      } else {
        base::fail(
            ErrorKind::usage,
            "{}: a site file has the tables [sbatch], [launch] and [data], and no others: what it sets must "
            "not change figures",
            where);
      }
    }
    for (auto& one : given) {
      std::erase_if(site.given, [&](const Assignment& earlier) { return earlier.option == one.option; });
      site.given.push_back(std::move(one));
    }
  }
  return site;
}

Recipe read_recipe(const std::filesystem::path& path, Command command) {
  const std::string file = path.string();
  if (!base::is_there(path))
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
  const auto names =
      base::joined(recipe.given, ", ", [](const Assignment& one) { return one.option->name(); });
  recipe.summary = fmt::format("{} sets {}", file, names.empty() ? "nothing" : names);
  if (!recipe.unused.empty())
    recipe.unused = fmt::format("{}: {} does not use {}", file, command_name(command), recipe.unused);
  return recipe;
}

}  // namespace paceline::cli
