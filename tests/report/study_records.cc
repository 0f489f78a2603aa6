#include "report/study_records.h"

#include "report/build.h"

namespace paceline::report {

using golden::make_record;
using golden::make_skipped;
using golden::make_training;
using measure::Record;

namespace {

/// Batches on one worker until memory and then data end; the knee is at 64.
void add_sweep(std::vector<Record>& records) {
  const struct {
    std::int64_t batch;
    double rate;
  } points[] = {{16, 70}, {32, 84}, {64, 93.5}, {128, 94.8}, {256, 97.0}};
  for (const auto& [batch, rate] : points) {
    const double step = static_cast<double>(batch) / rate;
    for (int repeat = 0; repeat < 3; ++repeat)
      records.push_back(make_record({.kind = "sweep",
                                     .scaling = "",
                                     .local_batch = batch,
                                     .repeat = repeat,
                                     .forward = 0.32 * step * (1 + 0.004 * repeat),
                                     .backward = 0.66 * step,
                                     .update = 0.01 * step,
                                     .data_wait = 0.004 * step,
                                     .copy = 0.003 * step,
                                     .other = 0.003 * step}));
  }
  records.push_back(make_skipped({.kind = "sweep", .scaling = "", .local_batch = 742},
                                 "the largest batch that memory and data set allow, by the plan; not timed"));
  records.push_back(make_skipped({.kind = "sweep", .scaling = "", .local_batch = 1024},
                                 "does not fit: the plan is 10.12 GB, this process may use 7.60 GB"));
}

void add_scaling(std::vector<Record>& records, const std::string& scaling) {
  for (int repeat = 0; repeat < 3; ++repeat)
    for (const std::int64_t batch : {32, 128})
      for (const int workers : {1, 2, 4}) {
        const std::int64_t local = scaling == "weak" ? batch : batch / workers;
        const double compute = 0.0102 * static_cast<double>(local) + 0.03;
        const bool over = workers == 4;
        const double slow = (over ? 2.1 : workers == 2 ? 1.06 : 1.0) * (1 + 0.003 * repeat);
        const double wire = workers == 1 ? 0 : 0.018 * workers;
        records.push_back(make_record({.scaling = scaling,
                                       .workers = workers,
                                       .local_batch = local,
                                       .repeat = repeat,
                                       .forward = 0.32 * compute * slow,
                                       .backward = 0.66 * compute * slow,
                                       .update = 0.012,
                                       .exposed_transfer = 0.35 * wire,
                                       .exposed_wait = workers == 1 ? 0 : 0.009,
                                       .communication = wire + (workers == 1 ? 0 : 0.012),
                                       .transfer = wire * (1 + 0.02 * repeat),
                                       .oversubscribed = over}));
        golden::add_last_steps(records.back());
      }
}

void add_convergence(std::vector<Record>& records) {
  for (int seed = 0; seed < 2; ++seed) {
    const double luck = 0.002 * seed;
    records.push_back(make_training({.seed = seed, .accuracies = {0.4511, 0.6120, 0.7012 + luck}}));
    records.push_back(make_training({.variant = "large batch",
                                     .workers = 2,
                                     .global_batch = 2048,
                                     .seed = seed,
                                     .accuracies = {0.2034, 0.3302, 0.4318 - luck}}));
    records.push_back(make_training({.variant = "+ linear scaling",
                                     .workers = 2,
                                     .global_batch = 2048,
                                     .seed = seed,
                                     .factor = 16,
                                     .rule = "linear",
                                     .accuracies = {0.1711, 0.4120, 0.5811 + luck}}));
  }
}

}  // namespace

std::vector<Record> study() {
  std::vector<Record> records;
  add_sweep(records);
  add_scaling(records, "weak");
  add_scaling(records, "strong");
  add_convergence(records);
  return records;
}

std::string text_of(const std::vector<Record>& records) { return to_markdown(build(records)); }

}  // namespace paceline::report
