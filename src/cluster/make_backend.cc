#include "cluster/make_backend.h"

#include <hwloc.h>

#include <chrono>
#include <numeric>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <utility>

#include "base/pci_locality.h"
#include "cluster/exit_watchdog.h"
#include "cluster/log.h"
#include "cluster/prepare_together.h"
#include "comm/host_bounce.h"
#include "comm/make.h"
#include "comm/nccl/nccl.h"
#include "engine/cuda/nvml/describe_gpus.h"
#include "engine/make.h"
#include "measure/environment.h"

namespace paceline::cluster {

comm::Emulation emulation_of(const train::Options& options) {
  comm::Emulation emulation;
  if (!options.emulate_link.empty()) emulation.link = comm::parse_link(options.emulate_link);
  if (!options.emulate_straggler.empty())
    emulation.straggler = comm::parse_straggler(options.emulate_straggler);
  return emulation;
}

namespace {

/// Whether engines of `device` keep arrays on GPUs, so that NCCL can be used.
bool is_gpu(const std::string& device) { return device == "cuda" || device.starts_with("cuda:"); }

/// The cores near each worker's GPU, from the kernel.
std::vector<std::vector<int>> cores_near_gpus(const std::string& device, int workers) {
  std::vector<std::vector<int>> near;
  for (const auto& id : engine::gpu_bus_ids(device, workers)) {
    auto found = base::pci_locality(id);
    near.push_back(found ? std::move(found->cores) : std::vector<int>());
  }
  return near;
}

/// The GPUs of this process's workers, one for each. A process without a session has all that it sees.
class GpusOfProcess {
 public:
  /// `members`: like make_backend()'s.
  GpusOfProcess(std::string device, const Session* session, std::span<const int> members)
      : device_(std::move(device)), session_(session), members_(members.begin(), members.end()) {
    if (session != nullptr && members_.empty()) members_ = session->all_processes();
  }

  [[nodiscard]] std::vector<int> numbers(int local_workers) const {
    if (session_ != nullptr) return dealt(local_workers).numbers;
    std::vector<int> numbers(static_cast<std::size_t>(local_workers));
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }
  [[nodiscard]] std::optional<train::DeviceShare> share(int local_workers) const {
    const auto info = engine::device_info(device_, numbers(local_workers));
    if (!info) return std::nullopt;
    if (session_ == nullptr) {
      const int workers = most_on_one(local_workers, info->devices);
      return train::DeviceShare{.info = *info, .workers = workers, .is_any_shared = workers > 1};
    }
    const DealtGpus dealt = this->dealt(local_workers);
    return train::DeviceShare{
        .info = *info,
        .workers = dealt.workers_on_one.value_or(most_on_one(dealt.workers_here, info->devices)),
        .is_any_shared = dealt.is_any_shared};
  }
  [[nodiscard]] std::vector<std::vector<int>> cores_near(int local_workers) const {
    if (session_ != nullptr) return dealt(local_workers).cores_near;
    return cores_near_gpus(device_, local_workers);
  }

 private:
  [[nodiscard]] DealtGpus dealt(int local_workers) const {
    return session_->gpus_of(members_, local_workers, engine::device_index(device_));
  }
  std::string device_;
  const Session* session_;
  std::vector<int> members_;
};

}  // namespace

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
    hangs = [session = how.session](const std::string& what) { session->hurry_the_end(what); };
  } else {
    options.stall_options.say = [stalls = how.stalls](const std::string& text) {
      log_line(text);
      stalls->hear(text);
    };
    const auto exit_watchdog = std::make_shared<ExitWatchdog>();
    options.stall_options.failed = [exit_watchdog](const std::string& text, base::ErrorKind kind) {
      exit_watchdog->begin(text, kind);
    };
    hangs = [exit_watchdog](const std::string& what) { exit_watchdog->hurry(what); };
  }
  auto joined = comm::emulate(comm::make_local(ranks, options), how.emulation);
  if (engine::computes_on_host(how.device)) return joined;
  auto by_host = comm::host_bounce(std::move(joined));
  if (!how.joins_gpus()) return by_host;
  return comm::nccl::around(std::move(by_host),
                            {.deadline = deadline, .say = log_line, .hangs = std::move(hangs)});
}

train::Backend make_backend(const std::string& device, Session* session, const comm::Emulation& emulation,
                            comm::WireFormat wire_format, std::span<const int> members) {
  train::ProcessPlacement place;
  if (session != nullptr) place = members.empty() ? session->place() : session->place_among(members);
  const auto stalls = session != nullptr ? session->stalls() : std::make_shared<train::StallListener>();
  const GpusOfProcess gpus(device, session, members);
  Joining joining{.device = device,
                  .session = session,
                  .emulation = emulation,
                  .wire_format = wire_format,
                  .stalls = stalls};
  joining.emulation.hosts = place.hosts;
  return {
      .compile = [device](const graph::Graph& graph,
                          const engine::CompileOptions& how) { return engine::compile(device, graph, how); },
      .prepare =
          [device, session](const graph::Graph& graph, const engine::CompileOptions& how,
                            const engine::KernelRequest& asked) {
            return session == nullptr ? engine::prepare(device, graph, how, asked)
                                      : prepare_together(device, *session, graph, how, asked);
          },
      .at =
          [session](const char* phase) {
            if (session != nullptr) session->processes().at(0, phase);
          },
      .plan = [device](const graph::Graph& graph,
                       const engine::CompileOptions& how) { return engine::plan(device, graph, how); },
      .communicators =
          [joining](int ranks, std::chrono::seconds deadline) {
            return make_communicators(joining, ranks, deadline);
          },
      .device_sum_bytes = joining.joins_gpus() ? comm::nccl::kBufferBytes : 0,
      .loss = [session]() -> std::optional<train::Loss> {
        const auto failure = session == nullptr ? std::nullopt : session->processes().failure();
        if (!failure || !failure->detection_s) return std::nullopt;
        return train::Loss{
            .record = {.known_at_s = measure::unix_now() - base::seconds_since(failure->known_at),
                       .detection_s = failure->detection_s},
            .of_first = failure->of_first()};
      },
      .device_numbers = [gpus](int local_workers) { return gpus.numbers(local_workers); },
      .device = [gpus](int local_workers) { return gpus.share(local_workers); },
      .describe_gpus = is_gpu(device) ? engine::cuda::gpu_facts : std::function<std::vector<std::string>()>(),
      .gpus = [device, gpus](int local_workers) -> measure::OpenGpus {
        return engine::gpu_source(device, gpus.numbers(local_workers));
      },
      .cores_near = is_gpu(device) ? [gpus](int local_workers) { return gpus.cores_near(local_workers); }
                                   : std::function<std::vector<std::vector<int>>(int)>(),
      .neighbour_pids = session != nullptr ? session->neighbour_pids() : std::vector<int>(),
      .place = place,
      .auto_precision = engine::auto_precision(device).precision,
      .keeps_images = engine::keeps_images(device),
      .libraries = libraries(),
      .stalls = stalls,
      .from_first = session == nullptr
                        ? std::function<void(std::span<std::byte>)>()
                        : [session](std::span<std::byte> bytes) { session->processes().broadcast(bytes, 0); },
  };
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
