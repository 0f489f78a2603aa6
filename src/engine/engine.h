#pragma once

/// How a graph is computed: the interface that every engine (reference, cpu, cuda) offers.
///
/// Coarse on purpose: an engine compiles a whole graph for one device, batch size and precision, and owns its
/// layouts, fusions and kernels. It knows neither ranks nor records. One engine serves one worker: calls come
/// from one thread, in the order forward, backward, update (or evaluate between steps).

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/memory.h"
#include "base/sample_draw.h"
#include "engine/update_rule.h"
#include "graph/graph.h"
#include "graph/layout.h"
#include "graph/plan.h"

namespace paceline::engine {

enum class Precision { f32, bf16 };  ///< bf16: fp32 master weights, accumulation and statistics

/// Which samples share batch-norm statistics in training.
enum class BatchNormMode {
  local,         ///< the samples of this engine's batch
  ghost,         ///< groups of `ghost_size` consecutive samples of it
  synchronised,  ///< the batches of all workers, through `reduce_statistics`
};

/// Which algorithm computes which product of a graph: a convolution or dense layer in one direction. Both are
/// texts of the engine's own, the same for the same product in every run: records and checkpoints hold them.
using KernelAlgorithms = std::map<std::string, std::string>;

struct CompileOptions {
  int batch = 0;  ///< samples of one forward and backward; any value >= 1
  Precision precision = Precision::f32;
  int threads = 1;       ///< cores this engine may use
  bool training = true;  ///< off: evaluation only, no gradients, no optimizer state
  UpdateRule rule;       ///< fixes the optimizer's state; its numbers may be changed at each update
  BatchNormMode batch_norm = BatchNormMode::local;
  int ghost_size = 0;  ///< divides batch
  /// > 0: sums over samples are joined as if each `shard` samples of the batch were an engine's of their own,
  /// in the tree of base/summation_tree.h; kernels are chosen for so many. It divides batch. Only with
  /// `synchronised`: without it a shard is an engine's batch, and the caller joins.
  int shard = 0;
  std::uint64_t seed = 0;  ///< of dropout
  /// What prepare() (make.h) found; an engine that has several kernels for a product takes these. Null, and
  /// for products that are not in it: by the shape and the kind of processor alone.
  std::shared_ptr<const KernelAlgorithms> algorithms = {};
  /// synchronised only: sums `values` over all workers, in place, same bits everywhere; blocks. Called inside
  /// forward and backward, in the same order on every worker.
  std::function<void(std::span<double> values)> reduce_statistics;
  int world_size = 1;  ///< synchronised only: how many engines share the statistics
  /// Gives what gradients() lie in: `size` floats in `memory`, which is the engine's. Empty: the engine
  /// allocates them itself.
  std::function<base::OwnedArray(std::size_t size, const base::Memory& memory)> gradient_memory;
  /// Whether the engines of all workers say the same `text`; blocks until all have spoken. An engine calls it
  /// while it is compiled, as often on every worker, or never. Who gives it does not look up single elements
  /// of gradients(); empty: somebody may.
  std::function<bool(std::string_view text)> all_workers_say;
  /// > 0: room for so many images of the graph's input shape, a byte a value, where the engine computes; what
  /// it is then given are draws from these, never images. Only for engines that keep images (make.h).
  std::int64_t stored_images = 0;
  /// Engines with several devices: number of this engine's worker among the workers of its host. Worker i
  /// takes visible device i modulo their number,
  int worker_on_host = 0;
  std::optional<int> device_index;  ///< but this one, where it is given ("cuda:1")
};

/// How the algorithms of a run are to be chosen.
struct KernelRequest {
  /// The fastest on this machine, by measuring; else by shape and kind of processor.
  bool is_measured = false;
  /// Those of an earlier run, which win over both; empty: none.
  KernelAlgorithms given = {};
  /// What cannot be had of `given` ends the run; else the default stands in, and the note says so.
  bool insists = false;
};

struct PreparedKernels {
  /// Of every product of the graph; null: the engine has no choice.
  std::shared_ptr<const KernelAlgorithms> algorithms = {};
  /// One word: "given", "measured", or what the default is here: a table's name or "rules". Empty as above.
  std::string chosen_by = {};
  std::string note = {};  ///< a sentence for the user, or empty
};

/// What every engine asks of its options; `engine` is its name.
///
/// Errors   Error(usage) for a batch below 1, and for a ghost size that does not divide it
void check_options(const CompileOptions& options, std::string_view engine);

/// What the gradients of an engine lie in: as `options` say, in `memory`, zeroed; empty without training.
/// `more`: so many floats behind them.
[[nodiscard]] base::OwnedArray gradient_memory(const CompileOptions& options, const graph::Layout& layout,
                                               const base::Memory& memory = base::host_memory(),
                                               std::size_t more = 0);

/// A device beside the host that engines compute on: the fullest of those that a process's workers take.
struct DeviceInfo {
  std::string name;                    ///< "NVIDIA H100 80GB HBM3", "processor (no GPU)"
  std::string libraries;               ///< that compute there: "CUDA 13.0 (driver 580.65), cuDNN 9.19.0"
  std::int64_t memory_bytes = 0;       ///< of its own; 0: it computes in the host's memory
  std::int64_t free_memory_bytes = 0;  ///< of that, now: other processes count
  int devices = 1;                     ///< among which the workers of a host are dealt out
};

/// What one step of one engine computes on. Dropout masks are a pure function of
/// (seed, step, op, first_position + sample, element): the same for any number of workers.
struct StepInput {
  std::span<const float> images;         ///< [batch][H][W][C]; none where there are draws
  std::span<const std::int32_t> labels;  ///< [batch]
  double gradient_scale = 1;  ///< 1 / global batch: gradients are sums over samples times this, so that
                              ///< summing over workers and shards gives the mean over the global batch
  std::uint64_t step = 0;     ///< global step: with first_position, the identity of the random numbers
  std::int64_t first_position = 0;
  std::span<const base::SampleDraw> draws = {};  ///< [batch], with CompileOptions::stored_images
};

/// Sums over samples, never means. Each sample's loss is rounded to a multiple of 2^-24 before it is added,
/// so that the double sum is exact and does not depend on how samples were split over workers.
struct LossSums {
  double loss = 0;
  std::int64_t correct = 0;
  std::int64_t samples = 0;
  LossSums& operator+=(const LossSums& other) {
    loss += other.loss;
    correct += other.correct;
    samples += other.samples;
    return *this;
  }
};

/// Called while the backward pass goes on: gradients in [0, ready) of the flat layout are final. Monotonic;
/// the last call has ready = layout().elements.
using GradientReady = std::function<void(std::int64_t ready)>;

enum class Pass { forward, backward };

/// Called when an op begins (`begin`) and ends. No run sets it; bench/train_step.cc times ops with it.
using OpObserver = std::function<void(int node, Pass pass, bool begin)>;

/// Which implementation an op got, and why not another: for `doctor --kernels`.
struct KernelChoice {
  std::string op;              ///< the node's name and what of it: "conv1 backward weights"
  std::string implementation;  ///< "onednn jit:avx512_core", "own avx2", "reference"
  std::string reason;          ///< why the others were refused
  std::string rate;            ///< measured here, with its unit; empty when it was not
};

/// Floats by which ranks agree in every step: 1 where one was asked to stop, 1 where its loss is not finite,
/// 1 where it has measured long enough, and its loss as a whole number of 2^-24 in five parts of 12 bits, the
/// lowest first (train/votes.h). Their sum over ranks is exact.
inline constexpr std::size_t kVoteFloats = 8;

/// What the host adds to the votes of a step.
struct StepFlags {
  bool stop = false;
  bool enough = false;
};

/// What a device was doing until it came to a mark in its queue.
enum class Stage {
  gap,   ///< nothing of this step yet
  copy,  ///< waiting for the batch
  forward,
  bucket,  ///< still backward: some gradients are final
  backward,
  transfer,  ///< waiting for sums over the ranks
  update,
};
struct Mark {
  Stage until{};         ///< what ended there
  base::TimePoint at{};  ///< on the host's clock
};

/// What a step of a StepQueue came to.
struct QueuedStep {
  LossSums local;                          ///< this engine's samples, of all passes of the step
  std::array<float, kVoteFloats> votes{};  ///< as they stood behind the gradients when update() came
  bool is_left_out = false;                ///< the update was not made
  std::vector<Mark> marks;                 ///< in the order in which they were passed
};

/// Steps that the host puts into the queue of a device ahead of it, without waiting for their results.
///
///     queue.forward(input, flags); engine.backward(...);   once, or once a shard
///     (the sums over ranks of gradients_and_votes())
///     queue.update(rule, lr, number);
///     ... as many steps later: queue.collect()
///
/// The device itself leaves out the update of a step with a vote that a loss is not finite, and of all that
/// follow, until Engine::weights_changed(): the host learns of it later.
///
/// Threads  the engine's
class StepQueue {
 public:
  virtual ~StepQueue() = default;

  /// So many steps may be in the queue behind one that is not collected yet.
  [[nodiscard]] virtual int lag() const = 0;
  /// Engine::gradients() and behind it the votes: what is to be summed over ranks before update().
  virtual base::Array gradients_and_votes() = 0;
  /// As Engine::forward(), but the result is collect()'s. Writes the votes, of all passes of the step so far.
  virtual void forward(const StepInput& input, StepFlags flags) = 0;
  /// Notes when the device has come so far. forward(), Engine::backward() and update() note gap, copy,
  /// forward, backward, transfer and update themselves.
  virtual void mark(Stage until) = 0;
  /// As Engine::update(), where the votes allow it. Ends the step.
  virtual void update(const UpdateRule& rule, double lr, std::int64_t update) = 0;
  /// What the oldest step that was not collected came to. Waits for that step, not for those behind it.
  [[nodiscard]] virtual QueuedStep collect() = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;

  [[nodiscard]] virtual std::string name() const = 0;  ///< "reference", "cpu"
  [[nodiscard]] virtual const graph::Graph& graph() const = 0;
  [[nodiscard]] virtual const graph::Layout& layout() const = 0;
  [[nodiscard]] virtual const graph::MemoryPlan& plan() const = 0;

  // The flat arrays, layout().elements each, in PyTorch's order.

  /// fp32 master weights (with running statistics) and optimizer state, on the host, at the same addresses
  /// for as long as the engine lives. An engine that trains on a device has copies of them here: fetch()
  /// first.
  virtual std::span<float> weights() = 0;
  virtual std::span<float> optimizer_state(int slot) = 0;
  /// Gradients, with this step's batch statistics times batch * gradient_scale, where the engine computes.
  /// With CompileOptions::all_workers_say the elements of one gradient may stand in another order, the same
  /// on all workers, in which they can be summed and update() reads them.
  virtual base::Array gradients() = 0;
  /// Copies weights and optimizer state from the device to weights() and optimizer_state(), where they are
  /// not the same already. To be called before these are read after an update(). Nothing on host engines.
  /// Cost     one transfer of (1 + slots) arrays after an update(); waits for all work of the device
  virtual void fetch() {}
  /// To be called after weights() or optimizer_state() were written from outside, before the next forward,
  /// update, evaluate or fetch. A device engine copies both to its device: what is not written must be
  /// fetched before.
  virtual void weights_changed() = 0;

  /// Forward in training form, on a full batch. Keeps what backward needs.
  virtual LossSums forward(const StepInput& input) = 0;
  /// Where the caller wants to hear of final gradients: `ends` rise, the last is layout().elements. An engine
  /// may then call GradientReady at these alone: each call may cost a launch on a device. Without it, as
  /// often as the engine can.
  virtual void cut_backward(std::span<const std::int64_t> /*ends*/) {}
  /// Fills gradients() (overwriting them) for the last forward.
  virtual void backward(const GradientReady& on_ready) = 0;
  /// Applies gradients() to weights(): the rule's numbers at learning rate `lr`; `update` counts from 1
  /// (Adam's bias correction). Running statistics: running = (1 - momentum) * running + momentum * slot.
  virtual void update(const UpdateRule& rule, double lr, std::int64_t update) = 0;
  /// Forward in evaluation form (running statistics, no dropout) of `count` samples. With `views` > 1 each is
  /// given in as many forms, one after the other in `images`, and is judged by the mean of their logits.
  /// count * views <= batch. `logits` [count][classes], unless it is empty, gets what they were judged by: of
  /// a sample the mean over its views.
  virtual LossSums evaluate(std::span<const float> images, std::span<const std::int32_t> labels, int count,
                            int views = 1, std::span<double> logits = {}) = 0;

  /// The way to train without waiting for each step; null on host engines. Whoever uses it collects all steps
  /// before forward(), evaluate(), or writing weights.
  virtual StepQueue* step_queue() { return nullptr; }

  // With CompileOptions::stored_images. Errors: the program ends on an engine that keeps none.

  /// What each byte of each channel is to the network: `values` [channels][256].
  virtual void set_byte_values(std::span<const float> values);
  /// Puts images at [first, first + count) of those that are stored: `pixels` uint8 [count][H][W][C], which
  /// may be overwritten when this returns.
  virtual void store_images(std::int64_t first, std::span<const std::uint8_t> pixels);
  /// evaluate() of what `draws` [count][views] show.
  virtual LossSums evaluate_draws(std::span<const base::SampleDraw> draws,
                                  std::span<const std::int32_t> labels, int count, int views = 1,
                                  std::span<double> logits = {});

  virtual void observe(OpObserver observer) = 0;
  [[nodiscard]] virtual std::vector<KernelChoice> kernels() const { return {}; }
  /// The same with rates: of the chosen ones, and in `reason` of those that were not and could have been.
  /// Cost   some seconds for a large model; gradients, statistics and what forward kept are lost
  [[nodiscard]] virtual std::vector<KernelChoice> measured_kernels() { return kernels(); }
};

}  // namespace paceline::engine
