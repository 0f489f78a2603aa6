#include "train/prepare/kernels.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "train/checkpoint/checkpoint.h"

namespace paceline::train {
namespace {

/// The kernel algorithms kept in a record or in a checkpoint.
engine::KernelAlgorithms kept_in(const std::filesystem::path& file) {
  engine::KernelAlgorithms found;
  if (file.extension() == ".json") {
    const auto record = measure::read_record(file);
    if (record.kernels) found = record.kernels->algorithms;
  } else {
    found = read_checkpoint_info(file).algorithms;
  }
  if (found.empty())
    base::fail(
        base::ErrorKind::data,
        "--kernels-from {}: it records no kernels: an older version wrote it, or its device has no choice "
        "of them; leave the option out",
        file.string());
  return found;
}

}  // namespace

engine::KernelRequest kernel_request(const Options& options, const engine::KernelAlgorithms& earlier) {
  if (!options.kernels_from.empty()) return {.given = kept_in(options.kernels_from), .insists = true};
  return {.is_measured = options.measured_kernels && options.shard == 0, .given = earlier};
}

engine::PreparedKernels choose_kernels(const Options& options, const Resolved& resolved,
                                       const RunParts& parts,
                                       const std::optional<graph::Graph>& evaluation_graph,
                                       const engine::KernelAlgorithms& earlier) {
  const Backend& backend = parts.backend;
  auto kernels = backend.machine->prepare(parts.graph, planning_options(options, resolved, backend),
                                          kernel_request(options, earlier));
  if (!evaluation_graph || options.window_steps != 0 || kernels.algorithms == nullptr) return kernels;
  const auto evaluation = backend.machine->prepare(
      *evaluation_graph, evaluation_compile_options(options, resolved, backend, 0), {});
  if (evaluation.algorithms == nullptr) return kernels;
  auto all = *kernels.algorithms;
  all.insert(evaluation.algorithms->begin(), evaluation.algorithms->end());
  kernels.algorithms = std::make_shared<const engine::KernelAlgorithms>(std::move(all));
  if (!evaluation.passed_over.empty())
    kernels.note += fmt::format("{}evaluation: {}", kernels.note.empty() ? "" : "; ", evaluation.note);
  return kernels;
}

}  // namespace paceline::train
