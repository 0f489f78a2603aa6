#include "analysis/cell.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "measure/setting.h"

namespace paceline::analysis {

using measure::Record;

std::string changes_at_resumes(const Record& record) {
  std::vector<std::string> texts;
  for (const auto& change : record.changes.value_or(std::vector<measure::ChangeRecord>()))
    texts.push_back(fmt::format("update {}: {} was {}", change.update, change.setting,
                                change.then.value_or("not given")));
  return texts.empty() ? "" : fmt::format("({})", fmt::join(texts, "; "));
}

Circumstances circumstances(const Record& record) {
  const auto& there = record.environment;
  Circumstances all{{"version", there.version},
                    {"libraries", fmt::format("{}", fmt::join(there.libraries, "; "))},
                    {"host", there.host},
                    {"system", there.os},
                    {"compiler", there.compiler}};
  std::erase_if(all, [](const auto& one) { return one.second.empty(); });
  return all;
}

std::string emulated(const Record& record) {
  static constexpr std::string_view kMark = " EMULATED ";
  std::vector<std::string> parts;
  if (record.device == "cuda-on-host") parts.emplace_back("GPU (no GPU: the CUDA engine on the processor)");
  const auto of_device = parts.size();
  for (const std::string* text : {&record.communication.communicator, &record.data.description})
    for (auto at = text->find(kMark); at != std::string::npos;) {
      const auto begin = at + kMark.size();
      at = text->find(kMark, begin);
      auto part = text->substr(begin, at == std::string::npos ? at : at - begin);
      if (part.ends_with(" +")) part.resize(part.size() - 2);
      parts.push_back(std::move(part));
    }
  if (parts.size() == of_device && record.ranks.empty() && record.workers > 1)  // not run: what was asked for
    for (const auto& [option, name] : {std::pair{measure::Setting("emulate-link"), "link"},
                                       std::pair{measure::Setting("emulate-straggler"), "straggler"}})
      if (const auto* asked = measure::find_text(record.settings, option))
        parts.push_back(fmt::format("{} {}", name, *asked));
  return fmt::format("{}", fmt::join(parts, "; "));
}

double Cell::full_steps() const {
  if (train_samples <= 0 || global_batch <= 0) return static_cast<double>(steps_per_epoch);
  return static_cast<double>(train_samples) / static_cast<double>(global_batch);
}

int cores_used(const Record& record) {
  const int threads = record.workers * record.threads_per_worker;
  std::set<std::pair<std::string, int>> pinned;
  std::set<std::string> hosts;
  bool all_pinned = !record.ranks.empty();
  for (const auto& rank : record.ranks) {
    hosts.insert(rank.host.value_or(""));
    all_pinned &= !rank.cores.empty();
    for (const int core : rank.cores) pinned.emplace(rank.host.value_or(""), core);
  }
  if (all_pinned) return std::min(static_cast<int>(pinned.size()), threads);
  const int there = record.environment.cores * std::max(1, static_cast<int>(hosts.size()));
  return there > 0 ? std::min(there, threads) : threads;
}

}  // namespace paceline::analysis
