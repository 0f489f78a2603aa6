#include "data/class_balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/csv.h"
#include "base/error.h"
#include "base/file.h"
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

}  // namespace

std::vector<std::int64_t> class_sizes(const Dataset& set, int classes) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(classes));
  for (std::int64_t i = 0; i < set.size(); ++i) ++sizes.at(static_cast<std::size_t>(set.label(i)));
  return sizes;
}

double unevenness(std::span<const std::int64_t> sizes) {
  std::int64_t most = 0, fewest = 0;
  for (const auto size : sizes) {
    most = std::max(most, size);
    if (size > 0) fewest = fewest == 0 ? size : std::min(fewest, size);
  }
  return fewest == 0 ? 1 : static_cast<double>(most) / static_cast<double>(fewest);
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
