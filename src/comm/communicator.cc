#include "comm/communicator.h"

#include "base/summation_tree.h"

namespace paceline::comm {
namespace {

/// A finished blocking collective as a Pending.
class Finished final : public Pending {
 public:
  explicit Finished(const Timing& timing) : timing_(timing) {}
  void wait() override {}
  [[nodiscard]] bool complete() const override { return true; }
  [[nodiscard]] Timing timing() const override { return timing_; }

 private:
  const Timing timing_;
};

}  // namespace

std::unique_ptr<Pending> finished(base::TimePoint posted, base::TimePoint done) {
  return std::make_unique<Finished>(Timing{.posted = posted, .done = done});
}

double reduced(std::span<const double> values, Reduce reduce) {
  return base::tree_fold(values, [&](double left, double right) {
    if (reduce == Reduce::sum) return left + right;
    return reduce == Reduce::min ? std::min(left, right) : std::max(left, right);
  });
}

base::OwnedArray Communicator::array(std::size_t size, const base::Memory& where) {
  base::expects(where.is_host(), "a communicator without host_staging.h has memory of the host");
  return base::host_array(memory(size * sizeof(float)));
}

std::unique_ptr<Pending> Communicator::all_reduce(base::Array src, base::Array dst) {
  return all_reduce(std::span<const float>(src.host()), dst.host());
}

std::unique_ptr<Pending> Communicator::reduce_scatter(base::Array src, base::Array dst) {
  return reduce_scatter(std::span<const float>(src.host()), dst.host());
}

std::unique_ptr<Pending> Communicator::all_gather(base::Array mine, base::Array all) {
  const auto begin = base::Clock::now();
  all_gather(std::as_bytes(mine.host()), std::as_writable_bytes(all.host()));
  return finished(begin);
}

std::unique_ptr<Pending> Communicator::broadcast(base::Array values, int root) {
  const auto begin = base::Clock::now();
  broadcast(std::as_writable_bytes(values.host()), root);
  return finished(begin);
}

}  // namespace paceline::comm
