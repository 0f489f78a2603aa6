#include <cmath>
#include <vector>

#include "engine/reference/ops.h"

namespace paceline::engine::reference {
namespace {

std::int64_t plane_of(const OpShapes& shapes) {
  return std::int64_t{1} * shapes.src.height * shapes.src.width;
}

/// Elements of one sample that share a mean and a variance.
struct NormGroup {
  int begin = 0, end = 0;   ///< channels
  std::int64_t first = 0;   ///< element of the first channel
  std::int64_t places = 0;  ///< of each channel, adjacent
  std::int64_t plane = 0;   ///< from one channel to the next
  [[nodiscard]] double count() const {
    return static_cast<double>(end - begin) * static_cast<double>(places);
  }
  /// visit(channel, element)
  template <typename Visit>
  void for_each(Visit visit) const {
    for (int c = begin; c < end; ++c)
      for (std::int64_t i = 0; i < places; ++i)
        visit(static_cast<std::size_t>(c), first + (c - begin) * plane + i);
  }
};

template <typename Visit>
void for_each_norm_group(const OpShapes& shapes, const SampleGroups& groups, Visit visit) {
  const std::int64_t plane = plane_of(shapes);
  const int channels = shapes.src.channels / groups.channel_groups;
  for (int n = 0; n < shapes.batch; ++n)
    for (int g = 0; g < groups.channel_groups; ++g) {
      NormGroup group{.begin = g * channels,
                      .end = (g + 1) * channels,
                      .first = (std::int64_t{1} * n * shapes.src.channels + g * channels) * plane,
                      .places = groups.by_place ? 1 : plane,
                      .plane = plane};
      for (std::int64_t i = 0; i < (groups.by_place ? plane : 1); ++i, ++group.first) visit(group);
    }
}

struct GroupStatistics {
  double mean, inverse_deviation;
};

template <typename T>
GroupStatistics statistics_of(const NormGroup& group, double epsilon, const T* src) {
  double sum = 0, squares = 0;
  group.for_each([&](std::size_t, std::int64_t i) { sum += static_cast<double>(src[i]); });
  const double mean = sum / group.count();
  group.for_each([&](std::size_t, std::int64_t i) {
    const double d = static_cast<double>(src[i]) - mean;
    squares += d * d;
  });
  return {mean, 1 / std::sqrt(squares / group.count() + epsilon)};
}

}  // namespace

template <typename T>
void group_norm_forward(const OpShapes& shapes, const SampleGroups& groups, const T* src, const T* weight,
                        const T* bias, T* dst) {
  for_each_norm_group(shapes, groups, [&](const NormGroup& group) {
    const GroupStatistics s = statistics_of(group, groups.epsilon, src);
    group.for_each([&](std::size_t c, std::int64_t i) {
      const double normalised = (static_cast<double>(src[i]) - s.mean) * s.inverse_deviation;
      dst[i] = static_cast<T>(normalised * static_cast<double>(weight[c]) + static_cast<double>(bias[c]));
    });
  });
}

template <typename T>
void group_norm_backward(const OpShapes& shapes, const SampleGroups& groups, const T* src, const T* weight,
                         const T* d_dst, T* d_src, T* d_weight, T* d_bias) {
  const auto channels = static_cast<std::size_t>(shapes.src.channels);
  std::vector<double> sums(channels, 0.0), products(channels, 0.0);
  for_each_norm_group(shapes, groups, [&](const NormGroup& group) {
    const GroupStatistics s = statistics_of(group, groups.epsilon, src);
    const auto normalised = [&](std::int64_t i) {
      return (static_cast<double>(src[i]) - s.mean) * s.inverse_deviation;
    };
    double sum = 0, product = 0;  // of weight * d_dst, and of that times the normalised value
    group.for_each([&](std::size_t c, std::int64_t i) {
      const double d = static_cast<double>(d_dst[i]);
      sums[c] += d;
      products[c] += d * normalised(i);
      sum += d * static_cast<double>(weight[c]);
      product += d * static_cast<double>(weight[c]) * normalised(i);
    });
    if (d_src == nullptr) return;
    group.for_each([&](std::size_t c, std::int64_t i) {
      const double d = static_cast<double>(d_dst[i]) * static_cast<double>(weight[c]);
      d_src[i] += static_cast<T>(s.inverse_deviation *
                                 (d - sum / group.count() - normalised(i) * product / group.count()));
    });
  });
  for (std::size_t c = 0; d_weight != nullptr && c < channels; ++c) {
    d_bias[c] = static_cast<T>(sums[c]);
    d_weight[c] = static_cast<T>(products[c]);
  }
}

template <typename T>
void scale_forward(const OpShapes& shapes, const T* src, const T* weight, T* dst) {
  for (std::int64_t i = 0; i < shapes.src_elements(); ++i)
    dst[i] = src[i] * weight[i / plane_of(shapes) % shapes.src.channels];
}

template <typename T>
void scale_backward(const OpShapes& shapes, const T* src, const T* weight, const T* d_dst, T* d_src,
                    T* d_weight) {
  std::vector<double> sums(static_cast<std::size_t>(shapes.src.channels), 0.0);
  for (std::int64_t i = 0; i < shapes.src_elements(); ++i) {
    const auto c = static_cast<std::size_t>(i / plane_of(shapes) % shapes.src.channels);
    sums[c] += static_cast<double>(d_dst[i]) * static_cast<double>(src[i]);
    if (d_src != nullptr) d_src[i] += d_dst[i] * weight[c];
  }
  for (std::size_t c = 0; d_weight != nullptr && c < sums.size(); ++c) d_weight[c] = static_cast<T>(sums[c]);
}

#define PACELINE_INSTANTIATE(T)                                                                             \
  template void group_norm_forward(const OpShapes&, const SampleGroups&, const T*, const T*, const T*, T*); \
  template void group_norm_backward(const OpShapes&, const SampleGroups&, const T*, const T*, const T*, T*, \
                                    T*, T*);                                                                \
  template void scale_forward(const OpShapes&, const T*, const T*, T*);                                     \
  template void scale_backward(const OpShapes&, const T*, const T*, const T*, T*, T*);
PACELINE_INSTANTIATE(float)
PACELINE_INSTANTIATE(double)
#undef PACELINE_INSTANTIATE

}  // namespace paceline::engine::reference
