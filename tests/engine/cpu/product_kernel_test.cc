// Every way to compute a convolution, alone, against sums in double: fresh random data, poisoned results and
// scratchpads, over the shapes that break kernels.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/buffer.h"
#include "base/rng.h"
#include "engine/cpu/kernels/multiply.h"
#include "engine/cpu/methods.h"
#include "engine/cpu/parallel.h"

namespace paceline::engine::cpu {
namespace {

using Values = std::vector<float>;

struct Case {
  int in, out, height, width, kernel, stride, padding, samples;
};

ProductShape shape_of(const Case& c) {
  const auto size = [&](int pixels) { return (pixels + 2 * c.padding - c.kernel) / c.stride + 1; };
  return {.samples = c.samples,
          .src = {c.in, c.height, c.width},
          .dst = {c.out, size(c.height), size(c.width)},
          .kernel = c.kernel,
          .stride = c.stride,
          .padding = c.padding};
}

Values random_values(std::int64_t count, std::uint64_t seed) {
  base::Rng rng(seed, base::Purpose::test);
  Values values(static_cast<std::size_t>(count));
  for (float& value : values) value = rng.normal();
  return values;
}

/// A convolution's three products, term by term, in double.
struct Expected {
  std::vector<double> dst, d_src, d_weight;

  Expected(const ProductShape& s, const Values& src, const Values& weight, const Values& d_dst)
      : dst(d_dst.size()), d_src(src.size()), d_weight(weight.size()) {
    const auto at = [](const graph::Shape& shape, int n, int y, int x, int c) {
      return static_cast<std::size_t>(
          ((std::int64_t{1} * n * shape.height + y) * shape.width + x) * shape.channels + c);
    };
    for (int n = 0; n < s.samples; ++n)
      for (int p = 0; p < s.dst.height; ++p)
        for (int q = 0; q < s.dst.width; ++q)
          for (int r = 0; r < s.kernel; ++r)
            for (int t = 0; t < s.kernel; ++t) {
              const int y = p * s.stride - s.padding + r, x = q * s.stride - s.padding + t;
              if (y < 0 || y >= s.src.height || x < 0 || x >= s.src.width) continue;
              for (int k = 0; k < s.dst.channels; ++k)
                for (int c = 0; c < s.src.channels; ++c) {
                  const auto i = at(s.src, n, y, x, c), o = at(s.dst, n, p, q, k);
                  const auto w = static_cast<std::size_t>(
                      ((std::int64_t{1} * k * s.src.channels + c) * s.kernel + r) * s.kernel + t);
                  const double a = src[i], b = weight[w], d = d_dst[o];
                  dst[o] += a * b;
                  d_src[i] += d * b;
                  d_weight[w] += d * a;
                }
            }
  }
};

/// |got - want| / |want|.
double relative_error(const Values& got, const std::vector<double>& want) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double d = static_cast<double>(got[i]) - want[i];
    error += d * d;
    size += want[i] * want[i];
  }
  return std::sqrt(error / size);
}

base::Buffer poisoned(std::int64_t bytes) {
  base::Buffer buffer(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 64)));
  for (float& value : buffer.as<float>()) value = std::numeric_limits<float>::quiet_NaN();
  return buffer;
}

Values run(Method method, const ProductShape& s, Direction direction, const Values& src, const Values& weight,
           const Values& d_dst) {
  const OneThread one_thread;
  base::ThreadPool pool(2, [] { omp_set_num_threads(1); });
  const auto kernel = make_kernel(method, s, direction, nullptr);
  auto packed = poisoned(kernel->packed_bytes());
  Values result(direction == Direction::forward ? d_dst.size()
                : direction == Direction::d_src ? src.size()
                                                : weight.size(),
                std::numeric_limits<float>::quiet_NaN());
  Operands o{.src = src.data(), .dst = result.data(), .d_src = result.data(), .d_dst = d_dst.data()};
  if (direction == Direction::d_weight) {
    o.d_weight = packed.as<float>().data();
  } else {
    kernel->pack(weight.data(), packed.data());
    o.packed = packed.data();
  }
  for (int part = kernel->parts() - 1; part >= 0; --part) {  // any order
    auto scratchpad = poisoned(kernel->scratchpad_bytes());
    o.scratchpad = scratchpad.data();
    kernel->run(o, part);
  }
  if (direction == Direction::d_weight) kernel->unpack(pool, packed.as<float>().data(), result.data());
  return result;
}

constexpr Case kCases[] = {
    {16, 16, 4, 4, 3, 1, 1, 1},    {16, 48, 5, 7, 3, 1, 1, 3},  {48, 16, 8, 8, 3, 1, 1, 2},
    {32, 64, 1, 1, 3, 1, 1, 5},    {64, 32, 13, 6, 3, 1, 1, 1}, {64, 64, 32, 32, 3, 1, 1, 1},
    {16, 32, 6, 6, 3, 1, 0, 7},    {32, 16, 3, 3, 3, 1, 0, 33}, {16, 16, 5, 5, 3, 1, 2, 4},
    {144, 160, 4, 4, 3, 1, 1, 16}, {32, 272, 2, 9, 3, 1, 1, 2}, {3, 16, 9, 9, 3, 1, 1, 2},
    {16, 32, 9, 9, 3, 2, 1, 4},    {24, 40, 7, 7, 1, 2, 0, 3},  {20, 12, 6, 5, 5, 1, 2, 2},
    {32, 48, 8, 8, 3, 2, 1, 5},    {64, 16, 7, 6, 1, 2, 0, 3},  {48, 32, 5, 5, 1, 1, 0, 33},
    {16, 32, 11, 10, 7, 2, 3, 2},  {16, 16, 2, 2, 3, 2, 1, 16}, {256, 288, 4, 4, 3, 2, 1, 9},
    {16, 16, 7, 7, 2, 3, 0, 7},    {32, 16, 9, 8, 3, 3, 1, 2},
};

TEST(ProductKernel, ComputesLikeSumsInDoubleByEveryMethod) {
  int by_winograd = 0;
  for (const Case& c : kCases) {
    const ProductShape s = shape_of(c);
    SCOPED_TRACE(testing::Message() << c.in << "->" << c.out << " " << c.height << "x" << c.width
                                    << " kernel " << c.kernel << " stride " << c.stride << " padding "
                                    << c.padding << " samples " << c.samples);
    const Values src = random_values(s.samples * s.src.elements(), 1), weight = random_values(s.weights(), 2),
                 d_dst = random_values(s.samples * s.dst.elements(), 3);
    const Expected want(s, src, weight, d_dst);
    for (const Method method : kMethods) {
      if (refusal(method, s)) continue;
      SCOPED_TRACE(name_of(method));
      if (method == Method::winograd) ++by_winograd;
      // Rounding errors of a sum grow like the root of its length, in units of 2^-24: found 0.3 of the root
      // for the direct forms, 0.7 for Winograd, whose transforms have about 8 units of their own.
      const auto limit = [&](std::int64_t length) {
        const double root = std::sqrt(static_cast<double>(length));
        return (method == Method::winograd ? 12 + 1.5 * root : 2 + 0.75 * root) * 0x1p-24;
      };
      const int taps = s.kernel * s.kernel;
      EXPECT_LT(relative_error(run(method, s, Direction::forward, src, weight, d_dst), want.dst),
                limit(taps * s.src.channels));
      EXPECT_LT(relative_error(run(method, s, Direction::d_src, src, weight, d_dst), want.d_src),
                limit(taps * s.dst.channels));
      EXPECT_LT(relative_error(run(method, s, Direction::d_weight, src, weight, d_dst), want.d_weight),
                limit(s.samples * s.dst_pixels()));
    }
  }
  EXPECT_EQ(by_winograd, has_avx512_products() ? 11 : 0);
}

TEST(ProductKernel, RefusesWhatItCannotComputeAndSaysWhy) {
  ProductShape s = shape_of({16, 16, 8, 8, 3, 1, 1, 4});
  EXPECT_FALSE(refusal(Method::taps, s));
  EXPECT_FALSE(refusal(Method::onednn, s));
  s.bias = true;
  EXPECT_EQ(refusal(Method::winograd, s), "adds no bias");
  EXPECT_EQ(refusal(Method::taps, s), "adds no bias");
  s.bias = false;
  s.stride = 2;
  EXPECT_EQ(refusal(Method::winograd, s), "is for 3x3 convolutions with stride 1");
  s.stride = 1;
  s.src.channels = 24;
  EXPECT_EQ(refusal(Method::winograd, s), "wants multiples of 16 channels");
  s.src.channels = 16;
  s.type = Storage::bf16;
  EXPECT_EQ(refusal(Method::winograd, s), "is for fp32");
  EXPECT_FALSE(refusal(Method::onednn, s));
}

TEST(ProductKernel, UsesTheMethodThatTheShapeWants) {
  const auto usual = [](const Case& c) { return usual_method(shape_of(c)); };
  if (has_avx512_products()) {
    EXPECT_EQ(usual({64, 64, 32, 32, 3, 1, 1, 128}), Method::winograd);
    EXPECT_EQ(usual({256, 256, 8, 8, 3, 1, 1, 128}), Method::winograd);
  }
  EXPECT_EQ(usual({512, 512, 4, 4, 3, 1, 1, 128}), Method::taps);
  EXPECT_EQ(usual({512, 512, 4, 4, 3, 1, 1, 8}), Method::onednn);
  EXPECT_EQ(usual({64, 128, 32, 32, 3, 2, 1, 128}), Method::onednn);
  EXPECT_EQ(usual({3, 64, 32, 32, 3, 1, 1, 128}), Method::onednn);
}

}  // namespace
}  // namespace paceline::engine::cpu
