#include "analysis/compare/setup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

namespace paceline::analysis {
namespace {

using measure::Record;
using enum SetupKind;

constexpr std::string_view kEmulated = " + EMULATED ";

std::string whole(std::int64_t number) { return number > 0 ? std::to_string(number) : ""; }

/// "4" if all are equal, otherwise "4, 2, 2".
std::string same_or_each(const std::vector<std::int64_t>& numbers) {
  if (numbers.empty()) return "";
  const bool are_same =
      std::ranges::all_of(numbers, [&](std::int64_t number) { return number == numbers.front(); });
  return are_same ? std::to_string(numbers.front()) : fmt::format("{}", fmt::join(numbers, ", "));
}

template <typename Get>
std::string of_ranks(const Record& record, Get get) {
  std::vector<std::int64_t> numbers;
  for (const auto& rank : record.ranks) numbers.push_back(static_cast<std::int64_t>(get(rank)));
  return same_or_each(numbers);
}

/// The hosts in the order of the ranks; a rank without a host ran in process 0.
std::vector<std::string> hosts_in_order(const Record& record) {
  std::vector<std::string> hosts;
  for (const auto& rank : record.ranks) {
    const auto host = rank.host.value_or(record.environment.host);
    if (std::ranges::find(hosts, host) == hosts.end()) hosts.push_back(host);
  }
  return hosts;
}

std::string hosts_text(const Record& record) {
  const auto hosts = hosts_in_order(record);
  return hosts.size() < 2 ? "" : fmt::format("{}", fmt::join(hosts, ", "));
}

/// "2 + 2"; if ranks are not grouped by host, "by rank 1, 2, 1, 2" with hosts counted from 1.
std::string workers_by_node(const Record& record) {
  const auto hosts = hosts_in_order(record);
  if (hosts.size() < 2) return "";
  std::vector<std::size_t> places;
  std::vector<int> workers(hosts.size());
  for (const auto& rank : record.ranks) {
    const auto found = std::ranges::find(hosts, rank.host.value_or(record.environment.host));
    places.push_back(static_cast<std::size_t>(found - hosts.begin()) + 1);
    ++workers[places.back() - 1];
  }
  return std::ranges::is_sorted(places) ? fmt::format("{}", fmt::join(workers, " + "))
                                        : fmt::format("by rank {}", fmt::join(places, ", "));
}

/// "0, 0, 1, 1"; empty if all workers are in one process.
std::string process_of_each(const Record& record) {
  std::vector<int> of_ranks;
  for (const auto& rank : record.ranks) of_ranks.push_back(rank.process.value_or(0));
  const bool any = std::ranges::any_of(of_ranks, [](int process) { return process != 0; });
  return any ? fmt::format("{}", fmt::join(of_ranks, ", ")) : "";
}

std::string cores_each(const Record& record) {
  const bool none = std::ranges::all_of(record.ranks, [](const auto& rank) { return rank.cores.empty(); });
  if (none) return record.ranks.empty() ? "" : "none";
  return of_ranks(record, [](const auto& rank) { return rank.cores.size(); });
}

/// Empty for records that are older than this key.
std::string loader_queues(const Record& record) {
  const bool known =
      std::ranges::any_of(record.ranks, [](const auto& rank) { return rank.loader_queue.has_value(); });
  return known ? of_ranks(record, [](const auto& rank) { return rank.loader_queue.value_or(0); }) : "";
}

std::string learning_rate(const Record& record) {
  const auto& rate = record.learning_rate;
  return fmt::format("{} x {} = {} ({}, for batch {})", rate.base, rate.factor, rate.peak, rate.rule,
                     rate.reference_batch);
}

/// Numbers of workers in the earlier runs from which this one was resumed, if they differ: they trained the
/// epochs before it.
std::string workers_before_restarts(const Record& record) {
  std::vector<int> others;
  for (const auto& restart : record.restarts.value_or(std::vector<measure::RestartRecord>()))
    if (restart.workers != record.workers) others.push_back(restart.workers);
  return fmt::format("{}", fmt::join(others, ", "));
}

/// "test 1a2b3c4d, train 5e6f7a8b": enough of each SHA-256 to tell lists apart.
std::string lists_of_images(const Record& record) {
  std::vector<std::string> texts;
  if (record.data.lists_sha256)
    for (const auto& [part, sha256] : *record.data.lists_sha256)
      texts.push_back(fmt::format("{} {}", part, sha256.substr(0, 8)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// "0.2, 1.5, 7.1": of each class; of many classes "0.2 to 7.1".
std::string class_weights(const Record& record) {
  constexpr std::size_t kShown = 12;
  const auto weights = record.data.class_weights.value_or(std::vector<double>());
  if (weights.size() <= kShown) return fmt::format("{:.4g}", fmt::join(weights, ", "));
  const auto [least, most] = std::ranges::minmax_element(weights);
  return fmt::format("{:.4g} to {:.4g}", *least, *most);
}

/// Settings that resumes have changed; the record's settings are those of its last part.
std::string changes_at_resumes(const Record& record) {
  std::vector<std::string> texts;
  for (const auto& change : record.changes.value_or(std::vector<measure::ChangeRecord>()))
    texts.push_back(fmt::format("update {}: {} was {}", change.update, change.setting,
                                change.then.value_or("not given")));
  return texts.empty() ? "" : fmt::format("({})", fmt::join(texts, "; "));
}

struct Row {
  std::string_view name;
  SetupKind kind;
  std::string (*text)(const Record& record);
};

constexpr Row kRows[] = {
    {"kind", part, [](const Record& r) { return r.kind; }},
    {"scaling", part, [](const Record& r) { return r.scaling; }},
    {"variant", part, [](const Record& r) { return r.variant; }},

    {"workers", size, [](const Record& r) { return whole(r.workers); }},
    {"local batch", size, [](const Record& r) { return whole(r.local_batch); }},
    {"global batch", size, [](const Record& r) { return whole(r.global_batch); }},
    {"steps an epoch", size, [](const Record& r) { return whole(r.data.steps_per_epoch); }},
    {"samples left out of an epoch", size, [](const Record& r) { return whole(r.data.dropped_per_epoch); }},
    {"learning rate", size, learning_rate},

    {"communicator", joined,
     [](const Record& r) {
       const auto& name = r.communication.communicator;
       return name.substr(0, name.find(kEmulated));
     }},
    {"library", joined, [](const Record& r) { return r.communication.library.value_or(""); }},
    {"launcher", joined, [](const Record& r) { return r.communication.launcher.value_or(""); }},
    {"algorithm", joined, [](const Record& r) { return r.communication.algorithm; }},
    {"nodes", joined, [](const Record& r) { return r.ranks.empty() ? "" : std::to_string(nodes(r)); }},
    {"workers by node", joined, workers_by_node},
    {"hosts", joined, hosts_text},
    {"processes", joined, [](const Record& r) { return whole(processes(r)); }},
    {"processes by node", joined,
     [](const Record& r) {
       return fmt::format("{}",
                          fmt::join(r.communication.processes_of_nodes.value_or(std::vector<int>()), " + "));
     }},
    {"process of each worker", joined, process_of_each},
    {"placement", joined, [](const Record& r) { return r.communication.placement.value_or(""); }},
    {"parallel", joined, [](const Record& r) { return r.communication.parallel.value_or(""); }},

    {"threads", cores, [](const Record& r) { return whole(r.threads_per_worker); }},
    {"cores used", cores, [](const Record& r) { return whole(cores_used(r)); }},
    {"cores pinned to", cores, cores_each},
    {"oversubscribed", cores, [](const Record& r) { return std::string(r.oversubscribed ? "yes" : ""); }},
    {"workers a device", cores,
     [](const Record& r) { return r.memory.device ? whole(r.memory.device->workers) : ""; }},
    {"loader threads", cores,
     [](const Record& r) { return of_ranks(r, [](const auto& rank) { return rank.loader_threads; }); }},
    {"batches ready at most", cores, loader_queues},
    {"images on", cores, [](const Record& r) { return r.data.images_on.value_or(""); }},

    {"device", machine, [](const Record& r) { return r.device; }},
    {"device name", machine, [](const Record& r) { return r.device_name.value_or(""); }},
    {"cpu", machine, [](const Record& r) { return r.environment.cpu; }},
    {"cores", machine, [](const Record& r) { return whole(r.environment.cores); }},
    {"instructions", machine,
     [](const Record& r) { return fmt::format("{}", fmt::join(r.environment.instructions, ", ")); }},
    {"build", machine, [](const Record& r) { return r.environment.build; }},
    {"precision", machine, [](const Record& r) { return r.precision; }},

    {"model", subject, [](const Record& r) { return r.model.name; }},
    {"parameters", subject, [](const Record& r) { return whole(r.model.parameters); }},
    {"FLOPs a sample", subject, [](const Record& r) { return whole(r.model.training_flops); }},
    {"data", subject, [](const Record& r) { return r.data.spec; }},
    {"data set", subject, [](const Record& r) { return r.data.name; }},
    {"resized for evaluation", subject,
     [](const Record& r) { return whole(r.data.eval_resize.value_or(0)); }},
    {"size for evaluation", subject, [](const Record& r) { return r.data.eval_size.value_or(""); }},
    {"synthetic", subject, [](const Record& r) { return std::string(r.data.synthetic ? "yes" : ""); }},
    {"training samples", subject, [](const Record& r) { return whole(r.data.train_samples); }},
    {"test samples", subject, [](const Record& r) { return whole(r.data.test_samples); }},
    {"validation samples", subject,
     [](const Record& r) { return whole(r.data.validation_samples.value_or(0)); }},
    {"lists of images", subject, lists_of_images},
    {"class weights", subject, class_weights},

    // The settings stand here.

    {"emulated", rest,
     [](const Record& r) {
       const auto& name = r.communication.communicator;
       const auto at = name.find(kEmulated);
       return at == std::string::npos ? "" : name.substr(at + kEmulated.size());
     }},
    {"window unit", rest, [](const Record& r) { return r.window.unit; }},
    {"change at a resume", rest, changes_at_resumes},
    {"workers before a restart", rest, workers_before_restarts},

    // Depends on the version for the same model and data: padding, wording.
    {"gradient bytes", circumstance, [](const Record& r) { return whole(r.communication.gradient_bytes); }},
    {"images", circumstance, [](const Record& r) { return r.data.description; }},
};

constexpr Row kCircumstances[] = {
    {"version", circumstance, [](const Record& r) { return r.environment.version; }},
    {"libraries", circumstance,
     [](const Record& r) { return fmt::format("{}", fmt::join(r.environment.libraries, "; ")); }},
    {"host", circumstance, [](const Record& r) { return r.environment.host; }},
    {"system", circumstance, [](const Record& r) { return r.environment.os; }},
    {"compiler", circumstance, [](const Record& r) { return r.environment.compiler; }},
};

/// Whether the setting is an entry. The precision used, sizes and data-parallel have entries of their own.
/// How workers are joined does not matter for a single worker.
bool is_in_setup(const Record& record, std::string_view setting) {
  const auto role = measure::role_of(setting);
  if (role == measure::SettingRole::window || role == measure::SettingRole::precision) return false;
  if (setting == "workers" || setting == "local-batch" || setting == "global-batch") return false;
  return setting != "parallel" && !(is_alone(record) && is_setting_of_joining(setting));
}

void add_entry(Setup& entries, const Row& row, const Record& record) {
  if (auto text = row.text(record); !text.empty())
    entries.push_back({std::string(row.name), std::move(text), row.kind});
}

}  // namespace

Setup setup(const Record& record) {
  Setup entries;
  const auto add_rows = [&](auto wanted) {
    for (const Row& row : kRows)
      if (wanted(row.kind)) add_entry(entries, row, record);
  };
  add_rows([](SetupKind kind) { return kind < setting; });
  for (const auto& [key, value] : record.settings)
    if (is_in_setup(record, key)) entries.push_back({key, value.empty() ? "empty" : value, setting});
  add_rows([](SetupKind kind) { return kind == rest; });
  for (const Row& row : kCircumstances) add_entry(entries, row, record);
  add_rows([](SetupKind kind) { return kind == circumstance; });
  return entries;
}

std::string_view text_of(const Setup& setup, std::string_view name) {
  for (const SetupEntry& entry : setup)
    if (entry.name == name && entry.kind != setting) return entry.text;
  return {};
}

std::string text_of(const Setup& setup, const EntryName& entry) {
  for (const auto& [name, text, kind] : setup)
    if (name == entry.first && kind == entry.second) return text;
  return {};
}

std::string with_name(const EntryName& entry, const std::string& text) {
  return text.empty() ? "no " + entry.first : fmt::format("{} {}", entry.first, text);
}

std::vector<EntryName> names_of_entries(const std::vector<const Setup*>& setups) {
  std::vector<EntryName> all;
  for (const Setup* setup : setups)
    for (const SetupEntry& entry : *setup)
      if (EntryName one{entry.name, entry.kind}; std::ranges::find(all, one) == all.end())
        all.push_back(std::move(one));
  return all;
}

std::vector<std::string> first_differences(const std::vector<const Setup*>& setups) {
  std::vector<std::string> told(setups.size());
  for (const EntryName& entry : names_of_entries(setups))
    add_what_tells(told, [&](std::size_t i) { return with_name(entry, text_of(*setups[i], entry)); });
  return told;
}

bool differ_in(const Setup& a, const Setup& b, SetupKind kind) {
  const auto is_of_kind = [kind](const SetupEntry& entry) { return entry.kind == kind; };
  return some_of(a, is_of_kind) != some_of(b, is_of_kind);
}

Circumstances circumstances(const Record& record) {
  Circumstances all;
  for (const Row& row : kCircumstances)
    if (auto text = row.text(record); !text.empty()) all.emplace(row.name, std::move(text));
  return all;
}

std::string text_or(const std::string* text, const char* otherwise) {
  return text == nullptr ? otherwise : *text;
}

std::string setting_text(const Record& record, measure::Setting setting) {
  return text_or(measure::find_text(record.settings, setting), "");
}

std::vector<SettingDifference> different_settings(const measure::SettingTexts& a,
                                                  const measure::SettingTexts& b) {
  auto all = a;
  all.insert(b.begin(), b.end());
  std::vector<SettingDifference> different;
  for (const auto& [key, text] : all) {
    const auto before = a.find(key), after = b.find(key);
    if (before == a.end() || after == b.end() || before->second != after->second)
      different.push_back(
          {key, before == a.end() ? nullptr : &before->second, after == b.end() ? nullptr : &after->second});
  }
  return different;
}

bool is_of_cuda_engine(const Record& record) { return record.device.starts_with("cuda"); }

bool is_optimised(const Record& record) {
  return record.environment.build == "Release" || record.environment.build == "RelWithDebInfo";
}

int cores_used(const Record& record) {
  const int threads = record.workers * record.threads_per_worker;
  std::set<std::pair<std::string, int>> pinned;
  bool all_pinned = !record.ranks.empty();
  for (const auto& rank : record.ranks) {
    all_pinned &= !rank.cores.empty();
    for (const int core : rank.cores) pinned.emplace(rank.host.value_or(record.environment.host), core);
  }
  if (all_pinned) return std::min(static_cast<int>(pinned.size()), threads);
  const int there = record.environment.cores * nodes(record);
  return there > 0 ? std::min(there, threads) : threads;
}

std::int64_t processes(const Record& record) { return record.communication.processes.value_or(1); }

int nodes(const Record& record) { return std::max(1, static_cast<int>(hosts_in_order(record).size())); }

bool is_alone(const Record& record) {
  const auto& communicator = record.communication.communicator;
  return record.workers == 1 && (communicator.empty() || communicator == "none");
}

bool is_setting_of_joining(std::string_view key) {
  return key == "parallel" || key == "placement" || key == "shared-memory";
}

std::string joined_as(const Record& record) {
  if (record.ranks.empty() || is_alone(record)) return "";
  const auto number = processes(record);
  const auto& parallel = record.communication.parallel;
  const std::string behind = parallel ? ", " + *parallel : "";
  if (number <= 1) {
    if (record.workers == 1) return "one worker inside a communicator";
    return "threads of one process" + behind;
  }
  const int hosts = nodes(record);
  // One worker on each node: the number of nodes says it already.
  if (hosts > 1)
    return fmt::format("{} processes on {} nodes{}{}", number, hosts,
                       hosts == record.workers ? "" : fmt::format(" ({})", workers_by_node(record)), behind);
  const auto& algorithm = record.communication.algorithm;
  const auto says = [&](std::string_view words) { return algorithm.find(words) != std::string::npos; };
  return fmt::format("{} processes{}{}", number,
                     says("memory of the host") ? " over shared memory"
                     : says("messages")         ? " by messages"
                                                : "",
                     behind);
}

}  // namespace paceline::analysis
