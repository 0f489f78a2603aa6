#include "engine/cuda/cudnn/convolution.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"

namespace paceline::engine::cuda::cudnn {
namespace {

bool is_aligned(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % kTensorAlignment == 0;
}

class CudnnConvolution final : public Convolution {
 public:
  CudnnConvolution(const Connection& connection, NativeStream streams, std::shared_ptr<const Plan> plan)
      : connection_(connection), streams_(std::move(streams)), plan_(std::move(plan)) {}

  [[nodiscard]] std::size_t workspace_bytes() const override { return plan_->workspace_bytes; }
  [[nodiscard]] std::string algorithm() const override {
    return algorithm_of(connection_.api(), plan_->engine);
  }

  void run(Stream stream, const ConvOperands& operands) override {
    if (!arguments_ || !(operands_ == operands)) bind(operands);
    const CudnnApi& api = connection_.api();
    const std::string& problem = plan_->plan().site().problem;
    check(api, api.cudnnSetStream(connection_.handle(), streams_(stream)), "cudnnSetStream", problem);
    check(api, api.cudnnBackendExecute(connection_.handle(), plan_->plan().raw(), arguments_->raw()),
          "cudnnBackendExecute", problem);
  }

 private:
  /// Sets the addresses of the operands in a variant pack. They are the same in every run, so this is done
  /// once.
  void bind(const ConvOperands& operands) {
    base::expects(operands.src != nullptr && operands.weight != nullptr && operands.dst != nullptr,
                  "a convolution has three operands");
    base::expects(operands.workspace != nullptr || plan_->workspace_bytes == 0, "a workspace is there");
    base::expects(is_aligned(operands.src) && is_aligned(operands.weight) && is_aligned(operands.dst) &&
                      is_aligned(operands.workspace),
                  "operands are aligned as cuDNN was told");
    const std::array<std::int64_t, 3> ids = {kSrcId, kWeightId, kDstId};
    const std::array<void*, 3> pointers = {operands.src, operands.weight, operands.dst};
    const std::array<void*, 1> workspace = {operands.workspace};
    Descriptor arguments(plan_->plan().site(), DescriptorType::variant_pack);
    arguments.set(Attribute::variant_pack_unique_ids, ids)
        .set(Attribute::variant_pack_data_pointers, pointers)
        .set(Attribute::variant_pack_workspace, workspace)
        .finalize();
    arguments_ = std::move(arguments);
    operands_ = operands;
  }

  const Connection& connection_;
  NativeStream streams_;
  std::shared_ptr<const Plan> plan_;
  std::optional<Descriptor> arguments_;  ///< the variant pack of the last run
  ConvOperands operands_;
};

class CudnnLibrary final : public ConvolutionLibrary {
 public:
  CudnnLibrary(const CudnnApi& api, std::size_t workspace_limit, NativeStream streams)
      : connection_(api), workspace_limit_(workspace_limit), streams_(std::move(streams)) {}

  [[nodiscard]] std::string version() const override { return "cuDNN " + cudnn_version(connection_.api()); }
  [[nodiscard]] std::unique_ptr<Convolution> make(const ConvProblem& problem,
                                                  const std::string& algorithm) override {
    return std::make_unique<CudnnConvolution>(connection_, streams_, plan(problem, algorithm));
  }

  [[nodiscard]] ConvCandidates candidates(const ConvProblem& problem) override {
    candidates_.clear();
    const auto usual = plan(problem, {});
    ConvCandidates found{.algorithms = {algorithm_of(connection_.api(), usual->engine)}, .left_out = {}};
    auto plans = plans_to_measure(device(), problem, workspace_limit_, kMostCandidates, &found.left_out);
    for (Plan& made : plans) {
      // A plan of an engine that is compiled at run time takes a second, in every later start too.
      if (made.engine == usual->engine || made.engine.compiled_at_run_time) continue;
      found.algorithms.push_back(algorithm_of(connection_.api(), made.engine));
      candidates_.push_back(std::make_shared<const Plan>(std::move(made)));
      plans_.push_back({problem, found.algorithms.back(), candidates_.back()});
    }
    candidates_.push_back(usual);
    return found;
  }

 private:
  static constexpr std::size_t kMostCandidates = 8;
  struct Known {
    ConvProblem problem;
    std::string algorithm;  ///< empty: the default
    std::weak_ptr<const Plan> plan;
  };

  [[nodiscard]] TargetDevice device() const {
    return TargetDevice::of(connection_.api(), connection_.handle());
  }
  /// The plan for a problem. Layers with equal problems share one plan while any of them exists.
  std::shared_ptr<const Plan> plan(const ConvProblem& problem, const std::string& algorithm) {
    std::erase_if(plans_, [](const Known& known) { return known.plan.expired(); });
    for (const Known& known : plans_)
      if (known.problem == problem && known.algorithm == algorithm) return known.plan.lock();
    auto made = std::make_shared<const Plan>(
        algorithm.empty() ? first_plan(device(), problem, workspace_limit_)
                          : named_plan(device(), problem, algorithm, workspace_limit_));
    plans_.push_back({problem, algorithm, made});
    if (algorithm.empty()) plans_.push_back({problem, algorithm_of(connection_.api(), made->engine), made});
    return made;
  }

  const Connection connection_;
  const std::size_t workspace_limit_;
  const NativeStream streams_;
  std::vector<Known> plans_;
  std::vector<std::shared_ptr<const Plan>> candidates_;  ///< plans of the last call of candidates()
};

}  // namespace

Connection::Connection(const CudnnApi& api) : api_(api) {
  check(api_, api_.cudnnCreate(&handle_), "cudnnCreate", "the current device");
}

Connection::~Connection() { static_cast<void>(api_.cudnnDestroy(handle_)); }

std::unique_ptr<Convolution> make_convolution(const Connection& connection, const NativeStream& streams,
                                              Plan plan) {
  return std::make_unique<CudnnConvolution>(connection, streams,
                                            std::make_shared<const Plan>(std::move(plan)));
}

OpenConvolutions open_cudnn(const CudnnApi& api, std::size_t workspace_limit) {
  return [&api, workspace_limit](const NativeStream& streams) {
    return std::make_unique<CudnnLibrary>(api, workspace_limit, streams);
  };
}

}  // namespace paceline::engine::cuda::cudnn
