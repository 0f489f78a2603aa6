#include "comm/host_staging.h"

#include <algorithm>
#include <utility>

namespace paceline::comm {
namespace {

using base::Array;

/// When a rank's last result was written, since results are written one after the other.
struct WriteOrder {
  base::TimePoint last{};
};

class PendingStaged final : public Pending {
 public:
  /// `own`: the buffer of `staged`; empty if `staged` is in memory that outlives this object.
  PendingStaged(std::unique_ptr<Pending> inner, base::Buffer own, std::span<const float> staged, Array dst,
                std::shared_ptr<WriteOrder> order)
      : own_(std::move(own)),
        staged_(staged),
        dst_(dst),
        order_(std::move(order)),
        inner_(std::move(inner)) {}

  void wait() override {
    inner_->wait();
    if (is_written_) return;
    const auto begin = base::Clock::now();
    dst_.memory->write(staged_, dst_);
    const Timing below = inner_->timing();
    timing_ = {below.posted, std::max(below.done, order_->last) + (base::Clock::now() - begin)};
    order_->last = timing_.done;
    is_written_ = true;
  }
  [[nodiscard]] bool complete() const override { return is_written_; }
  [[nodiscard]] Timing timing() const override {
    base::expects(is_written_, "the array was waited for");
    return timing_;
  }

 private:
  const base::Buffer own_;
  const std::span<const float> staged_;
  const Array dst_;
  const std::shared_ptr<WriteOrder> order_;
  const std::unique_ptr<Pending> inner_;  ///< last, so that it is destroyed before its buffers
  bool is_written_ = false;
  Timing timing_;
};

class HostStaging final : public Forwarding {
 public:
  using Forwarding::Forwarding;

  [[nodiscard]] std::string algorithm() const override {
    return inner().algorithm() + ", devices' arrays by way of the host";
  }

  base::OwnedArray array(std::size_t size, const base::Memory& memory) override {
    if (memory.is_host()) return inner().array(size, memory);
    auto owned = memory.allocate(size);
    known_ = owned.array();
    staging_ = {};  // memory of an earlier call becomes ordinary memory
    staging_ = inner().memory(known_.bytes());
    return owned;
  }

  std::unique_ptr<Pending> all_reduce(Array src, Array dst) override {
    base::expects(src.size == dst.size, "src.size == dst.size");
    if (lies_on_host(src) && lies_on_host(dst)) return inner().all_reduce(src, dst);
    auto [own, staged] = stage(src, dst);
    auto pending = inner().all_reduce(staged, staged);
    return std::make_unique<PendingStaged>(std::move(pending), std::move(own), staged, dst, order_);
  }

  std::unique_ptr<Pending> reduce_scatter(Array src, Array dst) override {
    base::expects(src.size == dst.size * static_cast<std::size_t>(size()), "src.size == size() * dst.size");
    if (lies_on_host(src) && lies_on_host(dst)) return inner().reduce_scatter(src, dst);
    auto [own, staged] = stage(src, src);
    const auto part = staged.subspan(static_cast<std::size_t>(rank()) * dst.size, dst.size);
    auto pending = inner().reduce_scatter(staged, part);
    return std::make_unique<PendingStaged>(std::move(pending), std::move(own), part, dst, order_);
  }

  std::unique_ptr<Pending> all_gather(Array mine, Array all) override {
    if (lies_on_host(mine) && lies_on_host(all)) return inner().all_gather(mine, all);
    const auto begin = base::Clock::now();
    base::Buffer part(mine.bytes()), whole(all.bytes());
    mine.memory->read(mine, part.as<float>());
    inner().all_gather(part.as<std::byte>(), whole.as<std::byte>());
    all.memory->write(whole.as<float>(), all);
    return finished(begin);
  }
  std::unique_ptr<Pending> broadcast(Array values, int root) override {
    if (lies_on_host(values)) return inner().broadcast(values, root);
    const auto begin = base::Clock::now();
    base::Buffer staged(values.bytes());
    if (rank() == root) values.memory->read(values, staged.as<float>());
    inner().broadcast(staged.as<std::byte>(), root);
    if (rank() != root) values.memory->write(staged.as<float>(), values);
    return finished(begin);
  }

 private:
  struct Staged {
    base::Buffer own;
    std::span<float> values;
  };

  [[nodiscard]] static bool lies_on_host(Array array) { return array.size == 0 || array.memory->is_host(); }

  /// Copies `src` to the host: to the memory that belongs to `dst` if array() returned it, else to a new
  /// buffer.
  [[nodiscard]] Staged stage(Array src, Array dst) {
    Staged staged;
    // Computed with integers, since the pointers may point into different arrays.
    const auto begin = reinterpret_cast<std::uintptr_t>(dst.data),
               known = reinterpret_cast<std::uintptr_t>(known_.data);
    if (dst.memory == known_.memory && begin >= known && begin + dst.bytes() <= known + known_.bytes()) {
      staged.values = staging_.as<float>().subspan((begin - known) / sizeof(float), dst.size);
    } else {
      staged.own = base::Buffer(src.bytes());
      staged.values = staged.own.as<float>();
    }
    src.memory->read(src, staged.values);
    return staged;
  }

  Array known_;           ///< the last result of array()
  base::Buffer staging_;  ///< host memory of the same size
  const std::shared_ptr<WriteOrder> order_ = std::make_shared<WriteOrder>();
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> host_staging(std::vector<std::unique_ptr<Communicator>> inner) {
  for (auto& one : inner) one = std::make_unique<HostStaging>(std::move(one));
  return inner;
}

}  // namespace paceline::comm
