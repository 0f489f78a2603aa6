// Versions, descriptions and plans: what cuDNN says, before anything is computed.

#include <fmt/format.h>

#include <map>

#include "base/error.h"
#include "cuda_probe/gpu.h"
#include "cuda_probe/part.h"
#include "engine/cuda/conv_problem.h"
#include "engine/cuda/cudnn/device_descriptions.h"
#include "engine/cuda/cudnn/plans.h"
#include "engine/cuda/runtime/load.h"
#include "engine/cuda/runtime/runtime.h"

namespace paceline::probe {
namespace {

namespace cudnn = cuda::cudnn;
using cudnn::HeuristicsMode;

constexpr std::pair<const char*, HeuristicsMode> kModes[] = {
    {"b", HeuristicsMode::b}, {"a", HeuristicsMode::a}, {"fallback", HeuristicsMode::fallback}};

Json json_of(const cudnn::EngineFacts& engine) {
  return {{"engine", name_of(engine)},           {"deterministic", engine.deterministic},
          {"tensor_cores", engine.tensor_cores}, {"reduces_precision", engine.reduces_precision},
          {"transforms", engine.transforms},     {"compiled_at_run_time", engine.compiled_at_run_time}};
}

/// cuDNN's description of the first device.
std::string text_of_device(const cuda::CudnnApi& api) {
  using cudnn::Attribute, cudnn::AttributeType;
  cudnn::Descriptor properties({&api, "device 0"}, cudnn::DescriptorType::device_properties);
  const std::int32_t device = 0;
  cuda::check(api,
              api.cudnnBackendSetAttribute(properties.raw(), Attribute::device_properties_device_id,
                                           AttributeType::integer32, 1, &device),
              "cudnnBackendSetAttribute", "device 0");
  properties.finalize();
  std::int64_t size = 0;
  const auto read = [&](std::int64_t most, char* to) {
    cuda::check(api,
                api.cudnnBackendGetAttribute(properties.raw(), Attribute::device_properties_json,
                                             AttributeType::character, most, &size, to),
                "cudnnBackendGetAttribute", "device 0");
  };
  read(0, nullptr);
  std::string text(static_cast<std::size_t>(size), '\0');
  read(size, text.data());
  return text.substr(0, text.find('\0'));
}

std::vector<cudnn::EngineFacts> offered(const cudnn::TargetDevice& device, const cuda::ConvProblem& problem,
                                        HeuristicsMode mode) {
  const cudnn::ConvGraph graph = cudnn::make_conv_graph(device, problem, cudnn::conv_tensors(problem));
  std::vector<cudnn::EngineFacts> engines;
  for (const cudnn::EngineConfig& config : cudnn::EngineList(device, graph, mode).all())
    engines.push_back(config.facts);
  return engines;
}

/// How two lists of engines in their heuristics' order compare.
Json compared(const std::vector<cudnn::EngineFacts>& real, const std::vector<cudnn::EngineFacts>& described) {
  std::size_t same = 0;
  while (same < real.size() && same < described.size() && real[same] == described[same]) ++same;
  return {{"real", real.size()}, {"described", described.size()}, {"same_from_the_first_on", same}};
}

}  // namespace

void find_libraries(Findings& findings) {
  const base::SharedLibrary library = cuda::find_cudnn(base::library_folders(base::process_environment()), 0);
  const cuda::CudnnApi api = cuda::cudnn_api(library);
  findings.json["cudnn"] = {{"version", cuda::cudnn_version(api)}, {"file", library.path}};
  findings.save();
  const auto device = cudnn::test::target_of(api, cudnn::test::json_of(cudnn::test::kH100));
  for (const cuda::ConvProblem& problem : resnet_problems(128, engine::Precision::bf16)) {
    if (!findings.has_time_for(describe(problem))) return;
    findings.attempt(describe(problem), [&] {
      Json plans = Json::array();
      for (const cudnn::Plan& plan :
           cudnn::plans_to_measure(device, problem, cuda::workspace_limit(std::int64_t{80} << 30), 8))
        plans.push_back({{"engine", name_of(plan.engine)}, {"workspace", plan.workspace_bytes}});
      findings.json["plans_for_described_h100"][describe(problem)] = plans;
    });
  }
}

void describe_device(Findings& findings) {
  const Gpu gpu;
  int driver = 0;
  gpu.check(gpu.api().cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  std::size_t free = 0, total = 0;
  gpu.check(gpu.api().cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  findings.json["name"] = gpu.name();
  findings.json["precision"] = gpu.precision() == engine::Precision::bf16 ? "bf16" : "fp32";
  findings.json["visible_gpus"] = cuda::visible_devices(gpu.api(), base::process_environment());
  findings.json["cuda_of_driver"] = cuda::cuda_version(driver);
  findings.json["cuda_of_module"] = cuda::cuda_version(gpu.api().built_with);
  findings.json["memory_bytes"] = total;
  findings.json["free_bytes"] = free;
  findings.save();
  const cuda::CudnnApi api = open_cudnn();
  const std::string text = text_of_device(api);
  findings.json["properties_text"] = text;
  findings.save();
  const Json real = Json::parse(text);
  const Json described = Json::parse(cudnn::test::json_of(cudnn::test::kH100));
  Json differ = Json::object();
  for (const auto& [key, value] : real.items())
    if (!described.contains(key) || described[key] != value)
      differ[key] = {{"real", value}, {"described", described.value(key, Json())}};
  for (const auto& [key, value] : described.items())
    if (!real.contains(key)) differ[key] = {{"real", nullptr}, {"described", value}};
  findings.json["differs_from_described_h100"] = differ;
}

void compare_plans(Findings& findings) {
  const Gpu gpu;
  const cuda::CudnnApi api = open_cudnn();
  const cudnn::Connection connection(api);
  const cudnn::TargetDevice real(api, connection.handle());
  const auto own_text = cudnn::test::target_of(api, text_of_device(api));
  const auto fixture = cudnn::test::target_of(api, cudnn::test::json_of(cudnn::test::kH100));
  int problems = 0, same_first_own = 0, same_first_fixture = 0;
  for (const int batch : {128, 512})
    for (const cuda::ConvProblem& problem : resnet_problems(batch, gpu.precision())) {
      if (!findings.has_time_for(describe(problem))) return;
      findings.attempt(describe(problem), [&] {
        Json one;
        for (const auto& [name, mode] : kModes) {
          const auto engines = offered(real, problem, mode);
          one[name] = {{"device's own text", compared(engines, offered(own_text, problem, mode))},
                       {"described H100", compared(engines, offered(fixture, problem, mode))},
                       {"first", engines.empty() ? Json() : json_of(engines.front())}};
        }
        const auto first = [&](const cudnn::TargetDevice& device) {
          return cudnn::first_plan(device, problem, cuda::workspace_limit(std::int64_t{80} << 30)).engine;
        };
        const cudnn::EngineFacts taken = first(real);
        one["taken"] = json_of(taken);
        ++problems;
        same_first_own += first(own_text) == taken;
        same_first_fixture += first(fixture) == taken;
        findings.json["problems"][describe(problem)] = one;
      });
      findings.json["taken"] = {{"problems", problems},
                                {"same by the device's own text", same_first_own},
                                {"same by the described H100", same_first_fixture}};
    }
}

}  // namespace paceline::probe
