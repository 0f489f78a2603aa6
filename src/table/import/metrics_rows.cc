/// Which entries of a log make one row: by which columns they are told apart, and where a run starts anew.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/text.h"
#include "table/import/metrics_log.h"

namespace paceline::table {
namespace {

/// Whether `a` lies before `b`. Beside epochs a step alone says nothing.
bool is_before(const EntryKey& a, const EntryKey& b) {
  if (a.epoch && b.epoch && *a.epoch != *b.epoch) return *a.epoch < *b.epoch;
  return a.epoch.has_value() == b.epoch.has_value() && a.step && b.step && *a.step < *b.step;
}

/// The row of an entry, before columns tell rows apart.
std::pair<bool, double> row_key(const EntryKey& key) {
  return {key.epoch.has_value(), key.epoch ? *key.epoch : key.step.value_or(0)};
}

bool has_key(const EntryKey& key) { return key.epoch || key.step; }

/// A value by which rows are told apart: of numbers the number, so that "0.0" is 0.
std::string told_text(std::string_view text) {
  if (is_missing(text)) return "";
  const auto number = read_number(text);
  return number ? fmt::format("{:.12g}", number->value) : std::string(text);
}

std::vector<std::string> told_in(const std::vector<MetricCell>& entry, std::span<const std::size_t> telling) {
  std::vector<std::string> told(telling.size());
  for (const auto& cell : entry)
    for (std::size_t i = 0; i < telling.size(); ++i)
      if (cell.name == telling[i]) told[i] = told_text(cell.text);
  return told;
}

/// The figures of one name so far.
struct Stream {
  std::size_t entries = 0;
  EntryKey last;
  std::set<EntryKey> seen;
};

/// The entries so far of those that have the same values in the telling columns.
struct Told {
  std::size_t run = 1, entries = 0, heads = 0;
  bool has_epochs = false;
  EntryKey last;
  std::map<std::size_t, Stream> streams;  ///< by name
};

/// Places entries one after the other.
class Placing {
 public:
  Placing(const KeyedLog& log, std::span<const std::size_t> telling) : log_(log) {
    std::map<std::vector<std::string>, std::size_t> numbers, last;
    places_.resize(log.keys.size());
    next_.assign(log.keys.size(), log.keys.size());
    for (std::size_t i = 0; i < log.keys.size(); ++i) {
      if (!has_key(log.keys[i])) continue;
      places_[i].told = told_in(log.log.entries[i], telling);
      if (const auto found = last.find(places_[i].told); found != last.end()) next_[found->second] = i;
      last[places_[i].told] = i;
    }
    for (std::size_t i = 0; i < log.keys.size(); ++i)
      if (has_key(log.keys[i])) place(i, told_[places_[i].told]);
  }

  std::vector<EntryPlace> places_;
  std::size_t replaced_ = 0, restarts_ = 0;

 private:
  void place(std::size_t i, Told& told) {
    const auto& key = log_.keys[i];
    auto& place = places_[i];
    const auto heads = static_cast<std::size_t>(std::ranges::upper_bound(log_.log.behind_heads, i) -
                                                log_.log.behind_heads.begin());
    const bool is_behind_heads = told.entries > 0 && heads != std::exchange(told.heads, heads);
    place.starts_anew = starts_anew(i, told, is_behind_heads);
    if (place.starts_anew) {
      told = {.run = told.run + 1, .heads = heads};
      ++restarts_;
    }
    place.run = told.run;
    place.is_later = key.step.has_value();
    bool is_replaced = false;
    for (const auto& cell : log_.log.entries[i]) {
      if (!log_.figures.contains(cell.name) || is_missing(cell.text)) continue;
      auto& stream = told.streams[cell.name];
      is_replaced = !stream.seen.insert(key).second || is_replaced;
      const bool is_first = stream.entries++ == 0;
      place.is_later = place.is_later && (is_first || is_before(stream.last, key));
      place.is_late = place.is_late || (!is_first && is_before(key, stream.last));
      if (is_first || !is_before(key, stream.last)) stream.last = key;
    }
    replaced_ += is_replaced ? 1 : 0;
    told.has_epochs = told.has_epochs || key.epoch;
    if (++told.entries == 1 || !is_before(key, told.last)) told.last = key;
  }

  [[nodiscard]] bool starts_anew(std::size_t i, const Told& told, bool is_behind_heads) const {
    const auto& key = log_.keys[i];
    if (!key.epoch && told.has_epochs) return false;
    if (is_behind_heads && key.epoch && told.last.epoch) return *key.epoch <= *told.last.epoch;
    bool goes_back = false, repeats = false, has_all = false;
    for (const auto& cell : log_.log.entries[i])
      if (const auto found = told.streams.find(cell.name);
          found != told.streams.end() && !is_missing(cell.text)) {
        const auto& stream = found->second;
        goes_back = goes_back || is_before(key, stream.last);
        repeats = repeats || stream.seen.contains(key);
        has_all = has_all || stream.entries == told.entries;
      }
    if (!goes_back) return false;
    // Where all entries have the figure, none of them is an evaluation that came late.
    if (has_all) return true;
    const auto next = next_[i];
    return next < log_.keys.size() ? !is_ahead(next, told) : repeats;
  }

  /// Whether an entry goes on behind the figures of its names, or behind all if these are new.
  [[nodiscard]] bool is_ahead(std::size_t i, const Told& told) const {
    bool is_known = false, is_ahead = true;
    for (const auto& cell : log_.log.entries[i])
      if (const auto found = told.streams.find(cell.name); found != told.streams.end()) {
        is_known = true;
        is_ahead = is_ahead && is_before(found->second.last, log_.keys[i]);
      }
    return is_known ? is_ahead : is_before(told.last, log_.keys[i]);
  }

  const KeyedLog& log_;
  std::vector<std::size_t> next_;  ///< of each entry the next one that is told the same
  std::map<std::vector<std::string>, Told> told_;
};

/// Whether a column so called names or numbers things that are measured beside each other.
bool names_things(std::string_view name) {
  auto words = base::lower_case(std::string(name));
  std::ranges::replace_if(
      words, [](char one) { return one == ' ' || one == '-' || one == '.'; }, '_');
  for (const std::string_view end : {"_id", "_idx", "_index", "_no", "_num", "_number", "_name"})
    if (words.ends_with(end)) words.resize(words.size() - end.size());
  return is_any(
      words, {"rank",         "worker",  "process", "proc",       "pid",        "replica",     "node",
              "host",         "gpu",     "device",  "client",     "shard",      "fold",        "cv",
              "seed",         "run",     "trial",   "repeat",     "repetition", "rep",         "replicate",
              "attempt",      "config",  "exp",     "experiment", "variant",    "model",       "arch",
              "architecture", "network", "net",     "backbone",   "method",     "algorithm",   "name",
              "job",          "task",    "group",   "member",     "split",      "part",        "phase",
              "set",          "dataset", "workers", "gpus",       "nodes",      "world_size",  "batch_size",
              "batchsize",    "bs",      "width",   "depth",      "local_rank", "global_rank", "global_batch",
              "local_batch",  "stage",   "mode",    "subset",     "optimizer",  "hostname"});
}

/// Whether a text may be the name of a thing: no clock, quantity, list, yes or no.
bool is_label(std::string_view text) {
  constexpr std::size_t kLongest = 64;
  if (is_any(base::lower_case(text), {"true", "false", "yes", "no", "nan", "inf", "-inf", "infinity"}))
    return false;
  const auto first = static_cast<unsigned char>(text.front());
  if (text.size() > kLongest || (std::isalpha(first) == 0 && first < 0x80)) return false;
  for (auto colon = text.find(':'); colon != std::string_view::npos; colon = text.find(':', colon + 1))
    if (colon > 0 && std::isdigit(static_cast<unsigned char>(text[colon - 1])) != 0) return false;
  return text.find_first_of("({[") == std::string_view::npos;
}

bool is_integer(std::string_view text) {
  const auto number = read_number(text);
  return number && number->value == static_cast<double>(static_cast<long long>(number->value));
}

/// A column that may tell rows apart.
struct Candidate {
  bool is_named = false;  ///< names_things()
  std::size_t cells = 0;
  std::set<std::string> values;
  std::set<std::string_view> parts;  ///< of the set, that its values name; "" if one names none

  [[nodiscard]] bool names_parts() const { return parts.size() > 1 && !parts.contains(""); }
};

std::map<std::size_t, Candidate> candidates_of(const KeyedLog& log) {
  std::map<std::size_t, Candidate> all;
  if (log.keys.size() < 2) return all;
  std::vector<bool> is_none(log.log.names.size(), false);
  for (const auto name : log.not_told) is_none[name] = true;
  for (std::size_t i = 0; i < log.keys.size(); ++i)
    for (const auto& cell : log.log.entries[i]) {
      if (is_none[cell.name] || !has_key(log.keys[i]) || is_missing(cell.text)) continue;
      const bool may_count = !is_label(cell.text);
      if (may_count && (!is_integer(cell.text) || !names_things(log.log.names[cell.name]))) {
        is_none[cell.name] = true;
        all.erase(cell.name);
        continue;
      }
      auto& one = all[cell.name];
      if (++one.cells == 1) one.is_named = names_things(log.log.names[cell.name]);
      one.values.insert(told_text(cell.text));
      one.parts.insert(part_of_set(cell.text));
    }
  // Remarks seldom occur twice, while each thing is measured at more than one epoch.
  std::erase_if(all, [](const auto& item) {
    const auto& one = item.second;
    return one.values.size() < 2 ||
           (!one.is_named && !one.names_parts() && 2 * one.values.size() > one.cells);
  });
  return all;
}

/// Whether entries of one row, as `telling` tells them, have several values of a column.
bool differs_in_a_row(const KeyedLog& log, std::span<const std::size_t> telling, std::size_t name) {
  std::map<std::pair<std::pair<bool, double>, std::vector<std::string>>, std::string> values;
  for (std::size_t i = 0; i < log.keys.size(); ++i) {
    const auto value = told_in(log.log.entries[i], {&name, 1}).front();
    if (value.empty() || !has_key(log.keys[i])) continue;
    const auto [found, is_new] =
        values.try_emplace({row_key(log.keys[i]), told_in(log.log.entries[i], telling)}, value);
    if (!is_new && found->second != value) return true;
  }
  return false;
}

}  // namespace

std::string_view part_of_set(std::string_view text) {
  std::string_view part;
  std::string word;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    const auto letter = at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
    if (std::isalnum(static_cast<int>(letter)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<int>(letter)));
      continue;
    }
    const std::string_view is = is_any(word, {"train", "training"}) ? "training"
                                : is_any(word, {"val", "valid", "validation", "validate", "dev"})
                                    ? "validation"
                                : is_any(word, {"test", "testing"})                ? "test"
                                : is_any(word, {"eval", "evaluation", "evaluate"}) ? "evaluation"
                                                                                   : "";
    if (!is.empty() && !part.empty() && part != is) return "";
    if (!is.empty()) part = is;
    word.clear();
  }
  return part;
}

std::vector<EntryPlace> places_of(const KeyedLog& log, std::span<const std::size_t> telling) {
  return std::move(Placing(log, telling).places_);
}

std::vector<std::size_t> telling_columns(const KeyedLog& log) {
  constexpr std::size_t kMostTried = 16;
  const auto candidates = candidates_of(log);
  std::vector<std::size_t> telling;
  for (const auto& [name, one] : candidates)
    if (one.names_parts() && differs_in_a_row(log, telling, name)) telling.push_back(name);
  if (candidates.size() == telling.size()) return telling;
  // Then each column that keeps figures from replacing each other and runs from starting anew, named ones
  // first. Texts of other columns count only if they leave nothing to replace.
  const auto cost_with = [&](std::span<const std::size_t> names) {
    const Placing placing(log, names);
    return std::pair{placing.replaced_ + placing.restarts_, placing.replaced_};
  };
  auto cost = cost_with(telling);
  std::size_t tried = 0;
  for (const bool is_named : {true, false}) {
    const auto sure = telling;
    for (const auto& [name, one] : candidates) {
      if (cost.first == 0 || one.is_named != is_named || std::ranges::find(telling, name) != telling.end() ||
          ++tried > kMostTried)
        continue;
      telling.push_back(name);
      if (const auto with = cost_with(telling); with.first < cost.first)
        cost = with;
      else
        telling.pop_back();
    }
    if (!is_named && cost.second > 0) telling = sure;
  }
  return telling;
}

}  // namespace paceline::table
