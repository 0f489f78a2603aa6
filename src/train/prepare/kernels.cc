#include "train/prepare/kernels.h"

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

measure::KernelsRecord describe(const engine::PreparedKernels& kernels) {
  return {.chosen_by = kernels.chosen_by, .algorithms = *kernels.algorithms};
}

}  // namespace paceline::train
