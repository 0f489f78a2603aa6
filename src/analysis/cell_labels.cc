#include "analysis/cell_labels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "measure/setting.h"

namespace paceline::analysis {
namespace {

using measure::Record;
using measure::SettingRole;

/// Whether differences() reads this setting's text. Labels hold the sizes already, repeats may differ in the
/// window, and the precision is compared as the one used.
bool is_named(std::string_view key) {
  const auto role = measure::role_of(key);
  return role != SettingRole::size && role != SettingRole::window && role != SettingRole::precision;
}

/// Of what was not run the libraries are not known, which tells it from nothing.
bool is_in_every_record(std::string_view circumstance) {
  return circumstance == "version" || circumstance == "host";
}

/// Those of circumstances() that tell the cells apart, no more: another version mostly comes with other
/// libraries, and its name says enough.
std::vector<Circumstances> telling_circumstances(const std::vector<const Cell*>& cells) {
  std::vector<Circumstances> whole, told(cells.size());
  for (const Cell* cell : cells) whole.push_back(circumstances(cell->record()));
  const auto kinds = [](const std::vector<Circumstances>& all) {
    return std::set<Circumstances>(all.begin(), all.end()).size();
  };
  for (const char* name : {"version", "host", "libraries", "compiler", "system"}) {
    auto more = told;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const auto found = whole[i].find(name);
      if (found != whole[i].end())
        more[i].insert(*found);
      else if (is_in_every_record(name))
        more[i][name] = "unknown";
    }
    if (kinds(more) > kinds(told)) told = std::move(more);
  }
  return told;
}

}  // namespace

std::vector<std::string> different_circumstances(const std::vector<const Cell*>& cells) {
  std::vector<std::string> texts;
  for (const auto& here : telling_circumstances(cells)) {
    std::vector<std::string> own;
    for (const auto& [name, value] : here) own.push_back(fmt::format("{} {}", name, value));
    texts.push_back(fmt::format("{}", fmt::join(own, ", ")));
  }
  return texts;
}

std::vector<std::string> cell_labels(const std::vector<const Cell*>& cells,
                                     const std::vector<std::pair<std::int64_t, std::int64_t>>& places) {
  const auto do_tell = [&](const std::vector<std::string>& texts) {
    std::set<std::pair<std::pair<std::int64_t, std::int64_t>, std::string>> taken;
    for (std::size_t i = 0; i < places.size(); ++i)
      if (!taken.emplace(places[i], texts[i]).second) return false;
    return true;
  };
  std::vector<std::string> none(cells.size());
  if (do_tell(none)) return none;
  auto texts = different_circumstances(cells);
  return do_tell(texts) ? texts : differences(cells);
}

std::vector<std::string> differences(const std::vector<const Cell*>& cells) {
  std::vector<Circumstances> of_each;
  std::map<std::string, std::set<std::string>> values;
  std::map<std::string, std::size_t> settings;  // in how many cells each is set
  const bool is_one_model = std::all_of(cells.begin(), cells.end(), [&](const Cell* cell) {
    return cell->record().model.name == cells.front()->record().model.name;
  });
  const auto telling = telling_circumstances(cells);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Record& record = cells[i]->record();
    auto& here = of_each.emplace_back(telling[i]);
    for (const auto& [name, value] : record.settings)
      if (is_named(name)) here[name] = value;
    here["precision"] = record.precision;  // "auto" has come to one; of a cell that was not run none is known
    if (is_one_model)  // else its name says it: a file of layers may have changed under one name
      for (const auto& [name, number] : {std::pair{"parameters", record.model.parameters},
                                         std::pair{"FLOPs a sample", record.model.training_flops}})
        if (number > 0) here[name] = std::to_string(number);
    const std::string changes = changes_at_resumes(record);
    here["change at a resume"] = changes;
    if (!changes.empty()) ++settings["change at a resume"];
    std::erase_if(here, [](const auto& one) { return one.second.empty(); });
    for (const auto& [name, value] : here) {
      values[name].insert(value);
      if (record.settings.contains(name) && is_named(name)) ++settings[name];
    }
  }
  // A setting that some lack says as much as one with several values; what is not known of a cell does not.
  const auto is_lacked = [&](const std::string& name) {
    const auto found = settings.find(name);
    return found != settings.end() && found->second < cells.size();
  };
  std::vector<std::string> texts;
  for (const auto& here : of_each) {
    std::vector<std::string> own;
    for (const auto& [name, value] : here)
      if (values[name].size() > 1 || is_lacked(name)) own.push_back(fmt::format("{} {}", name, value));
    if (own.empty())
      for (const auto& [name, number] : settings)
        if (is_lacked(name) && !here.contains(name)) own.push_back("no " + name);
    texts.push_back(fmt::format("{}", fmt::join(own, ", ")));
  }
  return texts;
}

}  // namespace paceline::analysis
