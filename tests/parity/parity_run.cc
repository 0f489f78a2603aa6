// Our side of the parity test: makes the inputs of a job of parity.py, computes it on one engine, writes what
// came out.
//
//     parity_run JOB_DIRECTORY DEVICE        DEVICE: one of the engines, or reference-double
//     parity_run inputs JOB_DIRECTORY        the same inputs as files, for PyTorch
//     parity_run digest DIRECTORY            prints what tensors of PyTorch are compared by
//
// The directory holds job.txt ("key value" lines). Beside the settings they are redraws_<k> (how often each
// image of step k was drawn again) and shift_<k>_<parameter> (how often kShift is added to each of its
// elements before step k; parity.py says why). Results go to <directory>/<device>/: digest.txt, a line
// "gradients NAME ELEMENTS NORM PROJECTIONS.." for each parameter's gradient of batch 0 and a line
// "statistics .." for each running statistic after one step; losses.txt (the mean loss of each step before
// its update), evaluation.txt and logits.txt (of the last batch with running statistics at the end). Inputs
// go to <directory>/weights/<parameter>.f32, images_<k>.f32 ([batch][H][W][C]) and labels_<k>.i32, as raw
// little-endian arrays; digest reads <directory>/<name>.f64.
// "reference-double" is the reference with everything in double, weights and optimizer state too.

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "engine/make.h"
#include "engine/reference/engine.h"
#include "engine/reference/program.h"
#include "graph/rates.h"
#include "graph/zoo.h"
#include "parity/inputs.h"

namespace {

using namespace paceline;
using namespace paceline::parity;
namespace fs = std::filesystem;

using Job = std::map<std::string, std::string>;

Job read_job(const fs::path& path) {
  std::istringstream lines(base::read_file(path));
  Job job;
  for (std::string key, value; lines >> key >> value;) job[key] = value;
  return job;
}

/// "0,2,1" as numbers; none where the job does not have the key.
std::vector<int> counts_of(const Job& job, const std::string& key, std::int64_t count) {
  const auto found = job.find(key);
  if (found == job.end()) return {};
  std::vector<int> counts;
  std::istringstream words(found->second);
  for (std::string word; std::getline(words, word, ',');) counts.push_back(std::stoi(word));
  if (counts.size() != static_cast<std::size_t>(count))
    base::fail(base::ErrorKind::data, "job.txt: {} must have {} numbers, but has {}", key, count,
               counts.size());
  return counts;
}

/// The graph without dropout and stochastic depth: parity compares what is no matter of chance.
graph::Graph without_chance(graph::Graph graph) {
  for (graph::Node& node : graph.nodes) {
    if (auto* dropout = std::get_if<graph::Dropout>(&node.op)) dropout->probability = 0;
    if (auto* depth = std::get_if<graph::StochasticDepth>(&node.op)) depth->probability = 0;
  }
  return graph;
}

/// An engine of the product, as the test drives it.
class Fp32 {
 public:
  using Number = float;

  Fp32(const std::string& device, const graph::Graph& graph, const engine::CompileOptions& options)
      : engine_(engine::compile(device, graph, options)) {}
  [[nodiscard]] const graph::Layout& layout() const { return engine_->layout(); }
  std::span<float> weights() {
    engine_->fetch();
    return engine_->weights();
  }
  std::span<const float> gradients() {
    const base::Array gradients = engine_->gradients();
    gradients_.resize(gradients.size);
    gradients.memory->read(gradients, gradients_);
    return gradients_;
  }
  void weights_changed() { engine_->weights_changed(); }
  double forward(const engine::StepInput& input) { return engine_->forward(input).loss; }
  void backward() { engine_->backward({}); }
  void update(const engine::UpdateRule& rule, double lr, int update) { engine_->update(rule, lr, update); }
  double evaluate(const Batch& batch, std::span<double> logits) {
    return engine_->evaluate(batch.images, batch.labels, static_cast<int>(batch.labels.size()), 1, logits)
        .loss;
  }

 private:
  std::unique_ptr<engine::Engine> engine_;
  std::vector<float> gradients_;  ///< on the host
};

/// The reference's network and update rule with double for every number between and in the steps.
class Fp64 {
 public:
  using Number = double;

  Fp64(const std::string&, const graph::Graph& graph, const engine::CompileOptions& options)
      : graph_(graph), layout_(graph::flat_layout(graph_)), program_(graph_, layout_, options) {
    const auto elements = static_cast<std::size_t>(layout_.elements);
    weights_.resize(elements);
    gradients_.resize(elements);
    state_.assign(static_cast<std::size_t>(engine::state_slots(options.rule)), std::vector<double>(elements));
  }
  [[nodiscard]] const graph::Layout& layout() const { return layout_; }
  std::span<double> weights() { return weights_; }
  std::span<const double> gradients() { return gradients_; }
  void weights_changed() {}
  double forward(const engine::StepInput& input) {
    program_.forward(input, weights_);
    return program_.exact_loss();
  }
  void backward() { program_.backward(weights_, gradients_, {}); }
  void update(const engine::UpdateRule& rule, double lr, int update) {
    const std::vector<std::span<double>> state(state_.begin(), state_.end());
    engine::reference::apply_update<double>(graph_, layout_, rule, lr, update, weights_, gradients_, state);
  }
  double evaluate(const Batch& batch, std::span<double> logits) {
    program_.evaluate(batch.images, batch.labels, static_cast<int>(batch.labels.size()), 1, weights_, logits);
    return program_.exact_loss();
  }

 private:
  const graph::Graph graph_;
  const graph::Layout layout_;
  std::vector<double> weights_, gradients_;
  std::vector<std::vector<double>> state_;
  engine::reference::Program<double> program_;
};

const std::string& name_of(const graph::Graph& graph, const graph::Slot& slot) {
  return graph.parameters[static_cast<std::size_t>(slot.parameter)].name;
}

constexpr double kShift = 1e-3;

template <typename Side>
void initialise(Side& side, const graph::Graph& graph, std::uint64_t seed) {
  std::ranges::fill(side.weights(), typename Side::Number{0});
  for (const graph::Slot& slot : side.layout().slots)
    std::ranges::copy(initial_values(graph, slot.parameter, seed),
                      side.weights().begin() + static_cast<std::ptrdiff_t>(slot.offset));
  side.weights_changed();
}

template <typename Side>
void shift(Side& side, const graph::Graph& graph, const Job& job, int step) {
  const auto weights = side.weights();  // fetched, also where nothing changes them
  for (const graph::Slot& slot : side.layout().slots) {
    const auto counts = counts_of(job, fmt::format("shift_{}_{}", step, name_of(graph, slot)), slot.elements);
    for (std::size_t i = 0; i < counts.size(); ++i)
      weights[static_cast<std::size_t>(slot.offset) + i] +=
          static_cast<typename Side::Number>(counts[i] * kShift);
  }
  side.weights_changed();
}

template <typename Number>
std::string line_of(const std::string& name, std::span<const Number> values) {
  const Digest digest = digest_of(values.data(), static_cast<std::int64_t>(values.size()));
  return fmt::format("{} {} {:.13g} {:.13g}\n", name, values.size(), digest.norm,
                     fmt::join(digest.projections, " "));
}

/// The lines of the parameters for which `wanted` is true.
template <typename Number>
std::string lines_of(const std::string& what, const graph::Graph& graph, const graph::Layout& layout,
                     std::span<const Number> flat, bool (*wanted)(const graph::Parameter&)) {
  std::string lines;
  for (const graph::Slot& slot : layout.slots)
    if (wanted(graph.parameters[static_cast<std::size_t>(slot.parameter)]))
      lines += what + " " +
               line_of(name_of(graph, slot), flat.subspan(static_cast<std::size_t>(slot.offset),
                                                          static_cast<std::size_t>(slot.elements)));
  return lines;
}

struct Settings {
  Job job;
  int batch, steps, classes;
  std::uint64_t seed;
  graph::Shape shape;
  graph::Graph graph;

  explicit Settings(const fs::path& directory)
      : job(read_job(directory / "job.txt")),
        batch(whole("batch")),
        steps(whole("steps")),
        classes(whole("classes")),
        seed(static_cast<std::uint64_t>(whole("seed"))),
        shape{whole("channels"), whole("height"), whole("width")},
        graph(without_chance(graph::make_model(job.at("model"), shape, classes, real("label_smoothing")))) {
    if (job.contains("freeze")) graph::set_rates(graph, graph::frozen_rules(job.at("freeze")));
    if (!job.contains("class_weights")) return;
    std::vector<double> weights;
    for (const auto& weight : base::parts(job.at("class_weights"))) weights.push_back(std::stod(weight));
    graph::set_class_weights(graph, std::move(weights));
  }
  [[nodiscard]] int whole(const char* key) const { return std::stoi(job.at(key)); }
  [[nodiscard]] double real(const char* key) const { return std::stod(job.at(key)); }
  [[nodiscard]] Batch batch_at(int step) const {
    auto redraws = counts_of(job, fmt::format("redraws_{}", step), batch);
    redraws.resize(static_cast<std::size_t>(batch));
    return batch_of(shape, classes, step, redraws, seed);
  }
};

template <typename Side>
void run(const fs::path& directory, const std::string& device) {
  using Number = typename Side::Number;
  const Settings of(directory);
  const engine::UpdateRule rule{
      .kind = of.job.contains("lamb") ? engine::UpdateKind::lamb : engine::UpdateKind::sgd,
      .momentum = of.real("momentum"),
      .nesterov = of.whole("nesterov") != 0,
      .weight_decay = of.real("weight_decay"),
      .clip_norm = of.job.contains("clip_norm") ? of.real("clip_norm") : 0};
  Side side(device, of.graph, {.batch = of.batch, .threads = of.whole("threads"), .rule = rule});
  initialise(side, of.graph, of.seed);
  Batch batch;
  std::string losses, digest;
  for (int step = 0; step < of.steps; ++step) {
    batch = of.batch_at(step);
    shift(side, of.graph, of.job, step);
    const double loss = side.forward({.images = batch.images,
                                      .labels = batch.labels,
                                      .gradient_scale = 1.0 / of.batch,
                                      .step = static_cast<std::uint64_t>(step)});
    losses += fmt::format("{:.17g}\n", loss / of.batch);
    side.backward();
    if (step == 0)
      digest +=
          lines_of("gradients", of.graph, side.layout(), side.gradients(),
                   [](const graph::Parameter& p) { return graph::is_trainable(p.role) && !p.is_frozen(); });
    side.update(rule, of.real("lr"), step + 1);
    if (step == 0)
      digest += lines_of("statistics", of.graph, side.layout(), std::span<const Number>(side.weights()),
                         [](const graph::Parameter& p) { return !graph::is_trainable(p.role); });
  }
  const fs::path out = directory / device;
  base::write_file(out / "digest.txt", digest);
  base::write_file(out / "losses.txt", losses);
  std::vector<double> logits(static_cast<std::size_t>(of.batch * of.classes));
  base::write_file(out / "evaluation.txt", fmt::format("{:.17g}\n", side.evaluate(batch, logits) / of.batch));
  base::write_file(out / "logits.txt", fmt::format("{:.9g}\n", fmt::join(logits, " ")));
}

template <typename T>
void write_array(const fs::path& path, const std::vector<T>& values) {
  base::write_file(path,
                   std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)));
}

void write_inputs(const fs::path& directory) {
  const Settings of(directory);
  for (std::size_t i = 0; i < of.graph.parameters.size(); ++i)
    write_array(directory / "weights" / (of.graph.parameters[i].name + ".f32"),
                initial_values(of.graph, static_cast<int>(i), of.seed));
  for (int step = 0; step < of.steps; ++step) {
    const Batch batch = of.batch_at(step);
    write_array(directory / fmt::format("images_{}.f32", step), batch.images);
    write_array(directory / fmt::format("labels_{}.i32", step), batch.labels);
  }
}

void print_digest(const fs::path& directory) {
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() != ".f64") continue;
    const std::string bytes = base::read_file(entry.path());
    std::vector<double> values(bytes.size() / sizeof(double));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(double));
    fmt::print("{}", line_of(entry.path().stem().string(), std::span<const double>(values)));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: parity_run JOB_DIRECTORY DEVICE | inputs JOB_DIRECTORY | digest DIRECTORY\n");
    return 2;
  }
  try {
    const std::string first = argv[1], second = argv[2];
    if (first == "inputs")
      write_inputs(second);
    else if (first == "digest")
      print_digest(second);
    else if (second == "reference-double")
      run<Fp64>(first, second);
    else
      run<Fp32>(first, second);
  } catch (const std::exception& error) {
    fmt::print(stderr, "parity_run: {}\n", error.what());
    return 1;
  }
}
