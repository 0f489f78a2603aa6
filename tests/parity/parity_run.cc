// Our side of the parity test: reads a job that parity.py wrote, computes it on one engine, writes what came
// out.
//
//     parity_run JOB_DIRECTORY DEVICE
//
// The directory holds job.txt ("key value" lines) and raw little-endian arrays: weights/<parameter>.f32,
// images_<k>.f32 ([batch][H][W][C]), labels_<k>.i32 for each step k, and shifts_<k>/<parameter>.f32, to be
// added to some parameters before step k (parity.py says why). Results go to <directory>/<device>/:
// gradients/<parameter>.f32 of batch 0, after_one_step/<parameter>.f32, losses.txt (the mean loss of each
// step before its update), and evaluation.txt (loss of the last batch with running statistics at the end).

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "engine/make.h"
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

void load_weights(engine::Engine& engine, const fs::path& directory) {
  for (const graph::Slot& slot : engine.layout().slots) {
    const auto& parameter = engine.graph().parameters[static_cast<std::size_t>(slot.parameter)];
    const auto values = read_array<float>(directory / (parameter.name + ".f32"), slot.elements);
    std::ranges::copy(values, engine.weights().begin() + slot.offset);
  }
  engine.weights_changed();
}

/// Adds what `directory` has; most parameters have nothing there.
void add_shifts(engine::Engine& engine, const fs::path& directory) {
  if (!fs::exists(directory)) return;
  for (const graph::Slot& slot : engine.layout().slots) {
    const auto& parameter = engine.graph().parameters[static_cast<std::size_t>(slot.parameter)];
    const fs::path file = directory / (parameter.name + ".f32");
    if (!fs::exists(file)) continue;
    const auto shift = read_array<float>(file, slot.elements);
    for (std::int64_t i = 0; i < slot.elements; ++i)
      engine.weights()[static_cast<std::size_t>(slot.offset + i)] += shift[static_cast<std::size_t>(i)];
  }
  engine.weights_changed();
}

void save_flat(const engine::Engine& engine, std::span<const float> flat, const fs::path& directory) {
  for (const graph::Slot& slot : engine.layout().slots) {
    const auto& parameter = engine.graph().parameters[static_cast<std::size_t>(slot.parameter)];
    const auto part =
        flat.subspan(static_cast<std::size_t>(slot.offset), static_cast<std::size_t>(slot.elements));
    const auto bytes = std::as_bytes(part);
    base::write_file(directory / (parameter.name + ".f32"),
                     std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
}

void run(const fs::path& directory, const std::string& device) {
  const Job job = read_job(directory / "job.txt");
  const auto whole = [&](const char* key) { return std::stoi(job.at(key)); };
  const auto real = [&](const char* key) { return std::stod(job.at(key)); };
  const int batch = whole("batch");
  const graph::Shape shape{whole("channels"), whole("height"), whole("width")};
  const graph::Graph graph =
      with_dropout(graph::make_model(job.at("model"), shape, whole("classes"), real("label_smoothing")), 0);
  const engine::UpdateRule rule{
      .momentum = real("momentum"), .nesterov = whole("nesterov") != 0, .weight_decay = real("weight_decay")};
  const auto engine =
      engine::compile(device, graph, {.batch = batch, .threads = whole("threads"), .rule = rule});
  load_weights(*engine, directory / "weights");

  const fs::path out = directory / device;
  std::vector<float> images;
  std::vector<std::int32_t> labels;
  std::string losses;
  for (int step = 0; step < whole("steps"); ++step) {
    images = read_array<float>(directory / fmt::format("images_{}.f32", step), batch * shape.elements());
    labels = read_array<std::int32_t>(directory / fmt::format("labels_{}.i32", step), batch);
    add_shifts(*engine, directory / fmt::format("shifts_{}", step));
    const auto sums = engine->forward({.images = images,
                                       .labels = labels,
                                       .gradient_scale = 1.0 / batch,
                                       .step = static_cast<std::uint64_t>(step)});
    losses += fmt::format("{:.17g}\n", sums.loss / batch);
    engine->backward({});
    if (step == 0) save_flat(*engine, engine->gradients(), out / "gradients");
    engine->update(rule, real("lr"), step + 1);
    if (step == 0) save_flat(*engine, engine->weights(), out / "after_one_step");
  }
  base::write_file(out / "losses.txt", losses);
  const auto sums = engine->evaluate(images, labels, batch);
  base::write_file(out / "evaluation.txt", fmt::format("{:.17g}\n", sums.loss / batch));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: parity_run JOB_DIRECTORY DEVICE\n");
    return 2;
  }
  try {
    run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "parity_run: {}\n", error.what());
    return 1;
  }
}
