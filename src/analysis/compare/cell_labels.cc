#include "analysis/compare/cell_labels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "base/text.h"
#include "measure/setting.h"

namespace paceline::analysis {
namespace {

using measure::SettingRole;

/// Whether a label may name this entry. Labels contain the sizes already.
bool is_named_in_label(const SetupEntry& entry) {
  return entry.kind == SetupKind::setting && measure::role_of(entry.name) != SettingRole::size;
}

/// The libraries of a cell that was not run are unknown; that must not count as a difference.
bool is_in_every_record(std::string_view circumstance) {
  return circumstance == "version" || circumstance == "host";
}

/// The entries of circumstances() that are needed to tell the cells apart, no more: a different version
/// mostly comes with different libraries, and naming the version is enough.
std::vector<Circumstances> telling_circumstances(const std::vector<const Cell*>& cells) {
  std::vector<Circumstances> whole, told(cells.size());
  for (const Cell* cell : cells) whole.push_back(circumstances(cell->record()));
  for (const char* name : {"version", "host", "libraries", "compiler", "system"}) {
    auto more = told;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const auto found = whole[i].find(name);
      if (found != whole[i].end())
        more[i].insert(*found);
      else if (is_in_every_record(name))
        more[i][name] = "unknown";
    }
    if (tells_more(more, told)) told = std::move(more);
  }
  return told;
}

using Texts = std::map<std::string, std::string>;  // by the entry's name

/// Settings, what "auto" precision came to, the size of a model of one name, circumstances.
std::vector<Texts> named_texts(const std::vector<const Cell*>& cells, const std::set<std::string>& differ) {
  const bool is_one_model = std::ranges::all_of(cells, [&](const Cell* cell) {
    return cell->record().model.name == cells.front()->record().model.name;
  });
  auto all = telling_circumstances(cells);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    for (const SetupEntry& entry : cells[i]->setup) {
      const bool is_of_model = entry.name == "parameters" || entry.name == "FLOPs a sample";
      if (is_named_in_label(entry) || entry.name == "precision" || entry.name == "change at a resume" ||
          (is_of_model && is_one_model) || (entry.name == "threads" && differ.contains("threads")))
        all[i].emplace(entry.name, entry.text);
    }
  }
  return all;
}

/// For each cell the texts that not all cells share. A setting that only some cells have counts like one with
/// several values; something unknown does not.
std::vector<std::vector<std::string>> telling_pieces(const std::vector<const Cell*>& cells,
                                                     const std::vector<Texts>& all,
                                                     const std::set<std::string>& shown) {
  std::map<std::string, std::set<std::string>> values;
  std::map<std::string, std::size_t> set_in;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    for (const auto& [name, text] : all[i]) values[name].insert(text);
    for (const SetupEntry& entry : cells[i]->setup)
      if (is_named_in_label(entry) || entry.name == "change at a resume") ++set_in[entry.name];
  }
  const auto is_lacked = [&](const std::string& name) {
    const auto found = set_in.find(name);
    return found != set_in.end() && found->second < cells.size();
  };
  std::vector<std::vector<std::string>> pieces(cells.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    for (const auto& [name, text] : all[i])
      if (!shown.contains(name) && (values[name].size() > 1 || is_lacked(name)))
        pieces[i].push_back(fmt::format("{} {}", name, text));
    if (!pieces[i].empty()) continue;
    for (const auto& [name, number] : set_in)
      if (is_lacked(name) && !all[i].contains(name) && !shown.contains(name))
        pieces[i].push_back("no " + name);
  }
  return pieces;
}

/// Puts in front how the workers are joined, if that differs between cells with the same number of workers.
void add_joined(const std::vector<const Cell*>& cells, std::vector<std::vector<std::string>>& pieces) {
  std::map<int, std::set<std::string>> texts;
  for (const Cell* cell : cells)
    if (const auto text = joined_as(cell->record()); !text.empty()) texts[cell->workers].insert(text);
  if (std::ranges::none_of(texts, [](const auto& one) { return one.second.size() > 1; })) return;
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (auto text = joined_as(cells[i]->record()); !text.empty())
      pieces[i].insert(pieces[i].begin(), std::move(text));
}

/// Cells with the same label so far get the first entries of their set-ups that tell them apart.
void add_until_told_apart(const std::vector<const Cell*>& cells, const std::set<std::string>& shown,
                          std::vector<std::vector<std::string>>& pieces) {
  std::vector<std::string> labels;
  std::vector<const Setup*> setups;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Cell& cell = *cells[i];
    auto& label = labels.emplace_back(fmt::format("{}|{}|{}|{}|{}|{}|{}", cell.kind, cell.scaling,
                                                  cell.variant, cell.workers, cell.local_batch,
                                                  cell.global_batch, fmt::join(pieces[i], "|")));
    for (const std::string& name : shown) label += fmt::format("|{}", text_of(cell.setup, name));
    if (!cell.is_measured()) label = fmt::format("not measured: {}", i);  // it is told from no other
    setups.push_back(&cell.setup);
  }
  const auto texts = differences_within(labels, setups, first_differences);
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (!texts[i].empty()) pieces[i].push_back(texts[i]);
}

}  // namespace

std::vector<std::string> different_circumstances(const std::vector<const Cell*>& cells) {
  return base::texts_of(telling_circumstances(cells), [](const Circumstances& own) {
    return base::joined(own, ", ", [](const auto& one) { return one.first + " " + one.second; });
  });
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

std::set<std::string> different_entries(const std::vector<const Cell*>& cells) {
  std::map<std::string, std::size_t> members;  // cells of each group within which texts are compared
  std::map<std::pair<std::string, std::string>, std::multiset<std::string>> texts;  // by entry and group
  for (const Cell* cell : cells) {
    if (!cell->is_measured()) continue;
    const std::string all = "all", of_as_many = std::to_string(cell->workers);
    const std::string joined = is_alone(cell->record()) ? "" : "joined " + of_as_many;
    for (const std::string* group : {&all, &of_as_many, &joined}) ++members[*group];
    for (const SetupEntry& entry : cell->setup) {
      if (entry.kind == SetupKind::setting) continue;
      const std::string& group = entry.kind == SetupKind::joined  ? joined
                                 : entry.kind == SetupKind::cores ? of_as_many
                                                                  : all;
      if (!group.empty()) texts[{entry.name, group}].insert(entry.text);
    }
  }
  std::set<std::string> names;
  for (const auto& [key, there] : texts)
    if (there.size() < members[key.second] || there.count(*there.begin()) < there.size())
      names.insert(key.first);
  return names;
}

std::vector<std::string> differences(const std::vector<const Cell*>& cells,
                                     const std::set<std::string>& shown) {
  if (cells.empty()) return {};
  auto pieces = telling_pieces(cells, named_texts(cells, different_entries(cells)), shown);
  if (!shown.contains("processes")) add_joined(cells, pieces);
  add_until_told_apart(cells, shown, pieces);
  return base::texts_of(pieces, [](const auto& own) { return base::joined(own, ", "); });
}

}  // namespace paceline::analysis
