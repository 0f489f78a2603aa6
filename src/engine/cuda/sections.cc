#include "engine/cuda/sections.h"

#include <algorithm>

namespace paceline::engine::cuda {

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
  // Sections of different input sets launch the same kernels, so either all or none can be captured.
  Section any_inputs = section;
  any_inputs.input_set = 0;
  const bool is_evaluation = section.part == SectionPart::evaluation;
  const bool may_be_captured = is_evaluation ? captures_ : why_eager_.empty();
  if (!may_be_captured || refused_.contains(any_inputs)) return post();
  auto found = captured_.find(section);
  if (found == captured_.end()) {
    // It must have run once before it is captured.
    if (seen_.insert(any_inputs).second || (is_evaluation ? evaluations_ : steps_) <= kEagerSteps)
      return post();
    try {
      found = captured_.emplace(section, runtime_.capture(compute_, post)).first;
    } catch (const CannotCapture& error) {
      refused_.emplace(any_inputs, error.what());
      return post();
    }
  }
  runtime_.set_op(name);
  runtime_.replay(compute_, found->second);
  runtime_.set_op("");
}

void Sections::forget_backward() {
  std::erase_if(seen_, [](const Section& section) { return section.part == SectionPart::backward; });
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

}  // namespace paceline::engine::cuda
