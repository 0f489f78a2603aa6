// The table of default algorithms of this kind of processor (engine/cpu/conv/default_table.h): for every
// convolution and dense layer of some models at some batches, each algorithm that can compute it is timed, on
// all cores at once. Rows go to standard output, to be kept in engine/cpu/conv/defaults/; what the default
// costs beside the fastest, before and after, goes to standard error.
//
//   bench_kernel_defaults [--precision fp32|bf16|both] [--check]
//
// --check  times, writes no rows: how far the program's defaults lie from the fastest

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/conv/default_table.h"
#include "engine/cpu/conv/plan.h"
#include "engine/cpu/parallel.h"
#include "engine/cpu/program.h"
#include "graph/zoo.h"

namespace {

using namespace paceline;
using namespace paceline::engine::cpu;

struct Model {
  const char* name;
  graph::Shape image;
  int classes;
  std::vector<int> batches;
};

/// Widths 16 to 512, images of 4x4 to 56x56, dense layers of 10 to 9,216 features.
std::vector<Model> models() {
  return {{"resnet8-cifar", {3, 32, 32}, 10, {4, 16, 32, 64, 128, 256, 512}},
          {"resnet18-cifar", {3, 32, 32}, 10, {4, 16, 32, 64, 128, 256, 512}},
          {"mnist-cnn", {1, 28, 28}, 10, {16, 64, 128, 512, 1024}},
          {"recipes/models/cifar-speedrun.toml", {3, 32, 32}, 10, {64, 256, 512}},
          {"resnet18", {3, 100, 100}, 131, {8, 32}},
          {"resnet18", {3, 224, 224}, 257, {4, 16, 32}}};
}

struct Timing {
  ConvProblem problem;
  std::map<std::string, double> seconds;  ///< by algorithm: the least of some runs
  [[nodiscard]] double least() const {
    return std::ranges::min_element(seconds, {}, [](const auto& one) { return one.second; })->second;
  }
  /// The fastest; of those within the noise of it what the rules would take.
  [[nodiscard]] std::string choice() const {
    constexpr double kNoise = 1.03;
    const std::string& usual = usual_algorithm(problem).name;
    if (seconds.at(usual) <= kNoise * least()) return usual;
    return std::ranges::min_element(seconds, {}, [](const auto& one) { return one.second; })->first;
  }
};

std::mutex timings_mutex;
std::map<std::string, Timing> timings;

/// Called on all cores at once, as crowded as in training.
const ConvAlgorithm* time_all(const ConvProblem& problem) {
  constexpr int kRounds = 3;
  constexpr double kHopeless = 1.3;
  Timing timing{.problem = problem, .seconds = {}};
  std::vector<const ConvAlgorithm*> racing;
  for (const ConvAlgorithm& row : conv_algorithms())
    if (!row.refusal(problem) &&
        (!row.is_hopeless || !row.is_hopeless(problem.shape) || &row == &usual_algorithm(problem)))
      racing.push_back(&row);
  for (int round = 0; round < kRounds; ++round) {
    for (const ConvAlgorithm* algorithm : racing) {
      const double seconds = seconds_of(problem, *algorithm);
      const auto [known, is_new] = timing.seconds.emplace(algorithm->name, seconds);
      if (!is_new) known->second = std::min(known->second, seconds);
    }
    std::erase_if(racing, [&](const ConvAlgorithm* algorithm) {
      return timing.seconds.at(algorithm->name) > kHopeless * timing.least();
    });
  }
  const std::string name = timing.choice();
  const std::lock_guard lock(timings_mutex);
  timings.insert_or_assign(key_of(problem), std::move(timing));
  return find_algorithm(name);
}

DefaultRow row_of(const ConvProblem& problem, std::string_view algorithm) {
  const ConvShape& s = problem.shape;
  return {.direction = problem.direction,
          .is_dense = s.is_dense,
          .in_blocks = s.in_blocks,
          .type = s.type,
          .kernel = s.kernel,
          .stride = s.stride,
          .src_channels = static_cast<int>(s.is_dense ? s.src.elements() : s.src.channels),
          .dst_channels = s.dst.channels,
          .dst_pixels = static_cast<int>(s.dst_pixels()),
          .samples = s.samples,
          .algorithm = algorithm};
}

std::string text_of(const DefaultRow& row) {
  const char* const direction = row.direction == Direction::forward         ? "kForward"
                                : row.direction == Direction::backward_data ? "kBackwardData"
                                                                            : "kBackwardWeights";
  return fmt::format("{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, \"{}\"}},", direction, row.is_dense,
                     row.in_blocks, row.type == Storage::bf16 ? "kBf16" : "kF32", row.kernel, row.stride,
                     row.src_channels, row.dst_channels, row.dst_pixels, row.samples, row.algorithm);
}

/// Measured products of which the nearest of `rows` says another algorithm than the fastest.
std::ptrdiff_t wrong_answers(const std::vector<DefaultRow>& rows) {
  const DefaultTable table{.name = "",
                           .vendor = "",
                           .units = "",
                           .family = 0,
                           .model = 0,
                           .is_for_other_vendors = false,
                           .rows = rows};
  return std::ranges::count_if(timings, [&](const auto& one) {
    const ConvAlgorithm* const found = nearest_choice(table, one.second.problem);
    return found == nullptr || found->name != one.second.choice();
  });
}

/// Without the rows that the others make superfluous: what was measured still has the same answers.
std::vector<DefaultRow> condensed(std::vector<DefaultRow> rows) {
  const auto wrong = wrong_answers(rows);  // products that no row tells apart
  for (std::size_t i = rows.size(); i-- > 0;) {
    auto fewer = rows;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (wrong_answers(fewer) <= wrong) rows = std::move(fewer);
  }
  return rows;
}

void measure(const Model& model, engine::Precision precision) {
  const graph::Graph graph = graph::make_model(model.name, model.image, model.classes, 0);
  for (const int batch : model.batches) {
    std::vector<ConvProblem> problems;
    const Program program(graph, {.batch = batch, .precision = precision}, {});
    for (const auto& entry : program.ops())
      if (entry.conv != nullptr) entry.conv->plan().list(problems);
    std::set<std::string> seen;
    std::erase_if(problems, [&](const ConvProblem& problem) {
      return timings.contains(key_of(problem)) || !seen.insert(key_of(problem)).second;
    });
    const auto begin = base::Clock::now();
    static_cast<void>(side_by_side(problems, time_all));
    fmt::print(stderr, "{} batch {}: {} new products in {:.1f} s\n", model.name, batch, problems.size(),
               base::seconds_since(begin));
  }
}

/// Times of the choices of `name_of`, over the fastest: sums over all that was measured.
template <typename NameOf>
void print_cost(const char* what, const NameOf& name_of) {
  double chosen = 0, least = 0;
  int slower = 0;
  for (const auto& [key, timing] : timings) {
    const double seconds = timing.seconds.at(name_of(timing));
    chosen += seconds / timing.least();
    least += 1;
    if (seconds > 1.1 * timing.least()) ++slower;
  }
  fmt::print(stderr, "{}: {:.3f} times the fastest on average, {} of {} more than a tenth slower\n", what,
             chosen / least, slower, timings.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::string precision = "both";
  bool writes_rows = true;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--check") {
      writes_rows = false;
    } else if (word == "--precision" && i + 1 < argc) {
      precision = argv[++i];
    } else {
      fmt::print(stderr, "bench_kernel_defaults: unknown option {}; known are --precision --check\n", word);
      return 2;
    }
  }
  const OneThread one_thread;
  for (const Model& model : models()) {
    if (precision != "bf16") measure(model, engine::Precision::f32);
    if (precision != "fp32") measure(model, engine::Precision::bf16);
  }
  fmt::print(stderr, "{}\n", name_of(processor_here()));
  print_cost("rules", [](const Timing& timing) { return usual_algorithm(timing.problem).name; });
  print_cost("the program's default",
             [](const Timing& timing) { return default_algorithm(timing.problem).name; });
  print_cost("measured", [](const Timing& timing) { return timing.choice(); });
  if (!writes_rows) return 0;
  std::vector<DefaultRow> rows;
  std::vector<std::string> names;
  for (const auto& [key, timing] : timings) names.push_back(timing.choice());
  std::size_t at = 0;
  for (const auto& [key, timing] : timings) rows.push_back(row_of(timing.problem, names[at++]));
  rows = condensed(std::move(rows));
  for (const DefaultRow& row : rows) fmt::print("{}\n", text_of(row));
  fmt::print(stderr, "{} rows of {} products\n", rows.size(), timings.size());
}
