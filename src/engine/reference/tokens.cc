// Ops on tokens of the reference engine: position, class token, attention. A place is a pixel; values are
// [batch][C][places].

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/reference/ops.h"

namespace paceline::engine::reference {

template <typename T>
void position_forward(const OpShapes& shapes, const T* src, const T* weight, T* dst) {
  const std::int64_t channels = shapes.src.channels, places = shapes.src.elements() / channels;
  for (std::int64_t n = 0; n < shapes.batch; ++n)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t t = 0; t < places; ++t, ++src) *dst++ = *src + weight[t * channels + c];
}

template <typename T>
void position_backward_weight(const OpShapes& shapes, const T* d_dst, T* d_weight) {
  const std::int64_t channels = shapes.src.channels, places = shapes.src.elements() / channels;
  for (std::int64_t n = 0; n < shapes.batch; ++n)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t t = 0; t < places; ++t) d_weight[t * channels + c] += *d_dst++;
}

template <typename T>
void class_token_forward(const OpShapes& shapes, const T* src, const T* weight, T* dst) {
  const std::int64_t channels = shapes.src.channels, places = shapes.src.elements() / channels;
  for (std::int64_t n = 0; n < shapes.batch; ++n)
    for (std::int64_t c = 0; c < channels; ++c, src += places) {
      *dst++ = weight[c];
      dst = std::copy_n(src, places, dst);
    }
}

template <typename T>
void class_token_backward(const OpShapes& shapes, const T* d_dst, T* d_src, T* d_weight) {
  const std::int64_t channels = shapes.src.channels, places = shapes.src.elements() / channels;
  for (std::int64_t n = 0; n < shapes.batch; ++n)
    for (std::int64_t c = 0; c < channels; ++c) {
      if (d_weight != nullptr) d_weight[c] += *d_dst;
      ++d_dst;
      for (std::int64_t t = 0; t < places; ++t, ++d_dst)
        if (d_src != nullptr) *d_src++ += *d_dst;
    }
}

namespace {

/// One head of one sample: q, k and v as [d][places], and where they begin.
template <typename T>
struct Head {
  std::int64_t places, channels;  ///< channels: d
  std::int64_t q, k, v, dst;      ///< first elements
  T scale;

  /// Row i of softmax(q k^T / sqrt(d)).
  void probabilities(const T* src, std::int64_t i, std::vector<T>& row) const {
    for (std::int64_t j = 0; j < places; ++j) {
      T sum = 0;
      for (std::int64_t c = 0; c < channels; ++c) sum += src[q + c * places + i] * src[k + c * places + j];
      row[static_cast<std::size_t>(j)] = sum * scale;
    }
    const T largest = *std::max_element(row.begin(), row.end());
    T total = 0;
    for (T& value : row) total += value = std::exp(value - largest);
    for (T& value : row) value /= total;
  }
};

/// Calls visit(head) for each head of each sample.
template <typename T, typename Visit>
void for_each_head(const OpShapes& shapes, const graph::Attention& attention, Visit visit) {
  const std::int64_t all = shapes.dst.channels, places = shapes.dst.elements() / all;
  const std::int64_t channels = all / attention.heads;
  const T scale = static_cast<T>(1 / std::sqrt(static_cast<double>(channels)));
  for (std::int64_t n = 0; n < shapes.batch; ++n)
    for (std::int64_t head = 0; head < attention.heads; ++head) {
      const std::int64_t first = n * 3 * all + head * channels;
      visit(Head<T>{.places = places,
                    .channels = channels,
                    .q = first * places,
                    .k = (first + all) * places,
                    .v = (first + 2 * all) * places,
                    .dst = (n * all + head * channels) * places,
                    .scale = scale});
    }
}

}  // namespace

template <typename T>
void attention_forward(const OpShapes& shapes, const graph::Attention& attention, const T* src, T* dst) {
  for_each_head<T>(shapes, attention, [&](const Head<T>& head) {
    std::vector<T> row(static_cast<std::size_t>(head.places));
    for (std::int64_t i = 0; i < head.places; ++i) {
      head.probabilities(src, i, row);
      for (std::int64_t c = 0; c < head.channels; ++c) {
        T sum = 0;
        for (std::int64_t j = 0; j < head.places; ++j)
          sum += row[static_cast<std::size_t>(j)] * src[head.v + c * head.places + j];
        dst[head.dst + c * head.places + i] = sum;
      }
    }
  });
}

template <typename T>
void attention_backward(const OpShapes& shapes, const graph::Attention& attention, const T* src,
                        const T* d_dst, T* d_src) {
  for_each_head<T>(shapes, attention, [&](const Head<T>& head) {
    const auto places = static_cast<std::size_t>(head.places);
    std::vector<T> row(places), d_row(places);
    for (std::int64_t i = 0; i < head.places; ++i) {
      head.probabilities(src, i, row);
      T mean = 0;  // of d_row, by the probabilities
      for (std::int64_t j = 0; j < head.places; ++j) {
        const T p = row[static_cast<std::size_t>(j)];
        T sum = 0;
        for (std::int64_t c = 0; c < head.channels; ++c) {
          const T d = d_dst[head.dst + c * head.places + i];
          sum += d * src[head.v + c * head.places + j];
          d_src[head.v + c * head.places + j] += p * d;
        }
        d_row[static_cast<std::size_t>(j)] = sum;
        mean += p * sum;
      }
      for (std::int64_t j = 0; j < head.places; ++j) {
        const auto at = static_cast<std::size_t>(j);
        const T d = row[at] * (d_row[at] - mean) * head.scale;
        for (std::int64_t c = 0; c < head.channels; ++c) {
          d_src[head.q + c * head.places + i] += d * src[head.k + c * head.places + j];
          d_src[head.k + c * head.places + j] += d * src[head.q + c * head.places + i];
        }
      }
    }
  });
}

#define PACELINE_INSTANTIATE(T)                                                            \
  template void position_forward(const OpShapes&, const T*, const T*, T*);                 \
  template void position_backward_weight(const OpShapes&, const T*, T*);                   \
  template void class_token_forward(const OpShapes&, const T*, const T*, T*);              \
  template void class_token_backward(const OpShapes&, const T*, T*, T*);                   \
  template void attention_forward(const OpShapes&, const graph::Attention&, const T*, T*); \
  template void attention_backward(const OpShapes&, const graph::Attention&, const T*, const T*, T*);
PACELINE_INSTANTIATE(float)
PACELINE_INSTANTIATE(double)
#undef PACELINE_INSTANTIATE

}  // namespace paceline::engine::reference
