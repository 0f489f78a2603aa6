#include "data/class_balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/csv.h"
#include "base/error.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/text.h"

namespace paceline::data {
namespace {

using base::ErrorKind;

/// n / (classes * samples of the class), over the classes that have samples; 1 for one that has none.
std::vector<double> balanced_weights(const std::vector<std::int64_t>& sizes) {
  const auto present = std::ranges::count_if(sizes, [](auto size) { return size > 0; });
  const auto all = static_cast<double>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
  std::vector<double> weights;
  for (const auto size : sizes)
    weights.push_back(size == 0 ? 1 : all / (static_cast<double>(present) * static_cast<double>(size)));
  return weights;
}

/// A class and its weight.
std::pair<std::size_t, double> read_line(const base::CsvLine& line, const std::string& file,
                                         const std::vector<std::string>& classes) {
  const auto number = line.front().line;
  if (line.size() != 2)
    base::fail(ErrorKind::data,
               "{}: line {} must be a class and its weight, but has {}; quote a name that contains a comma",
               file, number, base::counted(static_cast<std::int64_t>(line.size()), "cell"));
  const auto found = std::ranges::find(classes, line[0].text);
  if (found == classes.end())
    base::fail(ErrorKind::data, "{}: line {}: the data have no class '{}'{}", file, number,
               base::visible(line[0].text), base::suggestion(line[0].text, classes));
  try {
    return {static_cast<std::size_t>(found - classes.begin()),
            base::decimal(line[1].text, {.open_below = true})};
  } catch (const base::Error& error) {
    base::fail(ErrorKind::data, "{}: line {}: the weight of '{}' {}", file, number,
               base::visible(line[0].text), error.what());
  }
}

std::vector<double> read_weights(const std::string& file, const std::vector<std::string>& classes) {
  std::vector<double> weights(classes.size());
  std::vector<std::size_t> lines(classes.size());  // where each class was named
  auto table = base::read_csv(base::read_file(file), file);
  // A head names no class. If it was meant to, that class has no weight below.
  if (!table.empty() && std::ranges::find(classes, table.front()[0].text) == classes.end())
    table.erase(table.begin());
  for (const auto& line : table) {
    const auto [label, weight] = read_line(line, file, classes);
    if (lines[label] != 0)
      base::fail(ErrorKind::data,
                 "{}: line {}: the class '{}' has a weight in line {} already; keep one of them", file,
                 line.front().line, base::visible(classes[label]), lines[label]);
    lines[label] = line.front().line;
    weights[label] = weight;
  }
  const auto missing = std::ranges::find(lines, std::size_t{0}) - lines.begin();
  if (missing < std::ssize(lines))
    base::fail(ErrorKind::data,
               "{}: every class needs a weight, but '{}' and {} of {} classes have none; add the line '{},1'",
               file, base::visible(classes[static_cast<std::size_t>(missing)]),
               std::ranges::count(lines, std::size_t{0}) - 1, classes.size(),
               base::csv_cell(base::visible(classes[static_cast<std::size_t>(missing)])));
  return weights;
}

/// A seed for the order of one class, or of the turns.
std::uint64_t seed_of(std::uint64_t seed, std::uint64_t part) {
  base::Rng rng(seed, base::Purpose::balance, part);
  const std::uint64_t high = rng.next_u32();
  return high << 32 | rng.next_u32();
}

}  // namespace

std::vector<std::int64_t> class_sizes(const Dataset& set, int classes) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(classes));
  for (std::int64_t i = 0; i < set.size(); ++i) ++sizes.at(static_cast<std::size_t>(set.label(i)));
  return sizes;
}

std::vector<double> class_weights(const std::string& given, const Source& source) {
  const auto sizes = class_sizes(*source.train, source.classes());
  if (given == "balanced") return balanced_weights(sizes);
  auto weights = read_weights(given, source.class_names);
  double sum = 0;
  for (std::size_t c = 0; c < sizes.size(); ++c) sum += weights[c] * static_cast<double>(sizes[c]);
  for (double& weight : weights) weight *= static_cast<double>(source.train->size()) / sum;
  return weights;
}

BalancedOrder::BalancedOrder(const Dataset& set, int classes, std::uint64_t seed, std::int64_t positions)
    : turns_(0, 0), positions_(positions) {
  base::expects(positions >= 1 && set.size() >= 1, "there are samples and an epoch draws some");
  const auto sizes = class_sizes(set, classes);
  std::vector<std::int64_t> next;  // place in members_ of the next sample of each class
  std::int64_t first = 0;
  for (std::size_t c = 0; c < sizes.size(); first += sizes[c++]) {
    next.push_back(first);
    if (sizes[c] > 0) classes_.push_back({first, Sampler(sizes[c], seed_of(seed, c + 1))});
  }
  members_.resize(static_cast<std::size_t>(set.size()));
  for (std::int64_t i = 0; i < set.size(); ++i)
    members_[static_cast<std::size_t>(next[static_cast<std::size_t>(set.label(i))]++)] = i;
  turns_ = Sampler(std::ssize(classes_), seed_of(seed, 0));
}

std::int64_t BalancedOrder::index(std::int64_t epoch, std::int64_t position) const {
  const std::int64_t place = epoch * positions_ + position;
  const std::int64_t round = place / turns_.size();
  const OfClass& own = classes_[static_cast<std::size_t>(turns_.index(round, place % turns_.size()))];
  const std::int64_t size = own.order.size();
  return members_[static_cast<std::size_t>(own.first + own.order.index(round / size, round % size))];
}

std::string balanced_sentence(const Source& source, std::int64_t positions) {
  const auto sizes = class_sizes(*source.train, source.classes());
  const auto present = std::ranges::count_if(sizes, [](auto size) { return size > 0; });
  const auto most = std::ranges::max_element(sizes);
  const auto fewest = std::ranges::min_element(sizes, {}, [&](auto size) { return size > 0 ? size : *most; });
  const auto of = [&](auto size, const char* comes) {
    return fmt::format("'{}' ({}){} {:.3g} times",
                       base::visible(source.class_names[static_cast<std::size_t>(size - sizes.begin())]),
                       *size, comes, static_cast<double>(positions) / static_cast<double>(present * *size));
  };
  return fmt::format("an epoch has {} draws, {}{} of each of {} classes; in it a sample of {}, one of {}",
                     positions, positions / present,
                     positions % present == 0 ? "" : fmt::format(" or {}", positions / present + 1), present,
                     of(fewest, " comes"), of(most, ""));
}

}  // namespace paceline::data
