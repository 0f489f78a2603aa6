// Our side of the parity test: reads a job that parity.py wrote, computes it on one engine, writes what came
// out.
//
//     parity_run JOB_DIRECTORY DEVICE        DEVICE: one of the engines, or reference-double
//
// The directory holds job.txt ("key value" lines) and raw little-endian arrays: weights/<parameter>.f32,
// images_<k>.f32 ([batch][H][W][C]), labels_<k>.i32 for each step k, and shifts_<k>/<parameter>.f32, to be
// added to some parameters before step k (parity.py says why). Results go to <directory>/<device>/:
// gradients/<parameter>.f32 of batch 0, after_one_step/<parameter>.f32, losses.txt (the mean loss of each
// step before its update), and evaluation.txt (loss of the last batch with running statistics at the end).
// "reference-double" is the reference with everything in double, weights and optimizer state too; its arrays
// end in .f64.

#include <fmt/core.h>

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
#include "engine/make.h"
#include "engine/reference/optimizer/update.h"
#include "engine/reference/program.h"
#include "graph/zoo.h"

namespace {

using namespace paceline;
namespace fs = std::filesystem;

using Job = std::map<std::string, std::string>;

Job read_job(const fs::path& path) {
  std::istringstream lines(base::read_file(path));
  Job job;
  for (std::string key, value; lines >> key >> value;) job[key] = value;
  return job;
}

template <typename T>
std::vector<T> read_array(const fs::path& path, std::int64_t elements) {
  const std::string bytes = base::read_file(path);
  if (bytes.size() != static_cast<std::size_t>(elements) * sizeof(T))
    base::fail(base::ErrorKind::data, "{}: it must hold {} elements of {} bytes, but has {} bytes",
               path.string(), elements, sizeof(T), bytes.size());
  std::vector<T> values(static_cast<std::size_t>(elements));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// The graph with every dropout's probability set: parity compares what is no matter of chance.
graph::Graph with_dropout(graph::Graph graph, double probability) {
  for (graph::Node& node : graph.nodes)
    if (auto* dropout = std::get_if<graph::Dropout>(&node.op)) dropout->probability = probability;
  return graph;
}

/// An engine of the product, as the test drives it.
class Fp32 {
 public:
  using Number = float;
  static constexpr const char* kEnding = ".f32";

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
  double evaluate(std::span<const float> images, std::span<const std::int32_t> labels, int batch) {
    return engine_->evaluate(images, labels, batch).loss;
  }

 private:
  std::unique_ptr<engine::Engine> engine_;
  std::vector<float> gradients_;  ///< on the host
};

/// The reference's network and update rule with double for every number between and in the steps.
class Fp64 {
 public:
  using Number = double;
  static constexpr const char* kEnding = ".f64";

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
  double evaluate(std::span<const float> images, std::span<const std::int32_t> labels, int batch) {
    program_.evaluate(images, labels, batch, 1, weights_);
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

/// Adds what `directory` has to `weights`; a parameter may be absent when `all` is false.
template <typename Side>
void add_arrays(Side& side, const graph::Graph& graph, const fs::path& directory, bool all) {
  if (!all && !fs::exists(directory)) return;
  const auto weights = side.weights();  // fetched, also where no file changes them
  for (const graph::Slot& slot : side.layout().slots) {
    const fs::path file = directory / (name_of(graph, slot) + ".f32");
    if (!all && !fs::exists(file)) continue;
    const auto values = read_array<float>(file, slot.elements);
    for (std::int64_t i = 0; i < slot.elements; ++i)
      weights[static_cast<std::size_t>(slot.offset + i)] += values[static_cast<std::size_t>(i)];
  }
  side.weights_changed();
}

template <typename Side, typename Number>
void save_flat(const Side& side, const graph::Graph& graph, std::span<const Number> flat,
               const fs::path& directory) {
  for (const graph::Slot& slot : side.layout().slots) {
    const auto part =
        flat.subspan(static_cast<std::size_t>(slot.offset), static_cast<std::size_t>(slot.elements));
    const auto bytes = std::as_bytes(part);
    base::write_file(directory / (name_of(graph, slot) + Side::kEnding),
                     std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
}

template <typename Side>
void run(const fs::path& directory, const std::string& device) {
  using Number = typename Side::Number;
  const Job job = read_job(directory / "job.txt");
  const auto whole = [&](const char* key) { return std::stoi(job.at(key)); };
  const auto real = [&](const char* key) { return std::stod(job.at(key)); };
  const int batch = whole("batch");
  const graph::Shape shape{whole("channels"), whole("height"), whole("width")};
  const graph::Graph graph =
      with_dropout(graph::make_model(job.at("model"), shape, whole("classes"), real("label_smoothing")), 0);
  const engine::UpdateRule rule{
      .momentum = real("momentum"), .nesterov = whole("nesterov") != 0, .weight_decay = real("weight_decay")};
  Side side(device, graph, {.batch = batch, .threads = whole("threads"), .rule = rule});
  std::ranges::fill(side.weights(), Number{0});
  add_arrays(side, graph, directory / "weights", true);

  const fs::path out = directory / device;
  std::vector<float> images;
  std::vector<std::int32_t> labels;
  std::string losses;
  for (int step = 0; step < whole("steps"); ++step) {
    images = read_array<float>(directory / fmt::format("images_{}.f32", step), batch * shape.elements());
    labels = read_array<std::int32_t>(directory / fmt::format("labels_{}.i32", step), batch);
    add_arrays(side, graph, directory / fmt::format("shifts_{}", step), false);
    const double loss = side.forward({.images = images,
                                      .labels = labels,
                                      .gradient_scale = 1.0 / batch,
                                      .step = static_cast<std::uint64_t>(step)});
    losses += fmt::format("{:.17g}\n", loss / batch);
    side.backward();
    if (step == 0) save_flat(side, graph, side.gradients(), out / "gradients");
    side.update(rule, real("lr"), step + 1);
    if (step == 0) save_flat(side, graph, std::span<const Number>(side.weights()), out / "after_one_step");
  }
  base::write_file(out / "losses.txt", losses);
  base::write_file(out / "evaluation.txt",
                   fmt::format("{:.17g}\n", side.evaluate(images, labels, batch) / batch));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: parity_run JOB_DIRECTORY DEVICE\n");
    return 2;
  }
  try {
    const std::string device = argv[2];
    if (device == "reference-double")
      run<Fp64>(argv[1], device);
    else
      run<Fp32>(argv[1], device);
  } catch (const std::exception& error) {
    fmt::print(stderr, "parity_run: {}\n", error.what());
    return 1;
  }
}
