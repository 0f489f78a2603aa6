// Batch norm with the residual sum and the ReLU behind it.
//
// Forward in training: one pass for the moments (sums around a guess of the mean, so that nothing cancels),
// one that normalises. Backward: one pass for the two sums, one for d_src. Where the gradient has several
// terms or a residual wants it, the first of these stores it under the ReLU's mask and the second reads it
// there; otherwise both recompute the mask from the input, and no output is kept for it.

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/cpu/parallel.h"
#include "engine/cpu/steps.h"

namespace paceline::engine::cpu {
namespace {

constexpr int kGuessRows = 32;  // rows that the guess of the mean averages

class NormStep final : public Step {
 public:
  NormStep(const Site& site, const Value& src, const Value* residual, const Value& dst, bool relu,
           BufferId d_src, BufferId d_residual)
      : name_(site.op().name),
        src_(src),
        residual_(residual),
        dst_(dst),
        relu_(relu),
        d_src_(d_src),
        channels_(src.shape.channels),
        groups_(site.options.batch_norm == BatchNormMode::ghost ? site.options.batch / site.options.ghost_size
                                                                : 1),
        rows_(std::int64_t{1} * (site.options.batch / groups_) * src.pixels()),
        is_shared_(site.options.batch_norm == BatchNormMode::synchronised &&
                   (site.options.world_size > 1 || site.options.shard > 0)),
        shards_(site.options.shard > 0 ? site.options.batch / site.options.shard : 1),
        count_(static_cast<double>(rows_) * (is_shared_ ? site.options.world_size : 1)),
        epsilon_(site.op().as<graph::BatchNorm>()->epsilon),
        weight_at_(site.parameter(0)),
        bias_at_(site.parameter(1)),
        mean_at_(site.parameter(2)),
        var_at_(site.parameter(3)) {
    const std::int64_t of_groups = std::int64_t{4} * groups_ * channels_;
    mean_ = site.memory.kept(of_groups);
    scale_ = site.memory.kept(of_groups);
    slope_ = site.memory.kept(of_groups);
    offset_ = site.memory.kept(of_groups);
    statistics_ = site.memory.kept(8 * std::int64_t{3} * groups_ * channels_);
    // Without a residual that wants it, the masked gradient may replace the one that came in.
    if (site.options.training && (residual != nullptr || dst.gradient.size() > 1))
      d_masked_ = d_residual ? d_residual : dst.gradient.front();
    least_ = least_of(channels_);
    site.memory.scratch(8 * std::int64_t{2} * channels_ * parts_of(rows_ / shards_, least_));
    shard_sums_.resize(2 * static_cast<std::size_t>(channels_ * shards_));
  }

  void forward(Run& run) override {
    run.training ? find_statistics(run) : take_running_statistics(run);
    const bool by_group = run.training;
    for (int group = 0; group < groups_; ++group) {
      NormForward args{.params = params(run, by_group ? group : 0), .relu = relu_};
      parallel_parts(run.pool, rows_, least_, [&](int, Part part) {
        NormForward own = args;
        own.src = rows_at(run, src_, group, part.begin);
        if (residual_ != nullptr) own.residual = rows_at(run, *residual_, group, part.begin);
        own.dst = rows_at(run, dst_, group, part.begin);
        run.typed(src_.storage).norm_forward(own, part.size(), channels_);
      });
    }
  }

  void backward(Run& run) override {
    own_sums_.assign(2 * static_cast<std::size_t>(channels_), 0.0);
    const std::vector<BufferId> terms = first_terms(run);
    for (int group = 0; group < groups_; ++group) {
      NormBackward args{.mask = mask(), .params = params(run, group)};
      reduce_gradient(run, args, terms, group);
      if (shards_ == 1)
        for (int c = 0; c < channels_; ++c) {
          own_sums_[static_cast<std::size_t>(c)] += of_shard(0)[c];
          own_sums_[static_cast<std::size_t>(channels_ + c)] +=
              of_shard(0)[channels_ + c] * inverse(run, group)[c];
        }
      else
        sum_shards_in_float(run);
      double* sums = join_shards(run);
      if (d_src_) apply_gradient(run, args, group, sums);
    }
    store_parameter_gradients(run);
  }

  void describe(const Run& run, std::vector<KernelChoice>& choices) const override {
    choices.push_back(
        own_kernel(run, name_ + (residual_ != nullptr ? " + sum" : "") + (relu_ ? " + relu" : "")));
  }

 private:
  // ---- where things lie

  /// Row `row` of a group of a stored value.
  [[nodiscard]] std::byte* rows_at(const Run& run, const Value& value, int group, std::int64_t row) const {
    return row_of(run.memory.at(value.buffer), group, row, value.storage);
  }
  [[nodiscard]] std::byte* row_of(std::byte* first, int group, std::int64_t row, Storage storage) const {
    return first == nullptr ? nullptr : first + (group * rows_ + row) * channels_ * bytes_of(storage);
  }
  [[nodiscard]] float* of_group(const Run& run, BufferId buffer, int group) const {
    return run.memory.at<float>(buffer) + std::int64_t{1} * group * channels_;
  }
  /// [groups][channels] doubles: 1 / deviation · mean · unbiased variance.
  [[nodiscard]] double* statistic(const Run& run, int which, int group) const {
    return run.memory.at<double>(statistics_) + (std::int64_t{1} * which * groups_ + group) * channels_;
  }
  [[nodiscard]] double* inverse(const Run& run, int group) const { return statistic(run, 0, group); }
  [[nodiscard]] NormParams params(const Run& run, int group) const {
    return {.mean = of_group(run, mean_, group),
            .scale = of_group(run, scale_, group),
            .bias = run.weights + bias_at_};
  }
  /// Scratch: [parts][2 channels] partial sums, summed into the first.
  [[nodiscard]] double* partial(const Run& run, int part) const {
    return reinterpret_cast<double*>(run.memory.scratch) + std::int64_t{2} * channels_ * part;
  }

  [[nodiscard]] double* of_shard(int shard) {
    return shard_sums_.data() + static_cast<std::ptrdiff_t>(2) * channels_ * shard;
  }

  /// sum(part's rows) into that part's partial sums, then all of them in order into the shard's.
  template <typename Sum>
  void sum_over_parts(const Run& run, int shard, const Sum& sum) {
    const std::int64_t count = std::int64_t{2} * channels_, rows = rows_ / shards_;
    parallel_parts(run.pool, rows, least_, [&](int index, Part part) {
      double* sums = partial(run, index);
      std::fill_n(sums, count, 0.0);
      sum(sums, Part{.begin = part.begin + shard * rows, .end = part.end + shard * rows});
    });
    double* total = of_shard(shard);
    std::fill_n(total, count, 0.0);
    for (int part = 0; part < parts_of(rows, least_); ++part)
      for (std::int64_t i = 0; i < count; ++i) total[i] += partial(run, part)[i];
  }

  /// The sums of all shards of all workers; of_shard() is lost.
  double* join_shards(const Run& run) {
    join_as_tree(shards_, [&](int into, int from) {
      for (int i = 0; i < 2 * channels_; ++i) of_shard(into)[i] += of_shard(from)[i];
    });
    if (is_shared_ && run.options.reduce_statistics)
      run.options.reduce_statistics({of_shard(0), 2 * static_cast<std::size_t>(channels_)});
    return of_shard(0);
  }

  // ---- forward

  /// Average of a few rows spread over the group: near enough to the mean that the squares around it do not
  /// cancel.
  void guess_mean(const Run& run, int group, int shard, float* guess) const {
    const std::int64_t of_shard = rows_ / shards_, rows = std::min<std::int64_t>(of_shard, kGuessRows);
    double* sums = partial(run, 0);
    std::fill_n(sums, 2 * channels_, 0.0);
    const std::vector<float> zero(static_cast<std::size_t>(channels_), 0.0f);
    for (std::int64_t i = 0; i < rows; ++i)
      run.typed(src_.storage)
          .moments(rows_at(run, src_, group, shard * of_shard + of_shard * i / rows), 1, channels_,
                   zero.data(), sums);
    for (int c = 0; c < channels_; ++c) guess[c] = static_cast<float>(sums[c] / static_cast<double>(rows));
  }

  void find_statistics(Run& run) {
    for (int group = 0; group < groups_; ++group) {
      float* guess = of_group(run, mean_, group);
      for (int shard = 0; shard < shards_; ++shard) {
        guess_mean(run, group, shard, guess);
        sum_over_parts(run, shard, [&](double* own, Part part) {
          run.typed(src_.storage)
              .moments(rows_at(run, src_, group, part.begin), part.size(), channels_, guess, own);
        });
        if (is_shared_) make_plain(guess, of_shard(shard));
      }
      const double* sums = join_shards(run);
      for (int c = 0; c < channels_; ++c) {
        // Shared: sums are plain ones by now, over all workers.
        const double around = sums[c] / count_;
        const double mean = (is_shared_ ? 0.0 : static_cast<double>(guess[c])) + around;
        double variance = sums[channels_ + c] / count_ - around * around;
        if (variance < 0) variance = 0;  // rounding; NaN stays
        set_channel(run, group, c, mean, variance);
        statistic(run, 2, group)[c] = variance * (count_ > 1 ? count_ / (count_ - 1) : 1);
      }
    }
  }

  /// Sums around the guess -> plain sums, which can be joined with those of others.
  void make_plain(const float* guess, double* sums) const {
    const auto rows = static_cast<double>(rows_ / shards_);
    for (int c = 0; c < channels_; ++c) {
      const double shift = static_cast<double>(guess[c]);
      sums[channels_ + c] += 2 * shift * sums[c] + rows * shift * shift;
      sums[c] += rows * shift;
    }
  }

  void set_channel(Run& run, int group, int c, double mean, double variance) const {
    const double inverse_deviation = 1 / std::sqrt(variance + epsilon_);
    of_group(run, mean_, group)[c] = static_cast<float>(mean);
    of_group(run, scale_, group)[c] =
        static_cast<float>(static_cast<double>(run.weights[weight_at_ + c]) * inverse_deviation);
    inverse(run, group)[c] = inverse_deviation;
    statistic(run, 1, group)[c] = mean;
  }

  void take_running_statistics(Run& run) const {
    for (int c = 0; c < channels_; ++c)
      set_channel(run, 0, c, static_cast<double>(run.weights[mean_at_ + c]),
                  static_cast<double>(run.weights[var_at_ + c]));
  }

  // ---- backward

  [[nodiscard]] Mask mask() const {
    if (!relu_) return Mask::none;
    return residual_ != nullptr ? Mask::from_dst : Mask::from_src;
  }

  /// At most two gradient terms, later ones already added to the first.
  std::vector<BufferId> first_terms(const Run& run) const {
    std::vector<BufferId> terms = dst_.gradient;
    while (terms.size() > 2) {
      Value rest = dst_;
      rest.gradient = {terms.front(), terms.back()};
      merged_gradient(run, rest);
      terms.pop_back();
    }
    return terms;
  }

  void reduce_gradient(Run& run, NormBackward& args, const std::vector<BufferId>& terms, int group) {
    const Storage storage = dst_.gradient_storage;
    std::byte* d_dst = run.memory.at(terms[0]);
    std::byte* d_dst2 = terms.size() > 1 ? run.memory.at(terms[1]) : nullptr;
    std::byte* d_masked = run.memory.at(d_masked_);
    for (int shard = 0; shard < shards_; ++shard)
      sum_over_parts(run, shard, [&](double* own, Part part) {
        NormBackward mine = args;
        mine.src = rows_at(run, src_, group, part.begin);
        if (args.mask == Mask::from_dst) mine.dst = rows_at(run, dst_, group, part.begin);
        mine.d_dst = row_of(d_dst, group, part.begin, storage);
        mine.d_dst2 = row_of(d_dst2, group, part.begin, storage);
        mine.d_masked = row_of(d_masked, group, part.begin, storage);
        run.typed(src_.storage).norm_backward_reduce(mine, part.size(), channels_, own);
      });
    args.d_dst = d_masked != nullptr ? d_masked : d_dst;
    if (d_masked != nullptr) args.mask = Mask::none;  // it is in the stored gradient
  }

  /// Parameter gradients of each shard, rounded to float as a worker with this shard alone would have them,
  /// and joined as the workers' are.
  void sum_shards_in_float(const Run& run) {
    const int count = 2 * channels_;
    std::vector<float> own(static_cast<std::size_t>(count * shards_));
    for (int shard = 0; shard < shards_; ++shard)
      for (int c = 0; c < channels_; ++c) {
        own[static_cast<std::size_t>(shard * count + c)] = static_cast<float>(of_shard(shard)[c]);
        own[static_cast<std::size_t>(shard * count + channels_ + c)] =
            static_cast<float>(of_shard(shard)[channels_ + c] * inverse(run, 0)[c]);
      }
    join_as_tree(shards_, [&](int into, int from) {
      for (int i = 0; i < count; ++i)
        own[static_cast<std::size_t>(into * count + i)] += own[static_cast<std::size_t>(from * count + i)];
    });
    std::copy_n(own.begin(), count, own_sums_.begin());
  }

  void apply_gradient(Run& run, const NormBackward& args, int group, const double* sums) const {
    float* slope = of_group(run, slope_, group);
    float* offset = of_group(run, offset_, group);
    for (int c = 0; c < channels_; ++c) {
      const double scale = static_cast<double>(run.weights[weight_at_ + c]) * inverse(run, group)[c];
      const double inverse_variance = inverse(run, group)[c] * inverse(run, group)[c];
      slope[c] = static_cast<float>(-scale * inverse_variance * sums[channels_ + c] / count_);
      offset[c] = static_cast<float>(-scale * sums[c] / count_);
    }
    parallel_parts(run.pool, rows_, least_, [&](int, Part part) {
      NormBackward mine = args;
      mine.src = rows_at(run, src_, group, part.begin);
      mine.d_dst = row_of(static_cast<std::byte*>(const_cast<void*>(args.d_dst)), group, part.begin,
                          dst_.gradient_storage);
      mine.d_src = row_of(run.memory.at(d_src_), group, part.begin, src_.gradient_storage);
      mine.slope = slope;
      mine.offset = offset;
      run.typed(src_.storage).norm_backward_apply(mine, part.size(), channels_);
    });
  }

  /// d_weight and d_bias, and the batch's statistics in the slots of the running ones: weighted as gradients
  /// are, so that summing over workers averages them.
  void store_parameter_gradients(const Run& run) const {
    const double share = run.options.batch * run.input.gradient_scale / (groups_ * shards_);
    for (int c = 0; c < channels_; ++c) {
      run.gradients[bias_at_ + c] = static_cast<float>(own_sums_[static_cast<std::size_t>(c)]);
      run.gradients[weight_at_ + c] = static_cast<float>(own_sums_[static_cast<std::size_t>(channels_ + c)]);
      double mean = 0, variance = 0;
      for (int group = 0; group < groups_; ++group) {
        mean += statistic(run, 1, group)[c];
        variance += statistic(run, 2, group)[c];
      }
      run.gradients[mean_at_ + c] = of_all_shards(static_cast<float>(mean * share));
      run.gradients[var_at_ + c] = of_all_shards(static_cast<float>(variance * share));
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

  const std::string name_;
  const Value& src_;
  const Value* residual_;
  const Value& dst_;
  const bool relu_;
  const BufferId d_src_;
  const int channels_;
  const int groups_;
  const std::int64_t rows_;  ///< of one group
  std::int64_t least_ = 0;   ///< rows of a part
  const bool is_shared_;     ///< statistics over all workers, or over shards
  const int shards_;         ///< of this engine's batch; see CompileOptions::shard
  const double count_;       ///< rows that share statistics
  const double epsilon_;
  const std::int64_t weight_at_, bias_at_, mean_at_, var_at_;
  BufferId mean_, scale_, slope_, offset_, statistics_, d_masked_;
  std::vector<double> shard_sums_;  ///< [shards][2 channels], of the pass that goes on
  std::vector<double> own_sums_;    ///< d_bias, d_weight over this engine's samples
};

}  // namespace

std::unique_ptr<Step> make_norm_step(const Site& site, const Value& src, const Value* residual,
                                     const Value& dst, bool relu, BufferId d_src, BufferId d_residual) {
  return std::make_unique<NormStep>(site, src, residual, dst, relu, d_src, d_residual);
}

}  // namespace paceline::engine::cpu
