#include "cluster/make_backend.h"

#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <system_error>
#include <utility>

#include "base/topology.h"
#include "cluster/guard.h"
#include "cluster/log.h"
#include "comm/host_staging.h"
#include "comm/make.h"
#include "comm/nccl/nccl.h"
#include "comm/real_sums.h"
#include "engine/cuda/nvml/facts.h"
#include "engine/make.h"
#include "measure/environment.h"

namespace paceline::cluster {
namespace {

/// Plans on GPUs may take a second each to compile, so the others wait longer than for a collective.
constexpr std::chrono::minutes kForPlans{20};

/// A longer deadline of all collectives, as long as it lives.
class LongerDeadline {
 public:
  LongerDeadline(comm::ProcessGroup& processes, std::chrono::seconds deadline)
      : processes_(processes), before_(processes.deadline()) {
    processes_.set_deadline(std::max(before_, deadline));
  }
  ~LongerDeadline() { processes_.set_deadline(before_); }
  LongerDeadline(const LongerDeadline&) = delete;
  LongerDeadline& operator=(const LongerDeadline&) = delete;

 private:
  comm::ProcessGroup& processes_;
  const std::chrono::seconds before_;
};

engine::KernelAlgorithms algorithms_of(const engine::PreparedKernels& prepared) {
  return prepared.algorithms == nullptr ? engine::KernelAlgorithms() : *prepared.algorithms;
}

/// The processes whose algorithms differ from the first one's. Collective, so that it also waits until all
/// processes have prepared.
std::vector<OtherKernels> find_other_kernels(Session& session, const engine::PreparedKernels& prepared) {
  auto& processes = session.processes();
  const auto mine = algorithms_of(prepared);
  const auto first = comm::value_of_first(processes, mine);
  const auto differing = std::ranges::count_if(mine, [&](const auto& one) {
    const auto found = first.find(one.first);
    return found == first.end() || found->second != one.second;
  });
  using Report = std::array<std::int32_t, 2>;  // number of the process, problems
  const Report report{session.place().process, static_cast<std::int32_t>(differing)};
  std::vector<OtherKernels> others;
  for (const auto& [process, problems] : comm::gather_values(processes, processes.processes(), report))
    if (problems > 0)
      others.push_back({process, session.members()[static_cast<std::size_t>(process)].host, problems});
  return others;
}

/// What any process has passed over, the same list on each. Collective.
std::vector<engine::PassedOver> all_passed_over(comm::ProcessGroup& processes,
                                                const std::vector<engine::PassedOver>& mine) {
  std::vector<engine::PassedOver> all;
  for (const auto& of_process : comm::gather_values(processes, processes.processes(), mine))
    for (const auto& one : of_process)
      if (std::ranges::find(all, one) == all.end()) all.push_back(one);
  return all;
}

/// A process that was started alone: it has all GPUs that it sees.
class Alone : public train::Machine {
 public:
  explicit Alone(Joining joining) : joining_(std::move(joining)) {}

  std::unique_ptr<engine::Engine> compile(const graph::Graph& graph,
                                          const engine::CompileOptions& how) const override {
    return engine::compile(device_name(), graph, how);
  }
  graph::MemoryPlan plan(const graph::Graph& graph, const engine::CompileOptions& how) const override {
    return engine::plan(device_name(), graph, how);
  }
  engine::PreparedKernels prepare(const graph::Graph& graph, const engine::CompileOptions& how,
                                  const engine::KernelRequest& asked) const override {
    return engine::prepare(device_name(), graph, how, asked);
  }
  std::vector<std::unique_ptr<comm::Communicator>> communicators(
      int ranks, std::chrono::seconds deadline) const override {
    return make_communicators(joining_, ranks, deadline);
  }
  std::string require_slow_links(int workers, std::span<const std::int64_t> bucket_bytes) const override {
    if (!joining_.emulation.link)
      base::fail(base::ErrorKind::usage,
                 "--emulate-compute with {} workers: they are as if on nodes of their own, but no link joins "
                 "these; give --emulate-link, such as latency=50us,bandwidth=1GB/s",
                 workers);
    const auto speed = comm::measure_sums(workers, std::ranges::max(bucket_bytes));
    return comm::require_slow_link(*joining_.emulation.link, workers, bucket_bytes, speed);
  }
  std::optional<train::DeviceShare> device(int local_workers) const override {
    const auto info = engine::device_info(device_name(), device_numbers(local_workers));
    if (!info) return std::nullopt;
    const int workers = most_on_one(local_workers, info->devices);
    return train::DeviceShare{.info = *info, .workers = workers, .is_any_shared = workers > 1};
  }
  measure::OpenGpus gpus(int local_workers) const override {
    return engine::gpu_source(device_name(), device_numbers(local_workers));
  }
  std::vector<std::vector<int>> cores_near(int local_workers) const override {
    if (!is_gpu(device_name())) return {};
    std::vector<std::vector<int>> near;
    for (const auto& id : engine::gpu_bus_ids(device_name(), local_workers)) {
      auto found = base::pci_locality(id);
      near.push_back(found ? std::move(found->cores) : std::vector<int>());
    }
    return near;
  }
  std::optional<std::vector<std::string>> describe_gpus() const override {
    return is_gpu(device_name()) ? std::optional(engine::cuda::gpu_facts()) : std::nullopt;
  }

 protected:
  [[nodiscard]] const std::string& device_name() const { return joining_.device; }

 private:
  const Joining joining_;
};

/// A process of several, which share the host's GPUs.
class InSession final : public Alone {
 public:
  /// `members`: like make_backend()'s.
  InSession(Joining joining, std::span<const int> members)
      : Alone(joining), session_(*joining.session), members_(members.begin(), members.end()) {
    if (members_.empty()) members_ = session_.all_processes();
  }

  engine::PreparedKernels prepare(const graph::Graph& graph, const engine::CompileOptions& how,
                                  const engine::KernelRequest& asked) const override {
    auto& processes = session_.processes();
    processes.at(0, "the measuring of kernels");
    const LongerDeadline longer(processes, is_gpu(device_name()) ? kForPlans : std::chrono::minutes(0));
    auto prepared = prepare_alike(processes, asked, [&](const engine::KernelRequest& request) {
      return engine::prepare(device_name(), graph, how, request);
    });
    const auto others = find_other_kernels(session_, prepared);
    if (const auto note = note_of_other_kernels(others, algorithms_of(prepared).size()); !note.empty())
      prepared.note += (prepared.note.empty() ? "kernels: " : "; ") + note;
    return prepared;
  }
  std::vector<int> device_numbers(int local_workers) const override { return dealt(local_workers).numbers; }
  std::optional<train::DeviceShare> device(int local_workers) const override {
    const AssignedGpus dealt = this->dealt(local_workers);
    const auto info = engine::device_info(device_name(), dealt.numbers);
    if (!info) return std::nullopt;
    return train::DeviceShare{
        .info = *info,
        .workers = dealt.workers_on_one.value_or(most_on_one(dealt.workers_here, info->devices)),
        .is_any_shared = dealt.is_any_shared};
  }
  std::vector<std::vector<int>> cores_near(int local_workers) const override {
    return is_gpu(device_name()) ? dealt(local_workers).cores_near : std::vector<std::vector<int>>();
  }
  void at(const char* phase) const override { session_.processes().at(0, phase); }
  std::optional<train::Loss> lost_rank() const override {
    const auto failure = session_.processes().failure();
    if (!failure || !failure->detection_s) return std::nullopt;
    return train::Loss{.record = {.known_at_s = measure::unix_now() - base::seconds_since(failure->known_at),
                                  .detection_s = failure->detection_s},
                       .of_first = failure->of_first()};
  }
  void from_first(std::span<std::byte> bytes) const override { session_.processes().broadcast(bytes, 0); }

 private:
  [[nodiscard]] AssignedGpus dealt(int local_workers) const {
    return session_.gpus_of(members_, local_workers, engine::device_index(device_name()));
  }
  Session& session_;
  std::vector<int> members_;
};

}  // namespace

engine::PreparedKernels prepare_alike(
    comm::ProcessGroup& processes, const engine::KernelRequest& asked,
    const std::function<engine::PreparedKernels(const engine::KernelRequest&)>& prepare) {
  engine::KernelRequest request = asked;
  request.given = comm::value_of_first(processes, asked.given);
  const bool is_first = processes.process() == 0;
  bool is_first_asked = request.is_measured && request.given.empty();
  while (true) {
    engine::PreparedKernels prepared;
    if (is_first || !is_first_asked) prepared = prepare(request);
    if (is_first_asked) {
      engine::KernelRequest like_first = request;
      like_first.given = comm::value_of_first(processes, algorithms_of(prepared));
      like_first.is_measured = false;
      if (!is_first) prepared = prepare(like_first);
    }
    auto all = all_passed_over(processes, prepared.passed_over);
    if (all.size() == request.passed_over.size()) return prepared;
    request.passed_over = std::move(all);
    is_first_asked = true;
  }
}

std::string note_of_other_kernels(std::span<const OtherKernels> others, std::size_t problems) {
  if (others.empty()) return "";
  constexpr std::size_t kNamed = 4;
  std::string names;
  for (const auto& one : others.first(std::min(kNamed, others.size())))
    names += fmt::format("{}process {} on {} ({} of {} problems)", names.empty() ? "" : ", ", one.process,
                         one.host, one.problems, problems);
  if (others.size() > kNamed) names += fmt::format(" and {} more", others.size() - kNamed);
  return fmt::format(
      "not all processes use the algorithms of process 0, which this record names, because they choose others or "
      "cannot use these: {}; a repeated run has the same bits only on the same kinds of machines in the same order",
      names);
}

comm::Emulation emulation_of(const train::Options& options) {
  comm::Emulation emulation;
  if (!options.emulate_link.empty()) emulation.link = comm::parse_link(options.emulate_link);
  if (!options.emulate_straggler.empty())
    emulation.straggler = comm::parse_straggler(options.emulate_straggler);
  emulation.hides_sums = !options.emulate_compute.empty();
  return emulation;
}

bool is_gpu(const std::string& device) { return device == "cuda" || device.starts_with("cuda:"); }

bool Joining::joins_gpus() const {
  // NCCL is not used with an emulated link or bf16 messages, which exist only for sums on the host.
  return is_gpu(device) && !emulation.any() && wire_format == comm::WireFormat::fp32;
}

std::vector<std::unique_ptr<comm::Communicator>> make_communicators(const Joining& how, int ranks,
                                                                    std::chrono::seconds deadline) {
  comm::LocalOptions options{.deadline = deadline};
  std::function<void(const std::string&)> hangs;
  if (how.session != nullptr) {
    how.session->processes().set_ranks_each(ranks);
    how.session->processes().set_deadline(deadline);
    how.session->processes().set_wire_format(how.wire_format);
    options.across = &how.session->processes();
    hangs = [session = how.session](const std::string& what) { session->exit_watchdog().hurry(what); };
  } else {
    options.stall_options.say = [stalls = how.stalls](const std::string& text) {
      log_line(text);
      stalls->hear(text);
    };
    const auto exit_watchdog = std::make_shared<ExitWatchdog>("this process");
    options.stall_options.failed = [exit_watchdog](const std::string& text, base::ErrorKind kind) {
      try {
        exit_watchdog->watch([failure = ExitWatchdog::Failure{text, kind, base::Clock::now()}] {
          return std::optional(failure);
        });
      } catch (const std::system_error&) {
        // The system refuses threads, which most likely made the run fail; it then ends without a watchdog.
      }
    };
    hangs = [exit_watchdog](const std::string& what) { exit_watchdog->hurry(what); };
  }
  auto joined = comm::emulate(comm::make_local(ranks, options), how.emulation);
  if (engine::computes_on_host(how.device)) return joined;
  auto by_host = comm::host_staging(std::move(joined));
  if (!how.joins_gpus()) return by_host;
  return comm::nccl::around(std::move(by_host),
                            {.deadline = deadline, .say = log_line, .hangs = std::move(hangs)});
}

train::Backend make_backend(const std::string& device, Session* session, const comm::Emulation& emulation,
                            comm::WireFormat wire_format, std::span<const int> members) {
  train::ProcessPlacement place;
  if (session != nullptr) place = members.empty() ? session->place() : session->place_among(members);
  const auto stalls = session != nullptr ? session->stalls() : std::make_shared<train::StallListener>();
  Joining joining{.device = device,
                  .session = session,
                  .emulation = emulation,
                  .wire_format = wire_format,
                  .stalls = stalls};
  joining.emulation.hosts = place.hosts;
  return {.machine = session == nullptr ? std::make_shared<Alone>(joining)
                                        : std::make_shared<InSession>(joining, members),
          .device_sum_bytes = joining.joins_gpus() ? comm::nccl::kBufferBytes : 0,
          .neighbour_pids = session != nullptr ? session->neighbour_pids() : std::vector<int>(),
          .place = place,
          .auto_precision = engine::auto_precision(device).precision,
          .keeps_images = engine::keeps_images(device),
          .libraries = libraries(),
          .stalls = stalls};
}

std::vector<std::string> libraries() {
  const dnnl_version_t* dnnl = dnnl_version();
  const unsigned hwloc = hwloc_get_api_version();
  return {
    fmt::format("onednn {}.{}.{}", dnnl->major, dnnl->minor, dnnl->patch),
        fmt::format("hwloc {}.{}.{}", hwloc >> 16, (hwloc >> 8) & 0xff, hwloc & 0xff),
#if defined(_OPENMP)
        fmt::format("openmp {}", _OPENMP),
#endif
  };
}

}  // namespace paceline::cluster
