// The sums over rows that strips take beside their products (tiles.h, StripStats), against those over what
// the same kernel writes without them: all masked bits are the same, and no row is counted twice or lost.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "engine/cpu/conv/bf16/on_unit.h"
#include "engine/cpu/conv/bf16/support.h"
#include "engine/cpu/conv/kernel_runs.h"
#include "engine/cpu/conv/norm_epilogue.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {
namespace {

using units::Unit;

class TileSums : public OnUnit {};
INSTANTIATE_TEST_SUITE_P(Units, TileSums, testing::Values(Unit::emulated_amx, Unit::amx), name_of_unit);

using Halves = std::vector<std::uint16_t>;

Halves halves_of(std::int64_t count, std::uint64_t seed) {
  Halves halves;
  for (const float value : random_values(count, seed)) halves.push_back(base::to_bf16(value).bits);
  return halves;
}

constexpr Case kStripCases[] = {
    // long rows: one strip and several, overlapping tiles, a stride, many channels
    {32, 32, 1, 16, 3, 1, 1, 1},
    {32, 64, 5, 16, 3, 1, 1, 3},
    {64, 32, 6, 32, 3, 1, 1, 2},
    {32, 32, 3, 24, 3, 1, 1, 2},
    {32, 32, 9, 32, 3, 2, 1, 2},
    {128, 32, 4, 16, 3, 1, 1, 2},
    // images side by side: whole groups and not, fewer than four rows, more than one band
    {32, 32, 8, 8, 3, 1, 1, 4},
    {32, 64, 9, 8, 3, 1, 1, 5},
    {32, 32, 3, 8, 3, 1, 1, 1},
    {64, 32, 4, 4, 3, 1, 1, 6},
    {32, 32, 5, 12, 3, 1, 1, 7},
    {160, 32, 6, 8, 3, 1, 1, 2},
    // windows that move by two: one image, two and four, bands of fewer rows
    {32, 64, 16, 32, 3, 2, 1, 3},
    {32, 32, 5, 16, 3, 2, 1, 5},
    {64, 32, 14, 16, 3, 2, 1, 4},
    {32, 64, 8, 8, 3, 2, 1, 9},
    {64, 256, 11, 8, 3, 2, 1, 6},
    {128, 32, 18, 24, 3, 2, 1, 5},
};

/// One direction of one shape, with and without an epilogue.
class Sums {
 public:
  Sums(const Case& c, Direction direction, Unit unit) : direction_(direction), shape_(shape_of(c)) {
    shape_.type = shape_.dst_type = Storage::bf16;
    kernel_ = make_tile_reader(shape_, direction, units::kernels_of(unit));
    const bool is_forward = direction == Direction::forward;
    const graph::Shape &from = is_forward ? shape_.src : shape_.dst,
                       &to = is_forward ? shape_.dst : shape_.src;
    channels_ = to.channels;
    rows_ = std::int64_t{1} * shape_.samples * to.height * to.width;
    from_ = halves_of(shape_.samples * from.elements(), 1);
    x_ = halves_of(rows_ * channels_, 2);
    y_ = halves_of(rows_ * channels_, 3);
    first_term_ = halves_of(rows_ * channels_, 4);
    params_ = random_values(3 * channels_, 5);
    packed_ = base::Buffer(kernel_->packed_bytes());
    scratchpad_ = base::Buffer(kernel_->scratchpad_bytes());
    const Values weight = random_values(shape_.weights(), 6);
    kernel_->pack(weight.data(), packed_.data());
  }

  [[nodiscard]] bool takes_sums() const { return kernel_->has_epilogue() && kernel_->parts() == 1; }

  void expect_moments() {
    const Halves plain = run(nullptr);
    std::vector<double> sums(3 * static_cast<std::size_t>(channels_), NAN);
    const Epilogue epilogue{
        .sums = sums.data(), .shift = reinterpret_cast<float*>(sums.data() + 2 * channels_), .gradient = {}};
    EXPECT_EQ(run(&epilogue), plain);
    expect_sums(sums, [&](std::int64_t at) {
      const double x = value(plain[static_cast<std::size_t>(at)]);
      return std::pair{x, x * x};
    });
  }

  void expect_gradient(Mask mask, bool has_two_terms) {
    SCOPED_TRACE(testing::Message() << "mask " << static_cast<int>(mask)
                                    << (has_two_terms ? ", two terms" : ""));
    const Halves plain = run(nullptr);
    Halves masked = has_two_terms ? first_term_ : Halves();
    std::vector<double> sums(2 * static_cast<std::size_t>(channels_), NAN);
    Epilogue epilogue{.what = Epilogue::Sums::gradient, .sums = sums.data(), .gradient = {}};
    Halves problem(plain.size(), kPoison);
    NormBackward& g = epilogue.gradient;
    g.src = x_.data();
    g.dst = mask == Mask::from_dst ? y_.data() : nullptr;
    g.mask = mask;
    g.params = params();
    g.d_masked = has_two_terms ? masked.data() : problem.data();
    g.d_dst = g.d_masked;
    g.d_dst2 = has_two_terms ? problem.data() : nullptr;
    run_into(&epilogue, problem);
    const Halves& found = has_two_terms ? masked : problem;

    Halves wanted = has_two_terms ? first_term_ : plain;
    std::vector<double> unused(2 * static_cast<std::size_t>(channels_), 0.0);
    NormBackward alone = g;
    alone.d_masked = wanted.data();
    alone.d_dst = wanted.data();
    alone.d_dst2 = has_two_terms ? plain.data() : nullptr;
    kernels_for(isas_here().back()).bf16.norm_backward_reduce(alone, rows_, channels_, unused.data());
    EXPECT_EQ(found, wanted);
    expect_sums(sums, [&](std::int64_t at) {
      const auto i = static_cast<std::size_t>(at);
      const auto c = static_cast<int>(at % channels_);
      const float centred = value(x_[i]) - params().mean[c];
      float d = value(plain[i]) + (has_two_terms ? value(first_term_[i]) : 0.0f);
      if (mask == Mask::from_src && centred * params().scale[c] + params().bias[c] <= 0) d = 0;
      if (mask == Mask::from_dst && value(y_[i]) <= 0) d = 0;
      return std::pair{static_cast<double>(d), static_cast<double>(d) * static_cast<double>(centred)};
    });
  }

 private:
  static constexpr std::uint16_t kPoison = 0x7fc1;  // NaN
  static float value(std::uint16_t half) { return base::to_float({.bits = half}); }
  [[nodiscard]] NormParams params() const {
    return {
        .mean = params_.data(), .scale = params_.data() + channels_, .bias = params_.data() + 2 * channels_};
  }

  [[nodiscard]] Halves run(const Epilogue* epilogue) {
    Halves problem(static_cast<std::size_t>(rows_ * channels_), kPoison);
    run_into(epilogue, problem);
    return problem;
  }
  void run_into(const Epilogue* epilogue, Halves& problem) {
    std::memset(scratchpad_.data(), 0xff, static_cast<std::size_t>(kernel_->scratchpad_bytes()));
    Operands o{.packed = packed_.data(), .scratchpad = scratchpad_.data(), .epilogue = epilogue};
    if (direction_ == Direction::forward) {
      o.src = from_.data();
      o.dst = problem.data();
    } else {
      o.d_dst = from_.data();
      o.d_src = problem.data();
    }
    kernel_->run(o, 0);
  }

  /// terms(element) are what it adds to each of its channel's two sums. Floats are summed 64 rows at a time.
  template <typename Terms>
  void expect_sums(const std::vector<double>& sums, const Terms& terms) const {
    for (int c = 0; c < channels_; ++c) {
      double sum = 0, other = 0, size = 0, other_size = 0;
      for (std::int64_t row = 0; row < rows_; ++row) {
        const auto [one, two] = terms(row * channels_ + c);
        sum += one, other += two, size += std::abs(one), other_size += std::abs(two);
      }
      const auto at = static_cast<std::size_t>(c);
      ASSERT_NEAR(sums[at], sum, 1e-5 * size + 1e-9) << "channel " << c;
      ASSERT_NEAR(sums[at + static_cast<std::size_t>(channels_)], other, 1e-5 * other_size + 1e-9) << c;
    }
  }

  const Direction direction_;
  ConvShape shape_;
  std::unique_ptr<WeightReader> kernel_;
  int channels_ = 0;
  std::int64_t rows_ = 0;
  Halves from_, x_, y_, first_term_;
  Values params_;
  base::Buffer packed_, scratchpad_;
};

TEST_P(TileSums, AreThoseOfWhatIsWritten) {
  for (const Case& c : kStripCases) {
    SCOPED_TRACE(text_of(c));
    Sums forward(c, Direction::forward, GetParam());
    ASSERT_TRUE(forward.takes_sums());
    forward.expect_moments();
    Sums backward(c, Direction::backward_data, GetParam());
    ASSERT_TRUE(backward.takes_sums());
    for (const Mask mask : {Mask::none, Mask::from_src, Mask::from_dst})
      for (const bool has_two_terms : {false, true}) backward.expect_gradient(mask, has_two_terms);
  }
}

}  // namespace
}  // namespace paceline::engine::cpu
