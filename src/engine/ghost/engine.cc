#include "engine/ghost/engine.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "graph/ops.h"

namespace paceline::engine::ghost {
namespace {

using base::Clock;
using base::TimePoint;

/// Sleeps through phases one after another. How late a sleep ended is taken from the next one, so that
/// lateness does not add up; what the caller does between them is not.
class Sleeper {
 public:
  void sleep(double seconds) {
    const TimePoint until =
        Clock::now() - late_ +
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    std::this_thread::sleep_until(until);
    late_ = std::max(Clock::now() - until, Clock::duration(0));
  }
  /// Somebody else's wait has ended, which the last lateness was part of.
  void forget() { late_ = {}; }

 private:
  Clock::duration late_{};
};

/// Slot by slot, in the order of the layout: the share of the backward pass that is over when its gradient is
/// final. The nodes of a slot's node and after it have run backward by then.
std::vector<double> shares_of_slots(const graph::Graph& graph, const graph::Layout& layout) {
  const auto needs = graph::needs_gradient(graph);
  std::vector<double> until_node(graph.nodes.size());
  double sum = 0;
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const auto& inputs = graph.nodes[i].inputs;
    const bool sends_back = !inputs.empty() && needs[static_cast<std::size_t>(inputs.front())];
    sum += static_cast<double>(graph::multiply_adds(graph, static_cast<int>(i))) * (sends_back ? 2 : 1);
    until_node[i] = sum;
  }
  std::vector<double> shares;
  for (const auto& slot : layout.slots) {
    const auto node = graph.parameters[static_cast<std::size_t>(slot.parameter)].node;
    const double share = sum > 0 ? until_node[static_cast<std::size_t>(node)] / sum : 1;
    shares.push_back(shares.empty() ? share : std::max(share, shares.back()));
  }
  return shares;
}

/// When the first `bytes` are final, between the points of `ready`.
double ready_at(std::span<const ReadyAt> ready, double bytes) {
  ReadyAt before{};
  for (const auto& point : ready) {
    if (bytes <= static_cast<double>(point.bytes))
      return before.seconds + (point.seconds - before.seconds) * (bytes - static_cast<double>(before.bytes)) /
                                  static_cast<double>(point.bytes - before.bytes);
    before = point;
  }
  return before.seconds;
}

class GhostEngine final : public Engine {
 public:
  GhostEngine(const graph::Graph& graph, const CompileOptions& options, Phases phases)
      : graph_(graph),
        layout_(graph::flat_layout(graph_)),
        plan_(ghost::plan(graph, options)),
        phases_(std::move(phases)),
        seed_(options.seed),
        batch_(options.batch),
        weights_(static_cast<std::size_t>(layout_.elements) * sizeof(float)),
        gradients_(gradient_memory(options, layout_)) {
    weights_.fill_zero();
    std::vector<std::int64_t> ends;
    for (std::size_t i = 1; i < layout_.slots.size(); ++i) ends.push_back(layout_.slots[i].offset);
    ends.push_back(layout_.elements);
    cut_backward(ends);
    // By default the kernel wakes a thread up to 50 us late, to join it with others. Refused, it stays so.
    ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  }

  [[nodiscard]] std::string name() const override { return "ghost"; }
  [[nodiscard]] const graph::Graph& graph() const override { return graph_; }
  [[nodiscard]] const graph::Layout& layout() const override { return layout_; }
  [[nodiscard]] const graph::MemoryPlan& plan() const override { return plan_; }
  std::span<float> weights() override { return weights_.as<float>(); }
  std::span<float> optimizer_state(int) override { return {}; }
  base::Array gradients() override { return gradients_.array(); }
  void weights_changed() override {}

  LossSums forward(const StepInput& input) override {
    factor_ = work_factor(phases_.spread, seed_, input.step, input.first_position);
    sleeper_.sleep(factor_ * phases_.forward_s);
    return of_a_guess(batch_);
  }
  void cut_backward(std::span<const std::int64_t> ends) override {
    ends_.assign(ends.begin(), ends.end());
    ready_s_ = ready_times(phases_, graph_, layout_, ends_);
  }
  void backward(const GradientReady& on_ready) override {
    double before = 0;
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      sleeper_.sleep(factor_ * (ready_s_[i] - before));
      before = ready_s_[i];
      on_ready(ends_[i]);
    }
    sleeper_.sleep(factor_ * (phases_.backward_s - before));
  }
  void update(const UpdateRule&, double, std::int64_t) override {
    sleeper_.forget();
    sleeper_.sleep(factor_ * phases_.update_s);
  }
  double gradient_squares(std::int64_t, std::int64_t) override { return 0; }
  LossSums evaluate(std::span<const float>, std::span<const std::int32_t>, int count, int,
                    std::span<double> logits) override {
    std::ranges::fill(logits, 0.0);
    return of_a_guess(count);
  }
  void observe(OpObserver) override {}
  [[nodiscard]] std::vector<KernelChoice> kernels() const override {
    return {{"every op", "ghost", "--emulate-compute: the worker sleeps instead of computing", ""}};
  }

 private:
  [[nodiscard]] LossSums of_a_guess(int samples) const {
    return {.loss = samples * std::log(graph_.classes()), .correct = 0, .samples = samples};
  }

  const graph::Graph graph_;
  const graph::Layout layout_;
  const graph::MemoryPlan plan_;
  const Phases phases_;
  const std::uint64_t seed_;
  const int batch_;
  base::Buffer weights_;
  base::OwnedArray gradients_;
  std::vector<std::int64_t> ends_;
  std::vector<double> ready_s_;  ///< of each end, before the factor
  double factor_ = 1;            ///< of this step
  Sleeper sleeper_;
};

}  // namespace

std::vector<double> ready_times(const Phases& phases, const graph::Graph& graph, const graph::Layout& layout,
                                std::span<const std::int64_t> ends) {
  std::vector<double> times;
  const auto shares = phases.ready.empty() ? shares_of_slots(graph, layout) : std::vector<double>();
  for (const auto end : ends) {
    if (!phases.ready.empty()) {
      times.push_back(ready_at(phases.ready, sizeof(float) * static_cast<double>(end)));
      continue;
    }
    const auto after = std::ranges::lower_bound(layout.slots, end, {}, &graph::Slot::offset);
    const auto last = after == layout.slots.begin() ? 0 : after - layout.slots.begin() - 1;
    times.push_back(phases.backward_s * shares[static_cast<std::size_t>(last)]);
  }
  return times;
}

std::unique_ptr<Engine> compile(const graph::Graph& graph, const CompileOptions& options) {
  check_options(options, "ghost");
  auto phases = parse_phases(options.emulated_compute);
  if (options.training && phases.batch != 0 && phases.batch != options.batch)
    base::fail(
        base::ErrorKind::usage,
        "--emulate-compute: its phases are of batches of {}, and a worker has {}; take that batch, or the "
        "record of a run with {}",
        phases.batch, options.batch, options.batch);
  const auto bytes = static_cast<std::int64_t>(sizeof(float)) * graph::flat_layout(graph).elements;
  if (!phases.ready.empty() && phases.ready.back().bytes != bytes)
    base::fail(
        base::ErrorKind::usage,
        "--emulate-compute: its ready times are of a gradient of {} bytes, and that of model '{}' has {}; "
        "take the record of a run of this model",
        phases.ready.back().bytes, graph.name, bytes);
  return std::make_unique<GhostEngine>(graph, options, std::move(phases));
}

graph::MemoryPlan plan(const graph::Graph& graph, const CompileOptions& options) {
  check_options(options, "ghost");
  const std::int64_t flat = graph::flat_layout(graph).elements * static_cast<std::int64_t>(sizeof(float));
  graph::MemoryPlan plan;
  plan.lines.push_back({"weights", flat});
  if (options.training) plan.lines.push_back({"gradients", flat});
  return plan;
}

}  // namespace paceline::engine::ghost
