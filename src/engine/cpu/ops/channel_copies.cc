// Compiled concat, slice and channel_shuffle: copies of channels.

#include <algorithm>
#include <cstring>

#include "engine/channel_copies.h"
#include "engine/cpu/ops/factories.h"
#include "engine/cpu/parallel.h"

namespace paceline::engine::cpu {
namespace {

class ChannelCopyOp final : public OwnKernelOp {
 public:
  explicit ChannelCopyOp(const OpArguments& a)
      : OwnKernelOp(a),
        sources_(a.src),
        d_sources_(a.d_src),
        copies_(channel_copies(a.build.graph, a.build.node)) {}

  void forward(ExecContext& exec) override {
    over_pixels(exec, dst_, [&](Range rows) {
      for (const ChannelCopy& copy : copies_) {
        const Value& src = *sources_[static_cast<std::size_t>(copy.input)];
        move(exec.memory.at(src.buffer), {copy.from, 1, src.shape.channels}, exec.memory.at(dst_.buffer),
             {copy.to, copy.step, dst_.shape.channels}, copy.channels, rows, dst_.storage);
      }
    });
  }
  void backward(ExecContext& exec) override {
    if (std::ranges::none_of(d_sources_, [](BufferId buffer) { return static_cast<bool>(buffer); })) return;
    const auto* d_dst = static_cast<const std::byte*>(merged_gradient(exec, dst_));
    over_pixels(exec, dst_, [&](Range rows) {
      for (const ChannelCopy& copy : copies_) {
        const auto input = static_cast<std::size_t>(copy.input);
        const int channels = sources_[input]->shape.channels;
        std::byte* d_src = exec.memory.at(d_sources_[input]);
        if (d_src == nullptr) continue;
        if (is_slice(channels)) clear(d_src, channels, rows);
        move(d_dst, {copy.to, copy.step, dst_.shape.channels}, d_src, {copy.from, 1, channels}, copy.channels,
             rows, dst_.gradient_storage);
      }
    });
  }

 private:
  /// Channels of one side of a copy: first, first + step, .. of `all`.
  struct Side {
    int first, step, all;
  };

  /// Whether the op leaves channels of its only input out, which then get no gradient.
  [[nodiscard]] bool is_slice(int channels) const {
    return sources_.size() == 1 && channels != dst_.shape.channels;
  }
  void clear(std::byte* d_src, int channels, Range rows) const {
    const std::int64_t row = channels * bytes_of(dst_.gradient_storage);
    std::fill_n(d_src + rows.begin * row, rows.size() * row, std::byte{0});
  }

  static void move(const std::byte* src, Side from, std::byte* dst, Side to, int channels, Range rows,
                   Storage storage) {
    const std::int64_t size = bytes_of(storage);
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      const std::byte* a = src + (row * from.all + from.first) * size;
      std::byte* b = dst + (row * to.all + to.first) * size;
      if (from.step == 1 && to.step == 1)
        std::memcpy(b, a, static_cast<std::size_t>(channels * size));
      else if (size == 2)
        spread<std::uint16_t>(a, from.step, b, to.step, channels);
      else
        spread<float>(a, from.step, b, to.step, channels);
    }
  }
  template <typename T>
  static void spread(const std::byte* src, int from_step, std::byte* dst, int to_step, int channels) {
    const T* a = reinterpret_cast<const T*>(src);
    T* b = reinterpret_cast<T*>(dst);
    for (std::int64_t c = 0; c < channels; ++c) b[c * to_step] = a[c * from_step];
  }

  const std::vector<const Value*> sources_;
  const std::vector<BufferId> d_sources_;
  const std::vector<ChannelCopy> copies_;
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::Concat&, const OpArguments& a) {
  return std::make_unique<ChannelCopyOp>(a);
}
std::unique_ptr<CompiledOp> make_op(const graph::Slice&, const OpArguments& a) {
  return std::make_unique<ChannelCopyOp>(a);
}
std::unique_ptr<CompiledOp> make_op(const graph::ChannelShuffle&, const OpArguments& a) {
  return std::make_unique<ChannelCopyOp>(a);
}

}  // namespace paceline::engine::cpu
