#include "cli/options/site.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <regex>
#include <system_error>

#include "base/error.h"
#include "base/nearest.h"
#include "cli/options/options.h"
#include "cli/options/toml_file.h"
#include "data/dataset.h"

namespace paceline::cli {
namespace {

using base::ErrorKind;

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

/// Whether the option may change figures: options that recipes accept determine what is run and how.
bool changes_figures(std::string_view key) {
  return std::ranges::any_of(options(),
                             [&](const Option& option) { return option.name() == key && option.in_recipes; });
}

/// Fails with the reason why `key` is not allowed at `where`.
[[noreturn]] void refuse_key(const std::string& where, std::string_view key, std::string_view table,
                             const std::vector<std::string>& known) {
  if (changes_figures(key))
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
    const auto text = typed_text(node, option.is_list ? '\n' : ',');
    if (!text) base::fail(ErrorKind::usage, "{} must be a text, a number or a list of them", where);
    check_layer(reader,
                {{&option, *text, where}});  // checked here, not only by the first command that uses it
    if (const Option* mine = find_option(key, command); mine != nullptr && mine->setting == option.setting)
      given.push_back({mine, *text, where});
  }
}

void take_data(const toml::table& table, const std::string& file, Site& site) {
  static const std::regex form("[A-Za-z0-9_-]+");
  for (const auto& [toml_key, node] : table) {
    const std::string name(toml_key.str());
    const auto line = fmt::format("{}:{}", file, toml_key.source().begin.line);
    const auto* spec = node.as_string();
    if (!std::regex_match(name, form))
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
  std::erase_if(files, [](const auto& file) {
    std::error_code unreadable;
    return !std::filesystem::exists(file, unreadable);
  });
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

}  // namespace paceline::cli
