#pragma once

/// Engine: the interface by which every engine (reference, cpu, cuda) trains and evaluates a graph.
///
/// An engine compiles a whole graph for one device, batch size and precision, and chooses its own layouts,
/// fusions and kernels. It knows neither ranks nor records.
///
/// Threads  an engine serves one worker: calls come from one thread, in the order forward, backward, update;
///          evaluate comes between steps

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

#include "base/archive.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/sample_draw.h"
#include "engine/loss_scale.h"
#include "engine/update_rule.h"
#include "graph/graph.h"
#include "graph/layout.h"
#include "graph/plan.h"

namespace paceline::engine {

/// bf16, f16: fp32 master weights, accumulation and statistics. f16 (GPUs) has a loss scale.
enum class Precision { f32, bf16, f16 };

/// What `--precision auto` takes on a device. It follows from the kind of processor or GPU alone, so that a
/// run can be repeated; nothing is measured for it at run time.
struct AutoPrecision {
  Precision precision = Precision::f32;
  std::string reason;  ///< a clause: "a step takes 0.47 of fp32's time on this kind of processor (RECORD)"
};

/// Which samples share batch-norm statistics in training.
enum class BatchNormMode {
  local,         ///< the samples of this engine's batch
  ghost,         ///< groups of `ghost_size` consecutive samples of it
  synchronised,  ///< the batches of all workers, through `reduce_statistics`
};

/// What a convolution or dense layer computes: dst, d_src or d_weight.
enum class ConvDirection { forward, backward_data, backward_weights };
/// "forward", "backward data", "backward weights"
[[nodiscard]] const char* name_of(ConvDirection direction);

/// Maps each problem of a graph (a convolution or dense layer in one direction) to the algorithm that
/// computes it. The engine defines both strings. A problem has the same string in every run, since records
/// and checkpoints hold them.
using KernelAlgorithms = std::map<std::string, std::string>;

struct CompileOptions {
  int batch = 0;  ///< samples in one forward and backward; at least 1
  Precision precision = Precision::f32;
  int threads = 1;       ///< cores this engine may use
  bool training = true;  ///< false: evaluation only, without gradients and optimizer state
  UpdateRule rule;       ///< fixes the arrays of optimizer state; each update() may change its numbers
  BatchNormMode batch_norm = BatchNormMode::local;
  int ghost_size = 0;  ///< divides batch
  /// > 0: adds sums over samples as if each `shard` samples of the batch were the batch of an engine of its
  /// own, in the tree of base/summation_tree.h, and chooses kernels for `shard` samples. It divides batch.
  /// Only with `synchronised` batch norm; without it a shard is an engine's batch, and the caller adds.
  int shard = 0;
  std::uint64_t seed = 0;  ///< of dropout
  /// The result of prepare() (make.h). For problems that are not in it, or if it is null, the engine chooses
  /// by the shape and the kind of processor alone.
  std::shared_ptr<const KernelAlgorithms> algorithms = {};
  /// synchronised only: sums `values` over all workers, in place, to the same bits on each; blocks. The
  /// engine calls it inside forward and backward, in the same order on every worker.
  std::function<void(std::span<double> values)> reduce_statistics;
  int world_size = 1;  ///< synchronised only: number of engines that share the statistics
  /// Allocates the array of gradients(): `size` floats in `memory`, the engine's memory. Empty: the engine
  /// allocates it itself.
  std::function<base::OwnedArray(std::size_t size, const base::Memory& memory)> gradient_memory;
  /// Returns whether the engines of all workers pass the same `text`; blocks until all have called. An engine
  /// calls it while it is compiled, equally often on every worker, or never. A caller that sets it promises
  /// not to look up single elements of gradients(), whose order may then differ (see there).
  std::function<bool(std::string_view text)> all_workers_say;
  /// > 0: memory for this many images of the graph's input shape, a byte a value, where the engine computes.
  /// The engine's inputs are then draws from these, never images. Only if keeps_images() (make.h).
  std::int64_t stored_images = 0;
  /// Whether a device may capture the work of a step and start it by one call. False: each kernel is
  /// launched, to compare with; the bits are the same.
  bool captures = true;
  /// Whether every step comes with StepInput::second_labels; else none does.
  bool has_two_labels = false;
  /// The index of this engine's worker among the workers of its host. Worker i computes on visible device i
  /// modulo the number of visible devices, unless device_index is set.
  int worker_on_host = 0;
  std::optional<int> device_index;  ///< use this device ("cuda:1") for every worker
  /// The phases through which the engine `ghost` sleeps instead of computing (engine/ghost/phases.h); empty:
  /// engines compute.
  std::string emulated_compute = {};
};

/// An algorithm that a run does without, because a device of it cannot compile or start it.
struct PassedOver {
  std::string problem, algorithm;
  std::string why;  ///< the end of a sentence that begins with the algorithm's name
  /// Of the algorithm: two devices may give different reasons.
  bool operator==(const PassedOver& other) const {
    return problem == other.problem && algorithm == other.algorithm;
  }
};
template <typename A>
void fields(A& archive, base::In<A, PassedOver>& value) {
  base::each_member(archive, value.problem, value.algorithm, value.why);
}

/// How prepare() (make.h) shall choose the algorithms of a run.
struct KernelRequest {
  /// Choose the fastest on this machine, by measuring; otherwise choose by shape and kind of processor.
  bool is_measured = false;
  /// Algorithms of an earlier run, which come before either choice; empty: none.
  KernelAlgorithms given = {};
  /// Whether the run ends if an algorithm of `given` is not available. If not, the default replaces it and
  /// the note says so.
  bool insists = false;
  /// What other processes of the run have passed over: not to be chosen here either.
  std::vector<PassedOver> passed_over = {};
};

/// The result of prepare().
struct PreparedKernels {
  /// For every problem of the graph; null if the engine has no choice.
  std::shared_ptr<const KernelAlgorithms> algorithms = {};
  /// One word: "given", "measured", or the default here: the name of a table, or "rules". Empty if
  /// `algorithms` is null.
  std::string chosen_by = {};
  std::string note = {};  ///< a sentence for the user, or empty
  /// KernelRequest::passed_over, then what the device here cannot compile or start.
  std::vector<PassedOver> passed_over = {};
};

/// Checks the options that concern every engine. `engine`: its name, for messages.
void check_options(const CompileOptions& options, std::string_view engine);

/// Allocates an engine's gradients as `options` demand, in `memory`, set to zero; empty without training.
/// `more`: additional floats behind them.
[[nodiscard]] base::OwnedArray gradient_memory(const CompileOptions& options, const graph::Layout& layout,
                                               const base::Memory& memory = base::host_memory(),
                                               std::size_t more = 0);

/// A device, other than the host, on which engines compute. If the workers of a process use several, the one
/// with the least free memory.
struct DeviceInfo {
  std::string name;                    ///< "NVIDIA H100 80GB HBM3", "processor (no GPU)"
  std::string libraries;               ///< for example "CUDA 13.0 (driver 580.65), cuDNN 9.19.0"
  std::int64_t memory_bytes = 0;       ///< of the device; 0: it computes in the host's memory
  std::int64_t free_memory_bytes = 0;  ///< now, after what other processes use
  int devices = 1;                     ///< number of devices that the workers of a host share
};

/// What a device's memory holds. To compare with the memory plan.
struct DeviceMemoryUse {
  std::string device;             ///< the same for engines on one device: "0"
  std::int64_t total_bytes = 0;   ///< of the device
  std::int64_t used_bytes = 0;    ///< by all processes
  std::int64_t engine_bytes = 0;  ///< of it, blocks of this engine; the rest is the driver's, the libraries'
                                  ///< (kernels, graphs, their own buffers) and other processes'
};

/// The input of one step of one engine. Dropout masks are a pure function of (seed, step, op, first_position
/// + sample, element), so they are the same for any number of workers.
struct StepInput {
  std::span<const float> images;         ///< [batch][H][W][C]; empty if there are draws
  std::span<const std::int32_t> labels;  ///< [batch]
  double gradient_scale = 1;  ///< 1 / global batch: gradients are sums over samples times this, so that
                              ///< summing over workers and shards gives the mean over the global batch
  std::uint64_t step = 0;     ///< global step; it and first_position determine the random numbers
  std::int64_t first_position = 0;
  std::span<const base::SampleDraw> draws = {};  ///< [batch], with CompileOptions::stored_images
  /// [batch], with CompileOptions::has_two_labels. LossSums::correct counts the heavier label of each sample.
  std::span<const base::SecondLabel> second_labels = {};
};

/// Ends the program unless a step of `batch` samples has second labels as the engine was compiled for.
void require_second_labels(const StepInput& input, int batch, bool has_two_labels);

/// Sums over samples, never means. Each sample's loss is rounded to a multiple of 2^-24 before it is added:
/// the sum in double is then exact, and does not depend on how samples are divided among workers.
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

/// Called during the backward pass: gradients in [0, ready) of the flat layout are final. `ready` never
/// decreases; in the last call it is layout().elements.
using GradientReady = std::function<void(std::int64_t ready)>;

enum class Pass { forward, backward };

/// Called when an op begins (`begin`) and ends. No run sets it; bench/train_step.cc times ops with it.
using OpObserver = std::function<void(int node, Pass pass, bool begin)>;

/// The implementation of an op and the reason for it, for `doctor --kernels`.
struct KernelChoice {
  std::string op;              ///< the node's name, and which part of it: "conv1 backward weights"
  std::string implementation;  ///< "onednn jit:avx512_core", "own avx2", "reference"
  std::string reason;          ///< why not another implementation
  std::string rate;            ///< measured, with its unit; empty if not measured
};

/// The number of floats by which ranks agree in every step (train/step/loss_guard.h): 1 if the rank was asked
/// to stop, 1 if its loss is not finite, 1 if it has measured long enough, and its loss as a whole number of
/// 2^-24 in five parts of 12 bits, the lowest first. Their sums over ranks are exact.
inline constexpr std::size_t kVoteFloats = 8;

/// The host's part of the votes of a step.
struct StepFlags {
  bool stop = false;
  bool enough = false;  ///< this rank has measured long enough
};

/// What a device does between two marks in its queue.
enum class Stage {
  gap,   ///< nothing of this step
  copy,  ///< waiting for the batch
  forward,
  bucket,  ///< still backward, but some gradients are final
  backward,
  transfer,  ///< waiting for sums over ranks
  update,
};
/// A point in the queue that the device has reached.
struct Mark {
  Stage until{};         ///< what ended at this mark
  base::TimePoint at{};  ///< on the host's clock
};

/// Which squares of gradients a step adds up: those of this engine's passes, before gradients are summed over
/// ranks, and those of the sums.
enum class SquaresOf { passes, sums };

/// The results of a step of a StepQueue.
struct QueuedStep {
  LossSums local;                          ///< this engine's samples, over all passes of the step
  std::array<float, kVoteFloats> votes{};  ///< behind the gradients when update() began
  bool is_left_out = false;                ///< whether the device skipped the update
  double gradient_norm = 0;                ///< as Engine::gradient_norm()
  std::array<double, 2> squares{};         ///< by SquaresOf: what add_squares() has added
  std::vector<Mark> marks;                 ///< in the order of the queue
};

/// What an engine will be used for, for Engine::warm_up().
struct WarmUp {
  enum class Steps { none, waited, queued };
  Steps steps = Steps::none;  ///< training steps: waited for in forward(), or through step_queue()
  int views = 0;              ///< of each sample in evaluations; 0: there are none
};

/// The update with which a step ends.
struct StepUpdate {
  UpdateRule rule;
  double lr = 0;
  std::int64_t number = 1;  ///< from 1
};

/// A queue of steps: the host submits steps to a device ahead of time and collects their results later.
///
///     queue.forward(input, flags, update); engine.backward(...);   once, or once a shard
///     (the sums over ranks of gradients_and_votes())
///     queue.update();
///     ... up to lag() steps later: queue.collect()
///
/// If the votes of a step say that a loss is not finite, the device itself skips the update of this step and
/// of all later ones until Engine::weights_changed(), since the host learns of it only when it collects the
/// step.
///
/// Threads  the thread of the engine
class StepQueue {
 public:
  virtual ~StepQueue() = default;

  /// The number of steps that may be queued behind one that is not collected yet.
  [[nodiscard]] virtual int lag() const = 0;
  /// Engine::gradients() followed by the votes: the array that must be summed over ranks before update().
  virtual base::Array gradients_and_votes() = 0;
  /// Like Engine::forward(), but collect() returns the result. Writes the votes for all passes of the step so
  /// far. `update` is the same in all of them: its numbers travel to the device with the batch.
  virtual void forward(const StepInput& input, StepFlags flags, const StepUpdate& update) = 0;
  /// Records when the device reaches this point. forward(), Engine::backward() and update() record gap, copy,
  /// forward, backward, transfer and update themselves.
  virtual void mark(Stage until) = 0;
  /// Adds Engine::gradient_squares() of [begin, end) at this point of the queue to QueuedStep::squares. Those
  /// of sums come after them, and belong to the stage `update`.
  virtual void add_squares(SquaresOf of, std::int64_t begin, std::int64_t end) = 0;
  /// Like Engine::update() with the step's StepUpdate, unless the votes forbid it. Ends the step.
  virtual void update() = 0;
  /// The results of the oldest step that was not collected. Waits for that step, but not for later ones.
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

  /// fp32 master weights (with running statistics) and optimizer state, on the host; the addresses stay the
  /// same while the engine lives. An engine that trains on a device has copies of them here: call fetch()
  /// before you read.
  virtual std::span<float> weights() = 0;
  virtual std::span<float> optimizer_state(int slot) = 0;
  /// The weights where the engine computes: on a device those that its queue has left so far.
  virtual base::Array weights_array() { return base::host_array(weights()); }
  /// Gradients, where the engine computes. In the slots of running statistics: this step's batch statistics
  /// times batch * gradient_scale. With CompileOptions::all_workers_say the elements of a gradient may be in
  /// another order, the same on all workers: workers can sum them, and update() reads that order. In f16
  /// those of frozen parameters are times the loss scale.
  virtual base::Array gradients() = 0;
  /// Copies weights and optimizer state from the device to weights() and optimizer_state(), if they have
  /// changed. Call it before you read these after an update(). Does nothing on host engines.
  ///
  /// Cost     one transfer of (1 + slots) arrays after an update(); waits for all work of the device
  virtual void fetch() {}
  /// Call it after you write weights() or optimizer_state(), before the next forward, update, evaluate or
  /// fetch. A device engine copies both to its device, so fetch() first what you do not write.
  virtual void weights_changed() = 0;

  /// The loss scale of Precision::f16, of which a device's engine has a copy here as of its weights: call
  /// fetch() before you read it, and weights_changed() after you have set it. Other precisions have none;
  /// set_loss_scale() then does nothing.
  [[nodiscard]] virtual std::optional<LossScale> loss_scale() const { return std::nullopt; }
  virtual void set_loss_scale(const LossScale& /*scale*/) {}

  /// What the device's memory holds now; nothing if the engine computes in the host's memory.
  ///
  /// Cost     some 100 us on a GPU; does not wait for its work
  [[nodiscard]] virtual std::optional<DeviceMemoryUse> device_memory() const { return std::nullopt; }

  /// The forward pass of training, on a full batch. Keeps what backward needs.
  virtual LossSums forward(const StepInput& input) = 0;
  /// Says where the caller needs to know that gradients are final: `ends` increases, and its last element is
  /// layout().elements. The engine may then call GradientReady at these only, since each call may cost a
  /// launch on a device. Without it, the engine calls as often as it can.
  virtual void cut_backward(std::span<const std::int64_t> /*ends*/) {}
  /// Does now what a device does when work first runs: loads kernels, allocates what is left, records the
  /// work of steps and evaluations so that one call starts it. Later work of this kind does nothing of that,
  /// so that it neither disturbs a measured window nor waits for collectives of other devices. Weights and
  /// state keep their bits; gradients are lost. Without this call the same work is launched kernel by kernel.
  ///
  /// Requires  all steps are collected. Call it again after cut_backward()
  /// Cost      on a device two steps, which call CompileOptions::reduce_statistics, and two evaluated batches
  virtual void warm_up(const WarmUp& /*coming*/) {}
  /// Overwrites gradients() with the gradients of the last forward.
  virtual void backward(const GradientReady& on_ready) = 0;
  /// Applies gradients() to weights() by `rule`, at learning rate `lr`. `update` counts from 1 (Adam's bias
  /// correction). Running statistics: running = (1 - momentum) * running + momentum * slot.
  virtual void update(const UpdateRule& rule, double lr, std::int64_t update) = 0;
  /// The sum of squares of gradients() in [begin, end), over the parameters that update() changes. Both ends
  /// lie between parameters.
  ///
  /// Cost     one pass over these gradients; a device that computes asynchronously is waited for
  [[nodiscard]] virtual double gradient_squares(std::int64_t begin, std::int64_t end) = 0;
  /// The L2 norm of the gradient before the last update() clipped it (UpdateRule::clips()). A device that
  /// computes asynchronously is waited for.
  [[nodiscard]] virtual double gradient_norm() { return 0; }
  /// The forward pass of evaluation (running statistics, no dropout) on `count` samples. With `views` > 1
  /// each sample has that many consecutive images in `images`, and the mean of their logits decides. `logits`
  /// [count][classes], unless it is empty, receives the logits that decided.
  ///
  /// Requires  count * views <= batch
  virtual LossSums evaluate(std::span<const float> images, std::span<const std::int32_t> labels, int count,
                            int views = 1, std::span<double> logits = {}) = 0;

  /// Trains without waiting for each step; null on engines that cannot. Collect all steps before you call
  /// forward() or evaluate() or write weights.
  virtual StepQueue* step_queue() { return nullptr; }

  // Only with CompileOptions::stored_images; an engine that keeps no images ends the program.

  /// The value that the network gets for each byte of each channel: `values` [channels][256].
  virtual void set_byte_values(std::span<const float> values);
  /// Writes images [first, first + count) of the stored ones. `pixels`: uint8 [count][H][W][C]; the caller
  /// may overwrite it after the call.
  virtual void store_images(std::int64_t first, std::span<const std::uint8_t> pixels);
  /// evaluate() on the images that `draws` [count][views] take from the stored ones.
  virtual LossSums evaluate_draws(std::span<const base::SampleDraw> draws,
                                  std::span<const std::int32_t> labels, int count, int views = 1,
                                  std::span<double> logits = {});

  virtual void observe(OpObserver observer) = 0;
  /// The implementation of each op.
  [[nodiscard]] virtual std::vector<KernelChoice> kernels() const { return {}; }
  /// kernels() with measured rates: of the chosen implementations in `rate`, of possible others in `reason`.
  ///
  /// Cost     some seconds for a large model; gradients, statistics and what forward kept are lost
  [[nodiscard]] virtual std::vector<KernelChoice> measured_kernels() { return kernels(); }
};

}  // namespace paceline::engine
