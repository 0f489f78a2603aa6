#include "analysis/steps/waterfall.h"

#include <algorithm>
#include <cmath>

#include "analysis/compare/comparability.h"
#include "base/error.h"
#include "measure/statistics.h"

namespace paceline::analysis {
namespace {

constexpr std::uint64_t kDraws = 1000;
constexpr std::size_t kFewestRepeats = 3;

using Losses = std::array<double, kLossParts>;

/// c1(b) as a sum of weights times the compute of cells; empty: not known.
struct AloneAtBatch {
  struct Term {
    SampledCell cell;
    double weight;
  };
  std::vector<Term> terms;
  bool is_baseline = false;
};

AloneAtBatch alone_at(const Cell& baseline, double batch, std::span<const Cell* const> alone) {
  AloneAtBatch result;
  if (baseline.batch_per_worker() == batch) {
    result.is_baseline = true;
    return result;
  }
  const Cell *below = nullptr, *above = nullptr;
  const auto consider = [&](const Cell& cell) {
    const double there = cell.batch_per_worker();
    if (there <= batch && (below == nullptr || there > below->batch_per_worker())) below = &cell;
    if (there >= batch && (above == nullptr || there < above->batch_per_worker())) above = &cell;
  };
  consider(baseline);
  for (const Cell* cell : alone) consider(*cell);
  if (below != nullptr && below->batch_per_worker() == batch) {
    result.terms.push_back({SampledCell(*below), 1});
  } else if (below != nullptr && above != nullptr) {
    const double part =
        (batch - below->batch_per_worker()) / (above->batch_per_worker() - below->batch_per_worker());
    result.terms.push_back({SampledCell(*below), 1 - part});
    result.terms.push_back({SampledCell(*above), part});
  }
  return result;
}

struct Lines {
  StepLines baseline, cell;
  double alone_compute_s = 0;
};

Losses losses_of(const Lines& lines, double share) {
  // Smaller batch and sharing; then the parts that are lines.
  Losses losses{lines.alone_compute_s - share * lines.baseline[Line::compute],
                lines.cell[Line::compute] - lines.alone_compute_s};
  for (auto part = static_cast<std::size_t>(LossPart::imbalance); part < kLossParts; ++part) {
    const Line line = line_of(static_cast<LossPart>(part));
    losses[part] = lines.cell[line] - share * lines.baseline[line];
  }
  return losses;
}

/// The three cells of a loss, for any way of choosing lines from a cell.
class Sampled {
 public:
  Sampled(const Cell& baseline, const Cell& cell, double share, AloneAtBatch alone)
      : baseline_(baseline), cell_(cell), share_(share), alone_(std::move(alone)) {}

  template <typename Choose>
  [[nodiscard]] Lines lines(Choose choose) const {
    Lines lines{.baseline = choose(baseline_), .cell = choose(cell_)};
    for (const auto& [cell, weight] : alone_.terms)
      lines.alone_compute_s += weight * choose(cell)[Line::compute];
    if (alone_.terms.empty()) lines.alone_compute_s = share_of_alone() * lines.baseline[Line::compute];
    return lines;
  }
  [[nodiscard]] double share_of_alone() const { return alone_.is_baseline ? 1 : share_; }
  [[nodiscard]] bool knows_alone() const { return alone_.is_baseline || !alone_.terms.empty(); }
  [[nodiscard]] const SampledCell& cell() const { return cell_; }
  [[nodiscard]] bool has_spread() const {
    return baseline_.has_spread() && cell_.has_spread() &&
           std::ranges::all_of(alone_.terms, [](const auto& term) { return term.cell.has_spread(); });
  }
  /// Repeats of each cell.
  [[nodiscard]] std::vector<std::size_t> repeats() const {
    std::vector<std::size_t> numbers{baseline_.size(), cell_.size()};
    for (const auto& term : alone_.terms) numbers.push_back(term.cell.size());
    return numbers;
  }

 private:
  SampledCell baseline_, cell_;
  double share_;
  AloneAtBatch alone_;
};

StepLines mean_lines_of(std::span<const StepLines> lines) {
  StepLines sum;
  for (const auto& one : lines) sum += one;
  return sum.scaled(1 / static_cast<double>(lines.size()));
}

/// By the whole step; the mean of the two of an even number.
StepLines middle_lines_of(std::vector<StepLines> lines) {
  std::ranges::sort(lines, {}, &StepLines::total);
  const std::size_t half = (lines.size() - 1) / 2;
  return mean_lines_of(std::span(lines).subspan(half, lines.size() - 2 * half));
}

/// Half the width of a bootstrap interval: the distance to the farther end of the middle 95 %. The farther
/// end, because the largest of several parts is overestimated by resampling.
double half_width(std::vector<double>& draws, double point, std::size_t repeats) {
  constexpr double kTail = 0.025;
  const auto at = [&](double q) {
    const auto place = static_cast<std::ptrdiff_t>(q * static_cast<double>(draws.size() - 1));
    std::nth_element(draws.begin(), draws.begin() + place, draws.end());
    return draws[static_cast<std::size_t>(place)];
  };
  const double half = std::max(point - at(kTail), at(1 - kTail) - point);
  if (repeats < kFewestRepeats) return half;
  // Draws from n repeats have (n-1)/n of their variance, which itself is only estimated from n repeats.
  const auto n = static_cast<double>(repeats);
  return half * std::sqrt(n / (n - 1)) * measure::as_rare_as_two_errors(n - 1) / 2;
}

void add_intervals(EfficiencyLoss& loss, const Sampled& sampled, double share) {
  if (!sampled.has_spread()) return;
  std::array<std::vector<double>, kLossParts> draws;
  for (auto& one : draws) one.reserve(kDraws);
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    base::Rng rng(0, base::Purpose::bootstrap, i);
    const auto losses =
        losses_of(sampled.lines([&](const SampledCell& cell) { return cell.draw(rng); }), share);
    for (std::size_t part = 0; part < kLossParts; ++part) draws[part].push_back(losses[part]);
  }
  for (std::size_t part = 0; part < kLossParts; ++part) {
    LossFigure& figure = loss.parts[part];
    const double half = half_width(draws[part], figure.seconds, loss.repeats);
    figure.low = figure.seconds - half;
    figure.high = figure.seconds + half;
  }
  if (loss.repeats >= kFewestRepeats) return;
  const std::size_t most = std::ranges::max(sampled.repeats());
  for (std::size_t first = 0; first < most; ++first)
    for (std::size_t second = 0; second < most; ++second) {
      const auto losses = losses_of(sampled.lines([&](const SampledCell& cell) {
        return cell.repeat(&cell == &sampled.cell() ? first : second).lines();
      }),
                                    share);
      for (std::size_t part = 0; part < kLossParts; ++part) {
        loss.parts[part].low = std::min(*loss.parts[part].low, losses[part]);
        loss.parts[part].high = std::max(*loss.parts[part].high, losses[part]);
      }
    }
}

}  // namespace

const char* name(LossPart part) {
  constexpr std::array<const char*, kLossParts> kNames{
      "smaller batch",    "sharing",   "slowest worker", "jitter", "other waiting", "exposed latency",
      "exposed transfer", "data wait", "copy",           "update", "other"};
  return kNames[static_cast<std::size_t>(part)];
}

SampledCell::SampledCell(const Cell& cell) {
  for (const measure::Record* record : cell.records)
    if (!record->ranks.empty() && record->window.steps > 0) repeats_.emplace_back(*record);
  base::expects(!repeats_.empty(), "the cell is measured");
}

StepLines SampledCell::mean() const { return mean_lines_of(own_lines()); }

StepLines SampledCell::draw(base::Rng& rng) const { return mean_lines_of(draws(rng)); }

StepLines SampledCell::middle() const { return middle_lines_of(own_lines()); }

StepLines SampledCell::draw_middle(base::Rng& rng) const { return middle_lines_of(draws(rng)); }

std::vector<StepLines> SampledCell::own_lines() const {
  std::vector<StepLines> lines;
  for (const auto& repeat : repeats_) lines.push_back(repeat.lines());
  return lines;
}

std::vector<StepLines> SampledCell::draws(base::Rng& rng) const {
  std::vector<StepLines> drawn;
  for (std::size_t i = 0; i < size(); ++i)
    drawn.push_back(repeats_[rng.below(static_cast<std::uint32_t>(size()))].draw(rng));
  return drawn;
}

EfficiencyLoss efficiency_loss(const Cell& baseline, const Cell& cell, Mode mode,
                               std::span<const Cell* const> alone) {
  base::expects(cell.workers >= baseline.workers, "a loss is that of more workers");
  const double share =
      mode == Mode::weak ? 1 : static_cast<double>(baseline.workers) / static_cast<double>(cell.workers);
  const double batch = mode == Mode::weak ? baseline.batch_per_worker() : cell.batch_per_worker();
  const Sampled sampled(baseline, cell, share, alone_at(baseline, batch, alone));
  const auto lines = sampled.lines([](const SampledCell& one) { return one.mean(); });
  EfficiencyLoss loss{.baseline = &baseline, .cell = &cell, .mode = mode};
  loss.ideal_s = share * lines.baseline.total();
  loss.step_s = lines.cell.total();
  loss.lines = lines.cell;
  loss.alone_compute_s = lines.alone_compute_s;
  loss.repeats = std::ranges::min(sampled.repeats());
  loss.batch_is_in_sharing = !sampled.knows_alone();
  const auto& measured = sampled.cell();
  loss.jitter_is_in_other = !measured.all([](const SampledSteps& one) { return one.knows_jitter(); });
  loss.latency_is_in_transfer = !measured.all([](const SampledSteps& one) { return one.knows_latency(); });
  const auto losses = losses_of(lines, share);
  for (std::size_t part = 0; part < kLossParts; ++part) loss.parts[part].seconds = losses[part];
  add_intervals(loss, sampled, share);
  return loss;
}

std::vector<const Cell*> cells_alone(std::span<const Cell> cells, const Cell& baseline) {
  std::vector<const Cell*> alone;
  for (const Cell& cell : cells)
    if (&cell != &baseline && cell.is_measured() && cell.workers == baseline.workers &&
        cell.threads_per_worker == baseline.threads_per_worker &&
        compare(baseline, cell, Topic::tables).comparable())
      alone.push_back(&cell);
  return alone;
}

}  // namespace paceline::analysis
