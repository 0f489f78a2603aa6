#include "engine/cuda/sections.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace paceline::engine::cuda {

void LogitsReader::read(const Program& program, const ExecContext& exec, int count, int views,
                        std::span<double> logits) {
  const Value& value = program.logits();
  const int classes = program.graph().classes(), padded = value.channels();
  with_storage(program.options().precision, [&]<typename T>(T) {
    if (pinned_ == nullptr)
      pinned_ = exec.runtime.allocate_pinned(static_cast<std::size_t>(program.options().batch) *
                                             static_cast<std::size_t>(padded) * sizeof(T));
    const auto* stored = reinterpret_cast<const T*>(pinned_);
    exec.runtime.copy_to_host(exec.compute, pinned_, exec.memory.at<T>(value.buffer),
                              static_cast<std::size_t>(std::int64_t{1} * count * views * padded) * sizeof(T));
    exec.runtime.synchronize(exec.compute);
    for (int n = 0; n < count; ++n)
      for (int k = 0; k < classes; ++k) {
        double sum = 0;
        for (int view = 0; view < views; ++view)
          sum += static_cast<double>(load(stored[(std::int64_t{1} * n * views + view) * padded + k]));
        logits[static_cast<std::size_t>(std::int64_t{1} * n * classes + k)] = views == 1 ? sum : sum / views;
      }
  });
}

static_assert(kVotes == kVoteFloats);

StepReports::StepReports(Runtime& runtime, Stream compute)
    : runtime_(runtime),
      compute_(compute),
      on_device_(reinterpret_cast<StepReport*>(runtime.allocate(sizeof(StepReport) + sizeof(std::int32_t)))),
      is_halted_(reinterpret_cast<std::int32_t*>(on_device_ + 1)),
      anchor_(runtime.make_timed_event()) {
  auto* pinned = reinterpret_cast<StepReport*>(runtime.allocate_pinned(kSlots * sizeof(StepReport)));
  std::fill_n(pinned, kSlots, StepReport{});
  for (Slot& slot : slots_) slot.pinned = pinned++;
}

void StepReports::open() {
  base::expects(!is_open_ && closed_ <= kLag, "a queue of steps holds one more than its lag");
  if (closed_ == 0) {
    const auto before = base::Clock::now();
    runtime_.record(anchor_, compute_);
    runtime_.synchronize(anchor_);
    last_ = anchor_;
    last_at_ = before + (base::Clock::now() - before) / 2;
  }
  is_open_ = true;
  slot(first_ + closed_).stages.clear();
}

void StepReports::mark(Stage until) {
  base::expects(is_open_, "marks belong to a step");
  Slot& open = slot(first_ + closed_);
  if (until == Stage::transfer && !open.stages.empty() && open.stages.back() == until) return;
  if (open.stages.size() == open.events.size()) open.events.push_back(runtime_.make_timed_event());
  runtime_.record(open.events[open.stages.size()], compute_);
  open.stages.push_back(until);
}

void StepReports::close() {
  base::expects(is_open_, "a step ends that has begun");
  mark(Stage::update);
  is_open_ = false;
  ++closed_;
}

QueuedStep StepReports::collect() {
  base::expects(closed_ > 0, "a step is collected that is in the queue");
  const Slot& oldest = slot(first_);
  const Event end = oldest.events[oldest.stages.size() - 1];
  runtime_.synchronize(end);
  QueuedStep step{.local = {.loss = oldest.pinned->local.loss, .correct = oldest.pinned->local.correct},
                  .is_left_out = oldest.pinned->is_left_out != 0};
  std::ranges::copy(oldest.pinned->votes, step.votes.begin());
  step.gradient_norm = oldest.pinned->gradient_norm;
  std::ranges::copy(oldest.pinned->squares, step.squares.begin());
  const auto after_last = [&](Event event) {
    return last_at_ + std::chrono::duration_cast<base::Clock::duration>(
                          std::chrono::duration<double>(runtime_.seconds_between(last_, event)));
  };
  for (std::size_t i = 0; i < oldest.stages.size(); ++i)
    step.marks.push_back({oldest.stages[i], after_last(oldest.events[i])});
  last_at_ = step.marks.back().at;
  last_ = end;
  ++first_;
  --closed_;
  return step;
}

const StepReport& StepReports::wait_for_report() {
  base::expects(is_empty(), "all steps are collected before a report is read apart from them");
  StepReport* const pinned = slot(first_).pinned;
  runtime_.copy_to_host(compute_, pinned, on_device_, sizeof(StepReport));
  runtime_.synchronize(compute_);
  return *pinned;
}

std::vector<BackwardSection> cut_backward_pass(const Program& program, std::span<const std::int64_t> ends) {
  const graph::Layout& layout = program.layout();
  std::vector<bool> is_done(layout.slots.size());
  std::size_t done = 0, next_end = 0;
  std::int64_t told = 0;
  std::vector<BackwardSection> sections;
  int first = static_cast<int>(program.ops().size()) - 1;
  for (int op = first; op >= 0; --op) {
    const int node = program.ops()[static_cast<std::size_t>(op)].group.node;
    for (const int parameter : program.graph().nodes[static_cast<std::size_t>(node)].parameters)
      is_done[static_cast<std::size_t>(layout.slot_of_parameter[static_cast<std::size_t>(parameter)])] = true;
    while (done < is_done.size() && is_done[done]) ++done;
    const std::int64_t ready = done < is_done.size() ? layout.slots[done].offset : layout.elements;
    const bool is_wanted =
        ready > told && (ends.empty() || (next_end < ends.size() && ready >= ends[next_end]));
    // The remaining op, the input, has no gradients.
    const bool is_last = ready == layout.elements || op == 0;
    if (!is_wanted && !is_last) continue;
    while (next_end < ends.size() && ready >= ends[next_end]) ++next_end;
    sections.push_back({.first_op = first, .last_op = is_last ? 0 : op, .ready = ready > told ? ready : 0});
    if (is_last) break;
    told = ready;
    first = op - 1;
  }
  return sections;
}

std::string why_eager(const Program& program) {
  for (const auto& entry : program.ops())
    if (std::string reason = entry.op->needs_host(); !reason.empty()) return reason;
  return {};
}

void Sections::run(const Section& section, const char* name, const std::function<void()>& post) {
  const bool may_be_captured = section.part == SectionPart::evaluation ? captures_ : why_eager_.empty();
  if (!may_be_captured || refused_.contains(section)) return post();
  auto found = captured_.find(section);
  if (found == captured_.end()) {
    if (!captures_new_) return post();
    try {
      found = captured_.emplace(section, runtime_.capture(compute_, post)).first;
    } catch (const CannotCapture& error) {
      refused_.emplace(section, error.what());
      return post();
    }
  }
  runtime_.set_op(name);
  runtime_.replay(compute_, found->second);
  runtime_.set_op("");
}

void Sections::forget_backward() {
  std::erase_if(captured_, [](const auto& one) { return one.first.part == SectionPart::backward; });
  std::erase_if(refused_, [](const auto& one) { return one.first.part == SectionPart::backward; });
}

KernelChoice Sections::describe() const {
  KernelChoice row{.op = "step", .implementation = "captured sections", .reason = why_eager_, .rate = ""};
  constexpr const char* kParts[] = {"forward", "backward", "update", "evaluation"};
  std::set<SectionPart> parts;
  for (const auto& [section, why] : refused_) {
    if (parts.insert(section.part).second)
      row.implementation +=
          (parts.size() == 1 ? " but for " : ", ") + std::string(kParts[static_cast<int>(section.part)]);
    if (row.reason.find(why) == std::string::npos) row.reason += (row.reason.empty() ? "" : "; ") + why;
  }
  const bool has_captured_steps = std::ranges::any_of(
      captured_, [](const auto& one) { return one.first.part != SectionPart::evaluation; });
  if (!row.reason.empty() && !has_captured_steps) row.implementation = "launch by launch";
  return row;
}

void work_on_black_images(Engine& engine, const CompileOptions& options, const WarmUp& coming) {
  const auto batch = static_cast<std::size_t>(options.batch);
  const bool draws_images = options.stored_images > 0;
  const std::vector<float> images(
      draws_images ? 0 : batch * static_cast<std::size_t>(engine.graph().input_shape().elements()));
  const std::vector<base::SampleDraw> draws(draws_images ? batch : 0);
  const std::vector<std::int32_t> labels(batch);
  const std::vector<base::SecondLabel> second_labels(options.has_two_labels ? batch : 0);
  if (coming.steps != WarmUp::Steps::none) {
    const StepInput input{.images = images,
                          .labels = labels,
                          .step = static_cast<std::uint64_t>(Runtime::kWarmUp),
                          .draws = draws,
                          .second_labels = second_labels};
    StepQueue* const queue = coming.steps == WarmUp::Steps::queued ? engine.step_queue() : nullptr;
    queue != nullptr ? queue->forward(input, {}, {.rule = options.rule})
                     : static_cast<void>(engine.forward(input));
    engine.backward({});
    queue != nullptr ? queue->update() : engine.update(options.rule, 0, 1);
    if (queue != nullptr) static_cast<void>(queue->collect());
  }
  if (coming.views == 0) return;
  const int count = options.batch / coming.views;
  std::vector<double> logits(static_cast<std::size_t>(std::int64_t{1} * count * engine.graph().classes()));
  static_cast<void>(draws_images ? engine.evaluate_draws(draws, labels, count, coming.views, logits)
                                 : engine.evaluate(images, labels, count, coming.views, logits));
}

}  // namespace paceline::engine::cuda
