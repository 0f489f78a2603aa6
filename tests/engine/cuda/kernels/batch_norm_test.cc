#include "engine/cuda/kernels/batch_norm.h"

#include "engine/cuda/kernels/batch_norm_backward.h"
#include "engine/cuda/kernels/kernel_runs.h"
#include "engine/reference/ops.h"

namespace paceline::engine::cuda {
namespace {

constexpr double kEpsilon = 1e-5, kScale = 0.125;

/// One batch norm on the kernels, beside the reference in double.
template <typename T>
class Runs {
 public:
  Runs(const ImageShape& shape, int groups, unsigned seed, double mean = 0.3)
      : shape_(shape),
        groups_(groups),
        generator_(seed),
        src_(random_values<T>(generator_, shape.elements(), mean, 1.5)),
        weight_(random_values<float>(generator_, channels(), 1, 0.3)),
        bias_(random_values<float>(generator_, channels(), 0, 0.3)),
        stored_src_(to_storage<T>(shape, src_)),
        weight_f_(floats(weight_)),
        bias_f_(floats(bias_)),
        parameters_(3 * padded() * static_cast<std::size_t>(groups), std::nanf("")),
        statistics_(parameters_.size(), kNan),
        dst_(shape.stored_elements()) {
    reference_dst_.resize(src_.size());
    reference::batch_norm_forward(op_shapes(), {.epsilon = kEpsilon}, {.groups = groups_}, src_.data(),
                                  weight_.data(), bias_.data(), reference_dst_.data(), reference_);
  }

  [[nodiscard]] std::size_t channels() const { return static_cast<std::size_t>(shape_.channels); }
  [[nodiscard]] std::size_t padded() const { return static_cast<std::size_t>(shape_.padded()); }
  [[nodiscard]] std::int64_t rows() const { return shape_.rows() / groups_; }
  [[nodiscard]] reference::OpShapes op_shapes() const {
    return {.batch = shape_.samples, .src = shape_.shape(), .dst = shape_.shape()};
  }
  [[nodiscard]] Columns columns_for_sums() const {
    return Columns::for_sums(rows(), groups_, shape_.padded());
  }
  [[nodiscard]] Columns columns_for_rows() const {
    return Columns::for_rows(rows(), groups_, shape_.padded());
  }
  [[nodiscard]] std::vector<double> partials() const {
    return std::vector<double>(
        static_cast<std::size_t>(groups_ * columns_for_sums().row_blocks) * 2 * padded(), kNan);
  }
  [[nodiscard]] ColumnFold<2> fold(const std::vector<double>& partial) const {
    return {partial.data(), groups_, columns_for_sums().row_blocks, shape_.padded()};
  }

  /// `separate`: sums go through SumFold, as where workers join them.
  void find_statistics(bool separate) {
    std::vector<double> partial = partials();
    run(BatchNormSums<T>{columns_for_sums(), stored_src_.data(), partial.data()}, {output(partial)});
    std::vector<double> sums(2 * padded() * static_cast<std::size_t>(groups_), kNan);
    if (separate) run(SumFold{fold(partial), sums.data()}, {output(sums)});
    ColumnFold<2> of = fold(partial);
    if (separate) of.partial = nullptr;
    run(BatchNormStatistics{of, sums.data(), shape_.channels, static_cast<double>(rows()), kEpsilon,
                            weight_f_.data(), bias_f_.data(), parameters_.data(), statistics_.data()},
        {output(parameters_), output(statistics_)});
  }

  void apply(Stored<T>* residual, bool relu) {
    run(BatchNormApply<T>{columns_for_rows(),
                          stored_src_.data(),
                          residual != nullptr ? residual->data() : nullptr,
                          dst_.data(),
                          {parameters_.data()},
                          relu},
        {dst_.output()});
  }

  ImageShape shape_;
  int groups_;
  std::mt19937 generator_;
  std::vector<double> src_, weight_, bias_;
  Stored<T> stored_src_;
  std::vector<float> weight_f_, bias_f_;
  std::vector<float> parameters_;
  std::vector<double> statistics_;
  Stored<T> dst_;
  std::vector<double> reference_dst_;
  reference::BatchNormStatistics reference_;
};

struct NormCase {
  ImageShape shape;
  int groups;
};
/// Channels below, at and above a tile; rows fewer and many more than a block's threads; ghost groups.
std::vector<NormCase> cases() {
  return {{{4, 3, 5, 5}, 1},   {{8, 64, 9, 7}, 1}, {{6, 72, 4, 4}, 2},
          {{8, 10, 1, 1}, 1},  {{8, 24, 3, 3}, 4}, {{2, 130, 2, 3}, 1},
          {{8, 8, 30, 30}, 1}, {{1, 1, 1, 2}, 1},  {{12, 40, 6, 6}, 3}};
}

template <typename T>
class CudaBatchNorm : public ::testing::Test {};
TYPED_TEST_SUITE(CudaBatchNorm, Storages);

TYPED_TEST(CudaBatchNorm, StatisticsAreTheReferences) {
  for (const auto& [shape, groups] : cases())
    for (const bool separate : {false, true}) {
      Runs<TypeParam> runs(shape, groups, 1);
      runs.find_statistics(separate);
      for (std::size_t g = 0; g < static_cast<std::size_t>(groups); ++g)
        for (std::size_t c = 0; c < runs.padded(); ++c) {
          const double* of = runs.statistics_.data() + g * 3 * runs.padded() + c;
          if (c >= runs.channels()) {
            for (int i = 0; i < 3; ++i) EXPECT_EQ(of[static_cast<std::size_t>(i) * runs.padded()], 0);
            continue;
          }
          const std::size_t i = g * runs.channels() + c;
          EXPECT_NEAR(of[0], runs.reference_.mean[i], 1e-6);
          EXPECT_NEAR(of[runs.padded()] / runs.reference_.inverse_deviation[i], 1, 1e-5);
        }
      for (std::size_t c = 0; c < runs.channels(); ++c) {
        double variance = 0;
        for (std::size_t g = 0; g < static_cast<std::size_t>(groups); ++g)
          variance += runs.statistics_[(g * 3 + 2) * runs.padded() + c] / groups;
        EXPECT_NEAR(variance, runs.reference_.batch_variance[c], 1e-5 * (1 + variance));
      }
    }
}

/// fp32 sums of squares alone would lose the variance: deviation 1 beside a mean of 3000.
TEST(CudaBatchNormSums, ALargeMeanCostsNoDigits) {
  const ImageShape shape{16, 24, 12, 12};
  Runs<float> runs(shape, 1, 2, 3000);
  runs.find_statistics(false);
  for (std::size_t c = 0; c < runs.channels(); ++c)
    EXPECT_NEAR(runs.statistics_[runs.padded() + c] / runs.reference_.inverse_deviation[c], 1, 1e-5);
}

/// The sums of a group are those it has alone: a shard's bits do not depend on the batch around it.
TYPED_TEST(CudaBatchNorm, AGroupHasTheSumsItHasAlone) {
  const ImageShape shape{8, 72, 9, 9};
  Runs<TypeParam> runs(shape, 4, 3);
  std::vector<double> partial = runs.partials(), sums(2 * runs.padded() * 4, kNan);
  run(BatchNormSums<TypeParam>{runs.columns_for_sums(), runs.stored_src_.data(), partial.data()},
      {output(partial)});
  run(SumFold{runs.fold(partial), sums.data()}, {output(sums)});
  for (std::size_t g = 0; g < 4; ++g) {
    const Columns alone = Columns::for_sums(runs.rows(), 1, shape.padded());
    std::vector<double> own(static_cast<std::size_t>(alone.row_blocks) * 2 * runs.padded(), kNan),
        own_sums(2 * runs.padded(), kNan);
    run(
        BatchNormSums<TypeParam>{
            alone, runs.stored_src_.data() + static_cast<std::ptrdiff_t>(g) * runs.rows() * shape.padded(),
            own.data()},
        {output(own)});
    run(SumFold{{own.data(), 1, alone.row_blocks, shape.padded()}, own_sums.data()}, {output(own_sums)});
    for (std::size_t i = 0; i < own_sums.size(); ++i) EXPECT_EQ(own_sums[i], sums[g * 2 * runs.padded() + i]);
  }
}

TYPED_TEST(CudaBatchNorm, ApplyIsTheReference) {
  for (const auto& [shape, groups] : cases()) {
    Runs<TypeParam> runs(shape, groups, 4);
    runs.find_statistics(false);
    runs.apply(nullptr, false);
    // Few rows have deviations near 0, of which the inverse is large: an error of statistics shows.
    expect_near<TypeParam>(from_storage(shape, runs.dst_), runs.reference_dst_, 16);

    const auto residual = random_values<TypeParam>(runs.generator_, shape.elements());
    std::vector<double> expected = runs.reference_dst_;
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += residual[i];
    auto stored = to_storage<TypeParam>(shape, residual);
    runs.apply(&stored, false);
    expect_near<TypeParam>(from_storage(shape, runs.dst_), expected, 16);
    runs.apply(&stored, true);
    for (double& value : expected) value = value < 0 ? 0 : value;
    expect_near<TypeParam>(from_storage(shape, runs.dst_), expected, 16);
  }
}

TYPED_TEST(CudaBatchNorm, EvaluatesWithRunningStatistics) {
  for (const ImageShape shape : {ImageShape{3, 13, 4, 5}, ImageShape{2, 72, 3, 3}}) {
    Runs<TypeParam> runs(shape, 1, 5);
    const auto mean = random_values<float>(runs.generator_, runs.channels());
    auto variance = random_values<float>(runs.generator_, runs.channels(), 2, 0.3);
    for (double& value : variance) value = static_cast<double>(static_cast<float>(std::abs(value) + 0.1));
    const auto mean_f = floats(mean), variance_f = floats(variance);
    run(BatchNormRunning{shape.padded(), shape.channels, kEpsilon, runs.weight_f_.data(), runs.bias_f_.data(),
                         mean_f.data(), variance_f.data(), runs.parameters_.data(), nullptr},
        {output(runs.parameters_)}, Blocks::any);
    runs.apply(nullptr, false);
    std::vector<double> expected(shape.elements());
    reference::batch_norm_evaluate(runs.op_shapes(), {.epsilon = kEpsilon}, runs.src_.data(),
                                   runs.weight_.data(), runs.bias_.data(), mean.data(), variance.data(),
                                   expected.data());
    expect_near<TypeParam>(from_storage(shape, runs.dst_), expected, 4);
  }
}

TYPED_TEST(CudaBatchNorm, NanAndInfinityStay) {
  const ImageShape shape{4, 16, 3, 3};
  Runs<TypeParam> runs(shape, 1, 6);
  runs.src_[2 * 9] = kNan;  // sample 0, channel 2
  runs.stored_src_ = to_storage<TypeParam>(shape, runs.src_);
  runs.find_statistics(false);
  runs.apply(nullptr, true);
  const auto got = from_storage(shape, runs.dst_);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(std::isnan(got[i]), i / 9 % 16 == 2) << i;
}

/// What backward computes, with all that it may do on the way.
struct BackwardWays {
  ReluMask mask;
  bool two_terms, store_masked, separate;
};

template <typename T>
class Backward {
 public:
  Backward(const NormCase& of, const BackwardWays& ways)
      : ways_(ways),
        runs_(of.shape, of.groups, 8),
        residual_(random_values<T>(runs_.generator_, of.shape.elements())),
        first_(random_values<T>(runs_.generator_, of.shape.elements())),
        second_(random_values<T>(runs_.generator_, of.shape.elements())),
        d_src_(of.shape.stored_elements()),
        d_masked_(of.shape.stored_elements()) {
    runs_.find_statistics(false);
    auto residual = to_storage<T>(of.shape, residual_);
    runs_.apply(ways.mask == ReluMask::from_dst ? &residual : nullptr, ways.mask != ReluMask::none);
  }

  void run_kernels() {
    auto first = to_storage<T>(shape(), first_), second = to_storage<T>(shape(), second_);
    MaskedGradient<T> gradient{runs_.stored_src_.data(),
                               ways_.mask == ReluMask::from_dst ? runs_.dst_.data() : nullptr,
                               first.data(),
                               ways_.two_terms ? second.data() : nullptr,
                               ways_.mask,
                               {runs_.parameters_.data()}};
    T* masked = ways_.store_masked ? d_masked_.data() : nullptr;
    std::vector<double> partial = runs_.partials(), sums(2 * padded() * groups(), kNan);
    with_ways_of(gradient, masked != nullptr, [&]<ReluMask kMask, bool kTwoTerms, bool kStores>() {
      run(BatchNormGradientSums<T, kMask, kTwoTerms, kStores>{runs_.columns_for_sums(), gradient, masked,
                                                              partial.data()},
          {output(partial), d_masked_.output()});
    });
    const StepNumbers step{.gradient_scale = kScale};
    std::vector<float> coefficients(2 * padded() * groups(), std::nanf(""));
    BatchNormGradients gradients{runs_.fold(partial),
                                 sums.data(),
                                 shape().channels,
                                 static_cast<double>(runs_.rows()),
                                 runs_.statistics_.data(),
                                 runs_.weight_f_.data(),
                                 &step,
                                 shape().samples,
                                 d_weight_.data(),
                                 d_bias_.data(),
                                 mean_.data(),
                                 var_.data(),
                                 coefficients.data()};
    const std::vector<Output> all{output(d_weight_), output(d_bias_), output(mean_), output(var_),
                                  output(coefficients)};
    if (ways_.separate) {  // as where workers join the sums
      run(SumFold{runs_.fold(partial), sums.data()}, {output(sums)});
      gradients.fold.partial = nullptr;
      gradients.coefficients = nullptr;
      run(gradients, all);
      gradients.coefficients = coefficients.data();
      gradients.d_weight = nullptr;
    }
    run(gradients, all);
    if (ways_.store_masked)
      gradient = {runs_.stored_src_.data(),  nullptr, d_masked_.data(), nullptr, ReluMask::none,
                  {runs_.parameters_.data()}};
    gradient.mask == ReluMask::none ? apply<ReluMask::none>(gradient, coefficients)
                                    : apply<ReluMask::from_src>(gradient, coefficients);
  }

  void compare() {
    // The mask is that of the stored output.
    const std::vector<double> dst = from_storage(shape(), runs_.dst_);
    std::vector<double> g(first_), d_src(g.size(), 0.0), d_weight(channels()), d_bias(channels());
    for (std::size_t i = 0; i < g.size(); ++i) {
      if (ways_.two_terms) g[i] += second_[i];
      if (ways_.mask != ReluMask::none && !(dst[i] > 0)) g[i] = 0;
    }
    if (ways_.store_masked) {
      const std::vector<double> masked = from_storage(shape(), d_masked_);
      expect_near<T>(masked, g);
      g = masked;  // which apply reads
    }
    reference::batch_norm_backward(runs_.op_shapes(), {.groups = runs_.groups_}, runs_.reference_,
                                   runs_.src_.data(), runs_.weight_.data(), g.data(), d_src.data(),
                                   d_weight.data(), d_bias.data());
    // Coefficients of a few rows cancel; see ApplyIsTheReference.
    expect_near<T>(from_storage(shape(), d_src_), d_src, 32);
    const auto size = std::sqrt(static_cast<double>(shape().rows()));
    for (std::size_t c = 0; c < channels(); ++c) {
      EXPECT_NEAR(d_weight_[c], d_weight[c], 1e-5 * size);
      EXPECT_NEAR(d_bias_[c], d_bias[c], 1e-5 * size);
      const double share = shape().samples * kScale;
      EXPECT_NEAR(mean_[c], runs_.reference_.batch_mean[c] * share, 1e-5);
      EXPECT_NEAR(var_[c], runs_.reference_.batch_variance[c] * share, 1e-4);
    }
    for (const auto* slot : {&d_weight_, &d_bias_, &mean_, &var_})
      EXPECT_TRUE(std::isnan(slot->back())) << "wrote behind its slot";
  }

 private:
  template <ReluMask kMask>
  void apply(const MaskedGradient<T>& gradient, const std::vector<float>& coefficients) {
    run(BatchNormGradientApply<T, kMask>{runs_.columns_for_rows(), gradient, coefficients.data(),
                                         d_src_.data()},
        {d_src_.output()});
  }
  [[nodiscard]] const ImageShape& shape() const { return runs_.shape_; }
  [[nodiscard]] std::size_t channels() const { return runs_.channels(); }
  [[nodiscard]] std::size_t padded() const { return runs_.padded(); }
  [[nodiscard]] std::size_t groups() const { return static_cast<std::size_t>(runs_.groups_); }

  BackwardWays ways_;
  Runs<T> runs_;
  std::vector<double> residual_, first_, second_;
  Stored<T> d_src_, d_masked_;
  std::vector<float> d_weight_ = slot(), d_bias_ = slot(), mean_ = slot(), var_ = slot();
  std::vector<float> slot() { return std::vector<float>(channels() + 1, std::nanf("")); }
};

TYPED_TEST(CudaBatchNorm, BackwardIsTheReference) {
  for (const NormCase& of : cases()) {
    if (of.shape.rows() / of.groups < 8) continue;  // of two values the gradient is all cancellation
    for (const BackwardWays ways : {BackwardWays{ReluMask::none, false, false, false},
                                    {ReluMask::none, true, true, false},
                                    {ReluMask::none, false, true, false},
                                    {ReluMask::from_dst, true, true, false},
                                    {ReluMask::from_dst, false, true, true},
                                    {ReluMask::from_src, false, false, false},
                                    {ReluMask::from_src, true, true, true}}) {
      SCOPED_TRACE(::testing::Message() << of.shape.channels << " channels, mask "
                                        << static_cast<int>(ways.mask) << ", two terms " << ways.two_terms);
      Backward<TypeParam> backward(of, ways);
      backward.run_kernels();
      backward.compare();
    }
  }
}

// Each round of a fold waits for the memory: 64 of them took longer than the sums themselves.
TEST(ColumnFold, WaitsForMemoryInFewRounds) {
  for (const int channels : {8, 64, 512, 2048})
    for (const std::int64_t rows : {16, 25'088, 524'288}) {
      const int parts = Columns::for_sums(rows, 1, channels).row_blocks;
      EXPECT_LE((parts + ColumnFold<2>::kThreads - 1) / ColumnFold<2>::kThreads, 8)
          << channels << " " << rows;
    }
}

}  // namespace
}  // namespace paceline::engine::cuda
