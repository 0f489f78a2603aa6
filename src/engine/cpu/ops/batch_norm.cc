// Batch norm with the residual sum and the ReLU that follow it.
//
// Forward in training: one pass for the moments, one that normalises. Backward: one pass for the two sums,
// one for d_src. If the gradient has several terms, or a residual needs it, the first of these stores the
// gradient masked by the ReLU and the second reads it; otherwise both recompute the mask from the input, and
// no output is kept for it.
//
// The first pass of each is omitted if the convolution that writes its rows takes the sums meanwhile
// (norm_epilogue.h): in forward the convolution before the batch norm, in backward the one whose d_src is the
// gradient's last term.

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/cpu/conv/norm_epilogue.h"
#include "engine/cpu/ops/factories.h"
#include "engine/cpu/parallel.h"

namespace paceline::engine::cpu {
namespace {

/// Doubles that a part's or a chunk's sums take: [2 channels] of them, then as many floats of scratch.
std::int64_t doubles_of(int channels) { return std::int64_t{3} * channels; }

class BatchNormOp final : public OwnKernelOp, private BatchNormBase, public FusedBatchNormStats {
 public:
  explicit BatchNormOp(const OpArguments& a)
      : OwnKernelOp(a),
        BatchNormBase(a.build, src_.pixels()),
        residual_(a.group.sum ? a.src[1] : nullptr),
        relu_(a.group.relu),
        channels_(src_.shape.channels),
        forward_at_(a.build.forward_at),
        backward_at_(a.build.backward_at) {
    const std::int64_t of_groups = std::int64_t{4} * groups_ * channels_;
    mean_ = a.build.memory.kept(of_groups);
    scale_ = a.build.memory.kept(of_groups);
    slope_ = a.build.memory.kept(of_groups);
    offset_ = a.build.memory.kept(of_groups);
    statistics_ = a.build.memory.kept(8 * std::int64_t{3} * groups_ * channels_);
    // If no residual needs it, the masked gradient may overwrite the incoming one.
    if (a.build.options.training && !dst_.gradient.empty() &&
        (residual_ != nullptr || dst_.gradient.size() > 1))
      d_masked_ = residual_ != nullptr && a.d_src[1] ? a.d_src[1] : dst_.gradient.front();
    least_ = least_of(channels_);
    a.build.memory.scratch(8 * doubles_of(channels_) * ranges_of(rows_ / shards_, least_));
    shard_sums_.resize(2 * static_cast<std::size_t>(channels_ * shards_));
  }

  /// A chunk must not span samples of two groups or shards.
  bool accept(const Writer& writer, MemoryRequests& memory) override {
    if (is_frozen_ && writer.pass == Pass::forward) return false;
    const std::int64_t samples = rows_ / src_.pixels() / shards_;
    if (groups_ * shards_ > 1 && samples % writer.samples != 0) return false;
    if (writer.pass == Pass::backward && dst_.gradient.size() > 2) return false;
    Taken& taken = writer.pass == Pass::forward ? moments_ : gradient_sums_;
    const int until = writer.pass == Pass::forward ? forward_at_ : backward_at_;
    taken = {.sums = memory.live(8 * doubles_of(channels_) * writer.chunks, writer.moment, until),
             .chunks = writer.chunks,
             .samples = writer.samples};
    if (writer.pass == Pass::backward) d_masked_ = dst_.gradient.front();
    return true;
  }

  [[nodiscard]] Epilogue epilogue(const ExecContext& exec, Pass pass, int chunk) const override {
    const Taken& taken = pass == Pass::forward ? moments_ : gradient_sums_;
    Epilogue epilogue = sums_at(taken.of_chunk(exec, chunk, channels_));
    if (pass == Pass::forward) return epilogue;
    const std::int64_t row = std::int64_t{1} * chunk * taken.samples * src_.pixels();
    epilogue.what = Epilogue::Sums::gradient;
    epilogue.gradient = gradient_at(exec, dst_.gradient, static_cast<int>(row / rows_), row % rows_);
    return epilogue;
  }

  void forward(ExecContext& exec) override {
    exec.training && !is_frozen_ ? find_statistics(exec) : take_running_statistics(exec);
    const bool by_group = exec.training;
    for (int group = 0; group < groups_; ++group) {
      NormForward args{.params = params(exec, by_group ? group : 0), .relu = relu_};
      parallel_ranges(exec.pool, rows_, least_, [&](int, Range part) {
        NormForward own = args;
        own.src = rows_at(exec, src_, group, part.begin);
        if (residual_ != nullptr) own.residual = rows_at(exec, *residual_, group, part.begin);
        own.dst = rows_at(exec, dst_, group, part.begin);
        exec.typed(src_.storage).norm_forward(own, part.size(), channels_);
      });
    }
  }

  void backward(ExecContext& exec) override {
    if (dst_.gradient.empty()) {  // frozen, and so is everything before it
      for (const std::int64_t at : {weight_at_, bias_at_, mean_at_, var_at_})
        std::fill_n(exec.gradients + at, channels_, 0.0f);
      return;
    }
    own_sums_.assign(2 * static_cast<std::size_t>(channels_), 0.0);
    const std::vector<BufferId> terms = first_terms(exec);
    for (int group = 0; group < groups_; ++group) {
      reduce_gradient(exec, terms, group);
      if (shards_ == 1)
        for (int c = 0; c < channels_; ++c) {
          own_sums_[static_cast<std::size_t>(c)] += of_shard(0)[c];
          own_sums_[static_cast<std::size_t>(channels_ + c)] +=
              of_shard(0)[channels_ + c] * inverse(exec, group)[c];
        }
      else
        sum_shards_in_float(exec);
      double* sums = join_shards(exec);
      if (d_src_) apply_gradient(exec, terms, group, sums);
    }
    store_parameter_gradients(exec);
  }

  void describe(const ExecContext& exec, std::vector<KernelChoice>& choices) const override {
    choices.push_back(
        own_kernel(exec, name_ + (residual_ != nullptr ? " + sum" : "") + (relu_ ? " + relu" : "")));
    if (!exec.options.training) return;
    const auto how = [](const Taken& taken, const char* convolution) {
      return taken.chunks > 0 ? std::string("summed in ") + convolution
                              : std::string("in a pass of their own");
    };
    choices.back().reason += "; moments: " + how(moments_, "the convolution before it") +
                             ", sums of the gradient: " + how(gradient_sums_, "the convolution after it");
  }

 private:
  // ---- where things lie

  /// Row `row` of a group of a stored value.
  [[nodiscard]] std::byte* rows_at(const ExecContext& exec, const Value& value, int group,
                                   std::int64_t row) const {
    return row_of(exec.memory.at(value.buffer), group, row, value.storage);
  }
  [[nodiscard]] std::byte* row_of(std::byte* first, int group, std::int64_t row, Storage storage) const {
    return first == nullptr ? nullptr : first + (group * rows_ + row) * channels_ * bytes_of(storage);
  }
  [[nodiscard]] float* of_group(const ExecContext& exec, BufferId buffer, int group) const {
    return exec.memory.at<float>(buffer) + std::int64_t{1} * group * channels_;
  }
  /// [groups][channels] doubles: 1 / deviation · mean · unbiased variance.
  [[nodiscard]] double* statistic(const ExecContext& exec, int which, int group) const {
    return exec.memory.at<double>(statistics_) + (std::int64_t{1} * which * groups_ + group) * channels_;
  }
  [[nodiscard]] double* inverse(const ExecContext& exec, int group) const {
    return statistic(exec, 0, group);
  }
  [[nodiscard]] NormParams params(const ExecContext& exec, int group) const {
    return {.mean = of_group(exec, mean_, group),
            .scale = of_group(exec, scale_, group),
            .bias = exec.weights + bias_at_};
  }
  [[nodiscard]] double* of_shard(int shard) {
    return shard_sums_.data() + static_cast<std::ptrdiff_t>(2) * channels_ * shard;
  }

  // ---- sums by part, or by chunk of the convolution that took them

  /// Sums that a convolution takes: an array for each of its chunks.
  struct Taken {
    BufferId sums;
    int chunks = 0;
    int samples = 0;  ///< of a chunk
    [[nodiscard]] double* of_chunk(const ExecContext& exec, int chunk, int channels) const {
      return exec.memory.at<double>(sums) + doubles_of(channels) * chunk;
    }
  };

  [[nodiscard]] Epilogue sums_at(double* sums) const {
    return {
        .sums = sums, .shift = reinterpret_cast<float*>(sums + std::int64_t{2} * channels_), .gradient = {}};
  }

  void add_to_shard(int shard, const double* sums) {
    for (int i = 0; i < 2 * channels_; ++i) of_shard(shard)[i] += sums[i];
  }

  /// The shard's chunks, in order.
  void join_chunks(const ExecContext& exec, const Taken& taken, int group, int shard) {
    std::fill_n(of_shard(shard), 2 * channels_, 0.0);
    const int sets = groups_ * shards_, of_set = sets > 1 ? taken.chunks / sets : taken.chunks;
    const int first = (group * shards_ + shard) * of_set;
    for (int chunk = first; chunk < first + of_set; ++chunk)
      add_to_shard(shard, taken.of_chunk(exec, chunk, channels_));
  }

  /// Takes the sums of a shard's rows in a separate pass; what(first row of a part) gives each part's
  /// epilogue without its sums.
  template <typename What>
  void sum_over_parts(const ExecContext& exec, int group, int shard, const What& what) {
    const std::int64_t rows = rows_ / shards_, doubles = doubles_of(channels_);
    auto* scratch = reinterpret_cast<double*>(exec.memory.scratch);
    parallel_ranges(exec.pool, rows, least_, [&](int index, Range part) {
      const std::int64_t first = part.begin + shard * rows;
      Epilogue own = sums_at(scratch + doubles * index);
      what(own, first);
      take_sums(own, exec.typed(src_.storage), src_.storage, rows_at(exec, src_, group, first), part.size(),
                channels_);
    });
    std::fill_n(of_shard(shard), 2 * channels_, 0.0);
    for (int part = 0; part < ranges_of(rows, least_); ++part) add_to_shard(shard, scratch + doubles * part);
  }

  /// The sums of all shards of all workers; of_shard() is lost.
  double* join_shards(const ExecContext& exec) {
    join_as_tree(shards_, [&](int into, int from) {
      for (int i = 0; i < 2 * channels_; ++i) of_shard(into)[i] += of_shard(from)[i];
    });
    if (is_shared_ && !is_frozen_ && exec.options.reduce_statistics)
      exec.options.reduce_statistics({of_shard(0), 2 * static_cast<std::size_t>(channels_)});
    return of_shard(0);
  }

  // ---- forward

  void find_statistics(ExecContext& exec) {
    for (int group = 0; group < groups_; ++group) {
      for (int shard = 0; shard < shards_; ++shard) {
        if (moments_.chunks > 0)
          join_chunks(exec, moments_, group, shard);
        else
          sum_over_parts(exec, group, shard, [](Epilogue&, std::int64_t) {});
      }
      const double* sums = join_shards(exec);
      for (int c = 0; c < channels_; ++c) {
        const double mean = sums[c] / count_;
        double variance = sums[channels_ + c] / count_ - mean * mean;
        if (variance < 0) variance = 0;  // negative only by rounding; NaN is kept
        set_channel(exec, group, c, mean, variance);
        statistic(exec, 2, group)[c] = variance * (count_ > 1 ? count_ / (count_ - 1) : 1);
      }
    }
  }

  void set_channel(ExecContext& exec, int group, int c, double mean, double variance) const {
    const double inverse_deviation = 1 / std::sqrt(variance + epsilon_);
    of_group(exec, mean_, group)[c] = static_cast<float>(mean);
    of_group(exec, scale_, group)[c] =
        static_cast<float>(static_cast<double>(exec.weights[weight_at_ + c]) * inverse_deviation);
    inverse(exec, group)[c] = inverse_deviation;
    statistic(exec, 1, group)[c] = mean;
  }

  void take_running_statistics(ExecContext& exec) const {
    for (int c = 0; c < channels_; ++c)
      set_channel(exec, 0, c, static_cast<double>(exec.weights[mean_at_ + c]),
                  static_cast<double>(exec.weights[var_at_ + c]));
  }

  // ---- backward

  [[nodiscard]] Mask mask() const {
    if (!relu_) return Mask::none;
    return residual_ != nullptr ? Mask::from_dst : Mask::from_src;
  }

  /// At most two gradient terms, later ones already added to the first.
  std::vector<BufferId> first_terms(const ExecContext& exec) const {
    std::vector<BufferId> terms = dst_.gradient;
    while (terms.size() > 2) {
      Value rest = dst_;
      rest.gradient = {terms.front(), terms.back()};
      merged_gradient(exec, rest);
      terms.pop_back();
    }
    return terms;
  }

  /// What the sums over the gradient's `terms` read and write from a row on.
  [[nodiscard]] NormBackward gradient_at(const ExecContext& exec, const std::vector<BufferId>& terms,
                                         int group, std::int64_t row) const {
    const auto at = [&](BufferId buffer) {
      return row_of(exec.memory.at(buffer), group, row, dst_.gradient_storage);
    };
    return {.src = rows_at(exec, src_, group, row),
            .dst = mask() == Mask::from_dst ? rows_at(exec, dst_, group, row) : nullptr,
            .d_dst = at(terms[0]),
            .d_dst2 = terms.size() > 1 ? at(terms[1]) : nullptr,
            .d_masked = at(d_masked_),
            .mask = mask(),
            .params = params(exec, group)};
  }

  void reduce_gradient(ExecContext& exec, const std::vector<BufferId>& terms, int group) {
    for (int shard = 0; shard < shards_; ++shard) {
      if (gradient_sums_.chunks > 0)
        join_chunks(exec, gradient_sums_, group, shard);
      else
        sum_over_parts(exec, group, shard, [&](Epilogue& own, std::int64_t row) {
          own.what = Epilogue::Sums::gradient;
          own.gradient = gradient_at(exec, terms, group, row);
        });
    }
  }

  /// Parameter gradients of each shard, rounded to float as a worker with this shard alone would have them,
  /// and joined as the workers' are.
  void sum_shards_in_float(const ExecContext& exec) {
    const int count = 2 * channels_;
    std::vector<float> own(static_cast<std::size_t>(count * shards_));
    for (int shard = 0; shard < shards_; ++shard)
      for (int c = 0; c < channels_; ++c) {
        own[static_cast<std::size_t>(shard * count + c)] = static_cast<float>(of_shard(shard)[c]);
        own[static_cast<std::size_t>(shard * count + channels_ + c)] =
            static_cast<float>(of_shard(shard)[channels_ + c] * inverse(exec, 0)[c]);
      }
    join_as_tree(shards_, [&](int into, int from) {
      for (int i = 0; i < count; ++i)
        own[static_cast<std::size_t>(into * count + i)] += own[static_cast<std::size_t>(from * count + i)];
    });
    std::copy_n(own.begin(), count, own_sums_.begin());
  }

  void apply_gradient(ExecContext& exec, const std::vector<BufferId>& terms, int group,
                      const double* sums) const {
    float* slope = of_group(exec, slope_, group);
    float* offset = of_group(exec, offset_, group);
    for (int c = 0; c < channels_; ++c) {
      const double scale = static_cast<double>(exec.weights[weight_at_ + c]) * inverse(exec, group)[c];
      const double inverse_variance = inverse(exec, group)[c] * inverse(exec, group)[c];
      slope[c] = static_cast<float>(-scale * inverse_variance * sums[channels_ + c] / count_);
      offset[c] = static_cast<float>(-scale * sums[c] / count_);
    }
    std::byte* d_dst = exec.memory.at(d_masked_ ? d_masked_ : terms[0]);
    parallel_ranges(exec.pool, rows_, least_, [&](int, Range part) {
      NormBackward mine{.mask = d_masked_ ? Mask::none : mask(), .params = params(exec, group)};
      mine.src = rows_at(exec, src_, group, part.begin);
      mine.d_dst = row_of(d_dst, group, part.begin, dst_.gradient_storage);
      mine.d_src = row_of(exec.memory.at(d_src_), group, part.begin, src_.gradient_storage);
      mine.slope = slope;
      mine.offset = offset;
      exec.typed(src_.storage).norm_backward_apply(mine, part.size(), channels_);
    });
  }

  /// Stores d_weight and d_bias, and the batch's statistics in the slots of the running ones, weighted like
  /// gradients, so that the sum over workers is their average.
  void store_parameter_gradients(const ExecContext& exec) const {
    const double share = exec.options.batch * exec.input.gradient_scale / (groups_ * shards_);
    for (int c = 0; c < channels_; ++c) {
      exec.gradients[bias_at_ + c] = static_cast<float>(own_sums_[static_cast<std::size_t>(c)]);
      exec.gradients[weight_at_ + c] = static_cast<float>(own_sums_[static_cast<std::size_t>(channels_ + c)]);
      if (is_frozen_) {  // nobody reads them
        exec.gradients[mean_at_ + c] = exec.gradients[var_at_ + c] = 0;
        continue;
      }
      double mean = 0, variance = 0;
      for (int group = 0; group < groups_; ++group) {
        mean += statistic(exec, 1, group)[c];
        variance += statistic(exec, 2, group)[c];
      }
      exec.gradients[mean_at_ + c] = of_all_shards(static_cast<float>(mean * share));
      exec.gradients[var_at_ + c] = of_all_shards(static_cast<float>(variance * share));
    }
  }
  /// Every shard's same share, summed as shards are.
  [[nodiscard]] float of_all_shards(float share) const {
    if (shards_ == 1) return share;
    std::vector<float> shares(static_cast<std::size_t>(shards_), share);
    join_as_tree(shards_, [&](int into, int from) {
      shares[static_cast<std::size_t>(into)] += shares[static_cast<std::size_t>(from)];
    });
    return shares[0];
  }

  const Value* residual_;
  const bool relu_;
  const int channels_;
  std::int64_t least_ = 0;              ///< rows of a part
  const int forward_at_, backward_at_;  ///< on the time axis of live buffers
  BufferId mean_, scale_, slope_, offset_, statistics_;
  BufferId d_masked_;  ///< holds the masked gradient between the two passes; none if it is not stored
  Taken moments_, gradient_sums_;   ///< without chunks: taken in a separate pass
  std::vector<double> shard_sums_;  ///< [shards][2 channels], of the current pass
  std::vector<double> own_sums_;    ///< d_bias, d_weight over this engine's samples
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::BatchNorm&, const OpArguments& a) {
  return std::make_unique<BatchNormOp>(a);
}

}  // namespace paceline::engine::cpu
