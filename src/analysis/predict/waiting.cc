#include "analysis/predict/waiting.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "measure/statistics.h"

namespace paceline::analysis {
namespace {

constexpr std::size_t kTrendSteps = 21;  ///< phases of a host last longer
constexpr double kSamplesPerWorker = 10;

/// The median of the steps around each one.
std::vector<double> trend_of(std::span<const double> own) {
  std::vector<double> trend(own.size());
  const std::size_t half = kTrendSteps / 2;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const std::size_t begin = i > half ? i - half : 0, end = std::min(own.size(), i + half + 1);
    trend[i] = measure::quantile(own.subspan(begin, end - begin), 0.5);
  }
  return trend;
}

/// Own work of each rank without its trend, with a mean of 0.
std::vector<std::vector<double>> without_trend(const measure::Record& record) {
  std::vector<std::vector<double>> rests;
  for (const auto& rank : record.ranks) {
    const auto trend = trend_of(*rank.own_s);
    auto& rest = rests.emplace_back(*rank.own_s);
    for (std::size_t i = 0; i < rest.size(); ++i) rest[i] -= trend[i];
    const double mean = measure::mean(rest);
    for (double& one : rest) one -= mean;
  }
  return rests;
}

/// The part of the variance that ranks have in common: their covariance in the same step over the variance.
double shared_part(const std::vector<std::vector<double>>& rests) {
  double variance = 0, covariance = 0;
  std::size_t pairs = 0;
  for (std::size_t a = 0; a < rests.size(); ++a) {
    variance += std::inner_product(rests[a].begin(), rests[a].end(), rests[a].begin(), 0.0) /
                static_cast<double>(rests.size());
    for (std::size_t b = 0; b < a; ++b, ++pairs)
      covariance += std::inner_product(rests[a].begin(), rests[a].end(), rests[b].begin(), 0.0);
  }
  if (pairs == 0 || variance <= 0) return 0;
  return std::clamp(covariance / static_cast<double>(pairs) / variance, 0.0, 1.0);
}

bool knows_own_work(const measure::Record& record) {
  if (record.ranks.empty()) return false;
  const std::size_t steps = record.ranks.front().own_s ? record.ranks.front().own_s->size() : 0;
  return steps > 1 && std::ranges::all_of(record.ranks, [&](const auto& rank) {
           return rank.own_s && rank.own_s->size() == steps;
         });
}

/// Of the samples of one worker, the tenth that is largest: where it begins, and its two fitted tails.
struct FittedTail {
  double begin = 0, part = 0;  ///< of the samples that are above
  double excess = 0;           ///< exponential: mean beyond `begin`
  double power = 0;            ///< Pareto: x / begin has this index (Hill)
};

FittedTail fit_tail(const std::vector<double>& sorted) {
  FittedTail tail;
  const std::size_t above = std::max<std::size_t>(2, sorted.size() / 10);
  if (sorted.size() <= above) return tail;
  tail.begin = sorted[sorted.size() - above - 1];
  tail.part = static_cast<double>(above) / static_cast<double>(sorted.size());
  for (std::size_t i = sorted.size() - above; i < sorted.size(); ++i) {
    tail.excess += (sorted[i] - tail.begin) / static_cast<double>(above);
    tail.power += std::log(sorted[i] / tail.begin) / static_cast<double>(above);
  }
  return tail;
}

/// How much the expected largest of `many` draws exceeds that of `few`, both far in the tail.
double growth(const FittedTail& tail, Tail assumed, double few, double many) {
  if (assumed == Tail::exponential) return tail.excess * std::log(many / few);
  const double power = std::min(tail.power, 0.9);  // the mean of the largest is infinite from 1 on
  const double scale = tail.begin * std::tgamma(1 - power);
  return scale * (std::pow(many * tail.part, power) - std::pow(few * tail.part, power));
}

struct MergedSamples {
  std::vector<double> value;          ///< ascending
  std::vector<double> log_of_others;  ///< log of the part of `others` at most this value
  std::vector<double> of_slowest;     ///< likewise, of the slowest
};

MergedSamples merged(std::vector<double> others, std::vector<double> slowest) {
  std::ranges::sort(others);
  std::ranges::sort(slowest);
  MergedSamples all;
  const auto a = static_cast<double>(others.size()), b = static_cast<double>(slowest.size());
  std::size_t i = 0, j = 0;
  while (i < others.size() || j < slowest.size()) {
    if (j == slowest.size() || (i < others.size() && others[i] <= slowest[j]))
      all.value.push_back(others[i++]);
    else
      all.value.push_back(slowest[j++]);
    all.log_of_others.push_back(std::log(static_cast<double>(i) / a));
    all.of_slowest.push_back(b > 0 ? static_cast<double>(j) / b : 1);
  }
  return all;
}

/// Of `others` draws and one of the slowest.
LargestFactor largest_of(const MergedSamples& all, double others) {
  LargestFactor largest{.mean = 0, .parts = {}};
  constexpr auto kParts = static_cast<double>(LargestFactor::kParts);
  double below = 0;
  for (std::size_t i = 0; i < all.value.size(); ++i) {
    const double until =
        i + 1 == all.value.size() ? 1 : all.of_slowest[i] * std::exp(others * all.log_of_others[i]);
    largest.mean += all.value[i] * (until - below);
    // The probability of this value may lie in several of the equal parts.
    for (double from = below; from < until;) {
      const auto part = std::min(LargestFactor::kParts - 1, static_cast<std::size_t>(kParts * from));
      double to = std::min(until, static_cast<double>(part + 1) / kParts);
      if (part + 1 == LargestFactor::kParts) to = until;
      largest.parts[part] += kParts * (to - from) * all.value[i];
      from = to;
    }
    below = until;
  }
  return largest;
}

}  // namespace

OwnWork own_work_of(std::span<const measure::Record* const> records) {
  OwnWork work;
  double slowest_s = 0, known = 0, shared = 0;
  for (const measure::Record* record : records) {
    if (!knows_own_work(*record)) continue;
    auto rests = without_trend(*record);
    const double common = shared_part(rests);
    std::vector<double> means;
    for (const auto& rank : record->ranks) means.push_back(measure::mean(*rank.own_s));
    std::vector<std::size_t> order(means.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](auto a, auto b) { return means[a] < means[b]; });
    const double typical = means[order[(order.size() - 1) / 2]];
    for (std::size_t rank = 0; rank < rests.size(); ++rank) {
      const bool is_slowest = rests.size() > 1 && rank == order.back();
      auto& to = is_slowest ? work.slowest : work.others;
      // The mean of another rank counts as the typical one's: which of equal ranks is first is chance.
      const double mean = is_slowest ? means[rank] / typical : 1;
      for (const double rest : rests[rank]) to.push_back(mean + std::sqrt(1 - common) * rest / typical);
    }
    work.typical_s += typical;
    slowest_s += means[order.back()];
    shared += common;
    known += 1;
  }
  if (known == 0) return {.others = {1}, .slowest = {}};
  work.slowest_factor = slowest_s / work.typical_s;
  work.typical_s /= known;
  work.shared_variance = shared / known;
  return work;
}

OwnWork drawn_again(const OwnWork& work, base::Rng& rng) {
  constexpr std::size_t kBlock = 5;
  OwnWork drawn = work;
  const auto draw = [&](const OwnFactors& from, OwnFactors& to) {
    for (std::size_t i = 0; i < to.size(); i += kBlock) {
      const std::size_t begin = rng.below(static_cast<std::uint32_t>(from.size()));
      for (std::size_t j = 0; j < kBlock && i + j < to.size(); ++j)
        to[i + j] = from[(begin + j) % from.size()];
    }
  };
  draw(work.others, drawn.others);
  draw(work.slowest, drawn.slowest);
  return drawn;
}

std::vector<LargestFactor> largest_factors(const OwnWork& work, std::span<const std::int64_t> workers,
                                           Tail tail) {
  base::expects(!work.others.empty(), "there are samples");
  const auto all = merged(work.others, work.slowest);
  const auto fitted = fit_tail(all.value);
  // One slowest worker speaks of itself; the samples that limit N are those of the others.
  const double reach = std::max(1.0, static_cast<double>(work.others.size()) / kSamplesPerWorker);
  std::vector<LargestFactor> factors;
  for (const std::int64_t n : workers) {
    base::expects(n >= 1, "there is a worker");
    const auto number = static_cast<double>(n);
    if (n == 1) {
      factors.emplace_back();  // the typical worker, by its mean
      continue;
    }
    const bool is_beyond = number > reach && work.others.size() > 1;
    const bool assumes = is_beyond && tail != Tail::none && fitted.part > 0;
    const double others = (assumes ? reach : number) - (work.slowest.empty() ? 0 : 1);
    auto factor = largest_of(all, std::max(0.0, others));
    if (assumes) {
      const double more = growth(fitted, tail, reach, number);
      factor.mean += more;
      for (double& part : factor.parts) part += more;
    }
    factor.is_beyond_samples = is_beyond;
    factors.push_back(factor);
  }
  return factors;
}

double largest_normal(double workers) {
  if (workers <= 1) return 0;
  // Blom: the quantile at (n - 3/8) / (n + 1/4), by bisection.
  const double p = (workers - 0.375) / (workers + 0.25);
  double low = 0, high = 40;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return low;
}

}  // namespace paceline::analysis
