#include "engine/reference/ops/batch_norm.h"

#include <algorithm>
#include <cmath>

namespace paceline::engine::reference {
namespace {

/// Walks the planes of one group: visit(channel, first element of the plane), samples outermost.
template <typename Visit>
void for_each_plane(const OpShapes& shapes, int groups, int group, Visit visit) {
  const int samples = shapes.batch / groups;
  const std::int64_t plane = std::int64_t{1} * shapes.src.height * shapes.src.width;
  for (int n = group * samples; n < (group + 1) * samples; ++n)
    for (int c = 0; c < shapes.src.channels; ++c)
      visit(c, (std::int64_t{n} * shapes.src.channels + c) * plane);
}

double elements_of_group(const OpShapes& shapes, const BatchNormGroups& groups) {
  return static_cast<double>(shapes.batch / groups.groups) * shapes.src.height * shapes.src.width *
         groups.world_size;
}

}  // namespace

template <typename T>
void batch_norm_forward(const OpShapes& shapes, const graph::BatchNorm& norm, const BatchNormGroups& groups,
                        const T* src, const T* weight, const T* bias, T* dst,
                        BatchNormStatistics& statistics) {
  const auto channels = static_cast<std::size_t>(shapes.src.channels);
  const std::int64_t plane = std::int64_t{1} * shapes.src.height * shapes.src.width;
  const double count = elements_of_group(shapes, groups);
  statistics.mean.assign(static_cast<std::size_t>(groups.groups) * channels, 0);
  statistics.inverse_deviation.assign(static_cast<std::size_t>(groups.groups) * channels, 0);
  statistics.batch_mean.assign(channels, 0);
  statistics.batch_variance.assign(channels, 0);

  for (int group = 0; group < groups.groups; ++group) {
    std::vector<double> sums(2 * channels, 0.0);  // of the values, then of their squares
    for_each_plane(shapes, groups.groups, group, [&](int c, std::int64_t first) {
      double sum = 0, squares = 0;
      for (std::int64_t i = first; i < first + plane; ++i) {
        const double value = static_cast<double>(src[i]);
        sum += value;
        squares += value * value;
      }
      sums[static_cast<std::size_t>(c)] += sum;
      sums[channels + static_cast<std::size_t>(c)] += squares;
    });
    if (groups.world_size > 1) groups.reduce(sums);

    double* mean = &statistics.mean[static_cast<std::size_t>(group) * channels];
    double* inverse = &statistics.inverse_deviation[static_cast<std::size_t>(group) * channels];
    for (std::size_t c = 0; c < channels; ++c) {
      mean[c] = sums[c] / count;
      const double variance = std::max(0.0, sums[channels + c] / count - mean[c] * mean[c]);
      inverse[c] = 1 / std::sqrt(variance + norm.epsilon);
      statistics.batch_mean[c] += mean[c] / groups.groups;
      // A single element has no unbiased variance; the biased one (zero) is used.
      statistics.batch_variance[c] += variance * (count > 1 ? count / (count - 1) : 1) / groups.groups;
    }
    for_each_plane(shapes, groups.groups, group, [&](int c, std::int64_t first) {
      const double scale = static_cast<double>(weight[c]) * inverse[c];
      const double shift = static_cast<double>(bias[c]) - mean[c] * scale;
      for (std::int64_t i = first; i < first + plane; ++i)
        dst[i] = static_cast<T>(static_cast<double>(src[i]) * scale + shift);
    });
  }
}

template <typename T>
void batch_norm_backward(const OpShapes& shapes, const BatchNormGroups& groups,
                         const BatchNormStatistics& statistics, const T* src, const T* weight, const T* d_dst,
                         T* d_src, T* d_weight, T* d_bias) {
  const auto channels = static_cast<std::size_t>(shapes.src.channels);
  const std::int64_t plane = std::int64_t{1} * shapes.src.height * shapes.src.width;
  const double count = elements_of_group(shapes, groups);
  std::vector<double> own(2 * channels, 0.0);

  for (int group = 0; group < groups.groups; ++group) {
    const double* mean = &statistics.mean[static_cast<std::size_t>(group) * channels];
    const double* inverse = &statistics.inverse_deviation[static_cast<std::size_t>(group) * channels];
    std::vector<double> sums(2 * channels, 0.0);  // of d_dst, then of d_dst times the normalised value
    for_each_plane(shapes, groups.groups, group, [&](int channel, std::int64_t first) {
      const auto c = static_cast<std::size_t>(channel);
      double sum = 0, products = 0;
      for (std::int64_t i = first; i < first + plane; ++i) {
        const double gradient = static_cast<double>(d_dst[i]);
        sum += gradient;
        products += gradient * (static_cast<double>(src[i]) - mean[c]) * inverse[c];
      }
      sums[c] += sum;
      sums[channels + c] += products;
    });
    for (std::size_t i = 0; i < sums.size(); ++i) own[i] += sums[i];
    // Every worker takes part, whether or not it wants d_src: the calls must match.
    if (groups.world_size > 1) groups.reduce(sums);
    if (d_src == nullptr) continue;
    for_each_plane(shapes, groups.groups, group, [&](int channel, std::int64_t first) {
      const auto c = static_cast<std::size_t>(channel);
      const double scale = static_cast<double>(weight[c]) * inverse[c];
      const double mean_sum = sums[c] / count, mean_product = sums[channels + c] / count;
      for (std::int64_t i = first; i < first + plane; ++i) {
        const double normalised = (static_cast<double>(src[i]) - mean[c]) * inverse[c];
        d_src[i] +=
            static_cast<T>(scale * (static_cast<double>(d_dst[i]) - mean_sum - normalised * mean_product));
      }
    });
  }
  for (std::size_t c = 0; c < channels; ++c) {
    d_bias[c] = static_cast<T>(own[c]);
    d_weight[c] = static_cast<T>(own[channels + c]);
  }
}

template <typename T>
void batch_norm_evaluate(const OpShapes& shapes, const graph::BatchNorm& norm, const T* src, const T* weight,
                         const T* bias, const T* running_mean, const T* running_var, T* dst) {
  const std::int64_t plane = std::int64_t{1} * shapes.src.height * shapes.src.width;
  for_each_plane(shapes, 1, 0, [&](int c, std::int64_t first) {
    const double scale =
        static_cast<double>(weight[c]) / std::sqrt(static_cast<double>(running_var[c]) + norm.epsilon);
    const double shift = static_cast<double>(bias[c]) - static_cast<double>(running_mean[c]) * scale;
    for (std::int64_t i = first; i < first + plane; ++i)
      dst[i] = static_cast<T>(static_cast<double>(src[i]) * scale + shift);
  });
}

#define PACELINE_INSTANTIATE(T)                                                                             \
  template void batch_norm_forward(const OpShapes&, const graph::BatchNorm&, const BatchNormGroups&,        \
                                   const T*, const T*, const T*, T*, BatchNormStatistics&);                 \
  template void batch_norm_backward(const OpShapes&, const BatchNormGroups&, const BatchNormStatistics&,    \
                                    const T*, const T*, const T*, T*, T*, T*);                              \
  template void batch_norm_evaluate(const OpShapes&, const graph::BatchNorm&, const T*, const T*, const T*, \
                                    const T*, const T*, T*);
PACELINE_INSTANTIATE(float)
PACELINE_INSTANTIATE(double)

#undef PACELINE_INSTANTIATE
}  // namespace paceline::engine::reference
