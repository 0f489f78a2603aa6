#pragma once

/// What each cell of a real quick study took, in its order: two cores that other programs used now and then,
/// bf16 emulated, kernels not yet measured (so the first cells are slow).

#include <string>
#include <vector>

#include "measure/record.h"
#include "study/study.h"

namespace paceline::cli {

struct RecordedCell {
  study::PlannedCell planned;
  measure::Record record;
  double seconds = 0;  ///< of the whole cell
};

/// Of a training `name` is the variant and `steps` its updates.
struct RecordedRow {
  const char* kind;
  const char* name;
  int workers, threads;
  std::int64_t local_batch, steps;
  double step_ms, seconds;
};

inline constexpr RecordedRow kRecorded[] = {
    {"sweep", "", 1, 2, 8, 5, 2.866, 0.3},
    {"sweep", "", 1, 2, 16, 5, 10.37, 0.597},
    {"sweep", "", 1, 2, 32, 5, 19.92, 1.095},
    {"sweep", "", 1, 2, 64, 5, 37.15, 2.238},
    {"sweep", "", 1, 2, 128, 5, 90.37, 3.475},
    {"sweep", "", 1, 2, 256, 5, 104, 4.552},
    {"sweep", "", 1, 2, 512, 5, 260.8, 5.936},
    {"sweep", "", 1, 2, 8, 5, 7.669, 0.37},
    {"sweep", "", 1, 2, 16, 5, 11.43, 0.273},
    {"sweep", "", 1, 2, 32, 5, 13.78, 0.265},
    {"sweep", "", 1, 2, 64, 5, 35.93, 0.385},
    {"sweep", "", 1, 2, 128, 5, 88.2, 0.743},
    {"sweep", "", 1, 2, 256, 5, 127.7, 1.205},
    {"sweep", "", 1, 2, 512, 5, 253.6, 1.949},
    {"sweep", "", 1, 2, 8, 5, 3.059, 0.113},
    {"sweep", "", 1, 2, 16, 5, 9.018, 0.312},
    {"sweep", "", 1, 2, 32, 5, 30.35, 0.516},
    {"sweep", "", 1, 2, 64, 5, 35.93, 0.659},
    {"sweep", "", 1, 2, 128, 5, 59.05, 0.643},
    {"sweep", "", 1, 2, 256, 5, 215.4, 1.694},
    {"sweep", "", 1, 2, 512, 5, 270.5, 2.348},
    {"scale", "weak", 1, 1, 32, 5, 23.31, 0.34},
    {"scale", "weak", 2, 1, 32, 5, 31.93, 0.492},
    {"scale", "weak", 4, 1, 32, 5, 43.11, 0.598},
    {"scale", "weak", 1, 1, 128, 5, 72.43, 0.873},
    {"scale", "weak", 2, 1, 128, 5, 266.3, 2.428},
    {"scale", "weak", 4, 1, 128, 5, 268.6, 2.663},
    {"scale", "weak", 1, 1, 512, 5, 514, 3.665},
    {"scale", "weak", 2, 1, 512, 5, 719.5, 5.461},
    {"scale", "weak", 4, 1, 512, 5, 874.7, 6.915},
    {"scale", "strong", 1, 1, 32, 5, 30.84, 0.445},
    {"scale", "strong", 2, 1, 16, 5, 20.77, 0.568},
    {"scale", "strong", 4, 1, 8, 5, 20.07, 0.485},
    {"scale", "strong", 1, 1, 128, 5, 150, 1.203},
    {"scale", "strong", 2, 1, 64, 5, 84.09, 0.811},
    {"scale", "strong", 4, 1, 32, 5, 76.28, 0.781},
    {"scale", "strong", 1, 1, 512, 5, 719.9, 5.698},
    {"scale", "strong", 2, 1, 256, 5, 287.9, 2.466},
    {"scale", "strong", 4, 1, 128, 5, 214.4, 2.06},
    {"scale", "weak", 1, 1, 32, 5, 25.98, 0.323},
    {"scale", "weak", 2, 1, 32, 5, 52.62, 0.821},
    {"scale", "weak", 4, 1, 32, 5, 69.65, 0.804},
    {"scale", "weak", 1, 1, 128, 5, 155.8, 1.577},
    {"scale", "weak", 2, 1, 128, 5, 165, 1.423},
    {"scale", "weak", 4, 1, 128, 5, 259.6, 2.159},
    {"scale", "weak", 1, 1, 512, 5, 479, 4.137},
    {"scale", "weak", 2, 1, 512, 5, 552.2, 4.188},
    {"scale", "weak", 4, 1, 512, 5, 620.6, 5.276},
    {"scale", "strong", 1, 1, 32, 5, 43.18, 0.602},
    {"scale", "strong", 2, 1, 16, 5, 19.7, 0.466},
    {"scale", "strong", 4, 1, 8, 5, 17.47, 0.505},
    {"scale", "strong", 1, 1, 128, 5, 85.24, 0.834},
    {"scale", "strong", 2, 1, 64, 5, 108, 1.264},
    {"scale", "strong", 4, 1, 32, 5, 55.35, 0.855},
    {"scale", "strong", 1, 1, 512, 5, 435.8, 4.413},
    {"scale", "strong", 2, 1, 256, 5, 225.1, 1.86},
    {"scale", "strong", 4, 1, 128, 5, 150.9, 1.273},
    {"scale", "weak", 1, 1, 32, 5, 20.73, 0.299},
    {"scale", "weak", 2, 1, 32, 5, 28.13, 0.429},
    {"scale", "weak", 4, 1, 32, 5, 41.81, 0.572},
    {"scale", "weak", 1, 1, 128, 5, 74.84, 0.752},
    {"scale", "weak", 2, 1, 128, 5, 112.1, 1.022},
    {"scale", "weak", 4, 1, 128, 5, 191.9, 1.85},
    {"scale", "weak", 1, 1, 512, 5, 352.1, 2.596},
    {"scale", "weak", 2, 1, 512, 5, 439.7, 3.876},
    {"scale", "weak", 4, 1, 512, 5, 685.8, 5.504},
    {"scale", "strong", 1, 1, 32, 5, 23.24, 0.297},
    {"scale", "strong", 2, 1, 16, 5, 17.14, 0.459},
    {"scale", "strong", 4, 1, 8, 5, 13.34, 0.4},
    {"scale", "strong", 1, 1, 128, 5, 84.81, 0.835},
    {"scale", "strong", 2, 1, 64, 5, 83.87, 1.11},
    {"scale", "strong", 4, 1, 32, 5, 36.87, 0.584},
    {"scale", "strong", 1, 1, 512, 5, 336.8, 2.871},
    {"scale", "strong", 2, 1, 256, 5, 211.9, 1.729},
    {"scale", "strong", 4, 1, 128, 5, 143.5, 1.299},
    {"converge", "baseline", 1, 2, 64, 480, 47.88, 25.8},
    {"converge", "large-batch", 2, 1, 256, 60, 250.2, 17.23},
    {"converge", "linear-scaling", 2, 1, 256, 60, 238.1, 17.26},
    {"converge", "linear-warm-up", 2, 1, 256, 60, 226.9, 15.96},
    {"converge", "sqrt-warm-up-lars", 2, 1, 256, 60, 276, 18.86},
    {"converge", "linear-warm-up-sync-bn", 2, 1, 256, 60, 266.9, 18.9},
};

inline std::vector<RecordedCell> recorded_study() {
  constexpr std::int64_t kTrainSamples = 10240, kTestSamples = 2000;
  std::vector<RecordedCell> cells;
  for (const RecordedRow& row : kRecorded) {
    RecordedCell& cell = cells.emplace_back();
    const bool is_training = std::string(row.kind) == "converge";
    cell.seconds = row.seconds;
    cell.planned.kind = row.kind;
    (is_training ? cell.planned.variant : cell.planned.scaling) = row.name;
    auto& options = cell.planned.options;
    options.workers = row.workers;
    options.threads = row.threads;
    options.local_batch = row.local_batch;
    if (is_training) {
      cell.planned.training = row.name;
      options.epochs = 3;
    } else {
      options.window_steps = 5;
      options.warmup_steps = 1;
      options.window_seconds = 3;
    }
    auto& record = cell.record;
    record.status = "complete";
    record.data.train_samples = kTrainSamples;
    record.data.test_samples = kTestSamples;
    record.window.warmup_steps = 1;
    record.window.steps = row.steps;
    record.ranks.push_back(
        {.step_s = std::vector<double>(static_cast<std::size_t>(row.steps), 1e-3 * row.step_ms)});
    if (is_training) record.epochs.push_back({.epoch = 3, .updates = row.steps});
  }
  return cells;
}

}  // namespace paceline::cli
