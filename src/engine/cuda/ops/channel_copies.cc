// Compiled concat, slice and channel_shuffle: copies of channels.

#include "engine/channel_copies.h"

#include <algorithm>

#include "engine/cuda/kernels/channel_copies.h"
#include "engine/cuda/ops/factories.h"

namespace paceline::engine::cuda {
namespace {

class ChannelCopyOp final : public KernelOp {
 public:
  explicit ChannelCopyOp(const OpArguments& a)
      : KernelOp(a),
        all_src_(a.src),
        all_d_src_(a.d_src),
        copies_(channel_copies(a.build.graph, a.build.node)) {}

  void forward(ExecContext& exec) override {
    clear_unless_full(exec, exec.memory.at(dst_.buffer), dst_, dst_.shape.channels);
    for (const ChannelCopy& copy : copies_) {
      const Value& src = *all_src_[static_cast<std::size_t>(copy.input)];
      move(exec, exec.memory.at(src.buffer), {copy.from, 1, src.channels()}, exec.memory.at(dst_.buffer),
           {copy.to, copy.step, dst_.channels()}, copy.channels);
    }
  }
  void backward(ExecContext& exec) override {
    if (std::ranges::none_of(all_d_src_, [](BufferId buffer) { return static_cast<bool>(buffer); })) return;
    const void* d_dst = merged_gradient(exec, dst_);
    for (std::size_t input = 0; input < all_src_.size(); ++input)
      if (all_d_src_[input])
        clear_unless_full(exec, exec.memory.at(all_d_src_[input]), *all_src_[input],
                          all_src_.size() == 1 ? dst_.shape.channels : all_src_[input]->shape.channels);
    for (const ChannelCopy& copy : copies_) {
      const auto input = static_cast<std::size_t>(copy.input);
      if (all_d_src_[input])
        move(exec, d_dst, {copy.to, copy.step, dst_.channels()}, exec.memory.at(all_d_src_[input]),
             {copy.from, 1, all_src_[input]->channels()}, copy.channels);
    }
  }

 private:
  /// Channels of one side of a copy: first, first + step, .. of `all`.
  struct Side {
    int first, step, all;
  };

  /// Padding, and channels that no copy writes, become 0. `written`: channels that copies write.
  static void clear_unless_full(const ExecContext& exec, void* values, const Value& value, int written) {
    if (written < value.channels()) exec.runtime.fill_bytes(exec.compute, values, 0, exec.bytes(value));
  }

  void move(const ExecContext& exec, const void* src, Side from, void* dst, Side to, int channels) const {
    with_storage(exec.options.precision, [&]<typename T>(T) {
      exec.launch(CopyChannels<T>{.rows = std::int64_t{1} * exec.options.batch * dst_.pixels(),
                                  .channels = channels,
                                  .src = static_cast<const T*>(src),
                                  .src_channels = from.all,
                                  .from = from.first,
                                  .from_step = from.step,
                                  .dst = static_cast<T*>(dst),
                                  .dst_channels = to.all,
                                  .to = to.first,
                                  .to_step = to.step});
    });
  }

  const std::vector<const Value*> all_src_;
  const std::vector<BufferId> all_d_src_;
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

}  // namespace paceline::engine::cuda
