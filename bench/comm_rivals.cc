/// The all-reduce between processes beside its rivals: MPI_Allreduce of the same MPI library and gloo's ring,
/// in one run, taking turns in random order, each result checked.
///
///     mpirun -np P [--bind-to core] comm_rivals FOLDER_OF_THE_MODULES [repeats, default 41] [FILE.json]
///     [block bytes]
///
/// A sample is the slowest process's time after a barrier; of small messages, that of ten calls one after the
/// other, divided by ten, after ten that are not timed. `FILE.json` keeps all samples.

#include <fmt/core.h>
#include <gloo/allreduce.h>
#include <gloo/config.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "comm/make.h"
#include "comm/mpi/load.h"
#include "measure/environment.h"
#include "measure/statistics.h"

namespace {

using namespace paceline;

struct Rival {
  std::string name;
  std::function<void(std::span<float>)> all_reduce;
  std::vector<double> seconds = {};
  bool correct = true;
};

constexpr int kPeriod = 13;

float value_of(std::size_t i, int rank) { return static_cast<float>(static_cast<int>(i % kPeriod) + rank); }

/// A sum over `processes`, summed again by each further call: powers of two of them leave floats exact.
bool holds(std::span<const float> values, int processes, int calls) {
  const double further = std::pow(processes, calls - 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected =
        further * (processes * static_cast<double>(i % kPeriod) + processes * (processes - 1) / 2.0);
    if (std::abs(values[i] - expected) > 1e-6 * expected) return false;
  }
  return true;
}

double time_one(Rival& rival, std::span<float> values, int rank, int processes, int calls) {
  const auto fill = [&] {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_of(i, rank);
  };
  fill();
  // A small message is over before the caches have forgotten who ran before: gloo takes a thousand times as
  // long, and whoever came next would pay for it.
  for (int call = 0; calls > 1 && call < calls; ++call) rival.all_reduce(values);
  fill();
  MPI_Barrier(MPI_COMM_WORLD);
  const auto begin = base::Clock::now();
  for (int call = 0; call < calls; ++call) rival.all_reduce(values);
  double seconds = base::seconds_since(begin) / calls;
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  rival.correct = rival.correct && holds(values, processes, calls);
  return seconds;
}

std::shared_ptr<gloo::rendezvous::Context> join_gloo(int rank, int processes) {
  int number = static_cast<int>(::getpid());
  MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("comm_rivals-{}", number);
  std::filesystem::create_directories(folder);
  gloo::rendezvous::FileStore store(folder);
  gloo::transport::tcp::attr here("127.0.0.1");
  auto device = gloo::transport::tcp::CreateDevice(here);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, processes);
  context->connectFullMesh(store, device);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) std::filesystem::remove_all(folder);
  return context;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2)
    return std::fprintf(stderr, "usage: mpirun -np P comm_rivals FOLDER [repeats] [FILE.json]\n"), 2;
  const int repeats = argc > 2 ? std::max(3, std::atoi(argv[2])) : 41;
  const auto wire = comm::mpi::open_wire({}, argv[1]);
  const int rank = wire->process(), processes = wire->processes();
  const auto say = [](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); };
  comm::ProcessGroupOptions options;
  if (argc > 4) options.block_bytes = static_cast<std::size_t>(std::atoll(argv[4]));
  comm::ProcessGroup staged(*wire, options, say), messages(*wire, {.shared_memory = false}, say);
  auto ours = comm::make_local(1, {.across = &staged}), sent = comm::make_local(1, {.across = &messages});
  const auto context = join_gloo(rank, processes);

  std::vector<Rival> rivals{
      {ours[0]->algorithm(), [&](std::span<float> values) { ours[0]->all_reduce(values)->wait(); }},
      {sent[0]->algorithm(), [&](std::span<float> values) { sent[0]->all_reduce(values)->wait(); }},
      {"MPI_Allreduce",
       [&](std::span<float> values) {
         MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM,
                       MPI_COMM_WORLD);
       }},
      {"gloo ring", [&](std::span<float> values) {
         gloo::AllreduceOptions call(context);
         call.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
         call.setReduceFunction([](void* sum, const void* a, const void* b, std::size_t count) {
           gloo::sum<float>(sum, a, b, count);
         });
         call.setOutput(values.data(), values.size());
         gloo::allreduce(call);
       }}};

  std::string json;
  if (rank == 0) {
    const auto environment = measure::environment();
    fmt::print("{} processes on {}, {} usable cores, load {:.2f}, {}; {} and gloo {}.{}.{}\n", processes,
               environment.cpu, environment.cores, environment.load_before, environment.build,
               wire->library(), GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH);
    fmt::print("microseconds, median of {} and 95 % interval\n\n{:>10}  {:<28} {:>33}  {:>7}  correct\n",
               repeats, "bytes", "", "all-reduce", "GB/s");
    json = fmt::format(
        "{{\"processes\": {}, \"cpu\": \"{}\", \"version\": \"{}\", \"library\": \"{}\", \"created\": "
        "\"{}\", \"rows\": [",
        processes, environment.cpu, environment.version, wire->library(), measure::utc_now());
  }
  bool correct = true, first = true;
  std::vector<std::size_t> order(rivals.size());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 chance(1);  // the same in every process
  for (const std::size_t bytes : {std::size_t{1} << 10, std::size_t{1} << 20, std::size_t{64} << 20}) {
    base::Buffer buffer(bytes);
    const int calls = bytes <= 65536 ? 10 : 1;
    for (auto& rival : rivals) rival.seconds.clear();
    for (int i = 0; i < 3 + repeats; ++i) {
      std::shuffle(order.begin(), order.end(), chance);
      for (const std::size_t turn : order) {
        auto& rival = rivals[turn];
        const double seconds = time_one(rival, buffer.as<float>(), rank, processes, calls);
        if (i >= 3) rival.seconds.push_back(seconds);
      }
    }
    for (const auto& rival : rivals) {
      correct = correct && rival.correct;
      if (rank != 0) continue;
      const auto t = measure::estimate(rival.seconds);
      fmt::print("{:>10}  {:<28} {:>9.1f} [{:>9.1f}, {:>9.1f}]  {:>7.3f}  {}\n", bytes, rival.name,
                 1e6 * t.median, 1e6 * t.low, 1e6 * t.high, static_cast<double>(bytes) / t.median / 1e9,
                 rival.correct ? "yes" : "NO");
      json += fmt::format("{}\n {{\"bytes\": {}, \"rival\": \"{}\", \"correct\": {}, \"seconds\": [",
                          first ? "" : ",", bytes, rival.name, rival.correct);
      for (std::size_t i = 0; i < rival.seconds.size(); ++i)
        json += fmt::format("{}{:.3e}", i == 0 ? "" : ", ", rival.seconds[i]);
      json += "]}";
      first = false;
    }
  }
  if (rank == 0 && argc > 3) base::write_file(argv[3], std::string_view(json + "\n]}\n"));
  return correct ? 0 : 1;
}
