#pragma once

/// Lists the set-up of a run: everything in its record that can change a figure, as ordered texts.
///
/// Records are repeats of one cell only if nothing in this list differs (cell.h). Scaling groups, labels,
/// columns and "differs in" use the same list, so whatever separates two cells can always be named.
///
/// Every field of a record is either in the list or left out. tests/analysis/compare/setup_test.cc has the
/// reason for each that is, and checks that none of measure/record_fields.h is forgotten. Left out are
///   - what distinguishes repeats: id and number, date and command, the seed, the length of the measured
///     window, what the machine had free or busy;
///   - results, and sentences about them;
///   - the numbers of the cores to which workers were pinned, since it is chance which cores are free. How
///     many there were, and on how many hosts, is in the list;
///   - the bucket size that `--bucket auto` chose. It follows a latency that each run measures again, so
///     noise changes it. The list has "auto", and the effect of the rule's choices belongs to the interval.
///     For the precision, by contrast, the processor decides what "auto" means: the list has the one that was
///     used.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "measure/record.h"
#include "measure/setting.h"

namespace paceline::analysis {

/// The subject of an entry.
enum class SetupKind : std::uint8_t {
  part,          ///< which question the run belongs to: kind, scaling, variant
  size,          ///< workers and batches, and what follows from them and the settings
  joined,        ///< how workers are joined and where they run; empty for a single worker
  cores,         ///< what a worker computes and loads with
  machine,       ///< device, processor, build, precision
  subject,       ///< model and data
  setting,       ///< an option
  rest,          ///< unit of the window, what was emulated, changes by resumes and restarts
  circumstance,  ///< see circumstances(); also properties of model and data that depend on the version
};

struct SetupEntry {
  std::string name;  ///< "communicator"; for a setting its key, "loader-threads"
  std::string text;  ///< never empty: what is absent or unknown has no entry
  SetupKind kind;
  friend bool operator==(const SetupEntry&, const SetupEntry&) = default;
};

/// In the order in which differences are looked for: two cells are named after the first entry that differs.
using Setup = std::vector<SetupEntry>;
[[nodiscard]] Setup setup(const measure::Record& record);

/// The text of the first entry called `name` that is no setting; empty if there is none.
[[nodiscard]] std::string_view text_of(const Setup& setup, std::string_view name);
/// An entry by name and kind: a setting may have the name of an entry of another kind.
using EntryName = std::pair<std::string, SetupKind>;
/// The text of this entry; empty if there is none.
[[nodiscard]] std::string text_of(const Setup& setup, const EntryName& entry);
/// "lr 0.2"; "no launcher" if the text is empty.
[[nodiscard]] std::string with_name(const EntryName& entry, const std::string& text);
/// Those of all set-ups, each once, as they first appear.
[[nodiscard]] std::vector<EntryName> names_of_entries(const std::vector<const Setup*>& setups);
/// A text per set-up with the first entries that distinguish them, and no more: "lr 0.2", "no launcher".
/// Texts are equal only if the whole set-ups are.
[[nodiscard]] std::vector<std::string> first_differences(const std::vector<const Setup*>& setups);
/// What `differences` says, a text for each, of the items that have one text in `texts`.
template <typename Item, typename Differences>
[[nodiscard]] std::vector<std::string> differences_within(const std::vector<std::string>& texts,
                                                          const std::vector<Item>& items,
                                                          Differences differences) {
  std::map<std::string, std::vector<std::size_t>> alike;
  for (std::size_t i = 0; i < texts.size(); ++i) alike[texts[i]].push_back(i);
  std::vector<std::string> result(texts.size());
  for (const auto& [text, group] : alike) {
    std::vector<Item> members;
    for (const std::size_t i : group) members.push_back(items[i]);
    const auto own = differences(members);
    for (std::size_t k = 0; k < group.size(); ++k) result[group[k]] = own[k];
  }
  return result;
}
/// Whether some items of `more` differ that are equal in `told`, which has the same items in fewer words.
template <typename Item>
[[nodiscard]] bool tells_more(const std::vector<Item>& more, const std::vector<Item>& told) {
  return std::set(more.begin(), more.end()).size() > std::set(told.begin(), told.end()).size();
}
/// Adds to each text of `told` what `piece` says of its place, if that tells more of them apart.
template <typename Piece>
void add_what_tells(std::vector<std::string>& told, Piece piece) {
  auto more = told;
  for (std::size_t i = 0; i < told.size(); ++i)
    if (const std::string own = piece(i); !own.empty()) more[i] += (more[i].empty() ? "" : ", ") + own;
  if (tells_more(more, told)) told = std::move(more);
}
/// The entries for which `is_wanted` holds.
template <typename IsWanted>
[[nodiscard]] Setup some_of(const Setup& setup, IsWanted is_wanted) {
  Setup some;
  std::ranges::copy_if(setup, std::back_inserter(some), is_wanted);
  return some;
}
/// Whether two set-ups differ in an entry of `kind`.
[[nodiscard]] bool differ_in(const Setup& a, const Setup& b, SetupKind kind);

/// By name; unknown ones are missing.
using Circumstances = std::map<std::string, std::string>;

/// What repeats must have in common, although it does not forbid a ratio: version, libraries, host, system
/// and compiler.
[[nodiscard]] Circumstances circumstances(const measure::Record& record);

/// The text of a setting; "" where the run has none.
[[nodiscard]] std::string setting_text(const measure::Record& record, measure::Setting setting);
[[nodiscard]] std::string text_or(const std::string* text, const char* otherwise);  ///< where it is null

/// A setting with another text in b than in a; null: the run has none.
struct SettingDifference {
  std::string key;
  const std::string *a = nullptr, *b = nullptr;
};
/// In the order of the keys.
///
/// Lifetime  refers to both
[[nodiscard]] std::vector<SettingDifference> different_settings(const measure::SettingTexts& a,
                                                                const measure::SettingTexts& b);

/// Whether the CUDA engine computed, on GPUs or on the processor with one thread a worker. The threads and
/// cores of its workers then say nothing about how fast they compute.
[[nodiscard]] bool is_of_cuda_engine(const measure::Record& record);

[[nodiscard]] bool is_optimised(const measure::Record& record);  ///< its program's build

/// The number of different cores that the workers' threads could use: of all ranks and hosts if the workers
/// were pinned, else the cores of process 0.
[[nodiscard]] int cores_used(const measure::Record& record);

/// Processes with workers, and hosts on which they ran; 1 if the record names none.
[[nodiscard]] std::int64_t processes(const measure::Record& record);
[[nodiscard]] int nodes(const measure::Record& record);

/// Whether the record has a single worker, which communicates with nobody: the baseline of all ways of
/// joining.
[[nodiscard]] bool is_alone(const measure::Record& record);

/// Whether a setting says how workers are joined ("parallel", "placement", "shared-memory"); it has no
/// meaning for a single worker.
[[nodiscard]] bool is_setting_of_joining(std::string_view key);

/// How the workers are joined, in words: "threads of one process", "2 processes over shared memory", "4
/// processes on 2 nodes". Empty for a single worker, and for a record that was not run.
[[nodiscard]] std::string joined_as(const measure::Record& record);

}  // namespace paceline::analysis
