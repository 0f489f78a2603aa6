#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>
#include <thread>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "base/text.h"
#include "base/topology.h"
#include "cli/commands/commands.h"
#include "cli/quiet_moment.h"
#include "cli/screen/screen.h"
#include "cluster/gpu_table.h"
#include "cluster/launch_report.h"
#include "cluster/make_backend.h"
#include "cluster/session.h"
#include "comm/make.h"
#include "comm/nccl/api.h"
#include "comm/probe.h"
#include "engine/cuda/nvml/facts.h"
#include "engine/make.h"
#include "graph/initialise.h"
#include "measure/environment.h"
#include "measure/statistics.h"
#include "train/given/names.h"
#include "train/record/run_record.h"
#include "train/run_ranks.h"

namespace paceline::cli {
namespace {

template <typename... Args>
void doctor_row(std::ostream& out, std::string_view name, fmt::format_string<Args...> format,
                Args&&... args) {
  out << fmt::format("  {:<13} ", name) << fmt::format(format, std::forward<Args>(args)...) << '\n';
}

std::string dnnl_isa() {
  using enum dnnl::cpu_isa;
  constexpr std::pair<dnnl::cpu_isa, const char*> kNames[]{{sse41, "sse41"},
                                                           {avx, "avx"},
                                                           {avx2, "avx2"},
                                                           {avx2_vnni, "avx2_vnni"},
                                                           {avx512_core, "avx512_core"},
                                                           {avx512_core_vnni, "avx512_core_vnni"},
                                                           {avx512_core_bf16, "avx512_core_bf16"},
                                                           {avx512_core_amx, "avx512_core_amx"}};
  for (const auto& [isa, name] : kNames)
    if (isa == dnnl::get_effective_cpu_isa()) return name;
  return "another instruction set";
}

void show_machine(const measure::Environment& environment, const base::Topology& topology,
                  std::ostream& out) {
  std::set<int> packages, nodes;
  for (const auto& core : topology.cores) {
    packages.insert(core.package);
    nodes.insert(core.numa);
  }
  out << "machine\n";
  doctor_row(out, "host", "{}", environment.host);
  doctor_row(out, "system", "{}", environment.os);
  doctor_row(out, "processor", "{}", environment.cpu);
  doctor_row(out, "cores", "{} usable of {} in the machine: {} physical, {}, {}", topology.usable(),
             ::sysconf(_SC_NPROCESSORS_ONLN), topology.physical_cores(),
             base::counted(packages.size(), "package"), base::counted(nodes.size(), "memory node"));
  if (topology.quota > 0)
    doctor_row(out, "", "the cgroup allows the computing time of {:.3g} cores", topology.quota);
  doctor_row(out, "instructions", "{}",
             environment.instructions.empty() ? "none of those that matter here"
                                              : fmt::format("{}", fmt::join(environment.instructions, " ")));
  const auto cgroup = base::cgroup_limits();
  doctor_row(out, "memory", "{:.1f} GB, {:.1f} GB available{}", base::gigabytes(environment.memory_bytes),
             base::gigabytes(measure::available_memory_bytes()),
             cgroup.memory_bytes ? " (limited by the cgroup)" : "");
  std::error_code absent;
  const auto shared = std::filesystem::space("/dev/shm", absent);
  doctor_row(out, "shared memory", "{}",
             absent ? "there is no /dev/shm" : text_about_shared_memory(shared.capacity, shared.available));
  constexpr double kLook_s = 1;
  doctor_row(out, "load", "{:.2f} (1 minute); {}", environment.load_before,
             text_about_timings(measure::load_now(kLook_s), environment.cores));
}

void show_build(const measure::Environment& environment, const std::string& device, std::ostream& out) {
  out << "\nbuild\n";
  doctor_row(out, "paceline", "{}", environment.version);
  doctor_row(out, "compiler", "{}, {}{}", environment.compiler, environment.build,
             environment.build == "Release" ? "" : "; not a Release build: its timings mean nothing");
  doctor_row(out, "libraries", "{}", fmt::join(environment.libraries, ", "));
  doctor_row(out, "oneDNN uses", "{}", dnnl_isa());
  try {
    const auto [precision, reason] = engine::auto_precision(device);
    doctor_row(out, "precision", "auto takes {}: {}", train::name(precision), reason);
  } catch (const base::Error& error) {
    doctor_row(out, "precision", "what auto takes is unknown: {}", error.what());
  }
}

/// Prints how workers on GPUs would exchange gradients.
void show_nccl(std::ostream& out) {
  try {
    int version = 0;
    if (comm::nccl::open_nccl().ncclGetVersion(&version) == comm::nccl::kSuccess)
      doctor_row(out, "NCCL", "{}: workers on GPUs exchange gradients through it",
                 comm::nccl::version_text(version));
  } catch (const base::Error& error) {
    doctor_row(out, "NCCL", "workers on GPUs exchange gradients through the host: {}", error.what());
  }
}

void show_gpus(const std::vector<cluster::RankOnGpu>& ranks, std::ostream& out) {
  out << "\nGPUs\n";
  for (const auto& [label, text] : engine::cuda::describe_gpus()) doctor_row(out, label, "{}", text);
  show_nccl(out);
  cluster::show_gpu_table(ranks, out);
  for (const auto& sentence : cluster::odd_about_gpus(ranks)) doctor_row(out, "odd", "{}", sentence);
}

void show_threads(const base::Topology& topology, std::ostream& out) {
  out << "\nthreads\n";
  std::string pinning = "works";
  std::thread([&] {  // in another thread, so that this one is not bound
    if (const auto refused = base::bind_current_thread({topology.cores.front().number}))
      pinning = "is refused: " + *refused + "; workers will move between cores, and their times will vary";
  })
      .join();
  doctor_row(out, "pinning", "{}", pinning);
  for (const int workers : {1, 2, 4}) {
    const auto plan = base::plan_cores(topology, workers, std::max(1, topology.usable() / workers));
    std::vector<std::string> each;
    for (const auto& cores : plan.cores)
      if (!cores.empty()) each.push_back(fmt::format("{}", fmt::join(cores, ",")));
    doctor_row(out, base::counted(workers, "worker"), "{}{}", plan.note,
               each.empty() ? "" : fmt::format(": cores {}", fmt::join(each, " | ")));
  }
  for (const char* name : {"OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY",
                           "DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA", "PACELINE_MAX_CPU_ISA"})
    if (const char* value = std::getenv(name))
      doctor_row(out, name, "{} (set in the environment; it changes timings)", value);
}

/// The seconds of each repetition of copying `bytes` on this thread.
std::vector<double> time_memcpy(std::size_t bytes, int repeats) {
  base::Buffer from(bytes), to(bytes);
  from.fill_zero();
  to.fill_zero();
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    from.data()[static_cast<std::size_t>(i)] = std::byte{1};
    const auto begin = base::Clock::now();
    std::memcpy(to.data(), from.data(), bytes);
    seconds.push_back(base::seconds_since(begin));
  }
  return seconds;
}

comm::Probe probe_local(int ranks, std::size_t count, int repeats, const base::CorePlan& plan) {
  auto communicators = comm::make_local(ranks);
  std::vector<comm::Probe> probes(communicators.size());
  train::run_ranks(communicators, [&](std::size_t r) {
    (void)base::bind_current_thread(plan.cores[r]);  // if it is refused, the line on pinning says so
    probes[r] = comm::probe(*communicators[r], {}, count, 2, repeats);
  });
  return probes[0];
}

void show_bandwidth(const base::Topology& topology, std::ostream& out) {
  constexpr std::size_t kBytes = 44'695'848;  // the gradient of resnet18-cifar
  constexpr int kRepeats = 11;
  out << "\nmeasured now (median of " << kRepeats << ", 95 % interval; GB = 1e9 bytes)\n";
  const auto copy = measure::estimate(time_memcpy(kBytes, kRepeats));
  doctor_row(out, "memory copy",
             "{:.1f} GB/s copied by one core [{:.1f}, {:.1f}]; each byte is read once and written once",
             base::gigabytes(kBytes / copy.median), base::gigabytes(kBytes / copy.high),
             base::gigabytes(kBytes / copy.low));
  const int ranks = 2;
  const auto plan = base::plan_cores(topology, ranks, 1);
  const auto probe = probe_local(ranks, kBytes / sizeof(float), kRepeats, plan);
  const auto time = measure::estimate(probe.seconds);
  const auto bandwidth = [&](double seconds) {
    return base::gigabytes(static_cast<double>(probe.bytes) / seconds);
  };
  doctor_row(
      out, "all-reduce",
      "local, {} ranks, {:.1f} MB: {:.2f} ms [{:.2f}, {:.2f}], algbw {:.1f} GB/s, busbw {:.1f} GB/s, {}",
      ranks, static_cast<double>(probe.bytes) / 1e6, time.median * 1e3, time.low * 1e3, time.high * 1e3,
      bandwidth(time.median), bandwidth(time.median) * comm::bus_factor(ranks),
      probe.correct ? "sums correct" : "SUMS WRONG: please report it");
  if (plan.oversubscribed) doctor_row(out, "", "{}", plan.note);
}

/// Refuses a batch whose largest layer alone exceeds the memory, since planning it would take seconds and
/// gigabytes.
void require_possible_batch(const std::string& model, const graph::Graph& graph, int batch) {
  std::int64_t largest = 0;  // values of a sample
  for (const auto& node : graph.nodes) largest = std::max(largest, node.shape.elements());
  const double least = 2.0 * static_cast<double>(largest) * batch;
  const double memory =
      10 * static_cast<double>(measure::available_memory_bytes());  // a device may have more than the host
  if (least > memory)
    base::fail(
        ErrorKind::device,
        "--kernels {}: with local batch {} its largest layer alone takes {:.0f} GB; give a smaller --local-batch",
        model, batch, base::gigabytes(least));
}

/// Checks the memory as before a training, since making kernels needs the model's arrays.
void require_memory(const Settings& settings, const graph::Graph& graph) {
  using Place = graph::MemoryPlan::Place;
  const auto& model = settings.doctor.kernels_model;
  const auto how = how_to_compile(settings);
  require_possible_batch(model, graph, how.batch);
  const auto plan = engine::plan(settings.train.device, graph, how);
  const auto device = engine::device_info(settings.train.device, std::array{0});
  const bool is_apart = device && device->memory_bytes > 0;
  if (is_apart && plan.total_bytes(Place::device) > device->free_memory_bytes)
    base::fail(
        ErrorKind::device,
        "--kernels {}: with local batch {} it takes {:.2f} GB of the memory of {}, of which {:.2f} GB are "
        "free; give a smaller --local-batch or a smaller model",
        model, how.batch, base::gigabytes(plan.total_bytes(Place::device)), device->name,
        base::gigabytes(device->free_memory_bytes));
  const auto needed = is_apart ? plan.total_bytes(Place::host) : plan.total_bytes();
  const auto usable =
      std::min(measure::available_memory_bytes(), measure::address_space_left()) + measure::resident_bytes();
  if (needed > usable)
    base::fail(
        ErrorKind::device,
        "--kernels {}: with local batch {} it takes {:.2f} GB of memory and this process may use {:.2f} GB; "
        "give a smaller --local-batch or a smaller model",
        model, how.batch, base::gigabytes(needed), base::gigabytes(usable));
}

void show_kernels(const Settings& settings, const graph::Graph& graph, std::ostream& out) {
  const auto& device = settings.train.device;
  const auto how = how_to_compile(settings);
  const auto found = engine::prepare(device, graph, how, {}).note;
  const auto compiled = engine::compile(device, graph, how);
  graph::initialise(graph, compiled->layout(), 0, compiled->weights());
  compiled->weights_changed();
  const auto kernels = settings.doctor.measure ? compiled->measured_kernels() : compiled->kernels();
  out << fmt::format("\nkernels of {} on {}, local batch {}, {}, {}\n", settings.doctor.kernels_model,
                     compiled->name(), how.batch, train::name(how.precision),
                     base::counted(how.threads, "thread"));
  if (!found.empty()) out << "  " << found << '\n';
  if (kernels.empty()) out << "  this engine has one implementation of each op\n";
  std::size_t op = 2, implementation = 14, rate = 0;
  for (const auto& kernel : kernels) {
    op = std::max(op, kernel.op.size());
    implementation = std::max(implementation, kernel.implementation.size());
    rate = std::max(rate, kernel.rate.size());
  }
  for (const auto& kernel : kernels) {
    const std::string line = fmt::format("  {:<{}}  {:<{}}  {:<{}}  {}", kernel.op, op, kernel.implementation,
                                         implementation, kernel.rate, rate, kernel.reason);
    out << line.substr(0, line.find_last_not_of(' ') + 1) << '\n';
  }
}

}  // namespace

std::string text_about_shared_memory(std::uintmax_t bytes, std::uintmax_t available) {
  constexpr std::uintmax_t kEnough =
      1'000'000'000;  // NVIDIA's advice; a container has 64 MB unless asked for more
  return fmt::format(
      "{:.2f} GB in /dev/shm, {:.2f} GB available{}", base::gigabytes(bytes), base::gigabytes(available),
      bytes >= kEnough ? ""
                       : "; NCCL may fail between processes of this host (ncclSystemError): start "
                         "containers with --shm-size=1g");
}

int doctor_command(const Settings& settings) {
  const auto* const session = settings.session;
  const auto ranks = cluster::ranks_on_gpus(session);
  if (session != nullptr && !session->is_first()) return 0;  // the first prints for all
  std::optional<graph::Graph> model;  // first, so that a wrong name is reported before pages of other output
  if (const auto& name = settings.doctor.kernels_model; !name.empty()) model = model_for(settings, name);
  const auto topology = base::topology();
  if (model) require_memory(settings, *model);
  const auto environment = train::machine_of(
      session == nullptr ? train::ProcessPlacement() : session->place(), cluster::libraries());
  std::ostringstream out;
  show_machine(environment, topology, out);
  show_build(environment, settings.train.device, out);
  show_gpus(ranks, out);
  show_threads(topology, out);
  cluster::show_launch(session, out);
  if (settings.doctor.measure) show_bandwidth(topology, out);
  if (model) show_kernels(settings, *model, out);
  print(out.str());
  return 0;
}

}  // namespace paceline::cli
