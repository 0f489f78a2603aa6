// Compiled group norm, by the kernels of batch norm: a sample is its rows, and the numbers of each channel
// are those of its group. A thread takes a sample at a time, which its cache keeps from the first pass to the
// second.

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/cpu/conv/norm_epilogue.h"
#include "engine/cpu/ops/factories.h"
#include "engine/cpu/parallel.h"
#include "graph/ops.h"

namespace paceline::engine::cpu {
namespace {

class GroupNormOp final : public OwnKernelOp {
 public:
  explicit GroupNormOp(const OpArguments& a)
      : OwnKernelOp(a),
        channels_(src_.shape.channels),
        groups_(a.build.op().as<graph::GroupNorm>()->groups),
        epsilon_(a.build.op().as<graph::GroupNorm>()->epsilon),
        batch_(a.build.options.batch),
        shards_(a.build.shards()),
        learns_(a.build.learns()),
        weight_at_(a.build.parameter(0)),
        bias_at_(a.build.parameter(1)),
        shard_sums_(2 * static_cast<std::size_t>(channels_ * shards_)) {
    if (a.build.options.training && !dst_.gradient.empty())
      statistics_ =
          a.build.memory.live(std::int64_t{16} * batch_ * groups_, a.build.forward_at, a.build.backward_at);
    threads_at_ = learns_ ? whole_lines(std::int64_t{16} * channels_ * batch_) : 0;
    a.build.memory.scratch(threads_at_ + a.build.options.threads * thread_bytes());
  }

  void forward(ExecContext& exec) override {
    exec.pool.run(batch_, [&](int sample, int thread) {
      const Scratch s = scratch(exec, thread);
      const Epilogue epilogue{.sums = s.sums, .shift = s.shift, .gradient = {}};
      const std::byte* const rows = sample_of(exec, src_.buffer, sample, src_.storage);
      take_sums(epilogue, exec.typed(src_.storage), src_.storage, rows, src_.pixels(), channels_);
      for (int group = 0; group < groups_; ++group) {
        const Statistics own = statistics_of(s, group);
        if (exec.training && statistics_) kept(exec, sample)[group] = own;
        set_channels(exec, s, group, own);
      }
      exec.typed(src_.storage)
          .norm_forward({.src = rows,
                         .dst = sample_of(exec, dst_.buffer, sample, dst_.storage),
                         .params = params(exec, s)},
                        src_.pixels(), channels_);
    });
  }

  void backward(ExecContext& exec) override {
    if (!learns_) {
      std::fill_n(exec.gradients + weight_at_, channels_, 0.0f);
      std::fill_n(exec.gradients + bias_at_, channels_, 0.0f);
      if (!d_src_) return;  // frozen, and so is everything before it
    }
    auto* const d_dst = static_cast<std::byte*>(merged_gradient(exec, dst_));
    exec.pool.run(batch_, [&](int sample, int thread) {
      const Scratch s = scratch(exec, thread);
      for (int group = 0; group < groups_; ++group) set_channels(exec, s, group, kept(exec, sample)[group]);
      NormBackward args{.src = sample_of(exec, src_.buffer, sample, src_.storage),
                        .d_dst = sample_at(d_dst, sample, dst_.gradient_storage),
                        .params = params(exec, s)};
      std::fill_n(s.sums, 2 * channels_, 0.0);
      exec.typed(src_.storage).norm_backward_reduce(args, src_.pixels(), channels_, s.sums);
      for (int group = 0; group < groups_; ++group)
        set_slopes(exec, s, group, kept(exec, sample)[group].inverse_deviation);
      if (learns_) std::copy_n(s.sums, 2 * channels_, sums_of_sample(exec, sample));
      if (!d_src_) return;
      args.d_src = sample_of(exec, d_src_, sample, src_.gradient_storage);
      args.slope = s.slope;
      args.offset = s.offset;
      exec.typed(src_.storage).norm_backward_apply(args, src_.pixels(), channels_);
    });
    if (learns_) store_parameter_gradients(exec);
  }

 private:
  struct Statistics {
    double mean, inverse_deviation;
  };
  /// A thread's arrays. `shift` is not used beside slope and offset.
  struct Scratch {
    double* sums;                 ///< [2 channels]
    float *shift, *mean, *scale;  ///< [2 channels], [channels], [channels]
    float *slope, *offset;        ///< [channels]
  };
  [[nodiscard]] std::int64_t thread_bytes() const { return whole_lines(std::int64_t{4 * 8} * channels_); }
  [[nodiscard]] Scratch scratch(const ExecContext& exec, int thread) const {
    auto* const first = exec.memory.scratch + threads_at_ + thread * thread_bytes();
    auto* const floats = reinterpret_cast<float*>(first + std::int64_t{16} * channels_);
    const std::int64_t c = channels_;
    return {.sums = reinterpret_cast<double*>(first),
            .shift = floats,
            .mean = floats + 2 * c,
            .scale = floats + 3 * c,
            .slope = floats,
            .offset = floats + c};
  }
  [[nodiscard]] double* sums_of_sample(const ExecContext& exec, int sample) const {
    return reinterpret_cast<double*>(exec.memory.scratch) + std::int64_t{2} * channels_ * sample;
  }
  [[nodiscard]] Statistics* kept(const ExecContext& exec, int sample) const {
    return exec.memory.at<Statistics>(statistics_) + std::int64_t{1} * sample * groups_;
  }
  [[nodiscard]] std::byte* sample_at(std::byte* first, int sample, Storage storage) const {
    return first + sample * src_.shape.elements() * bytes_of(storage);
  }
  [[nodiscard]] std::byte* sample_of(const ExecContext& exec, BufferId buffer, int sample,
                                     Storage storage) const {
    return sample_at(exec.memory.at(buffer), sample, storage);
  }

  // ---- numbers of a group

  [[nodiscard]] int channels_of_group() const { return channels_ / groups_; }
  [[nodiscard]] double elements_of_group() const {
    return static_cast<double>(channels_of_group()) * src_.pixels();
  }
  template <typename Visit>
  void for_channels(int group, Visit visit) const {
    for (int c = group * channels_of_group(); c < (group + 1) * channels_of_group(); ++c) visit(c);
  }
  [[nodiscard]] Statistics statistics_of(const Scratch& s, int group) const {
    double sum = 0, squares = 0;
    for_channels(group, [&](int c) {
      sum += s.sums[c];
      squares += s.sums[channels_ + c];
    });
    const double mean = sum / elements_of_group();
    double variance = squares / elements_of_group() - mean * mean;
    if (variance < 0) variance = 0;  // negative only by rounding; NaN is kept
    return {mean, 1 / std::sqrt(variance + epsilon_)};
  }
  void set_channels(const ExecContext& exec, const Scratch& s, int group, const Statistics& own) const {
    for_channels(group, [&](int c) {
      s.mean[c] = static_cast<float>(own.mean);
      s.scale[c] =
          static_cast<float>(static_cast<double>(exec.weights[weight_at_ + c]) * own.inverse_deviation);
    });
  }
  /// Of d_src = scale * d + slope * (src - mean) + offset; and makes the second half of the sums those of d
  /// times the normalised value.
  void set_slopes(const ExecContext& exec, const Scratch& s, int group, double inverse) const {
    double sum = 0, products = 0;
    for_channels(group, [&](int c) {
      const auto weight = static_cast<double>(exec.weights[weight_at_ + c]);
      s.sums[channels_ + c] *= inverse;
      sum += weight * s.sums[c];
      products += weight * s.sums[channels_ + c];
    });
    const double slope = -inverse * inverse * products / elements_of_group();
    const double offset = -inverse * sum / elements_of_group();
    for_channels(group, [&](int c) {
      s.slope[c] = static_cast<float>(slope);
      s.offset[c] = static_cast<float>(offset);
    });
  }
  [[nodiscard]] NormParams params(const ExecContext& exec, const Scratch& s) const {
    return {.mean = s.mean, .scale = s.scale, .bias = exec.weights + bias_at_};
  }

  /// A shard's samples are added in their order and rounded to float, the shards are joined as workers are.
  void store_parameter_gradients(const ExecContext& exec) {
    const int count = 2 * channels_, samples = batch_ / shards_;
    const auto of_shard = [&](int shard) { return shard_sums_.data() + std::ptrdiff_t{1} * shard * count; };
    for (int shard = 0; shard < shards_; ++shard)
      for (int i = 0; i < count; ++i) {
        double sum = 0;
        for (int n = shard * samples; n < (shard + 1) * samples; ++n) sum += sums_of_sample(exec, n)[i];
        of_shard(shard)[i] = static_cast<float>(sum);
      }
    join_as_tree(shards_, [&](int into, int from) {
      for (int i = 0; i < count; ++i) of_shard(into)[i] += of_shard(from)[i];
    });
    std::copy_n(of_shard(0), channels_, exec.gradients + bias_at_);
    std::copy_n(of_shard(0) + channels_, channels_, exec.gradients + weight_at_);
  }

  const int channels_, groups_;
  const double epsilon_;
  const int batch_, shards_;
  const bool learns_;
  const std::int64_t weight_at_, bias_at_;
  std::vector<float> shard_sums_;  ///< [shards][2 channels]
  BufferId statistics_;            ///< [batch][groups]
  std::int64_t threads_at_ = 0;    ///< in the scratch area: [batch][2 channels] sums, then each thread's
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::GroupNorm&, const OpArguments& a) {
  return std::make_unique<GroupNormOp>(a);
}

}  // namespace paceline::engine::cpu
