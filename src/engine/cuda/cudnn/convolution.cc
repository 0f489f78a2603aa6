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
  [[nodiscard]] std::span<const PassedOver> passed_over() const override { return plan_->passed_over; }
  [[nodiscard]] bool is_untried() const override { return !plan_->has_run; }

  void run(Stream stream, const ConvOperands& operands) override {
    if (!arguments_ || !(operands_ == operands)) bind(operands);
    const CudnnApi& api = connection_.api();
    const std::string& problem = plan_->plan().site().problem;
    check(api, api.cudnnSetStream(connection_.handle(), streams_(stream)), "cudnnSetStream", problem);
    const Status status =
        api.cudnnBackendExecute(connection_.handle(), plan_->plan().raw(), arguments_->raw());
    try {
      check(api, status, "cudnnBackendExecute", problem);
    } catch (const base::Error& error) {
      // Kernels in clusters of blocks may not fit on a part of a GPU (MIG, MPS).
      if (plan_->has_run || lacks_memory(status)) throw;
      throw AlgorithmRefused(error.what(), "cannot be started: " + error_text(api, status));
    }
    plan_->has_run = true;
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

/// The plan of a problem by an algorithm.
struct KnownPlan {
  ConvProblem problem;
  std::string algorithm;  ///< empty: the default
  std::shared_ptr<const Plan> plan;
};

std::shared_ptr<const Plan> known_plan(const std::vector<KnownPlan>& plans, const ConvProblem& problem,
                                       const std::string& algorithm) {
  for (const KnownPlan& known : plans)
    if (known.problem == problem && known.algorithm == algorithm) return known.plan;
  return nullptr;
}

}  // namespace

struct KeptPlans::Planner {
  explicit Planner(const CudnnApi& api) : connection(api) {}
  const Connection connection;
  std::vector<KnownPlan> plans;  ///< made by `connection`, so that they end before it
};

KeptPlans::KeptPlans() = default;
KeptPlans::~KeptPlans() = default;

std::unique_ptr<KeptPlans::Planner> KeptPlans::take(int device) {
  const std::lock_guard lock(mutex_);
  auto& idle = idle_[device];
  if (idle.empty()) return nullptr;
  auto planner = std::move(idle.back());
  idle.pop_back();
  return planner;
}

void KeptPlans::give_back(int device, std::unique_ptr<Planner> planner) {
  const std::lock_guard lock(mutex_);
  idle_[device].push_back(std::move(planner));
}

namespace {

class CudnnLibrary final : public ConvolutionLibrary {
 public:
  CudnnLibrary(const CudnnApi& api, std::size_t workspace_limit, KeptPlans* kept, int device,
               NativeStream streams)
      : workspace_limit_(workspace_limit),
        kept_(kept),
        device_(device),
        streams_(std::move(streams)),
        planner_(kept != nullptr ? kept->take(device) : nullptr) {
    if (!planner_) planner_ = std::make_unique<KeptPlans::Planner>(api);
  }
  ~CudnnLibrary() override {
    constexpr std::size_t kMost = 4096;  // of very many batches; one of them has some dozens of plans
    if (planner_->plans.size() > kMost) planner_->plans.clear();
    if (kept_ != nullptr) kept_->give_back(device_, std::move(planner_));
  }
  CudnnLibrary(const CudnnLibrary&) = delete;
  CudnnLibrary& operator=(const CudnnLibrary&) = delete;

  [[nodiscard]] std::string version() const override { return "cuDNN " + cudnn_version(api()); }
  [[nodiscard]] std::unique_ptr<Convolution> make(const ConvProblem& problem,
                                                  const std::string& algorithm) override {
    return std::make_unique<CudnnConvolution>(planner_->connection, streams_, plan(problem, algorithm));
  }

  [[nodiscard]] ConvCandidates candidates(const ConvProblem& problem) override {
    candidates_.clear();
    const auto usual = plan(problem, {});
    ConvCandidates found{.algorithms = {algorithm_of(api(), usual->engine)}, .left_out = {}};
    auto plans = plans_to_measure(device(), problem, workspace_limit_, kMostCandidates, &found.left_out);
    for (Plan& made : plans) {
      // A plan of an engine that is compiled at run time takes a second, in every later start too.
      if (made.engine == usual->engine) continue;
      if (made.engine.compiled_at_run_time && !usual->engine.compiled_at_run_time) continue;
      found.algorithms.push_back(algorithm_of(api(), made.engine));
      candidates_.push_back(
          {problem, found.algorithms.back(), std::make_shared<const Plan>(std::move(made))});
    }
    return found;
  }

 private:
  static constexpr std::size_t kMostCandidates = 8;

  [[nodiscard]] const CudnnApi& api() const { return planner_->connection.api(); }
  [[nodiscard]] TargetDevice device() const { return {api(), planner_->connection.handle()}; }
  /// The plan for a problem, which all layers with equal problems share.
  std::shared_ptr<const Plan> plan(const ConvProblem& problem, const std::string& algorithm) {
    if (auto known = known_plan(planner_->plans, problem, algorithm)) return known;
    auto made = known_plan(candidates_, problem, algorithm);
    if (!made)
      made = std::make_shared<const Plan>(algorithm.empty()
                                              ? first_plan(device(), problem, workspace_limit_)
                                              : named_plan(device(), problem, algorithm, workspace_limit_));
    planner_->plans.push_back({problem, algorithm, made});
    if (algorithm.empty()) planner_->plans.push_back({problem, algorithm_of(api(), made->engine), made});
    return made;
  }

  const std::size_t workspace_limit_;
  KeptPlans* const kept_;
  const int device_;
  const NativeStream streams_;
  std::unique_ptr<KeptPlans::Planner> planner_;
  std::vector<KnownPlan> candidates_;  ///< of the last call of candidates(); those that are made are kept
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

OpenConvolutions open_cudnn(const CudnnApi& api, std::size_t workspace_limit, KeptPlans* kept, int device) {
  return [&api, workspace_limit, kept, device](const NativeStream& streams) {
    return std::make_unique<CudnnLibrary>(api, workspace_limit, kept, device, streams);
  };
}

}  // namespace paceline::engine::cuda::cudnn
