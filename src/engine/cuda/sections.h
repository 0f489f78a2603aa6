#pragma once

/// Sections captures the work of training steps and evaluations as CUDA graphs. The first two steps, and the
/// first two evaluated batches, launch each kernel; the third is captured, and later ones are replayed with
/// one call for each section.
///
/// A section is work that the engine enqueues on the compute stream without a break: the forward pass; a part
/// of the backward pass, which ends where the caller wants to know that gradients are final, since it starts
/// collectives there; the update; the forward pass of a full batch in evaluation. A section's kernels hold
/// addresses of one set of input buffers, so each set has its own captured section. Numbers that differ
/// between steps (step, learning rate, scale) are read from device memory.
///
/// The first steps are not captured because libraries load kernels and allocate memory when they first run,
/// which is forbidden in a capture.

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/cuda/program.h"
#include "engine/cuda/runtime/runtime.h"

namespace paceline::engine::cuda {

/// A part of the backward pass between two points where gradients become final.
struct BackwardSection {
  /// Indices in Program::ops(): runs from first_op down to last_op, inclusive.
  int first_op = 0, last_op = 0;
  /// Gradients in [0, ready) of the flat array are final after it; 0: no more than before.
  std::int64_t ready = 0;
};

/// Cuts the backward pass after the ops that complete the gradients up to each of `ends`. If `ends` is empty:
/// after each op that makes more gradients final.
[[nodiscard]] std::vector<BackwardSection> cut_backward_pass(const Program& program,
                                                             std::span<const std::int64_t> ends);

/// Why no training step of this program can be captured: the reason of the first op that needs the host.
/// Empty if it can be captured.
[[nodiscard]] std::string why_eager(const Program& program);

enum class SectionPart { forward, backward, update, evaluation };

struct Section {
  SectionPart part = SectionPart::forward;
  int number = 0;     ///< index of the section in its part; for an evaluation, the views of each sample
  int input_set = 0;  ///< the set of input buffers that its kernels read; 0 if they read none
  auto operator<=>(const Section&) const = default;
};

class Sections {
 public:
  /// The number of first steps, and of first evaluated batches, that are not captured.
  static constexpr int kEagerSteps = 2;

  /// `captures`: whether to capture at all. `why_eager`: the reason not to capture training steps, or empty.
  Sections(Runtime& runtime, Stream compute, bool captures, std::string why_eager)
      : runtime_(runtime),
        compute_(compute),
        captures_(captures),
        why_eager_(captures ? std::move(why_eager) : "switched off") {}

  void begin_step() { ++steps_; }
  void begin_evaluation() { ++evaluations_; }
  /// Enqueues a section on the compute stream: replays it if it is captured, otherwise calls `post`, which
  /// enqueues it kernel by kernel. `post` must enqueue the same work each time. Errors of a replay give
  /// `name` in place of an op.
  ///
  /// Errors   Error(device). A section that cannot be captured is no error: it is launched kernel by kernel,
  ///          and describe() says why
  void run(const Section& section, const char* name, const std::function<void()>& post);
  /// Discards the captured sections of the backward pass. Call it if `post` will enqueue other work for them.
  void forget_backward();
  /// The row of Engine::kernels() that says how steps are launched.
  [[nodiscard]] KernelChoice describe() const;

 private:
  Runtime& runtime_;
  const Stream compute_;
  const bool captures_;
  const std::string why_eager_;
  std::int64_t steps_ = 0, evaluations_ = 0;
  std::set<Section> seen_;  ///< with input_set 0
  std::map<Section, CapturedSection> captured_;
  std::map<Section, std::string> refused_;  ///< why they cannot be captured; with input_set 0
};

}  // namespace paceline::engine::cuda
