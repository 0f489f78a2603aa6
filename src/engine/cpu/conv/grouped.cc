// Convolutions with narrow groups, depthwise ones among them: the direct form, row by row
// (kernels/grouped/grouped.h), and the row in the table of algorithms.
//
// Each row of what forward and backward data read is read once, into a ring of rows padded with zeros, so
// that no tap needs to know where the image ends. The ring is of as many channels as fit into the first-level
// cache, but at least of a cache line's. Forward and backward data are the same loop: outputs in steps of
// `out_step` pixels whose inputs lie `in_step` apart. Backward data with stride s has s x s phases of
// outputs, each with its own taps.
//
// The cost beside the multiply-adds is the reading: each value is converted once and written once for each
// channel of a group. Backward weights read the gradients of the outputs where they lie, once for each group
// of taps whose sums are in registers.

#include "engine/cpu/kernels/grouped/grouped.h"

#include <algorithm>

#include "base/dtype.h"
#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/conv/batch_split.h"
#include "engine/cpu/conv/onednn.h"

namespace paceline::engine::cpu {
namespace {

using namespace grouped;

constexpr std::int64_t kRingBytes = 28 << 10;  ///< of a first-level cache of 32 or 48 KB

/// Padded rows of a block of channels.
struct Ring {
  int rows = 1, columns = 0;
  int before = 0;  ///< columns of zeros before the first pixel
  int channels = 0, copies = 1;
  int first = 0;          ///< the first row of the image, which may be outside; it is in place 0
  bool is_whole = false;  ///< holds all rows. Then several rows of outputs are computed at once
  [[nodiscard]] int place(int row) const { return (row - first) % rows; }
  [[nodiscard]] std::int64_t copy_size() const { return std::int64_t{1} * rows * columns; }
  [[nodiscard]] std::int64_t floats() const { return copy_size() * copies * channels; }
  /// Vectors to a row.
  [[nodiscard]] std::int64_t at(int row) const { return std::int64_t{1} * place(row) * columns; }
};

class GroupedGeometry {
 protected:
  GroupedGeometry(const ConvShape& shape, const GroupedKernels& kernels)
      : s_(shape),
        kernels_(kernels),
        images_(shape.type == Storage::f32 ? kernels.f32 : kernels.bf16),
        group_(shape.src.channels / shape.groups),
        channels_(shape.src.channels),
        padded_((channels_ + kVectorChannels - 1) / kVectorChannels * kVectorChannels) {}

  [[nodiscard]] int taps() const { return s_.kernel * s_.kernel; }
  [[nodiscard]] std::int64_t weight_bytes() const { return std::int64_t{4} * taps() * group_ * padded_; }
  /// Where the weights of `tap` are that meet `copy`: [channels].
  [[nodiscard]] std::int64_t weight_at(int tap, int copy) const {
    return (std::int64_t{1} * tap * group_ + copy) * padded_;
  }
  /// The element of PyTorch's order [out][in of the group][tap].
  [[nodiscard]] std::int64_t flat_at(int out, int in, int tap) const {
    return (std::int64_t{1} * out * group_ + in) * taps() + tap;
  }
  /// Bytes to a pixel's channel.
  [[nodiscard]] std::int64_t offset(const graph::Shape& shape, int sample, int row, int column,
                                    int channel) const {
    const std::int64_t pixel = (std::int64_t{1} * sample * shape.height + row) * shape.width + column;
    return (pixel * channels_ + channel) * bytes_of(s_.type);
  }
  /// A ring of `all` rows if they fit, else of the `few` that one row of outputs reads.
  [[nodiscard]] Ring ring_of(int all, int few, int first_row, int columns, int first_column) const {
    const int least = s_.type == Storage::f32 ? kVectorChannels : 2 * kVectorChannels;  // a cache line
    Ring ring{.rows = all, .columns = columns, .before = -first_column, .copies = group_, .first = first_row};
    const auto bytes = [&] { return 4 * ring.copy_size() * group_ * least; };
    ring.is_whole = all == few || bytes() <= kRingBytes;
    if (!ring.is_whole) ring.rows = few;
    const int blocks = (padded_ + least - 1) / least;
    const int most = static_cast<int>(std::clamp<std::int64_t>(kRingBytes / bytes(), 1, blocks));
    const int rings = (blocks + most - 1) / most;
    ring.channels = (blocks + rings - 1) / rings * least;
    return ring;
  }
  [[nodiscard]] int channels_of(const Ring& ring, int first) const {
    return std::min(ring.channels, channels_ - first);
  }
  /// Rows of `width` outputs that are computed at once: enough to be worth the call, but few, so that reading
  /// and computing take turns and memory is prefetched meanwhile.
  [[nodiscard]] static int rows_at_once(int width) { return std::max(1, 28 / width); }
  /// Reads a row of a sample into its place in the ring. Meanwhile the row is prefetched that is `step` rows
  /// ahead.
  void read(const void* values, const graph::Shape& shape, int sample, int row, int first, const Ring& ring,
            int step, float* to) const {
    SourceRow source{.pixel_step = channels_,
                     .width = shape.width,
                     .before = ring.before,
                     .columns = ring.columns,
                     .ahead = offset(shape, 0, step, 0, 0),
                     .channels = channels_of(ring, first),
                     .copies = ring.copies,
                     .at = ring.at(row),
                     .copy = ring.copy_size()};
    if (row >= 0 && row < shape.height)
      source.pixels = static_cast<const std::byte*>(values) + offset(shape, sample, row, 0, first);
    images_.read(source, to);
  }
  [[nodiscard]] std::string name() const { return "own grouped " + std::string(name_of(kernels_.isa)); }

  const ConvShape s_;
  const GroupedKernels& kernels_;
  const ImageKernels& images_;
  const int group_, channels_, padded_;
};

class GroupedReader final : public WeightReader, private GroupedGeometry {
 public:
  GroupedReader(const ConvShape& shape, Direction direction, const GroupedKernels& kernels)
      : GroupedGeometry(shape, kernels),
        is_forward_(direction == Direction::forward),
        from_(is_forward_ ? s_.src : s_.dst),
        to_(is_forward_ ? s_.dst : s_.src),
        in_step_(is_forward_ ? s_.stride : 1),
        out_step_(is_forward_ ? 1 : s_.stride),
        rows_(axis(to_.height)),
        columns_(axis(to_.width)),
        ring_(ring_of((steps(to_.height) - 1) * in_step_ + rows_.span, rows_.span, rows_.first,
                      (steps(to_.width) - 1) * in_step_ + columns_.span, columns_.first)) {
    for (int place = 0; place < (ring_.is_whole ? 1 : ring_.rows); ++place)
      for (const AxisPhase& y : rows_.phases)
        for (const AxisPhase& x : columns_.phases) phases_.push_back(phase(y, x, place));
  }

  [[nodiscard]] std::int64_t packed_bytes() const override { return weight_bytes(); }
  [[nodiscard]] std::int64_t scratchpad_bytes() const override { return 4 * ring_.floats(); }
  [[nodiscard]] std::string name() const override { return GroupedGeometry::name(); }

  void pack(const float* weights, void* packed) const override {
    auto* to = static_cast<float*>(packed);
    const bool rounds = s_.type == Storage::bf16;
    std::fill_n(to, packed_bytes() / 4, 0.0f);
    for (int c = 0; c < channels_; ++c)
      for (int copy = 0; copy < group_; ++copy)
        for (int tap = 0; tap < taps(); ++tap) {
          const int other = c / group_ * group_ + copy;
          const float weight = weights[is_forward_ ? flat_at(c, copy, tap) : flat_at(other, c % group_, tap)];
          to[weight_at(tap, copy) + c] = rounds ? base::to_float(base::to_bf16(weight)) : weight;
        }
  }

  [[nodiscard]] bool packs_like(const WeightReader& other) const override {
    return group_ == 1 && dynamic_cast<const GroupedReader*>(&other) != nullptr;
  }

  void run(const Operands& o, int) const override {
    for (int first = 0; first < channels_; first += ring_.channels)
      for (int sample = 0; sample < s_.samples; ++sample) run_block(o, sample, first);
  }

 private:
  /// Outputs at first, first + out_step .. along one axis.
  struct AxisPhase {
    int first = 0;
    std::vector<int> inputs = {};  ///< of the first output's taps: neighbours, ascending
    std::vector<int> taps = {};    ///< their indices in the kernel
  };
  struct Axis {
    std::vector<AxisPhase> phases = {};
    int first = 0, span = 1;  ///< inputs of the first outputs of all phases
  };
  struct Phase {
    int row = 0, column = 0;  ///< of the first output
    int taps = 0;             ///< of a row of taps
    std::vector<TapRow> tap_rows = {};
  };

  [[nodiscard]] int steps(int outputs) const { return (outputs + out_step_ - 1) / out_step_; }

  /// The first output's tap `padding` reads input 0, because padding is smaller than the kernel; so no input
  /// of the first outputs of all phases is beyond 0.
  [[nodiscard]] Axis axis(int outputs) const {
    Axis axis;
    int last = 0;
    for (int first = 0; first < std::min(out_step_, outputs); ++first) {
      AxisPhase phase{.first = first};
      for (int i = 0; i < s_.kernel; ++i) {
        const int tap = is_forward_ ? i : s_.kernel - 1 - i;
        if (!is_forward_ && (first + s_.padding - tap) % s_.stride != 0) continue;
        const int input = is_forward_ ? tap - s_.padding : (first + s_.padding - tap) / s_.stride;
        phase.inputs.push_back(input);
        phase.taps.push_back(tap);
        axis.first = std::min(axis.first, input);
        last = std::max(last, input);
      }
      axis.phases.push_back(std::move(phase));
    }
    axis.span = last - axis.first + 1;
    return axis;
  }

  /// A phase while the first row that its taps may read is in `place` of the ring.
  [[nodiscard]] Phase phase(const AxisPhase& y, const AxisPhase& x, int place) const {
    Phase phase{.row = y.first, .column = x.first, .taps = static_cast<int>(x.taps.size())};
    if (x.taps.empty()) return phase;
    for (std::size_t i = 0; i < y.taps.size(); ++i)
      for (int copy = 0; copy < group_; ++copy)
        phase.tap_rows.push_back({.input = copy * ring_.copy_size() + ring_.at(place + y.inputs[i]) +
                                           x.inputs.front() - columns_.first,
                                  .weight = weight_at(y.taps[i] * s_.kernel + x.taps.front(), copy)});
    return phase;
  }

  void run_block(const Operands& o, int sample, int first) const {
    auto* const rows = static_cast<float*>(o.scratchpad);
    const void* const from = is_forward_ ? o.src : o.d_dst;
    auto* const to = static_cast<std::byte*>(is_forward_ ? o.dst : o.d_src);
    Outputs args{.rows = rows,
                 .plane = ring_.copies * ring_.copy_size(),
                 .step = in_step_,
                 .row_step = std::int64_t{1} * in_step_ * ring_.columns,
                 // Backward data meets the taps in descending order.
                 .weight_step = weight_at(is_forward_ ? 1 : -s_.stride, 0),
                 .weights = static_cast<const float*>(o.packed) + first,
                 .bias = is_forward_ && o.bias != nullptr ? o.bias + first : nullptr,
                 .dst_step = std::int64_t{1} * out_step_ * channels_,
                 .dst_row_step = std::int64_t{1} * out_step_ * to_.width * channels_,
                 .channels = channels_of(ring_, first)};
    const std::size_t phases = phases_.size() / static_cast<std::size_t>(ring_.is_whole ? 1 : ring_.rows);
    int read_to = rows_.first;  // the rows before are in the ring
    const int all = steps(to_.height), at_once = ring_.is_whole ? rows_at_once(steps(to_.width)) : 1;
    for (int step = 0; step < all; step += at_once) {
      const int first_row = rows_.first + step * in_step_;
      const int end = first_row + (std::min(at_once, all - step) - 1) * in_step_ + rows_.span;
      for (read_to = std::max(read_to, first_row); read_to < end; ++read_to)
        read(from, from_, sample, read_to, first, ring_, at_once * in_step_, rows);
      const auto place = static_cast<std::size_t>(ring_.is_whole ? 0 : ring_.place(first_row));
      for (const Phase& phase : std::span(phases_).subspan(place * phases, phases)) {
        const int y = step * out_step_ + phase.row;
        if (y >= to_.height) continue;
        args.taps = phase.taps;
        args.tap_rows = phase.tap_rows.data();
        args.tap_row_count = static_cast<int>(phase.tap_rows.size());
        args.first = ring_.is_whole ? step * args.row_step : 0;
        args.height = std::min(at_once, steps(to_.height - phase.row) - step);
        args.width = steps(to_.width - phase.column);
        args.dst = to + offset(to_, sample, y, phase.column, first);
        images_.outputs(args);
      }
    }
  }

  const bool is_forward_;
  const graph::Shape from_, to_;
  const int in_step_, out_step_;
  const Axis rows_, columns_;
  const Ring ring_;
  std::vector<Phase> phases_;  ///< those of each place in the ring
};

class GroupedWgrad final : public WgradKernel, private GroupedGeometry {
 public:
  GroupedWgrad(const ConvShape& shape, const GroupedKernels& kernels)
      : GroupedGeometry(shape, kernels),
        ring_(ring_of((s_.dst.height - 1) * s_.stride + s_.kernel, s_.kernel, -s_.padding,
                      (s_.dst.width - 1) * s_.stride + s_.kernel, -s_.padding)) {}

  [[nodiscard]] std::int64_t packed_bytes() const override { return weight_bytes(); }
  [[nodiscard]] std::int64_t scratchpad_bytes() const override { return 4 * (ring_.floats() + padded_); }
  [[nodiscard]] std::string name() const override { return GroupedGeometry::name(); }

  void unpack(base::ThreadPool&, const float* packed, float* d_weights) const override {
    for (int c = 0; c < channels_; ++c)
      for (int copy = 0; copy < group_; ++copy)
        for (int tap = 0; tap < taps(); ++tap)
          d_weights[flat_at(c, copy, tap)] = packed[weight_at(tap, copy) + c];
  }

  void run(const Operands& o, int) const override {
    auto* const rows = static_cast<float*>(o.scratchpad);
    float* const bias_sums = rows + ring_.floats();
    std::fill_n(o.d_weight, weight_bytes() / 4, 0.0f);
    if (s_.bias) std::fill_n(bias_sums, padded_, 0.0f);
    for (int first = 0; first < channels_; first += ring_.channels)
      for (int sample = 0; sample < s_.samples; ++sample) {
        Gradient args{.rows = rows,
                      .row_step = std::int64_t{1} * s_.stride * ring_.columns,
                      .copy = ring_.copy_size(),
                      .d_dst_step = channels_,
                      .d_dst_row_step = std::int64_t{1} * s_.dst.width * channels_,
                      .width = s_.dst.width,
                      .channels = channels_of(ring_, first),
                      .copies = group_,
                      .kernel = s_.kernel,
                      .stride = s_.stride,
                      .sums = o.d_weight + first,
                      .sum_step = padded_,
                      .bias_sums = s_.bias ? bias_sums + first : nullptr};
        int read_to = -s_.padding;  // the rows before are in the ring
        const int at_once = ring_.is_whole ? rows_at_once(s_.dst.width) : 1;
        for (int y = 0; y < s_.dst.height; y += at_once) {
          args.height = std::min(at_once, s_.dst.height - y);
          const int first_row = y * s_.stride - s_.padding;
          const int end = first_row + (args.height - 1) * s_.stride + s_.kernel;
          for (read_to = std::max(read_to, first_row); read_to < end; ++read_to)
            read(o.src, s_.src, sample, read_to, first, ring_, at_once * s_.stride, rows);
          for (int k = 0; k < s_.kernel; ++k) args.inputs[k] = ring_.at(first_row + k);
          args.d_dst = static_cast<const std::byte*>(o.d_dst) + offset(s_.dst, sample, y, 0, first);
          images_.gradient(args);
        }
      }
    if (s_.bias) std::copy_n(bias_sums, channels_, o.d_bias);
  }

 private:
  const Ring ring_;
};

std::optional<std::string> refusal(const ConvProblem& problem) {
  const ConvShape& s = problem.shape;
  if (s.uneven) return "has square kernels without dilation";
  if (s.is_dense || s.groups == 1) return "is for convolutions with groups";
  if (s.type != s.dst_type) return "reads and writes one precision";
  const int group = s.src.channels / s.groups;
  if (s.src.channels != s.dst.channels || group > kMostGroup || (group & (group - 1)) != 0)
    return "needs groups of 1, 2, 4 or 8 channels, as many out as in";
  if (std::ranges::find(kKernels, s.kernel) == std::end(kKernels)) return "has kernels of 3x3, 5x5 and 7x7";
  if (s.padding >= s.kernel) return "needs padding that is smaller than the kernel";
  if (kernels_here().empty()) return "needs AVX2";
  return std::nullopt;
}

/// Where it was faster than oneDNN on a Zen 5 (docs/results/kernels.md). oneDNN is as fast or faster forward
/// in small images, with strides, and for most 3x3 depthwise layers.
bool prefers(const ConvProblem& problem) {
  constexpr int kSmall = 8 * 8, kLarge = 28 * 28;
  const ConvShape& s = problem.shape;
  const bool is_bf16 = s.type == Storage::bf16;
  // It needs no bf16 units. The answer is the same in all directions: ConvPlan asks for forward alone.
  if (is_bf16 && bf16_products_here() != Bf16Products::in_hardware) return true;
  const int group = s.src.channels / s.groups;
  const bool is_strided = s.stride > 1;
  const std::int64_t pixels = s.dst_pixels();
  if (is_bf16 && group > 4) return false;
  switch (problem.direction) {
    case Direction::forward:
      if (group > 1) return !is_strided && pixels > kSmall;
      return s.kernel > 3 && pixels > kSmall && !(is_strided && is_bf16);
    case Direction::backward_data:
      if (group > 1 || s.kernel > 3) return !(is_strided && is_bf16);
      return !is_bf16 && !is_strided && pixels <= kSmall;
    case Direction::backward_weights:
      return group > 1 || s.kernel > 3 || (pixels >= kLarge && (is_bf16 || !is_strided));
  }
  return false;
}

}  // namespace

std::unique_ptr<WeightReader> make_grouped_reader(const ConvShape& shape, Direction direction,
                                                  const GroupedKernels& kernels) {
  return std::make_unique<GroupedReader>(shape, direction, kernels);
}
std::unique_ptr<WgradKernel> make_grouped_wgrad(const ConvShape& shape, const GroupedKernels& kernels) {
  return std::make_unique<GroupedWgrad>(shape, kernels);
}

ConvAlgorithm grouped_algorithm() {
  return {.name = "grouped",
          .refusal = refusal,
          .prefers = prefers,
          .preference =
              [](const ConvProblem&) {
                return "is preferred for groups of 2 to 8 channels and for 5x5 and 7x7 weights, but where "
                       "oneDNN was faster";
              },
          .chunk = samples_of_chunk,
          .make_reader =
              [](const ConvShape& chunk, Direction direction, const WeightReader*) {
                return make_grouped_reader(chunk, direction, *kernels_here().back());
              },
          .make_wgrad = [](const ConvShape& chunk,
                           const WgradKernel*) { return make_grouped_wgrad(chunk, *kernels_here().back()); },
          .converts_bf16 = true};
}

}  // namespace paceline::engine::cpu
