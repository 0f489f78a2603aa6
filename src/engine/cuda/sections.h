#pragma once

/// The sections of training steps and evaluations, and how they run: launch by launch in the first two steps
/// and evaluated batches, then captured once and replayed by one call each.
///
/// A section is what the engine puts on the compute stream without a break: the forward pass; the backward
/// pass up to each point where the caller wants to hear of final gradients, since collectives go between; the
/// update; the forward pass of a full batch that is evaluated. Kernels of passes hold addresses of one set of
/// input buffers, so that each set has its own. What changes from step to step (step numbers, learning rate,
/// scale) they read from memory.
///
/// The first steps are not captured because libraries load kernels and allocate when they first run, which a
/// capture must not.

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
#include "engine/cuda/runtime.h"

namespace paceline::engine::cuda {

/// A stretch of the backward pass.
struct BackwardSection {
  int first_op = 0, last_op = 0;  ///< of Program::ops(), from first down to last, which belongs to it
  std::int64_t ready = 0;         ///< gradients in [0, ready) are final after it; 0: no more than before
};

/// The backward pass, cut after the op that completes the gradients up to each of `ends`. No ends: wherever
/// an op makes more gradients final.
[[nodiscard]] std::vector<BackwardSection> cut_backward_pass(const Program& program,
                                                             std::span<const std::int64_t> ends);

/// Why no training step of this program can be captured: the first op that needs the host. Empty: it can.
[[nodiscard]] std::string why_eager(const Program& program);

enum class SectionPart { forward, backward, update, evaluation };

struct Section {
  SectionPart part = SectionPart::forward;
  int number = 0;     ///< of several in this part; of an evaluation the forms of each sample
  int input_set = 0;  ///< whose addresses its kernels hold; 0 where they hold none
  auto operator<=>(const Section&) const = default;
};

class Sections {
 public:
  /// So many steps, and evaluated batches, are not captured.
  static constexpr int kEagerSteps = 2;

  /// `captures`: whether anything is. `why_eager`: nothing of a training step is, for this reason; empty:
  /// everything is.
  Sections(Runtime& runtime, Stream compute, bool captures, std::string why_eager)
      : runtime_(runtime),
        compute_(compute),
        captures_(captures),
        why_eager_(captures ? std::move(why_eager) : "switched off") {}

  void begin_step() { ++steps_; }
  void begin_evaluation() { ++evaluations_; }
  /// Puts a section on the compute stream. `post` does so launch by launch; it is called as long as there is
  /// no captured section, and must put the same each time. `name` stands in errors for the op.
  ///
  /// Errors   Error(device); that a section cannot be captured is none: it stays eager, and describe() says
  /// why
  void run(const Section& section, const char* name, const std::function<void()>& post);
  /// Nothing of the backward pass counts as captured any more: `post` will put something else.
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
  std::map<Section, std::string> refused_;  ///< why they cannot be; with input_set 0
};

}  // namespace paceline::engine::cuda
