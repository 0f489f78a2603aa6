// Every convolution and dense layer of a model, in every direction: the kernel that the cpu engine chose
// beside oneDNN's, one after the other in each round. A chunk of the batch on one thread, with what belongs
// to a whole batch once an update (packing weights, joining gradients) shared out to it. One JSON document
// goes to standard output, a table to standard error.
//
// With --algorithm NAME it times that algorithm, on the layers that it computes, instead of the one that was
// chosen.
//
// bf16: oneDNN's own bf16 kernels are the yardstick. Where the engine multiplies float copies of bf16, their
// conversion counts as ours. Where there are tiles, each layer, and the sum over all convolutions of the
// model, each as often as it has it, is set beside what tile products reach in registers, measured beside it
// in each round.

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/clock.h"
#include "engine/cpu/conv/default_table.h"
#include "engine/cpu/conv/plan.h"
#include "engine/cpu/parallel.h"
#include "engine/cpu/program.h"
#include "engine/make.h"
#include "graph/zoo.h"
#include "tile_ceiling.h"

namespace {

using namespace paceline;
using namespace paceline::engine::cpu;

constexpr double kCeilingSeconds = 0.03;

struct Options {
  std::string model = "resnet18-cifar", precision = "fp32", algorithm = "";
  int batch = 128, size = 32, rounds = 7;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--model")
      options.model = value;
    else if (name == "--precision")
      options.precision = value;
    else if (name == "--algorithm")
      options.algorithm = value;
    else if (name == "--batch")
      options.batch = std::stoi(value);
    else if (name == "--size")
      options.size = std::stoi(value);
    else if (name == "--rounds")
      options.rounds = std::stoi(value);
    else {
      fmt::print(stderr,
                 "bench_layers: unknown option {}; known are --model --size --precision fp32|bf16 --batch "
                 "--rounds --algorithm\n",
                 name);
      std::exit(2);
    }
  }
  if (options.precision != "fp32" && options.precision != "bf16") {
    fmt::print(stderr, "bench_layers: --precision must be fp32 or bf16, got '{}'\n", options.precision);
    std::exit(2);
  }
  if (!options.algorithm.empty() && find_algorithm(options.algorithm) == nullptr) {
    fmt::print(stderr,
               "bench_layers: no algorithm is called '{}'; 'paceline doctor --kernels' has their names\n",
               options.algorithm);
    std::exit(2);
  }
  return options;
}

/// Seconds to turn `count` stored bf16 values into floats, or back.
double seconds_of_conversion(std::int64_t count, bool to_float) {
  const Kernels& kernels = kernels_for(isas_here().back());
  base::Buffer halves(static_cast<std::size_t>(2 * count)), floats(static_cast<std::size_t>(4 * count));
  halves.fill_zero();
  floats.fill_zero();
  return seconds_of([&] {
    to_float ? kernels.bf16.to_float(halves.data(), floats.as<float>().data(), count)
             : kernels.bf16.from_float(floats.as<float>().data(), halves.data(), false, count);
  });
}

/// What the conversions of a whole batch add where kernels work on float copies.
double conversions(const ConvProblem& problem, int batch) {
  if (!problem.shape.in_blocks) return 0;
  const std::int64_t samples = problem.shape.samples, src = samples * problem.shape.src.elements(),
                     dst = samples * problem.shape.dst.elements();
  double seconds = 0;
  switch (problem.direction) {
    case Direction::forward:
      seconds = seconds_of_conversion(src, true) + seconds_of_conversion(dst, false);
      break;
    case Direction::backward_data:
      seconds = seconds_of_conversion(dst, true) + seconds_of_conversion(src, false);
      break;
    case Direction::backward_weights:
      seconds = seconds_of_conversion(src, true) + seconds_of_conversion(dst, true);
      break;
  }
  return seconds * batch / static_cast<double>(samples);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

std::string text(const ConvShape& s) {
  if (s.is_dense) return fmt::format("dense {}->{}", s.src.elements(), s.dst.channels);
  return fmt::format("{}->{} {}x{} kernel {} stride {}{}", s.src.channels, s.dst.channels, s.src.height,
                     s.src.width, s.kernel, s.stride,
                     s.groups > 1 ? fmt::format(" groups {}", s.groups) : "");
}

/// Over all convolutions of the model in one direction, a batch on one thread.
struct Sum {
  double flops = 0, seconds = 0, onednn_seconds = 0;
  double tile_flops = 0;  ///< what tiles in registers would have done in these seconds; 0: there are none
  void add(const Sum& other) {
    flops += other.flops;
    seconds += other.seconds;
    onednn_seconds += other.onednn_seconds;
    tile_flops += other.tile_flops;
  }
};

/// The JSON object of all sums; a table of them goes to standard error. `ceilings`: those of all rounds; none
/// where there are no tiles.
std::string text_of(const std::array<Sum, 3>& sums, std::vector<double> ceilings) {
  std::string json;
  const auto add = [&](const char* name, const Sum& sum) {
    const double rate = sum.flops / sum.seconds / 1e9;
    fmt::print(stderr, "{:44} {:16} {:26} {:>9.0f} {:>9.0f} {:>6.2f}{}\n", "all convolutions", name, "", rate,
               sum.flops / sum.onednn_seconds / 1e9, sum.onednn_seconds / sum.seconds,
               sum.tile_flops > 0
                   ? fmt::format("  {:.1f} % of the tiles' ceiling", 100 * sum.flops / sum.tile_flops)
                   : "");
    json += fmt::format(
        "{}\"{}\": {{\"gflop_per_s\": {:.1f}, \"onednn_gflop_per_s\": {:.1f}, \"share_of_tile_ceiling\": "
        "{:.4f}}}",
        json.empty() ? "{" : ", ", name, rate, sum.flops / sum.onednn_seconds / 1e9,
        sum.tile_flops > 0 ? sum.flops / sum.tile_flops : 0);
  };
  Sum all;
  for (const Direction direction :
       {Direction::forward, Direction::backward_data, Direction::backward_weights}) {
    const Sum& sum = sums[static_cast<std::size_t>(direction)];
    add(name_of(direction), sum);
    all.add(sum);
  }
  add("all", all);
  std::ranges::sort(ceilings);
  if (ceilings.empty() || ceilings.front() <= 0) return json + "}";
  fmt::print(stderr, "the tiles' ceiling: {:.0f} GFLOP/s in registers [{:.0f}, {:.0f}]\n", median(ceilings),
             ceilings.front(), ceilings.back());
  return json + fmt::format(
                    ", \"tile_ceilings_gflop_per_s\": {{\"median\": {:.1f}, \"least\": {:.1f}, "
                    "\"most\": {:.1f}}}}}",
                    median(ceilings), ceilings.front(), ceilings.back());
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const graph::Graph graph = graph::make_model(
      options.model, {options.model == "mnist-cnn" ? 1 : 3, options.size, options.size}, 10, 0);
  const bool bf16 = options.precision == "bf16";
  engine::CompileOptions how{.batch = options.batch,
                             .precision = bf16 ? engine::Precision::bf16 : engine::Precision::f32};
  const bool is_chosen = options.algorithm.empty();
  const auto kernels = engine::prepare("cpu", graph, how, {.is_measured = is_chosen});
  if (!kernels.note.empty()) fmt::print(stderr, "{}\n", kernels.note);
  how.algorithms = kernels.algorithms;
  const OneThread one_thread;
  std::vector<ConvProblem> problems;
  const Program program(graph, how, {});
  for (const auto& entry : program.ops())
    if (entry.conv != nullptr) entry.conv->plan().list(problems);

  const ConvAlgorithm& onednn = *find_algorithm("onednn");
  std::map<std::string, int> times;
  for (const ConvProblem& problem : problems) ++times[key_of(problem)];
  std::array<Sum, 3> sums;
  std::set<std::string> seen;
  std::string rows;
  int slower = 0;
  std::vector<double> ceilings;
  fmt::print(stderr, "{:44} {:16} {:26} {:>9} {:>9} {:>14}\n", "layer", "direction", "algorithm", "ours",
             "onednn", "onednn / ours");
  for (const ConvProblem& problem : problems) {
    if (!seen.insert(key_of(problem)).second) continue;
    const ConvAlgorithm& algorithm =
        *find_algorithm(is_chosen ? kernels.algorithms->at(key_of(problem)) : options.algorithm);
    if (algorithm.refusal(problem)) continue;
    ConvProblem peer = problem;
    if (bf16) {
      peer.shape.type = Storage::bf16;
      peer.shape.dst_type = Storage::bf16;
      peer.shape.in_blocks = false;
    }
    // One whole batch of multiply-adds, whatever the samples that kernels are timed on.
    const double flops = 2.0 * static_cast<double>(problem.shape.products() * options.batch);
    const double scale = options.batch / static_cast<double>(problem.shape.samples);
    const bool is_onednn = &algorithm == &onednn && !problem.shape.in_blocks;
    std::vector<double> ours, theirs, ratios, tiles;
    for (int round = 0; round < options.rounds; ++round) {
      // Who goes first changes every round.
      if (round % 2 == 1) theirs.push_back(scale * seconds_of(peer, onednn));
      ours.push_back(scale * seconds_of(problem, algorithm) + conversions(problem, options.batch));
      if (round % 2 == 0) theirs.push_back(scale * seconds_of(peer, onednn));
      ratios.push_back(theirs.back() / ours.back());
      // Beside each layer: the machine's speed has phases, and a share of the ceiling must not.
      if (bf16) ceilings.push_back(tile_ceiling(kCeilingSeconds));
      if (bf16) tiles.push_back(1e9 * ceilings.back() * ours.back());
    }
    std::sort(ratios.begin(), ratios.end());
    const double ratio = median(ratios);
    if (!problem.shape.is_dense) {
      Sum& sum = sums[static_cast<std::size_t>(problem.direction)];
      sum.flops += times[key_of(problem)] * flops;
      sum.seconds += times[key_of(problem)] * median(ours);
      sum.onednn_seconds += times[key_of(problem)] * median(theirs);
      if (bf16) sum.tile_flops += times[key_of(problem)] * median(tiles);
    }
    if (!is_onednn && ratios.back() < 1) ++slower;
    fmt::print(stderr, "{:44} {:16} {:26} {:>9.0f} {:>9.0f} {:>6.2f} [{:.2f}, {:.2f}]{}\n",
               text(problem.shape), name_of(problem.direction), is_onednn ? "onednn" : algorithm.name,
               flops / median(ours) / 1e9, flops / median(theirs) / 1e9, ratio, ratios.front(), ratios.back(),
               is_onednn ? "  the same kernel" : "");
    rows += fmt::format(
        "{}{{\"layer\": \"{}\", \"direction\": \"{}\", \"algorithm\": \"{}\", \"gflop_per_s\": {:.1f}, "
        "\"onednn_gflop_per_s\": {:.1f}, \"ratio_median\": {:.3f}, \"ratio_least\": {:.3f}, \"ratio_most\": "
        "{:.3f}, "
        "\"same_kernel\": {}, \"share_of_tile_ceiling\": {:.4f}}}",
        rows.empty() ? "\n  " : ",\n  ", text(problem.shape), name_of(problem.direction), algorithm.name,
        flops / median(ours) / 1e9, flops / median(theirs) / 1e9, ratio, ratios.front(), ratios.back(),
        is_onednn, bf16 && ceilings.back() > 0 ? flops / median(tiles) : 0);
  }
  fmt::print(
      stderr,
      "GFLOP/s of the direct form, one thread; the interval holds all {} rounds; slower in every round: {}\n",
      options.rounds, slower);
  const std::string totals = text_of(sums, ceilings);
  fmt::print(
      "{{\"model\": \"{}\", \"algorithm\": \"{}\", \"precision\": \"{}\", \"batch\": {}, \"rounds\": {}, \"slower_in_every_round\": "
      "{}, "
      "\"convolutions\": {}, \"products\": [{}]}}\n",
      options.model, options.algorithm, options.precision, options.batch, options.rounds, slower, totals,
      rows);
  return 0;
}
