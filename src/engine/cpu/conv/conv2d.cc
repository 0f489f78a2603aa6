// Convolutions and dense layers, on stored values or on float copies of a block of samples at a time
// (plan.h). Either way sums are float, and a bf16 run rounds the weights to bf16 once an update.
//
// A direction is cut into chunks of samples (batch_split.h), which are the tasks of the threads. Weight
// gradients are summed over a few sections of the batch, each into its own array, and the arrays are added in
// a fixed tree: the same bits for any number of threads. Backward's two products are tasks of one loop.

#include <algorithm>

#include "engine/cpu/conv/plan.h"
#include "engine/cpu/ops/factories.h"
#include "engine/cpu/parallel.h"

namespace paceline::engine::cpu {
namespace {

int groups_of(const graph::Node& op) {
  const auto* conv = op.as<graph::Conv2d>();
  return conv != nullptr ? conv->groups : 1;
}

class Conv2dOp final : public ConvOp {
 public:
  Conv2dOp(const BuildContext& build, const Value& src, const Value& dst, bool relu, BufferId d_src)
      : kernels_(build, src, dst, static_cast<bool>(d_src)),
        src_(src),
        dst_(dst),
        relu_(relu),
        d_src_(d_src),
        bias_at_(build.parameter(1)),
        weights_(build, kernels_, src.shape.channels / groups_of(build.op())),
        backward_order_(in_ranges(gradient_tasks_,
                                  !backward_ ? 0
                                  : direct_  ? backward_->tasks()
                                             : backward_->count(),
                                  build.options.threads)) {
    plan_scratch(build);
  }

  [[nodiscard]] const ConvPlan& plan() const override { return kernels_; }
  [[nodiscard]] const ConvWeights& weights() const override { return weights_; }

  bool fuse_batch_norm_stats(FusedBatchNormStats& sums, Pass pass, int moment,
                             MemoryRequests& memory) override {
    if (pass == Pass::backward && !backward_) return false;
    if (pass == Pass::forward && relu_) return false;
    const FusedBatchNormStats*& taker = pass == Pass::forward ? dst_sums_ : d_src_sums_;
    if (taker != nullptr) return false;
    const ChunkKernels<WeightReader>& chunks = pass == Pass::forward ? forward_ : *backward_;
    if (direct_ && chunks.any().parts() > 1) return false;  // the rows of a part are not contiguous
    if (!sums.accept({.pass = pass, .chunks = chunks.count(), .samples = chunks.size(0), .moment = moment},
                     memory))
      return false;
    taker = &sums;
    return true;
  }

  void forward(ExecContext& exec) override {
    if (!direct_) {
      exec.pool.run(chunks_with_samples(exec),
                    [&](int chunk, int thread) { forward_block(exec, chunk, thread); });
      return;
    }
    const int parts = forward_.any().parts();
    exec.pool.run(chunks_with_samples(exec) * parts, [&](int task, int thread) {
      const int chunk = task / parts;
      Operands o = operands(exec, forward_.first(chunk), thread);
      o.packed = weights_.packed_forward(exec);
      run_and_sum(exec, forward_, o, task, exec.training ? dst_sums_ : nullptr, Pass::forward);
      if (relu_ && !has_relu_pass()) rectify(exec, elements_of(forward_, chunk, dst_));
    });
    if (!has_relu_pass()) return;
    over_elements(exec, dst_, [&](Range part) { rectify(exec, part); });
  }

  void backward(ExecContext& exec) override {
    if (!gradient_) clear_gradients(exec);
    if (!gradient_ && !backward_) return;  // frozen, and no earlier layer is trained
    merged_gradient(exec, dst_);
    if (relu_ && !dst_.gradient_comes_masked)
      over_elements(exec, dst_, [&](Range part) {
        mask_by_relu(exec, dst_, dst_.gradient.front(), part.begin, part.size());
      });
    exec.pool.run(static_cast<int>(backward_order_.size()), [&](int item, int thread) {
      const int task = backward_order_[static_cast<std::size_t>(item)];
      if (task < gradient_tasks_) {
        direct_ ? gradient_direct(exec, task, thread) : sum_partial_gradient(exec, task, thread);
      } else {
        direct_ ? d_src_direct(exec, task - gradient_tasks_, thread)
                : d_src_block(exec, task - gradient_tasks_, thread);
      }
    });
    if (gradient_) join_partial_gradients(exec);
  }

  [[nodiscard]] Masking masking() const override {
    const bool whole_chunks = backward_ && (!direct_ || backward_->any().parts() == 1);
    return whole_chunks ? Masking::by_value : Masking::none;  // the rows of a part are not contiguous
  }
  [[nodiscard]] bool has_relu_pass() const override { return relu_ && direct_ && forward_.any().parts() > 1; }
  void describe(const ExecContext&, std::vector<KernelChoice>& choices) const override {
    kernels_.describe(choices);
  }
  void measure(ExecContext& exec, const OpTraffic& traffic, std::vector<KernelChoice>& choices) override {
    kernels_.measure(
        traffic, [&] { forward(exec); }, [&] { backward(exec); }, choices);
  }

 private:
  /// Scratch: [sections][d_weight | d_bias], then for each thread [float copies | a block's d_weight | d_bias
  /// | scratchpad].
  void plan_scratch(const BuildContext& build) {
    std::int64_t end = 0;
    const auto take = [&](std::int64_t bytes) {
      const std::int64_t at = end;
      end += whole_lines(bytes);
      return at;
    };
    const std::int64_t d_weight = gradient_ ? gradient_->any().packed_bytes() : 0;
    const std::int64_t d_bias = gradient_ && bias_at_ >= 0 ? 4 * dst_.shape.channels : 0;
    d_bias_at_ = whole_lines(d_weight);
    partial_gradient_bytes_ = whole_lines(d_weight) + whole_lines(d_bias);
    take(partial_gradient_bytes_ * partial_gradients_);
    threads_at_ = end;
    end = 0;
    if (!direct_) {
      src_at_ = take(4 * block_ * src_.shape.elements());
      dst_at_ = take(4 * block_ * dst_.shape.elements());
      block_d_weight_at_ =
          take(gradient_ && partial_gradients_ < gradient_->count() ? partial_gradient_bytes_ : 0);
    }
    scratchpad_at_ =
        take(std::max({forward_.scratchpad_bytes(), backward_ ? backward_->scratchpad_bytes() : 0,
                       gradient_ ? gradient_->scratchpad_bytes() : 0}));
    thread_bytes_ = end;
    build.memory.scratch(threads_at_ + thread_bytes_ * build.options.threads);
  }

  /// Number of forward chunks with samples: all in training, fewer in a short evaluation.
  [[nodiscard]] int chunks_with_samples(const ExecContext& exec) const {
    return (exec.samples + forward_.size(0) - 1) / forward_.size(0);
  }

  [[nodiscard]] std::byte* own(const ExecContext& exec, int thread, std::int64_t at) const {
    return exec.memory.scratch + threads_at_ + thread_bytes_ * thread + at;
  }
  /// The gradient of a section's samples; in the end the first one holds the sum of all.
  [[nodiscard]] float* partial_gradient(const ExecContext& exec, int number) const {
    if (number == 0 && weights_.leaves_own_order(exec)) return exec.gradients + weights_.offset();
    return reinterpret_cast<float*>(exec.memory.scratch + partial_gradient_bytes_ * number);
  }
  [[nodiscard]] float* partial_bias_gradient(const ExecContext& exec, int number) const {
    return reinterpret_cast<float*>(exec.memory.scratch + partial_gradient_bytes_ * number + d_bias_at_);
  }

  /// The elements of a value that belong to a chunk.
  static Range elements_of(const BatchSplit& chunks, int chunk, const Value& value) {
    const std::int64_t begin = chunks.first(chunk) * value.shape.elements();
    return {.begin = begin, .end = begin + chunks.size(chunk) * value.shape.elements()};
  }

  // ---- on stored values

  void rectify(const ExecContext& exec, Range part) const {
    std::byte* dst = exec.memory.at(dst_.buffer) + part.begin * bytes_of(dst_.storage);
    exec.typed(dst_.storage).relu(dst, dst, part.size());
  }
  void mask_d_src(const ExecContext& exec, int chunk) const {
    if (!src_.gradient_comes_masked) return;
    const Range part = elements_of(*backward_, chunk, src_);
    mask_by_relu(exec, src_, d_src_, part.begin, part.size());
  }
  /// The stored values from sample `first` on.
  [[nodiscard]] Operands operands(const ExecContext& exec, int first, int thread) const {
    const auto at = [&](std::byte* values, const graph::Shape& shape, Storage storage) {
      return values == nullptr ? nullptr : values + first * shape.elements() * bytes_of(storage);
    };
    return {.src = at(exec.memory.at(src_.buffer), src_.shape, src_.storage),
            .dst = at(exec.memory.at(dst_.buffer), dst_.shape, dst_.storage),
            .d_src = at(exec.memory.at(d_src_), src_.shape, src_.gradient_storage),
            .d_dst = dst_.gradient.empty()
                         ? nullptr
                         : at(exec.memory.at(dst_.gradient.front()), dst_.shape, dst_.gradient_storage),
            .bias = bias_at_ >= 0 ? exec.weights + bias_at_ : nullptr,
            .scratchpad = own(exec, thread, scratchpad_at_)};
  }

  void gradient_direct(const ExecContext& exec, int task, int thread) const {
    const int parts = gradient_->any().parts(), chunk = task / parts;
    Operands o = operands(exec, gradient_->first(chunk), thread);
    o.d_weight = partial_gradient(exec, chunk);
    o.d_bias = partial_bias_gradient(exec, chunk);
    gradient_->kernel(chunk).run(o, task % parts);
  }
  void d_src_direct(const ExecContext& exec, int task, int thread) const {
    Operands o = operands(exec, backward_->first(task / backward_->any().parts()), thread);
    o.packed = weights_.packed_backward(exec);
    run_and_sum(exec, *backward_, o, task, d_src_sums_, Pass::backward);
    mask_d_src(exec, task / backward_->any().parts());
  }

  /// Runs one task of a direction, and takes the sums over its rows if they are wanted.
  void run_and_sum(const ExecContext& exec, const ChunkKernels<WeightReader>& chunks, Operands& o, int task,
                   const FusedBatchNormStats* sums, Pass pass) const {
    const int parts = chunks.any().parts(), chunk = task / parts;
    const WeightReader& kernel = chunks.kernel(chunk);
    if (sums == nullptr) return kernel.run(o, task % parts);
    const Epilogue epilogue = sums->epilogue(exec, pass, chunk);
    if (kernel.has_epilogue()) o.epilogue = &epilogue;
    kernel.run(o, task % parts);
    if (!kernel.has_epilogue())
      sum_written(exec, epilogue, pass, chunks.size(chunk), pass == Pass::forward ? o.dst : o.d_src);
  }
  void sum_written(const ExecContext& exec, const Epilogue& epilogue, Pass pass, int samples,
                   const void* written) const {
    const Value& value = pass == Pass::forward ? dst_ : src_;
    const Storage storage = pass == Pass::forward ? value.storage : value.gradient_storage;
    take_sums(epilogue, exec.typed(storage), storage, static_cast<const std::byte*>(written),
              std::int64_t{1} * samples * value.pixels(), value.shape.channels);
  }

  // ---- in blocks

  /// The thread's float copies.
  [[nodiscard]] Operands copies(const ExecContext& exec, int thread) const {
    std::byte* src = own(exec, thread, src_at_);
    std::byte* dst = own(exec, thread, dst_at_);
    return {.src = src,
            .dst = dst,
            .d_src = src,
            .d_dst = dst,
            .bias = bias_at_ >= 0 ? exec.weights + bias_at_ : nullptr,
            .scratchpad = own(exec, thread, scratchpad_at_)};
  }
  static void run_all(const ConvKernel& kernel, const Operands& o) {
    for (int part = 0; part < kernel.parts(); ++part) kernel.run(o, part);
  }

  /// Both `stored` and `copy` are of `samples` samples.
  static void to_float(const TypedKernels& kernels, const graph::Shape& shape, int samples,
                       const void* stored, const void* copy) {
    kernels.to_float(stored, static_cast<float*>(const_cast<void*>(copy)), samples * shape.elements());
  }

  void forward_block(const ExecContext& exec, int chunk, int thread) const {
    const int first = forward_.first(chunk), samples = forward_.size(chunk);
    const Operands stored = operands(exec, first, thread);
    Operands o = copies(exec, thread);
    o.packed = weights_.packed_forward(exec);
    to_float(exec.typed(src_.storage), src_.shape, samples, stored.src, o.src);
    run_all(forward_.kernel(chunk), o);
    exec.typed(dst_.storage)
        .from_float(static_cast<const float*>(o.dst), stored.dst, relu_, samples * dst_.shape.elements());
    if (exec.training && dst_sums_ != nullptr)
      sum_written(exec, dst_sums_->epilogue(exec, Pass::forward, chunk), Pass::forward, samples, stored.dst);
  }

  void d_src_block(const ExecContext& exec, int chunk, int thread) const {
    const int first = backward_->first(chunk), samples = backward_->size(chunk);
    const Operands stored = operands(exec, first, thread);
    Operands o = copies(exec, thread);
    o.packed = weights_.packed_backward(exec);
    to_float(exec.typed(dst_.gradient_storage), dst_.shape, samples, stored.d_dst, o.d_dst);
    run_all(backward_->kernel(chunk), o);
    exec.typed(src_.gradient_storage)
        .from_float(static_cast<const float*>(o.d_src), stored.d_src, false, samples * src_.shape.elements());
    if (d_src_sums_ != nullptr)
      sum_written(exec, d_src_sums_->epilogue(exec, Pass::backward, chunk), Pass::backward, samples,
                  stored.d_src);
    mask_d_src(exec, chunk);
  }

  /// Adds the blocks of one section, one after the other, to the section's sum.
  void sum_partial_gradient(const ExecContext& exec, int number, int thread) const {
    const Range blocks = range_of(gradient_->count(), number, partial_gradients_);
    for (auto block = static_cast<int>(blocks.begin); block < blocks.end; ++block) {
      const int first = gradient_->first(block), samples = gradient_->size(block);
      const Operands stored = operands(exec, first, thread);
      Operands o = copies(exec, thread);
      to_float(exec.typed(src_.storage), src_.shape, samples, stored.src, o.src);
      to_float(exec.typed(dst_.gradient_storage), dst_.shape, samples, stored.d_dst, o.d_dst);
      const bool is_first = block == blocks.begin;
      float* sum = partial_gradient(exec, number);
      o.d_weight = is_first ? sum : reinterpret_cast<float*>(own(exec, thread, block_d_weight_at_));
      o.d_bias = o.d_weight + d_bias_at_ / 4;
      run_all(gradient_->kernel(block), o);
      if (!is_first) exec.kernels.accumulate(o.d_weight, sum, partial_gradient_bytes_ / 4);
    }
  }

  // ---- either way

  void clear_gradients(const ExecContext& exec) const {
    std::fill_n(exec.gradients + weights_.offset(), weights_.elements(), 0.0f);
    if (bias_at_ >= 0) std::fill_n(exec.gradients + bias_at_, dst_.shape.channels, 0.0f);
  }

  /// Adds all sections into the first, as a tree, and copies the sum into the flat gradient.
  void join_partial_gradients(const ExecContext& exec) const {
    const auto join = [&](const auto& at, std::int64_t count) {
      parallel_ranges(exec.pool, count, kRangeElements, [&](int, Range part) {
        join_as_tree(partial_gradients_, [&](int into, int from) {
          exec.kernels.accumulate(at(exec, from) + part.begin, at(exec, into) + part.begin, part.size());
        });
      });
    };
    if (partial_gradients_ > 1)
      join([&](const ExecContext& r, int s) { return partial_gradient(r, s); },
           gradient_->any().packed_bytes() / 4);
    if (bias_at_ >= 0) {
      if (partial_gradients_ > 1)
        join([&](const ExecContext& r, int s) { return partial_bias_gradient(r, s); }, dst_.shape.channels);
      std::copy_n(partial_bias_gradient(exec, 0), dst_.shape.channels, exec.gradients + bias_at_);
    }
    if (!weights_.leaves_own_order(exec))
      gradient_->any().unpack(exec.pool, partial_gradient(exec, 0), exec.gradients + weights_.offset());
  }

  const ConvPlan kernels_;
  const Value& src_;
  const Value& dst_;
  const bool relu_;
  const BufferId d_src_;
  const std::int64_t bias_at_;
  const ConvWeights weights_;
  const bool direct_ = kernels_.are_direct();
  const int block_ = kernels_.block();
  const ChunkKernels<WeightReader>& forward_ = kernels_.forward();
  const std::optional<ChunkKernels<WeightReader>>& backward_ = kernels_.backward();
  const std::optional<ChunkKernels<WgradKernel>>& gradient_ = kernels_.gradient();
  const int partial_gradients_ = kernels_.partial_gradients();
  const int gradient_tasks_ = !gradient_ ? 0 : direct_ ? gradient_->tasks() : partial_gradients_;
  /// The tasks of the backward loop: first the weight gradient's, which take longer, then d_src's.
  const std::vector<int> backward_order_;
  /// Taken while rows are written, for a batch norm.
  const FusedBatchNormStats *dst_sums_ = nullptr, *d_src_sums_ = nullptr;
  std::int64_t partial_gradient_bytes_ = 0, d_bias_at_ = 0, threads_at_ = 0, thread_bytes_ = 0;
  std::int64_t src_at_ = 0, dst_at_ = 0, block_d_weight_at_ = 0, scratchpad_at_ = 0;
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::Conv2d&, const OpArguments& a) {
  return std::make_unique<Conv2dOp>(a.build, *a.src[0], a.dst, a.group.relu, a.d_src[0]);
}
std::unique_ptr<CompiledOp> make_op(const graph::Dense&, const OpArguments& a) {
  return std::make_unique<Conv2dOp>(a.build, *a.src[0], a.dst, a.group.relu, a.d_src[0]);
}

}  // namespace paceline::engine::cpu
