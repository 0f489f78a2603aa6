#include "analysis/compare/setup_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/compare/comparability.h"
#include "measure/setting.h"

namespace paceline::analysis {
namespace {

using Cells = std::vector<const Cell*>;

std::vector<const Setup*> setups_of(const Cells& cells) {
  std::vector<const Setup*> setups;
  for (const Cell* cell : cells) setups.push_back(&cell->setup);
  return setups;
}

bool is_baseline_of_all(const Cell& cell, Place place) {
  return place == Place::workers && is_alone(cell.record());
}

/// Whether the axis may separate the cell from others. How workers are joined does not separate a baseline
/// that serves all.
bool counts(const Cell& cell, const EntryName& axis, Place place) {
  return cell.is_measured() && !(axis.second == SetupKind::joined && is_baseline_of_all(cell, place));
}

/// A key: cells with the same key must not differ on the axis. An empty key is shared by all cells.
std::string key_of_place(const Cell& cell, const EntryName& axis, Place place) {
  if (place == Place::workers) return std::to_string(cell.workers);
  return axis.second == SetupKind::joined ? "" : std::to_string(cell.local_batch);
}

bool tells_apart(const Cells& cells, const EntryName& axis, Place place) {
  std::map<std::string, std::string> first;
  for (const Cell* cell : cells) {
    if (!counts(*cell, axis, place)) continue;
    const auto [found, is_new] =
        first.try_emplace(key_of_place(*cell, axis, place), text_of(cell->setup, axis));
    if (!is_new && found->second != text_of(cell->setup, axis)) return true;
  }
  return false;
}

/// Whether cells that differ on the axis belong to different groups, because their times may differ. A
/// difference that only gets a remark, such as the learning rate, leaves them in one group.
bool is_of_times(const EntryName& axis) {
  switch (axis.second) {
    case SetupKind::part:
    case SetupKind::size:
    case SetupKind::circumstance:
      return false;
    case SetupKind::setting: {
      const auto setting = measure::Setting::find(axis.first);
      return !setting || setting->on_time() == measure::Effect::refuse;
    }
    case SetupKind::rest:
      return axis.first != "window unit";
    default:
      return true;
  }
}

/// The axes that split cells, ordered by kind and, within a kind, as in the set-ups.
std::vector<EntryName> axes_of(const Cells& cells) {
  auto axes = names_of_entries(setups_of(cells));
  std::erase_if(axes, [](const EntryName& axis) { return !is_of_times(axis); });
  std::ranges::stable_sort(axes, {}, &EntryName::second);
  return axes;
}

/// Single workers that serve as baselines for a part without its own: those of the whole. Empty if these have
/// several set-ups, since it is unclear which is meant.
Cells baselines_of(const Cells& cells, Place place) {
  Cells alone;
  for (const Cell* cell : cells)
    if (cell->is_measured() && is_baseline_of_all(*cell, place)) alone.push_back(cell);
  for (const EntryName& axis : axes_of(alone))
    if (tells_apart(alone, axis, place)) return {};
  return alone;
}

/// Whether the part has a baseline: a single worker, or fewer workers than its largest number.
bool has_own_baseline(const Cells& part, Place place) {
  std::set<int> workers;
  for (const Cell* cell : part) {
    if (!cell->is_measured()) continue;
    if (is_baseline_of_all(*cell, place)) return true;
    workers.insert(cell->workers);
  }
  return workers.size() > 1;
}

/// Whether a ratio to the baseline is allowed for at least one cell of the part. Otherwise the baseline would
/// only appear in refusals.
bool serves(const Cell& baseline, const Cells& part) {
  return std::ranges::any_of(part, [&](const Cell* cell) {
    return cell->is_measured() && compare(baseline, *cell, Topic::scaling).comparable();
  });
}

/// The cells grouped by their texts on the axis, in the order of first appearance.
std::vector<Cells> parts_on(const Cells& cells, const EntryName& axis, Place place) {
  std::vector<std::string> texts;
  std::vector<Cells> parts;
  for (const Cell* cell : cells) {
    if (!counts(*cell, axis, place)) continue;
    const auto text = text_of(cell->setup, axis);
    const auto at = std::ranges::find(texts, text) - texts.begin();
    if (at == static_cast<std::ptrdiff_t>(texts.size())) {
      texts.push_back(text);
      parts.emplace_back();
    }
    parts[static_cast<std::size_t>(at)].push_back(cell);
  }
  for (const Cell* cell : cells) {
    if (counts(*cell, axis, place)) continue;
    if (cell->is_measured() && is_baseline_of_all(*cell, place)) {
      for (Cells& part : parts) part.push_back(cell);
      continue;
    }
    const auto own = std::ranges::find(texts, text_of(cell->setup, axis));
    parts[own == texts.end() ? 0 : static_cast<std::size_t>(own - texts.begin())].push_back(cell);
  }
  const Cells shared = baselines_of(cells, place);
  for (Cells& part : parts) {
    if (has_own_baseline(part, place)) continue;
    const Cells own = part;
    for (const Cell* cell : shared)
      if (serves(*cell, own)) part.push_back(cell);
  }
  return parts;
}

void split(const Cells& cells, Place place, std::vector<Cells>& leaves) {
  for (const EntryName& axis : axes_of(cells)) {
    if (!tells_apart(cells, axis, place)) continue;
    for (const Cells& part : parts_on(cells, axis, place)) split(part, place, leaves);
    return;
  }
  leaves.push_back(cells);
}

/// The cells that give a group its name: those that not every group has.
Cells own_cells(const Cells& cells, Place place) {
  Cells own;
  for (const Cell* cell : cells)
    if (cell->is_measured() && !is_baseline_of_all(*cell, place)) own.push_back(cell);
  if (!own.empty()) return own;
  for (const Cell* cell : cells)
    if (cell->is_measured()) own.push_back(cell);
  return own.empty() ? cells : own;
}

/// The common text of all cells, or all their texts, "2/4".
std::string common_text(const Cells& cells, const EntryName& axis) {
  std::set<std::string> texts;
  for (const Cell* cell : cells) texts.insert(text_of(cell->setup, axis));
  return fmt::format("{}", fmt::join(texts, "/"));
}

/// Names of the groups: how each is joined, if that tells groups apart; then the first entries that tell the
/// rest apart. Only axes that separate two cells of the whole are named; groups differ in more, such as their
/// numbers of workers.
std::vector<std::string> names_of_groups(const std::vector<Cells>& groups, const Cells& whole, Place place) {
  std::vector<Cells> own;
  for (const Cells& cells : groups) own.push_back(own_cells(cells, place));
  std::vector<std::string> names(groups.size());
  bool is_first_of_joined = true;
  for (const EntryName& axis : axes_of(whole)) {
    if (!tells_apart(whole, axis, place)) continue;
    if (axis.second == SetupKind::joined && std::exchange(is_first_of_joined, false))
      add_what_tells(names, [&](std::size_t i) { return joined_as(own[i]); });
    add_what_tells(names, [&](std::size_t i) { return with_name(axis, common_text(own[i], axis)); });
  }
  return names;
}

/// Whether all texts that both cells know are equal.
bool may_be_of_one_subject(const Cell& a, const Cell& b) {
  return std::ranges::all_of(a.setup, [&](const SetupEntry& entry) {
    if (entry.kind != SetupKind::subject) return true;
    const auto there = text_of(b.setup, entry.name);
    return there.empty() || there == entry.text;
  });
}

/// "resnet8-cifar", "mnist-cnn on mnist", with whatever else tells them apart.
std::vector<std::string> names_of_subjects(const std::vector<CellGroup>& groups) {
  const auto are_told = [](const std::vector<std::string>& names) {
    return std::set<std::string>(names.begin(), names.end()).size() == names.size();
  };
  std::vector<std::string> names, with_data;
  Cells first;
  for (const CellGroup& group : groups) {
    first.push_back(group.cells.front());
    const auto& record = first.back()->record();
    names.push_back(record.model.name);
    with_data.push_back(fmt::format("{} on {}", record.model.name, measure::name_of_data(record)));
  }
  if (are_told(names)) return names;
  if (are_told(with_data)) return with_data;
  const auto rest = first_differences(setups_of(first));
  for (std::size_t i = 0; i < with_data.size(); ++i) with_data[i] += fmt::format(" ({})", rest[i]);
  return with_data;
}

}  // namespace

std::vector<CellGroup> by_subject(std::span<const Cell> cells) {
  std::vector<CellGroup> groups;
  const auto is_of = [](const CellGroup& group, const Cell& cell) {
    return may_be_of_one_subject(cell, *group.cells.front());
  };
  for (const bool measured : {true, false})
    for (const Cell& cell : cells) {
      if (cell.is_measured() != measured) continue;
      const auto own =
          std::ranges::find_if(groups, [&](const CellGroup& group) { return is_of(group, cell); });
      (own != groups.end() ? *own : groups.emplace_back()).cells.push_back(&cell);
    }
  if (groups.size() > 1) {
    const auto names = names_of_subjects(groups);
    for (std::size_t i = 0; i < groups.size(); ++i) groups[i].name = names[i];
  }
  for (CellGroup& group : groups) std::ranges::stable_sort(group.cells);
  return groups;
}

std::vector<CellGroup> by_setup(const Cells& cells, Place place) {
  std::vector<Cells> leaves;
  split(cells, place, leaves);
  const auto names =
      leaves.size() > 1 ? names_of_groups(leaves, cells, place) : std::vector<std::string>(leaves.size());
  std::vector<CellGroup> groups;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    // Baselines were appended after the cells of each part.
    std::ranges::stable_sort(leaves[i]);
    groups.push_back({.cells = leaves[i], .name = names[i]});
  }
  return groups;
}

bool are_joined_otherwise(const Cells& cells) {
  std::map<std::tuple<int, std::int64_t, std::int64_t>, Cells> alike;
  for (const Cell* cell : cells)
    if (cell->is_measured()) alike[{cell->workers, cell->local_batch, cell->global_batch}].push_back(cell);
  return std::ranges::any_of(alike, [](const auto& one) {
    return std::ranges::any_of(one.second, [&](const Cell* cell) {
      return differ_in(cell->setup, one.second.front()->setup, SetupKind::joined);
    });
  });
}

std::string joined_as(const Cells& cells) {
  std::set<std::string> texts, without_processes, without_numbers;
  const auto without = [](std::string text, const char* behind) {  // "4 nodes" becomes "nodes"
    const auto at = text.find(behind);
    if (at == std::string::npos) return text;
    const auto begin = text.find_last_not_of("0123456789", at - 1) + 1;
    return text.erase(begin, at + 1 - begin);
  };
  for (const Cell* cell : cells) {
    auto text = cell->is_measured() ? joined_as(cell->record()) : "";
    if (text.empty()) continue;
    texts.insert(text);
    // "(3 + 1)" belongs to one number of workers, as the number of processes does.
    if (const auto open = text.find(" ("); open != std::string::npos)
      text.erase(open, text.find(')', open) + 1 - open);
    text = without(std::move(text), " processes");
    without_processes.insert(text);
    without_numbers.insert(without(std::move(text), " nodes"));
  }
  for (const auto* all : {&texts, &without_processes})
    if (all->size() <= 1) return all->empty() ? "" : *all->begin();
  return fmt::format("{}", fmt::join(without_numbers, " or "));
}

}  // namespace paceline::analysis
