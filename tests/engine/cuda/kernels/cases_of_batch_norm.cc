#include "engine/cuda/kernels/kernel_cases.h"

namespace paceline::engine::cuda {
namespace {

constexpr double kEpsilonOfCases = 1e-5;

struct Norm {
  ImageShape shape;
  int groups;
  [[nodiscard]] std::int64_t rows() const { return shape.rows() / groups; }
  [[nodiscard]] Columns for_sums() const { return Columns::for_sums(rows(), groups, shape.padded()); }
  [[nodiscard]] Columns for_rows() const { return Columns::for_rows(rows(), groups, shape.padded()); }
  /// Elements of [groups][of_channel][channels].
  [[nodiscard]] std::size_t channels_of_groups(int of_channel) const {
    return static_cast<std::size_t>(groups * of_channel * shape.padded());
  }
  [[nodiscard]] std::size_t partial_elements() const {
    return channels_of_groups(2) * static_cast<std::size_t>(for_sums().row_blocks);
  }
  [[nodiscard]] ColumnFold<2> fold(const double* partial) const {
    return {partial, groups, for_sums().row_blocks, shape.padded()};
  }
};

/// Channels below and above a tile, many rows, ghost groups.
std::vector<Norm> norms(bool is_small) {
  if (is_small) return {{{2, 3, 2, 2}, 1}, {{2, 10, 1, 3}, 2}};
  return {{{8, 64, 9, 7}, 1}, {{6, 72, 4, 4}, 2}, {{8, 10, 30, 30}, 1}, {{12, 40, 6, 6}, 3}};
}

/// Sums as blocks write them: [..][2][channels], the second about as large as that of squares.
std::vector<double> random_sums(std::mt19937& generator, std::size_t count) {
  return random_doubles(generator, count, 20, 10);
}

/// [groups][3][channels]: means, then positive values in the other two places.
template <typename Value>
std::vector<Value> random_statistics(std::mt19937& generator, const Norm& norm) {
  std::vector<Value> values;
  for (const double value : random_doubles(generator, norm.channels_of_groups(3)))
    values.push_back(static_cast<Value>(value));
  const auto padded = static_cast<std::size_t>(norm.shape.padded());
  for (std::size_t i = 0; i < values.size(); ++i)
    if (i / padded % 3 != 0) values[i] = std::abs(values[i]) + Value{0.125};
  return values;
}

template <typename T>
void add_forward(KernelCases& cases, const Norm& norm) {
  cases.add(named<T>("BatchNormSums"), [=](KernelArrays& arrays, std::mt19937& generator) {
    const T* src = arrays.input(random_images<T>(generator, norm.shape));
    return BatchNormSums<T>{norm.for_sums(), src, arrays.output<double>(norm.partial_elements())};
  });
  for (const bool with_residual : {false, true})
    cases.add(named<T>("BatchNormApply"), [=](KernelArrays& arrays, std::mt19937& generator) {
      const T* src = arrays.input(random_images<T>(generator, norm.shape));
      const T* residual = with_residual ? arrays.input(random_images<T>(generator, norm.shape)) : nullptr;
      const float* parameters = arrays.input(random_statistics<float>(generator, norm));
      return BatchNormApply<T>{norm.for_rows(), src,
                               residual,        arrays.output<T>(norm.shape.stored_elements()),
                               {parameters},    with_residual};
    });
}

void add_statistics(KernelCases& cases, const Norm& norm) {
  const auto channels = static_cast<std::size_t>(norm.shape.channels);
  cases.add("SumFold", [=](KernelArrays& arrays, std::mt19937& generator) {
    const double* partial = arrays.input(random_sums(generator, norm.partial_elements()));
    return SumFold{norm.fold(partial), arrays.output<double>(norm.channels_of_groups(2))};
  });
  for (const bool folds : {true, false})
    cases.add("BatchNormStatistics", [=](KernelArrays& arrays, std::mt19937& generator) {
      const double* partial = arrays.input(random_sums(generator, norm.partial_elements()));
      const double* sums = arrays.input(random_sums(generator, norm.channels_of_groups(2)));
      const float* weight = arrays.input(random_floats(generator, channels));
      const float* bias = arrays.input(random_floats(generator, channels));
      float* parameters = arrays.output<float>(norm.channels_of_groups(3));
      return BatchNormStatistics{norm.fold(folds ? partial : nullptr),
                                 sums,
                                 norm.shape.channels,
                                 static_cast<double>(norm.rows()),
                                 kEpsilonOfCases,
                                 weight,
                                 bias,
                                 parameters,
                                 arrays.output<double>(norm.channels_of_groups(3))};
    });
  for (const bool trains : {false, true})
    cases.add(trains ? "BatchNormRunning of a frozen one" : "BatchNormRunning", [=](KernelArrays& arrays,
                                                                                    std::mt19937& generator) {
      const float* weight = arrays.input(random_floats(generator, channels));
      const float* bias = arrays.input(random_floats(generator, channels));
      const float* mean = arrays.input(random_floats(generator, channels));
      const float* var = arrays.input(positive_floats(generator, channels));
      const int padded = norm.shape.padded();
      return BatchNormRunning{padded,
                              norm.shape.channels,
                              kEpsilonOfCases,
                              weight,
                              bias,
                              mean,
                              var,
                              arrays.output<float>(3 * static_cast<std::size_t>(padded)),
                              trains ? arrays.output<double>(3 * static_cast<std::size_t>(padded)) : nullptr};
    });
}

/// `first_term`: where d_dst lies, if not in an array of its own.
template <typename T>
MaskedGradient<T> masked_gradient(KernelArrays& arrays, std::mt19937& generator, const Norm& norm,
                                  ReluMask mask, bool two_terms, const T* first_term = nullptr) {
  const auto image = [&] { return arrays.input(random_images<T>(generator, norm.shape)); };
  MaskedGradient<T> gradient{};
  gradient.src = image();
  if (mask == ReluMask::from_dst) gradient.dst = image();
  gradient.d_dst = first_term != nullptr ? first_term : image();
  if (two_terms) gradient.d_dst2 = image();
  gradient.mask = mask;
  gradient.parameters.values = arrays.input(random_statistics<float>(generator, norm));
  return gradient;
}

template <typename T, ReluMask kMask, bool kTwoTerms, bool kStores>
void add_sums(KernelCases& cases, const Norm& norm) {
  cases.add(named<T>("BatchNormGradientSums"), [=](KernelArrays& arrays, std::mt19937& generator) {
    constexpr bool kCopies = kMask == ReluMask::none && !kTwoTerms;  // in place it would change nothing
    T* in_place = kStores && !kCopies ? arrays.in_place(random_images<T>(generator, norm.shape)) : nullptr;
    T* apart = kStores && kCopies ? arrays.output<T>(norm.shape.stored_elements()) : nullptr;
    const auto gradient = masked_gradient<T>(arrays, generator, norm, kMask, kTwoTerms, in_place);
    return BatchNormGradientSums<T, kMask, kTwoTerms, kStores>{
        norm.for_sums(), gradient, kCopies ? apart : in_place,
        arrays.output<double>(norm.partial_elements())};
  });
}
template <typename T, ReluMask kMask>
void add_apply(KernelCases& cases, const Norm& norm) {
  cases.add(named<T>("BatchNormGradientApply"), [=](KernelArrays& arrays, std::mt19937& generator) {
    const auto gradient = masked_gradient<T>(arrays, generator, norm, kMask, false);
    const float* coefficients = arrays.input(random_floats(generator, norm.channels_of_groups(2)));
    return BatchNormGradientApply<T, kMask>{norm.for_rows(), gradient, coefficients,
                                            arrays.output<T>(norm.shape.stored_elements())};
  });
}

template <typename T>
void add_backward(KernelCases& cases, const Norm& norm) {
  add_sums<T, ReluMask::none, false, false>(cases, norm);
  add_sums<T, ReluMask::none, false, true>(cases, norm);
  add_sums<T, ReluMask::none, true, true>(cases, norm);
  add_sums<T, ReluMask::from_dst, false, true>(cases, norm);
  add_sums<T, ReluMask::from_dst, true, true>(cases, norm);
  add_sums<T, ReluMask::from_src, false, false>(cases, norm);
  add_sums<T, ReluMask::from_src, true, true>(cases, norm);
  add_apply<T, ReluMask::none>(cases, norm);
  add_apply<T, ReluMask::from_src>(cases, norm);
}

/// Which of its results BatchNormGradients is asked for.
struct Wanted {
  bool folds, parameters, coefficients;
};
constexpr Wanted kWanted[] = {{true, true, true}, {false, true, false}, {false, false, true}};

void add_gradients(KernelCases& cases, const Norm& norm) {
  const auto channels = static_cast<std::size_t>(norm.shape.channels);
  for (const Wanted& wanted : kWanted)
    cases.add("BatchNormGradients", [=](KernelArrays& arrays, std::mt19937& generator) {
      const double* partial = arrays.input(random_sums(generator, norm.partial_elements()));
      const double* sums = arrays.input(random_sums(generator, norm.channels_of_groups(2)));
      const double* statistics = arrays.input(random_statistics<double>(generator, norm));
      const float* weight = arrays.input(random_floats(generator, channels));
      const StepNumbers* step = arrays.input(std::vector<StepNumbers>{{.gradient_scale = 0.1}});
      const auto slot = [&] { return wanted.parameters ? arrays.output<float>(channels) : nullptr; };
      float *const d_weight = slot(), *const d_bias = slot(), *const mean = slot(), *const var = slot();
      return BatchNormGradients{
          norm.fold(wanted.folds ? partial : nullptr),
          sums,
          norm.shape.channels,
          static_cast<double>(norm.rows()),
          statistics,
          weight,
          step,
          norm.shape.samples,
          d_weight,
          d_bias,
          mean,
          var,
          wanted.coefficients ? arrays.output<float>(norm.channels_of_groups(2)) : nullptr};
    });
}

}  // namespace

void add_batch_norm_cases(KernelCases& cases) {
  for (const Norm& norm : norms(cases.is_small)) {
    for_each_storage([&]<typename T>(T) { add_forward<T>(cases, norm); });
    add_statistics(cases, norm);
  }
}

void add_batch_norm_backward_cases(KernelCases& cases) {
  for (const Norm& norm : norms(cases.is_small)) {
    for_each_storage([&]<typename T>(T) { add_backward<T>(cases, norm); });
    add_gradients(cases, norm);
  }
}

}  // namespace paceline::engine::cuda
