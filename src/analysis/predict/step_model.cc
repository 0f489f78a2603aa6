#include "analysis/predict/step_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "analysis/compare/comparability.h"
#include "analysis/steps/waterfall.h"
#include "base/error.h"
#include "base/text.h"

namespace paceline::analysis {
namespace {

using measure::Phase;
using measure::Record;

/// Whether a run exchanges nothing, so that only the sharing of a node is seen.
bool is_without_exchange(const Record& record) { return setting_text(record, "control") == "no-exchange"; }

bool is_of_ghosts(const Record& record) { return !setting_text(record, "emulate-compute").empty(); }

int width_of(const Record& record) {
  if (is_of_ghosts(record)) return 1;
  return (record.workers + nodes(record) - 1) / nodes(record);
}

/// Whether its workers had cores of their own, as those of a prediction have.
bool has_own_cores(const Cell& cell) { return !cell.oversubscribed || is_of_ghosts(cell.record()); }

bool is_a_timing(const Cell& cell) {
  return cell.is_measured() && !cell.record().ranks.empty() && cell.record().window.steps > 0 &&
         (cell.is_timed() || cell.kind == "train");
}

/// The cell whose set-up the prediction keeps: the one of most workers with cores of their own.
const Cell& reference_of(const std::vector<const Cell*>& cells) {
  return **std::ranges::max_element(cells, {}, [](const Cell* cell) {
    return std::tuple(has_own_cores(*cell), !is_without_exchange(cell->record()), cell->workers,
                      cell->steps_measured);
  });
}

/// Refuses two kernels of one layer.
void require_one_kernel(const std::vector<const Cell*>& cells) {
  std::map<std::string, std::pair<std::string, const Cell*>> known;
  for (const Cell* cell : cells)
    for (const Record* record : cell->records)
      if (record->kernels)
        for (const auto& [problem, algorithm] : record->kernels->algorithms) {
          const auto [at, is_new] = known.try_emplace(problem, algorithm, cell);
          if (!is_new && at->second.first != algorithm)
            base::fail(
                base::ErrorKind::data,
                "the records have two kernels for the layer '{}': {} in {}, {} in {}; measure both with "
                "--kernels-from one of them, or give the records of one",
                problem, at->second.first, at->second.second->name(), algorithm, cell->name());
        }
}

std::string without_settings_of_control(const Verdict& verdict) {
  for (const auto& refusal : verdict.refusals)
    if (!refusal.starts_with("--control is")) return refusal;
  return "";
}

/// The cells of one set-up. Another subject or machine is an error; other settings are left out, and said.
std::vector<const Cell*> of_one_setup(const std::vector<const Cell*>& cells, StepModel& model) {
  const Cell& reference = reference_of(cells);
  std::vector<const Cell*> kept;
  std::map<std::string, std::vector<std::string>> left_out;  // by the reason
  for (const Cell* cell : cells) {
    const auto refusal = without_settings_of_control(compare(reference, *cell, Topic::tables));
    const bool is_of_another = differ_in(reference.setup, cell->setup, SetupKind::subject) ||
                               differ_in(reference.setup, cell->setup, SetupKind::machine);
    if (!refusal.empty() && is_of_another)
      base::fail(base::ErrorKind::data,
                 "the records are not of one study: of {} (the baseline) and {}, {}; a prediction is of one "
                 "model on one machine: give the records of one",
                 reference.name(), cell->name(), refusal);
    std::string why = refusal;
    if (why.empty() && cell->threads_per_worker != reference.threads_per_worker)
      why =
          fmt::format("a worker has {} there and {} in {}", base::counted(cell->threads_per_worker, "thread"),
                      reference.threads_per_worker, reference.name());
    if (why.empty() && !has_own_cores(*cell)) why = fmt::format("its workers are on {}", cell->shares());
    if (why.empty())
      kept.push_back(cell);
    else
      left_out[why].push_back(cell->name());
  }
  for (const auto& [why, names] : left_out)
    model.not_used.push_back(names.size() == 1 ? fmt::format("{} is not used: {}", names.front(), why)
                                               : fmt::format("{} and {} more are not used: {}", names.front(),
                                                             names.size() - 1, why));
  require_one_kernel(kept);
  return kept;
}

MeasuredStep measured_step(const Cell& cell, std::size_t index) {
  const SampledCell sampled(cell);
  MeasuredStep step{.workers = cell.workers,
                    .width = width_of(cell.record()),
                    .batch = cell.batch_per_worker(),
                    .middle = sampled.middle(),
                    .draws = {},
                    .step_s = cell.step_s,
                    .name = cell.name(),
                    .is_without_exchange = is_without_exchange(cell.record())};
  if (!sampled.has_spread()) return step;
  step.draws.reserve(kForecastDraws);
  for (std::size_t i = 0; i < kForecastDraws; ++i) {
    base::Rng rng(0, base::Purpose::bootstrap, i, index);
    step.draws.push_back(sampled.draw_middle(rng));
  }
  return step;
}

double mean_or(const std::vector<double>& values, double otherwise) {
  return values.empty() ? otherwise : measure::mean(values);
}

/// Buckets of the repeat of the most workers that has ready times.
void add_buckets(const std::vector<const Cell*>& by_workers, StepModel& model) {
  for (auto cell = by_workers.rbegin(); cell != by_workers.rend(); ++cell)
    for (const Record* record : (*cell)->records) {
      if (record->buckets.empty() || !record->buckets.front().ready_s) continue;
      const auto& rank = record->ranks.front();
      const double forward = seconds_in(rank, Phase::forward), backward = seconds_in(rank, Phase::backward);
      if (backward <= 0) continue;
      model.backward_part = backward / (forward + backward);
      // Queued engines send their votes behind the last bucket, the others when the forward pass has ended.
      constexpr double kVoteBytes = 32;
      if (!record->device.starts_with("cuda")) model.vote_bytes = kVoteBytes;
      for (const auto& bucket : record->buckets)
        model.buckets.push_back(
            {.bytes = static_cast<double>(bucket.bytes),
             .ready = std::clamp(mean_or(bucket.ready_s.value_or(std::vector<double>()), backward) *
                                     static_cast<double>(record->window.steps) / backward,
                                 0.0, 1.0),
             .transfer_s =
                 bucket.transfer_s.empty() ? std::nullopt : std::optional(measure::mean(bucket.transfer_s))});
      return;
    }
  const auto& record = by_workers.back()->record();
  if (const auto bytes = record.communication.gradient_bytes; bytes > 0) {
    model.buckets.push_back({.bytes = static_cast<double>(bytes)});
    model.unknown.emplace_back(
        "the records have no ready times of buckets: the whole gradient is sent after the backward pass");
  }
}

void add_memory_plans(const std::vector<const Cell*>& cells, StepModel& model) {
  for (const Cell* cell : cells) {
    const auto& record = cell->record();
    const auto& device = record.memory.device;
    const auto in_process = std::max<std::int64_t>(1, record.workers / processes(record));
    const double bytes =
        device ? static_cast<double>(device->plan_bytes) / device->workers
               : static_cast<double>(record.memory.plan_bytes) / static_cast<double>(in_process);
    if (bytes > 0) model.memory.push_back({.batch = cell->batch_per_worker(), .bytes_a_worker = bytes});
  }
  std::ranges::stable_sort(model.memory, {}, &StepModel::Memory::batch);
}

/// Joules of all GPUs a sample, as means over the records of the fewest workers that have them: those of more
/// waited too, and a prediction counts waiting by itself.
void add_energy(const std::vector<const Cell*>& cells, StepModel& model) {
  std::vector<double> joules;
  for (const Cell* cell : cells)
    for (const Record* record : cell->records) {
      if (cell->workers != cells.front()->workers) break;
      if (!record->gpus || record->window.samples <= 0) continue;
      double watts = 0;
      for (const auto& gpu : *record->gpus)
        if (gpu.energy_j && gpu.seconds > 0) watts += *gpu.energy_j / gpu.seconds;
      if (watts > 0)
        joules.push_back(watts * record->window.wall_s / static_cast<double>(record->window.samples));
    }
  if (!joules.empty()) model.joules_a_sample = measure::mean(joules);
}

void add_loader_facts(const std::vector<const Cell*>& cells, StepModel& model) {
  std::vector<double> seconds;
  for (const Cell* cell : cells)
    for (const Record* record : cell->records)
      for (const auto& rank : record->ranks)
        if (rank.loader_prepare_s > 0 && rank.loader_threads > 0 && record->window.samples > 0)
          seconds.push_back(rank.loader_prepare_s / rank.loader_threads * record->workers /
                            static_cast<double>(record->window.samples));
  if (!seconds.empty()) model.loader_s_a_sample = measure::quantile(seconds, 0.5);
  model.stored_bytes = cells.front()->record().data.stored_bytes.value_or(0);
}

/// Own work of the cell of most workers that has it; of equal ones the one with most steps.
void add_own_work(const std::vector<const Cell*>& by_workers, StepModel& model) {
  const Cell* chosen = nullptr;
  for (const Cell* cell : by_workers)
    if (own_work_of(cell->records).samples() > 1 && !is_without_exchange(cell->record()) &&
        (chosen == nullptr || cell->workers > chosen->workers ||
         cell->steps_measured > chosen->steps_measured))
      chosen = cell;
  model.own = chosen == nullptr ? OwnWork{.others = {1}, .slowest = {}} : own_work_of(chosen->records);
  if (chosen == nullptr)
    model.unknown.emplace_back(
        "the records have no own work of each step: waiting for the slowest worker is not predicted");
  else if (chosen->workers == 1)
    model.unknown.emplace_back(
        "only one worker was measured: how much workers differ on average is not known, only how much steps do");
}

/// Weights of the line through all steps that minimises relative errors; empty if one lies 5 % off it.
std::vector<BatchWeights::Term> line_through(const std::vector<const MeasuredStep*>& steps, double batch) {
  constexpr double kOffTheLine = 0.05;
  if (steps.size() < 3) return {};
  const auto weight_of = [](const MeasuredStep* step) {
    return 1 / (step->middle.total() * step->middle.total());
  };
  double w = 0, x = 0, xx = 0;
  for (const auto* step : steps) {
    const double weight = weight_of(step);
    w += weight;
    x += weight * step->batch;
    xx += weight * step->batch * step->batch;
  }
  const double determinant = w * xx - x * x;
  if (determinant <= 0) return {};
  std::vector<BatchWeights::Term> terms;
  double t0 = 0, t1 = 0;
  for (const auto* step : steps) {
    const double weight = weight_of(step);
    const double of_t0 = weight * (xx - x * step->batch) / determinant,
                 of_t1 = weight * (w * step->batch - x) / determinant;
    t0 += of_t0 * step->middle.total();
    t1 += of_t1 * step->middle.total();
    terms.push_back({step, of_t0 + of_t1 * batch});
  }
  for (const auto* step : steps)
    if (std::abs(t0 + t1 * step->batch - step->middle.total()) / step->middle.total() > kOffTheLine)
      return {};
  return terms;
}

}  // namespace

std::string Subject::text() const {
  std::string text = model;
  if (!data.empty()) text += " on " + data;
  for (const auto* part : {&precision, &device})
    if (!part->empty()) text += ", " + *part;
  return text;
}

Subject subject_of(const Record& record) {
  return {.model = record.model.name,
          .data = measure::name_of_data(record),
          .precision = record.precision,
          .device = record.device_name.value_or(record.device),
          .parameters = record.model.parameters,
          .cpu = record.environment.cpu,
          .host = record.environment.host,
          .emulated_compute = setting_text(record, "emulate-compute"),
          .settings = record.settings};
}

StepLines BatchWeights::at(std::optional<std::size_t> draw) const {
  StepLines lines;
  for (const auto& [step, weight] : terms) lines += (draw ? step->drawn(*draw) : step->middle).scaled(weight);
  // Between lines of a few milliseconds an extrapolation can end below 0, which no part of a step can be.
  for (double& one : lines.seconds) one = std::max(0.0, one);
  return lines;
}

int StepModel::most() const {
  int most = 1;
  for (const auto& step : steps) most = std::max(most, step.workers);
  return most;
}

double StepModel::usual_batch() const {
  const MeasuredStep* best = nullptr;
  for (const auto& step : steps)
    if (step.workers == most() && !step.is_without_exchange &&
        (best == nullptr || step.batch / step.middle.total() > best->batch / best->middle.total()))
      best = &step;
  return (best != nullptr ? *best : steps.front()).batch;
}

BatchWeights StepModel::alone(double batch) const {
  constexpr double kFar = 1.5;
  std::vector<const MeasuredStep*> known;
  for (const auto& step : steps)
    if (step.workers == fewest() && !step.is_without_exchange) known.push_back(&step);
  base::expects(!known.empty(), "the fewest workers were measured");
  BatchWeights weights;
  const double least = known.front()->batch, most = known.back()->batch;
  weights.is_far = batch > kFar * most || batch * kFar < least;
  const auto exact = std::ranges::find_if(known, [&](const auto* step) { return step->batch == batch; });
  if (exact != known.end()) {
    weights.terms = {{*exact, 1}};
  } else if (known.size() == 1) {
    weights.is_assumed = true;
    weights.terms = {{known.front(), batch / least}};
  } else if (auto line = line_through(known, batch); !line.empty()) {
    weights.terms = std::move(line);
  } else {
    std::size_t above = 1;
    while (above + 1 < known.size() && known[above]->batch < batch) ++above;
    const auto *low = known[above - 1], *high = known[above];
    const double part = (batch - low->batch) / (high->batch - low->batch);
    weights.terms = {{low, 1 - part}, {high, part}};
  }
  return weights;
}

const MeasuredStep* StepModel::nearest(int node_width, double batch) const {
  const MeasuredStep* best = nullptr;
  const auto distance = [&](const MeasuredStep& step) {
    return std::tuple(std::abs(std::log(step.batch / batch)), -step.workers);
  };
  for (const auto& step : steps)
    if (step.width == node_width && step.workers > fewest() &&
        (best == nullptr || distance(step) < distance(*best)))
      best = &step;
  return best;
}

StepModel step_model(std::span<const Cell> cells) {
  StepModel model;
  std::vector<const Cell*> timings;
  for (const Cell& cell : cells)
    if (is_a_timing(cell)) timings.push_back(&cell);
  if (timings.empty())
    base::fail(base::ErrorKind::data,
               "no record has the times of steps: a prediction needs those of sweep, scale, study or train");
  for (const Cell* cell : timings)
    if (cell->record().device == "cuda-on-host")
      base::fail(
          base::ErrorKind::data,
          "{} is of cuda-on-host: the CUDA engine ran on the processor, and its times say nothing of a "
          "GPU; give records of --device cuda, or of --device cpu",
          cell->name());
  auto kept = of_one_setup(timings, model);
  if (kept.empty())
    base::fail(base::ErrorKind::data,
               "no cell can be predicted from: {}; measure with a core for each thread of each worker",
               model.not_used.front());
  std::ranges::stable_sort(
      kept, {}, [](const Cell* cell) { return std::tuple(cell->workers, cell->batch_per_worker()); });
  for (std::size_t i = 0; i < kept.size(); ++i) {
    // A cell of weak and of strong scaling at one batch is one measurement of it; the first stands.
    const bool is_known = std::ranges::any_of(model.steps, [&](const auto& step) {
      return step.workers == kept[i]->workers && step.batch == kept[i]->batch_per_worker() &&
             step.width == width_of(kept[i]->record()) &&
             step.is_without_exchange == is_without_exchange(kept[i]->record());
    });
    if (!is_known) model.steps.push_back(measured_step(*kept[i], i));
  }
  const auto& reference = reference_of(kept).record();
  for (const auto& step : model.steps) model.width = std::max(model.width, step.width);
  model.subject = subject_of(reference);
  model.train_samples = static_cast<double>(reference.data.train_samples);
  model.is_ghost = is_of_ghosts(reference);
  model.emulated = emulated(reference);
  const auto& communicator = reference.communication.communicator;
  if (communicator.find("nccl") != std::string::npos)
    model.algorithm = Algorithm::automatic;
  else if (communicator.starts_with("torch.distributed"))  // over gloo
    model.algorithm = Algorithm::ring;
  add_buckets(kept, model);
  add_own_work(kept, model);
  add_memory_plans(kept, model);
  add_energy(kept, model);
  add_loader_facts(kept, model);
  return model;
}

}  // namespace paceline::analysis
