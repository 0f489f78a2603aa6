#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/options/option_rows.h"
#include "engine/ghost/phases.h"
#include "measure/statistics.h"

namespace paceline::cli {
namespace {

namespace ghost = engine::ghost;
using measure::Phase;

/// Empty where the record lacks ready times of a bucket.
std::vector<ghost::ReadyAt> ready_times_of(const measure::Record& record, double backward_s) {
  std::vector<ghost::ReadyAt> ready;
  std::int64_t bytes = 0;
  for (const auto& bucket : record.buckets) {
    if (!bucket.ready_s || bucket.ready_s->empty()) return {};
    const bool is_last = &bucket == &record.buckets.back();
    bytes += bucket.bytes - (is_last ? record.communication.vote_bytes.value_or(0) : 0);
    const double seconds = std::min(measure::estimate(*bucket.ready_s).median, backward_s);
    ready.push_back({bytes, ready.empty() ? seconds : std::max(seconds, ready.back().seconds)});
  }
  return ready;
}

ghost::Phases measured_phases(const measure::Record& record) {
  if (record.ranks.empty() || record.window.steps < 1)
    base::fail(ErrorKind::usage,
               "needs the record of a run that timed steps; make one with train --window-steps 50");
  ghost::Phases phases{.batch = static_cast<int>(record.local_batch)};
  const auto steps = static_cast<double>(record.window.steps) * static_cast<double>(record.ranks.size());
  std::vector<double> spreads;
  for (const auto& rank : record.ranks) {
    const auto of_a_step = [&](Phase phase) { return rank.phases[static_cast<std::size_t>(phase)] / steps; };
    phases.forward_s += of_a_step(Phase::forward);
    phases.backward_s += of_a_step(Phase::backward);
    phases.update_s += of_a_step(Phase::update);
    const auto& own = rank.own_s ? *rank.own_s : rank.step_s;
    if (rank.own_s || record.ranks.size() == 1)
      spreads.push_back(measure::standard_deviation(own) / measure::mean(own));
  }
  if (!spreads.empty()) phases.spread = measure::mean(spreads);
  phases.ready = ready_times_of(record, phases.backward_s);
  return phases;
}

}  // namespace

std::string emulated_phases(std::string_view text) {
  const std::filesystem::path path(text);
  if (!std::filesystem::exists(path)) {
    (void)ghost::parse_phases(text);
    return std::string(text);
  }
  const auto file = std::filesystem::is_directory(path) ? path / "record.json" : path;
  const auto phases = ghost::text_of(measured_phases(measure::read_record(file)));
  (void)ghost::parse_phases(phases);  // refuses what no worker can sleep through
  return phases;
}

}  // namespace paceline::cli
