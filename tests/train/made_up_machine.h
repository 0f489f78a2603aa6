#pragma once

/// The machine of a test: engines of a device, ranks as threads. A test replaces single functions of it.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/host_staging.h"
#include "comm/make.h"
#include "engine/make.h"
#include "train/given/backend.h"

namespace paceline::train {

class MadeUpMachine final : public Machine {
 public:
  explicit MadeUpMachine(std::string device) : device_(std::move(device)) {}

  std::unique_ptr<engine::Engine> compile(const graph::Graph& graph,
                                          const engine::CompileOptions& how) const override {
    return on_compile ? on_compile(graph, how) : engine::compile(device_, graph, how);
  }
  graph::MemoryPlan plan(const graph::Graph& graph, const engine::CompileOptions& how) const override {
    return on_plan ? on_plan(graph, how) : engine::plan(device_, graph, how);
  }
  engine::PreparedKernels prepare(const graph::Graph& graph, const engine::CompileOptions& how,
                                  const engine::KernelRequest& asked) const override {
    return on_prepare ? on_prepare(graph, how, asked) : Machine::prepare(graph, how, asked);
  }
  std::vector<std::unique_ptr<comm::Communicator>> communicators(
      int ranks, std::chrono::seconds deadline) const override {
    if (on_communicators) return on_communicators(ranks, deadline);
    auto joined = comm::make_local(ranks, {.deadline = deadline});
    return engine::computes_on_host(device_) ? std::move(joined) : comm::host_staging(std::move(joined));
  }
  std::optional<DeviceShare> device(int workers) const override {
    if (on_device) return on_device(workers);
    const auto info = engine::device_info(device_, std::vector<int>(static_cast<std::size_t>(workers)));
    if (!info) return std::nullopt;
    return DeviceShare{.info = *info, .workers = workers};
  }
  measure::OpenGpus gpus(int workers) const override {
    return on_gpus ? on_gpus(workers) : measure::OpenGpus();
  }
  void at(const char* phase) const override {
    if (on_at) on_at(phase);
  }
  void from_first(std::span<std::byte> bytes) const override {
    if (on_from_first) on_from_first(bytes);
  }

  // What is not empty is called instead.
  std::function<std::unique_ptr<engine::Engine>(const graph::Graph&, const engine::CompileOptions&)>
      on_compile;
  std::function<graph::MemoryPlan(const graph::Graph&, const engine::CompileOptions&)> on_plan;
  std::function<engine::PreparedKernels(const graph::Graph&, const engine::CompileOptions&,
                                        const engine::KernelRequest&)>
      on_prepare;
  std::function<std::vector<std::unique_ptr<comm::Communicator>>(int, std::chrono::seconds)> on_communicators;
  std::function<std::optional<DeviceShare>(int)> on_device;
  std::function<measure::OpenGpus(int)> on_gpus;
  std::function<void(const char*)> on_at;
  std::function<void(std::span<std::byte>)> on_from_first;

 private:
  const std::string device_;
};

/// A backend whose machine can be changed. Copies share the machine.
struct MadeUpBackend : Backend {
  std::shared_ptr<MadeUpMachine> made_up;
};

/// The backend of `device`: "reference", "cpu" or "cuda-on-host".
inline MadeUpBackend backend_of(const std::string& device) {
  const auto machine = std::make_shared<MadeUpMachine>(device);
  return {{.machine = machine, .keeps_images = engine::keeps_images(device)}, machine};
}

}  // namespace paceline::train
