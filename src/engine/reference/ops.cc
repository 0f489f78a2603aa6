#include "engine/reference/ops.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"

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
void frozen_batch_norm_backward(const OpShapes& shapes, const graph::BatchNorm& norm, const T* src,
                                const T* weight, const T* running_mean, const T* running_var, const T* d_dst,
                                T* d_src, T* d_weight, T* d_bias) {
  const auto channels = static_cast<std::size_t>(shapes.src.channels);
  const std::int64_t plane = std::int64_t{1} * shapes.src.height * shapes.src.width;
  std::vector<double> sum(channels, 0.0), products(channels, 0.0);
  for_each_plane(shapes, 1, 0, [&](int channel, std::int64_t first) {
    const auto c = static_cast<std::size_t>(channel);
    const double inverse = 1 / std::sqrt(static_cast<double>(running_var[c]) + norm.epsilon);
    for (std::int64_t i = first; i < first + plane; ++i) {
      const double gradient = static_cast<double>(d_dst[i]);
      sum[c] += gradient;
      products[c] +=
          gradient * (static_cast<double>(src[i]) - static_cast<double>(running_mean[c])) * inverse;
      if (d_src != nullptr) d_src[i] += static_cast<T>(static_cast<double>(weight[c]) * inverse * gradient);
    }
  });
  for (std::size_t c = 0; c < channels; ++c) {
    d_bias[c] = static_cast<T>(sum[c]);
    d_weight[c] = static_cast<T>(products[c]);
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

namespace {

/// A window along one axis: elements begin .. end - 1, and how many an average counts.
struct Span {
  int begin, end, counted;
};

/// The windows of an average along the axis that `along` takes from a pair, as PyTorch has them.
std::vector<Span> spans(const graph::AveragePool& pool, int graph::Pair::*along, int length, int positions) {
  std::vector<Span> all;
  for (int i = 0; i < positions; ++i) {
    const int padding = pool.padding.*along, first = i * (pool.stride.*along) - padding;
    const int beyond = first + pool.kernel.*along;
    const int begin = std::max(first, 0), end = std::min(beyond, length);
    all.push_back(
        {begin, end, pool.count_padding ? std::min(beyond, length + padding) - first : end - begin});
  }
  return all;
}
std::vector<Span> spans(const graph::AdaptiveAveragePool&, int graph::Pair::*, int length, int positions) {
  std::vector<Span> all;
  for (std::int64_t i = 0; i < positions; ++i) {
    const auto begin = static_cast<int>(i * length / positions);
    const auto end = static_cast<int>(((i + 1) * length + positions - 1) / positions);
    all.push_back({begin, end, end - begin});
  }
  return all;
}

/// Calls visit(output element, source element, the source's factor) for every element of every window that is
/// not padding.
template <typename T, typename Pool, typename Visit>
void for_each_element(const OpShapes& shapes, const Pool& pool, Visit visit) {
  const int height = shapes.src.height, width = shapes.src.width;
  const std::vector<Span> rows = spans(pool, &graph::Pair::height, height, shapes.dst.height);
  const std::vector<Span> columns = spans(pool, &graph::Pair::width, width, shapes.dst.width);
  const std::int64_t planes = std::int64_t{1} * shapes.batch * shapes.src.channels;
  std::int64_t out = 0;
  for (std::int64_t plane = 0; plane < planes; ++plane)
    for (const Span& row : rows)
      for (const Span& column : columns) {
        const T part = T{1} / static_cast<T>(std::int64_t{row.counted} * column.counted);
        for (int h = row.begin; h < row.end; ++h)
          for (int w = column.begin; w < column.end; ++w) visit(out, (plane * height + h) * width + w, part);
        ++out;
      }
}

}  // namespace

template <typename T>
void max_pool_forward(const OpShapes& shapes, const graph::MaxPool& pool, const T* src, T* dst,
                      std::int32_t* winner) {
  const int height = shapes.src.height, width = shapes.src.width;
  const std::int64_t planes = std::int64_t{1} * shapes.batch * shapes.src.channels;
  for (std::int64_t plane = 0; plane < planes; ++plane, src += std::int64_t{1} * height * width) {
    for (int p = 0; p < shapes.dst.height; ++p) {
      const int top = p * pool.stride.height - pool.padding.height;
      for (int q = 0; q < shapes.dst.width; ++q, ++dst, ++winner) {
        const int left = q * pool.stride.width - pool.padding.width;
        std::int32_t best = -1;
        for (int h = std::max(top, 0); h < std::min(top + pool.kernel.height, height); ++h)
          for (int w = std::max(left, 0); w < std::min(left + pool.kernel.width, width); ++w) {
            const std::int32_t candidate = h * width + w;
            if (best < 0 || src[candidate] > src[best] || std::isnan(src[candidate])) best = candidate;
          }
        *dst = src[best];
        *winner = best;
      }
    }
  }
}

template <typename T>
void max_pool_backward(const OpShapes& shapes, const std::int32_t* winner, const T* d_dst, T* d_src) {
  const std::int64_t src_plane = std::int64_t{1} * shapes.src.height * shapes.src.width;
  const std::int64_t dst_plane = std::int64_t{1} * shapes.dst.height * shapes.dst.width;
  const std::int64_t planes = std::int64_t{1} * shapes.batch * shapes.src.channels;
  for (std::int64_t plane = 0; plane < planes; ++plane)
    for (std::int64_t i = plane * dst_plane; i < (plane + 1) * dst_plane; ++i)
      d_src[plane * src_plane + winner[i]] += d_dst[i];
}

template <typename Pool, typename T>
void average_pool_forward(const OpShapes& shapes, const Pool& pool, const T* src, T* dst) {
  std::fill_n(dst, shapes.dst_elements(), T{0});
  for_each_element<T>(shapes, pool,
                      [&](std::int64_t out, std::int64_t in, T part) { dst[out] += src[in] * part; });
}

template <typename Pool, typename T>
void average_pool_backward(const OpShapes& shapes, const Pool& pool, const T* d_dst, T* d_src) {
  for_each_element<T>(shapes, pool,
                      [&](std::int64_t out, std::int64_t in, T part) { d_src[in] += d_dst[out] * part; });
}

template <typename T>
void global_average_pool_forward(const OpShapes& shapes, const T* src, T* dst) {
  const std::int64_t plane = std::int64_t{1} * shapes.src.height * shapes.src.width;
  for (std::int64_t c = 0; c < shapes.dst_elements(); ++c) {
    T sum = 0;
    for (std::int64_t i = c * plane; i < (c + 1) * plane; ++i) sum += src[i];
    dst[c] = sum / static_cast<T>(plane);
  }
}

template <typename T>
void global_average_pool_backward(const OpShapes& shapes, const T* d_dst, T* d_src) {
  const std::int64_t plane = std::int64_t{1} * shapes.src.height * shapes.src.width;
  for (std::int64_t c = 0; c < shapes.dst_elements(); ++c)
    for (std::int64_t i = c * plane; i < (c + 1) * plane; ++i) d_src[i] += d_dst[c] / static_cast<T>(plane);
}

namespace {
/// To a multiple of 2^-24; NaN and infinity stay what they are.
double rounded(double loss) { return std::nearbyint(loss * 0x1p24) * 0x1p-24; }

/// The second label of sample `n`; without any, one of weight 0.
base::SecondLabel second_of(std::span<const base::SecondLabel> second, int n) {
  return second.empty() ? base::SecondLabel{} : second[static_cast<std::size_t>(n)];
}

/// The weighted target of each class for a sample of `label` and `second`.
std::vector<double> targets(const graph::SoftmaxCrossEntropy& loss, int classes, std::int32_t label,
                            const base::SecondLabel& second) {
  std::vector<double> result(static_cast<std::size_t>(classes), loss.label_smoothing / classes);
  const double weight = static_cast<double>(second.weight);
  result[static_cast<std::size_t>(label)] += (1 - loss.label_smoothing) * (1 - weight);
  result[static_cast<std::size_t>(second.label)] += (1 - loss.label_smoothing) * weight;
  for (std::size_t k = 0; k < loss.class_weights.size(); ++k) result[k] *= loss.class_weights[k];
  return result;
}
}  // namespace

template <typename T>
LossSums softmax_cross_entropy_forward(const OpShapes& shapes, const graph::SoftmaxCrossEntropy& loss,
                                       const T* logits, std::span<const std::int32_t> labels,
                                       T* probabilities, double* exact_loss,
                                       std::span<const base::SecondLabel> second) {
  const int classes = shapes.src.channels;
  LossSums sums;
  double exact = 0;
  for (int n = 0; n < shapes.batch; ++n, logits += classes, probabilities += classes) {
    const std::int32_t label = labels[static_cast<std::size_t>(n)];
    const base::SecondLabel other = second_of(second, n);
    base::expects(label >= 0 && label < classes && other.label >= 0 && other.label < classes,
                  "a label is a class");
    const T* largest = std::max_element(logits, logits + classes);
    double total = 0, logit_sum = 0;
    for (int k = 0; k < classes; ++k) {
      const double shifted = static_cast<double>(logits[k]) - static_cast<double>(*largest);
      logit_sum += shifted;
      total += std::exp(shifted);
    }
    for (int k = 0; k < classes; ++k)
      probabilities[k] =
          static_cast<T>(std::exp(static_cast<double>(logits[k]) - static_cast<double>(*largest)) / total);
    const double log_total = std::log(total);
    const double of_label = log_total - (static_cast<double>(logits[label]) - static_cast<double>(*largest));
    const double of_all = log_total - logit_sum / classes;  // mean of -log p over the classes
    double value = (1 - loss.label_smoothing) * of_label + loss.label_smoothing * of_all;
    if (!loss.class_weights.empty() || other.weight > 0) {
      const auto target = targets(loss, classes, label, other);
      value = 0;
      for (std::size_t k = 0; k < target.size(); ++k)
        value += target[k] * (log_total - (static_cast<double>(logits[k]) - static_cast<double>(*largest)));
    }
    exact += value;
    const std::int32_t heavier = other.weight > 0.5F ? other.label : label;
    sums += {.loss = rounded(value), .correct = largest - logits == heavier ? 1 : 0, .samples = 1};
  }
  if (exact_loss != nullptr) *exact_loss = exact;
  return sums;
}

template <typename T>
void softmax_cross_entropy_backward(const OpShapes& shapes, const graph::SoftmaxCrossEntropy& loss,
                                    const T* probabilities, std::span<const std::int32_t> labels,
                                    double gradient_scale, T* d_logits,
                                    std::span<const base::SecondLabel> second) {
  const int classes = shapes.src.channels;
  for (int n = 0; n < shapes.batch; ++n, probabilities += classes, d_logits += classes) {
    const auto target = targets(loss, classes, labels[static_cast<std::size_t>(n)], second_of(second, n));
    const double total = loss.class_weights.empty() ? 1 : std::accumulate(target.begin(), target.end(), 0.0);
    for (std::size_t k = 0; k < target.size(); ++k)
      d_logits[k] +=
          static_cast<T>((static_cast<double>(probabilities[k]) * total - target[k]) * gradient_scale);
  }
}

#define PACELINE_INSTANTIATE(T)                                                                              \
  template void batch_norm_forward(const OpShapes&, const graph::BatchNorm&, const BatchNormGroups&,         \
                                   const T*, const T*, const T*, T*, BatchNormStatistics&);                  \
  template void batch_norm_backward(const OpShapes&, const BatchNormGroups&, const BatchNormStatistics&,     \
                                    const T*, const T*, const T*, T*, T*, T*);                               \
  template void frozen_batch_norm_backward(const OpShapes&, const graph::BatchNorm&, const T*, const T*,     \
                                           const T*, const T*, const T*, T*, T*, T*);                        \
  template void batch_norm_evaluate(const OpShapes&, const graph::BatchNorm&, const T*, const T*, const T*,  \
                                    const T*, const T*, T*);                                                 \
  template void max_pool_forward(const OpShapes&, const graph::MaxPool&, const T*, T*, std::int32_t*);       \
  template void max_pool_backward(const OpShapes&, const std::int32_t*, const T*, T*);                       \
  template void average_pool_forward(const OpShapes&, const graph::AveragePool&, const T*, T*);              \
  template void average_pool_backward(const OpShapes&, const graph::AveragePool&, const T*, T*);             \
  template void average_pool_forward(const OpShapes&, const graph::AdaptiveAveragePool&, const T*, T*);      \
  template void average_pool_backward(const OpShapes&, const graph::AdaptiveAveragePool&, const T*, T*);     \
  template void global_average_pool_forward(const OpShapes&, const T*, T*);                                  \
  template void global_average_pool_backward(const OpShapes&, const T*, T*);                                 \
  template LossSums softmax_cross_entropy_forward(const OpShapes&, const graph::SoftmaxCrossEntropy&,        \
                                                  const T*, std::span<const std::int32_t>, T*, double*,      \
                                                  std::span<const base::SecondLabel>);                       \
  template void softmax_cross_entropy_backward(const OpShapes&, const graph::SoftmaxCrossEntropy&, const T*, \
                                               std::span<const std::int32_t>, double, T*,                    \
                                               std::span<const base::SecondLabel>);
PACELINE_INSTANTIATE(float)
PACELINE_INSTANTIATE(double)
#undef PACELINE_INSTANTIATE

}  // namespace paceline::engine::reference
