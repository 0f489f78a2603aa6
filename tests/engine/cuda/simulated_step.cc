#include "engine/cuda/simulated_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>

#include "engine/cuda/engine.h"

namespace paceline::engine::cuda {
namespace {

constexpr int kWarmUpSteps = 8, kMeasuredSteps = 8;
constexpr int kDrawnStep = 4;  ///< index among the measured steps; the host works on later ones meanwhile
constexpr int kColumns = 96;

/// The fraction of [begin, end) covered by spans of `unit` for which `counts` returns true.
template <typename Counts>
double seconds_within(std::span<const SimulatedSpan> spans, Unit unit, double begin, double end,
                      const Counts& counts) {
  double seconds = 0;
  for (const SimulatedSpan& span : spans)
    if (span.unit == unit && counts(span))
      seconds += std::max(0.0, std::min(span.end_s, end) - std::max(span.begin_s, begin));
  return seconds;
}
bool is_work(const SimulatedSpan& span) { return std::string_view(span.what) != "wait"; }

/// Drives an engine as a worker does (train/step/queued_steps.h, train/step/step.h).
class SimulatedSteps {
 public:
  SimulatedSteps(const graph::Graph& graph, const CompileOptions& options, const SimulatedStepOptions& how)
      : options_(options_for(options, how)), how_(how), labels_(static_cast<std::size_t>(options.batch)) {
    auto runtime = std::make_unique<SimulatedRuntime>();
    runtime_ = runtime.get();
    engine_ = compile(graph, options_, std::move(runtime));
    const auto sample = static_cast<std::size_t>(graph.input_shape().elements());
    if (how.stores_images) {
      draws_.resize(labels_.size());
      engine_->set_byte_values(
          std::vector<float>(256 * static_cast<std::size_t>(graph.input_shape().channels)));
      engine_->store_images(0, std::vector<std::uint8_t>(sample));
    } else {
      images_.resize(labels_.size() * sample);
    }
    const std::int64_t whole = engine_->layout().elements;
    engine_->cut_backward({&whole, 1});
    using Steps = WarmUp::Steps;
    engine_->warm_up({.steps = how.wait == SimulatedStepOptions::Wait::loss ? Steps::waited : Steps::queued,
                      .views = how.evaluates ? 1 : 0});
  }

  /// Returns the time at which the update ends on the device, or at which the host has the loss of an
  /// evaluated batch.
  double run() {
    if (how_.evaluates) return evaluate();
    const StepInput input{.images = images_,
                          .labels = labels_,
                          .gradient_scale = 1.0 / options_.batch,
                          .step = static_cast<std::uint64_t>(steps_++),
                          .draws = draws_};
    how_.wait == SimulatedStepOptions::Wait::loss ? run_waiting(input) : run_queued(input);
    return runtime_->end_of(Unit::compute);
  }
  [[nodiscard]] SimulatedRuntime& runtime() { return *runtime_; }

 private:
  static CompileOptions options_for(CompileOptions options, const SimulatedStepOptions& how) {
    options.stored_images = how.stores_images ? 1 : 0;
    options.captures = how.captures;
    return options;
  }
  double evaluate() {
    static_cast<void>(how_.stores_images ? engine_->evaluate_draws(draws_, labels_, options_.batch)
                                         : engine_->evaluate(images_, labels_, options_.batch));
    return runtime_->now();
  }
  void run_waiting(const StepInput& input) {
    static_cast<void>(engine_->forward(input));
    engine_->backward({});
    engine_->update(options_.rule, 0.1, steps_);
  }
  void run_queued(const StepInput& input) {
    StepQueue& queue = *engine_->step_queue();
    if (steps_ > queue.lag() + 1) static_cast<void>(queue.collect());
    queue.forward(input, {}, {.rule = options_.rule, .lr = 0.1, .number = steps_});
    if (how_.wait == SimulatedStepOptions::Wait::middle) runtime_->synchronize_all();
    engine_->backward({});
    queue.update();
    if (how_.wait == SimulatedStepOptions::Wait::end) runtime_->synchronize_all();
  }

  const CompileOptions options_;
  const SimulatedStepOptions how_;
  std::vector<float> images_;            ///< images_ or draws_
  std::vector<base::SampleDraw> draws_;  ///< is empty, the other is used
  const std::vector<std::int32_t> labels_;
  SimulatedRuntime* runtime_ = nullptr;
  std::unique_ptr<Engine> engine_;
  std::int64_t steps_ = 0;
};

/// The time line of a unit: how busy it is in each column.
std::string marks_of(const SimulatedStep& step, Unit unit) {
  std::string marks;
  const double width = step.seconds / kColumns;
  for (int column = 0; column < kColumns; ++column) {
    const double share =
        seconds_within(step.spans, unit, column * width, (column + 1) * width, is_work) / width;
    marks += share > 0.99 ? '#' : share >= 0.5 ? '+' : share > 0 ? '.' : ' ';
  }
  return marks;
}

/// Consecutive work of one part of the graph.
struct Fold {
  std::string part;
  double begin_s = 0, end_s = 0, busy_s = 0;
  int count = 0;
};

std::vector<Fold> folds_of(const SimulatedStep& step) {
  std::vector<Fold> folds;
  for (const SimulatedSpan& span : step.spans) {
    if (span.unit != Unit::compute) continue;
    const std::string part = span.op.substr(0, span.op.find('.'));
    if (folds.empty() || folds.back().part != part)
      folds.push_back({.part = part, .begin_s = span.begin_s, .end_s = span.begin_s});
    Fold& fold = folds.back();
    fold.end_s = span.end_s;
    fold.busy_s += span.seconds();
    ++fold.count;
  }
  return folds;
}

}  // namespace

SimulatedStep simulate_step(const graph::Graph& graph, const CompileOptions& options,
                            const SimulatedStepOptions& how) {
  SimulatedSteps steps(graph, options, how);
  std::vector<double> ends(1);
  for (int i = 0; i < kWarmUpSteps; ++i) ends.front() = steps.run();
  const std::int64_t launches = steps.runtime().launches();
  for (int i = 0; i < kMeasuredSteps; ++i) ends.push_back(steps.run());
  const double begin = ends.front(), end = ends.back();
  const auto spans = steps.runtime().spans();
  SimulatedStep step{.seconds = (end - begin) / kMeasuredSteps,
                     .busy = seconds_within(spans, Unit::compute, begin, end, is_work) / (end - begin),
                     .host_busy = seconds_within(spans, Unit::host, begin, end, is_work) / (end - begin),
                     .launches = static_cast<double>(steps.runtime().launches() - launches) / kMeasuredSteps,
                     .spans = {}};
  const double from = ends[kDrawnStep - 1], to = ends[kDrawnStep];
  for (SimulatedSpan span : spans)
    if (span.end_s > from && span.begin_s < to) {
      span.begin_s = std::max(span.begin_s, from) - from;
      span.end_s = std::min(span.end_s, to) - from;
      step.spans.push_back(std::move(span));
    }
  std::ranges::stable_sort(step.spans, {}, &SimulatedSpan::begin_s);
  return step;
}

std::string figures_of(const SimulatedStep& step, int batch) {
  return fmt::format(
      "step {:.3f} ms, device busy {:.1f} %, host busy {:.1f} %, {:.0f} launches, {:.0f} images/s",
      1e3 * step.seconds, 100 * step.busy, 100 * step.host_busy, step.launches, batch / step.seconds);
}

std::string picture_of(const SimulatedStep& step, const std::string& title, int batch) {
  std::string text = fmt::format("{}: {}\n\n", title, figures_of(step, batch));
  for (const Unit unit : {Unit::host, Unit::compute, Unit::link_in, Unit::link_out})
    fmt::format_to(std::back_inserter(text), "  {:<10} |{}|\n", name_of(unit), marks_of(step, unit));
  fmt::format_to(std::back_inserter(text), "             0{:>{}}\n\n{:>10} {:>10} {:>10} {:>8}  part\n",
                 fmt::format("{:.0f} us", 1e6 * step.seconds), kColumns, "from us", "busy us", "idle us",
                 "kernels");
  double end = 0;
  for (const Fold& fold : folds_of(step)) {
    fmt::format_to(std::back_inserter(text), "{:>10.1f} {:>10.1f} {:>10.1f} {:>8}  {}\n", 1e6 * fold.begin_s,
                   1e6 * fold.busy_s, 1e6 * (fold.end_s - end - fold.busy_s), fold.count, fold.part);
    end = fold.end_s;
  }
  return text;
}

}  // namespace paceline::engine::cuda
