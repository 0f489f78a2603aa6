// Times the loader alone: how many images a second are listed, read, decoded, cropped, flipped and normalised
// into batches, and how much processor time that takes. One JSON line goes out.

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "data/augment.h"
#include "data/dataset.h"
#include "data/loader.h"

namespace {

using namespace paceline;

/// Processor time of all threads of this process: what the images cost where others share the cores.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

int run(const std::string& spec, int batch, int threads, int images) {
  const auto opening = base::Clock::now();
  const auto source = data::open(spec);
  const double open_s = base::seconds_since(opening);
  const data::Augment augment(source.train->format(), {.crop_padding = source.crop_padding,
                                                       .flip = source.flip,
                                                       .mean = source.mean,
                                                       .stddev = source.stddev,
                                                       .crop_area = source.crop_area,
                                                       .jitter = source.jitter});
  data::Loader loader(*source.train, data::Sampler(source.train->size(), 0), augment,
                      {.global_batch = batch, .local_batch = batch, .threads = threads});
  // One batch handed out and the others prepared, at the begin and at the end: what lies between is the work
  // of `batches` batches, no more and no less. The first ones, which touch memory for the first time, are not
  // timed.
  (void)loader.next();
  loader.wait_until_prepared();
  const int batches = std::max(1, images / batch);
  const auto begin = base::Clock::now();
  const double cpu_begin = cpu_seconds();
  for (int i = 0; i < batches; ++i) (void)loader.next();
  loader.wait_until_prepared();
  const double wall_s = base::seconds_since(begin), cpu_s = cpu_seconds() - cpu_begin;
  fmt::print("{{\"images\": {}, \"wall_s\": {:.6f}, \"cpu_s\": {:.6f}, \"open_s\": {:.6f}}}\n",
             batches * batch, wall_s, cpu_s, open_s);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    fmt::print(stderr, "usage: bench_loader SPEC BATCH THREADS IMAGES\n");
    return 2;
  }
  try {
    return run(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]));
  } catch (const base::Error& error) {
    fmt::print(stderr, "bench_loader: {}\n", error.what());
    return static_cast<int>(error.kind());
  }
}
