#include "analysis/compare/cell.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "analysis/compare/setup.h"
#include "measure/setting.h"

namespace paceline::analysis {
namespace {

using measure::Phase;
using measure::Record;

/// The time of a window of exactly one epoch, timed as a whole: its wall time minus everything that is not
/// training, by the ledger's mean over ranks.
std::optional<double> window_as_epoch(const Record& record) {
  if (record.ranks.empty() || record.data.steps_per_epoch <= 0) return std::nullopt;
  if (record.window.steps != record.data.steps_per_epoch) return std::nullopt;
  double outside = 0;
  for (const auto& rank : record.ranks)
    for (const Phase phase : {Phase::evaluation, Phase::checkpoint})
      outside += seconds_in(rank, phase) / static_cast<double>(record.ranks.size());
  return record.window.wall_s - outside;
}

}  // namespace

std::vector<double> step_seconds(const Record& record) {
  if (record.ranks.empty()) return {};
  std::size_t steps = record.ranks.front().step_s.size();
  for (const auto& rank : record.ranks) steps = std::min(steps, rank.step_s.size());
  std::vector<double> mean(steps, 0.0);
  for (const auto& rank : record.ranks)
    for (std::size_t i = 0; i < steps; ++i)
      mean[i] += rank.step_s[i] / static_cast<double>(record.ranks.size());
  return mean;
}

double seconds_in(const measure::RankRecord& rank, Phase phase) {
  return rank.phases[static_cast<std::size_t>(phase)];
}

double seconds_in(const measure::RankRecord& rank, std::initializer_list<Phase> phases) {
  double sum = 0;
  for (const Phase phase : phases) sum += seconds_in(rank, phase);
  return sum;
}

double seconds_of_steps(const measure::RankRecord& rank) {
  return rank.steps_s ? *rank.steps_s : std::accumulate(rank.step_s.begin(), rank.step_s.end(), 0.0);
}

std::vector<double> epoch_seconds(const Record& record) {
  std::vector<double> seconds;
  if (record.window.unit != "epoch") return seconds;
  std::int64_t before = 0;
  for (const auto& epoch : record.epochs) {
    const std::int64_t steps = epoch.steps.value_or(epoch.updates - before);
    if (steps == record.data.steps_per_epoch) seconds.push_back(epoch.seconds);
    before = epoch.updates;
  }
  if (record.epochs.empty())
    if (const auto window = window_as_epoch(record)) seconds.push_back(*window);
  return seconds;
}

std::vector<double> seconds_to_epochs(const Record& record) {
  std::vector<double> ends;
  double seconds = 0;
  std::int64_t before = 0;
  for (const auto& epoch : record.epochs) {
    if (epoch.steps.value_or(epoch.updates - before) != epoch.updates - before) return {};
    seconds += epoch.seconds;
    ends.push_back(seconds);
    before = epoch.updates;
  }
  return ends;
}

std::int64_t bucket_bytes(const Record& record) {
  std::int64_t bytes = 0;
  for (const auto& bucket : record.buckets) bytes += bucket.bytes;
  return bytes;
}

double epochs_done(const Record& record, const measure::EpochRecord& epoch) {
  if (record.data.steps_per_epoch <= 0) return static_cast<double>(epoch.epoch);
  return static_cast<double>(epoch.updates) / static_cast<double>(record.data.steps_per_epoch);
}

std::string emulated(const Record& record) {
  static constexpr std::string_view kMark = " EMULATED ";
  std::vector<std::string> parts;
  if (record.device == "cuda-on-host") parts.emplace_back("GPU (no GPU: the CUDA engine on the processor)");
  if (const auto* phases = measure::find_text(record.settings, measure::Setting("emulate-compute")))
    parts.push_back(fmt::format("compute ({})", phases->substr(0, phases->find(",ready="))));
  if (measure::find_text(record.settings, measure::Setting("control")) != nullptr && record.workers > 1)
    parts.emplace_back("exchange of gradients that takes no time (a control: they are not summed)");
  const auto of_device = parts.size();
  for (const std::string* text : {&record.communication.communicator, &record.data.description})
    for (auto at = text->find(kMark); at != std::string::npos;) {
      const auto begin = at + kMark.size();
      at = text->find(kMark, begin);
      auto part = text->substr(begin, at == std::string::npos ? at : at - begin);
      if (part.ends_with(" +")) part.resize(part.size() - 2);
      parts.push_back(std::move(part));
    }
  if (parts.size() == of_device && record.ranks.empty() &&
      record.workers > 1)  // not run: the device that was asked for
    for (const auto& [option, name] : {std::pair{measure::Setting("emulate-link"), "link"},
                                       std::pair{measure::Setting("emulate-straggler"), "straggler"}})
      if (const auto* asked = measure::find_text(record.settings, option))
        parts.push_back(fmt::format("{} {}", name, *asked));
  return fmt::format("{}", fmt::join(parts, "; "));
}

bool Cell::shares_gpus() const {
  const auto& device = record().memory.device;
  // The record counts the workers on the first process's GPU. Where cores are enough, others share theirs.
  return oversubscribed && device &&
         (device->workers > 1 || workers * threads_per_worker <= cores_used(record()));
}

const char* Cell::needs() const {
  const bool lacks_cores = oversubscribed && !shares_gpus();
  return record().memory.device && !lacks_cores ? "a GPU for each worker" : "a core for each thread";
}

std::string Cell::part() const {
  const std::string& what = variant.empty() ? scaling : variant;
  return what.empty() || what == kBothScalings ? kind : fmt::format("{} {}", kind, what);
}

std::string Cell::name() const { return fmt::format("{}{} {}", part(), variant.empty() ? "" : ",", label); }

double Cell::full_steps() const {
  const auto& data = record().data;
  if (data.train_samples <= 0 || global_batch <= 0) return static_cast<double>(data.steps_per_epoch);
  return static_cast<double>(data.train_samples) / static_cast<double>(global_batch);
}

}  // namespace paceline::analysis
