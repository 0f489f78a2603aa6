#include "comm/local/group.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/summation_tree.h"

namespace paceline::comm::local {
namespace {

class Reduction final : public Pending {
 public:
  Reduction(std::shared_ptr<Group> group, int rank, const Description& what, RankBuffers place)
      : group_(std::move(group)),
        rank_(rank),
        posted_(base::Clock::now()),
        operation_(group_->post(rank, what, place)) {}
  ~Reduction() override {
    if (!complete()) group_->give_up(*operation_, rank_);
  }
  Reduction(const Reduction&) = delete;
  Reduction& operator=(const Reduction&) = delete;

  void wait() override { group_->wait(*operation_); }
  [[nodiscard]] bool complete() const override { return operation_->done.load(std::memory_order_acquire); }
  [[nodiscard]] Timing timing() const override {
    base::expects(complete(), "complete()");
    // A reduction that was left to the waiter was not in progress before the waiter began it.
    return {std::max(posted_, operation_->begun_at), operation_->done_at};
  }

 private:
  std::shared_ptr<Group> group_;
  int rank_;
  base::TimePoint
      posted_;  ///< taken before the operation, since waiting for the group's mutex is communication too
  OperationRef operation_;
};

class Local final : public Communicator {
 public:
  Local(std::shared_ptr<Group> group, int rank) : group_(std::move(group)), rank_(rank) {}
  ~Local() override {
    group_->stop(rank_);
    if (progress_.joinable()) progress_.join();
  }
  Local(const Local&) = delete;
  Local& operator=(const Local&) = delete;

  [[nodiscard]] int rank() const override { return group_->first_rank() + rank_; }
  [[nodiscard]] int size() const override { return group_->world(); }
  [[nodiscard]] std::string name() const override { return across() == nullptr ? "local" : across()->name(); }
  [[nodiscard]] std::string algorithm() const override {
    constexpr const char* kInside = "direct (shared memory)";
    if (across() == nullptr) return kInside;
    if (group_->ranks() == 1) return across()->algorithm();
    return std::string(kInside) + ", then " + across()->algorithm();
  }

  std::unique_ptr<Pending> all_reduce(std::span<const float> src, std::span<float> dst) override {
    base::expects(src.size() == dst.size(), "src.size() == dst.size()");
    return reduce({.kind = OperationKind::all_reduce, .count = dst.size()}, src, dst);
  }
  std::unique_ptr<Pending> reduce_scatter(std::span<const float> src, std::span<float> dst) override {
    base::expects(src.size() == dst.size() * static_cast<std::size_t>(size()),
                  "src.size() == size() * dst.size()");
    return reduce({.kind = OperationKind::reduce_scatter, .count = dst.size()}, src, dst);
  }

  /// Other processes see only the first rank's memory, which holds its process's joined values.
  base::Buffer memory(std::size_t bytes) override {
    base::Buffer mine;
    group_->exchange(rank_, {.kind = OperationKind::memory, .count = bytes}, {.target = &mine},
                     [&](const std::vector<RankBuffers>& places) {
                       for (const RankBuffers& place : places) {
                         const bool is_seen = across() != nullptr && &place == &places.front();
                         *static_cast<base::Buffer*>(place.target) =
                             is_seen ? across()->memory(bytes) : base::Buffer(bytes);
                       }
                     });
    return mine;
  }

  void all_reduce(std::span<double> values, Reduce reduce) override {
    const Description what{.kind = OperationKind::small_reduce, .count = values.size(), .reduce = reduce};
    group_->exchange(rank_, what, {values.data(), values.data()},
                     [&](const std::vector<RankBuffers>& places) {
                       std::vector<double> column(places.size()), result(values.size());
                       for (std::size_t i = 0; i < values.size(); ++i) {
                         for (std::size_t r = 0; r < places.size(); ++r)
                           column[r] = static_cast<const double*>(places[r].source)[i];
                         result[i] = reduced(column, reduce);
                       }
                       if (across() != nullptr) across()->all_reduce(result, reduce);
                       for (const RankBuffers& place : places)
                         std::copy(result.begin(), result.end(), static_cast<double*>(place.target));
                     });
    const auto bytes = static_cast<std::int64_t>(values.size_bytes());
    count_exchange(bytes, bytes);
  }

  void broadcast(std::span<std::byte> bytes, int root) override {
    base::expects(root >= 0 && root < size(), "0 <= root < size");
    const Description what{.kind = OperationKind::broadcast, .count = bytes.size(), .root = root};
    group_->exchange(rank_, what, {bytes.data(), bytes.data()}, [&](const std::vector<RankBuffers>& places) {
      const int ranks = group_->ranks();
      const bool mine = root / ranks == group_->first_rank() / ranks;
      const auto from = static_cast<std::size_t>(mine ? root % ranks : 0);
      if (across() != nullptr)
        across()->broadcast({static_cast<std::byte*>(places[from].target), bytes.size()}, root / ranks);
      for (std::size_t r = 0; r < places.size(); ++r)
        if (r != from) copy(places[r].target, places[from].target, bytes.size());
    });
    count_star(bytes.size(), root, true);
  }

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    base::expects(all.size() == mine.size() * static_cast<std::size_t>(size()),
                  "all.size() == size() * mine.size()");
    const Description what{.kind = OperationKind::all_gather, .count = mine.size()};
    group_->exchange(rank_, what, {mine.data(), all.data()}, [&](const std::vector<RankBuffers>& places) {
      // Completes the first rank's result, then copies it to the other ranks.
      const auto begin = static_cast<std::size_t>(group_->first_rank()) * mine.size();
      auto* const whole = static_cast<std::byte*>(places[0].target);
      for (std::size_t r = 0; r < places.size(); ++r)
        copy(whole + begin + r * mine.size(), places[r].source, mine.size());
      if (across() != nullptr)
        across()->all_gather({whole + begin, places.size() * mine.size()}, {whole, all.size()});
      for (std::size_t r = 1; r < places.size(); ++r) copy(places[r].target, whole, all.size());
    });
    const auto moved = static_cast<std::int64_t>(mine.size()) * (group_->ranks() - 1);
    count_exchange(moved, moved);
  }

  void scatter(std::span<const std::byte> all, std::span<std::byte> mine, int root) override {
    require_root(root);
    base::expects(rank() != root || all.size() == mine.size() * static_cast<std::size_t>(size()),
                  "the root's all.size() == size() * mine.size()");
    const Description what{.kind = OperationKind::scatter, .count = mine.size(), .root = root};
    group_->exchange(rank_, what, {all.data(), mine.data()}, [&](const std::vector<RankBuffers>& places) {
      const auto* const whole = static_cast<const std::byte*>(places[static_cast<std::size_t>(root)].source);
      for (std::size_t r = 0; r < places.size(); ++r)
        copy(places[r].target, whole + r * mine.size(), mine.size());
    });
    count_star(mine.size(), root, true);
  }

  void gather(std::span<const std::byte> mine, std::span<std::byte> all, int root) override {
    require_root(root);
    base::expects(rank() != root || all.size() == mine.size() * static_cast<std::size_t>(size()),
                  "the root's all.size() == size() * mine.size()");
    const Description what{.kind = OperationKind::gather, .count = mine.size(), .root = root};
    group_->exchange(rank_, what, {mine.data(), all.data()}, [&](const std::vector<RankBuffers>& places) {
      auto* const whole = static_cast<std::byte*>(places[static_cast<std::size_t>(root)].target);
      for (std::size_t r = 0; r < places.size(); ++r)
        copy(whole + r * mine.size(), places[r].source, mine.size());
    });
    count_star(mine.size(), root, false);
  }

  void reduce(std::span<float> values, int root) override {
    require_root(root);
    const Description what{.kind = OperationKind::reduce, .count = values.size(), .root = root};
    group_->exchange(rank_, what, {values.data(), values.data()},
                     [&](const std::vector<RankBuffers>& places) {
                       std::vector<const float*> parts;
                       for (const auto& place : places)
                         parts.push_back(static_cast<const float*>(place.source));
                       auto* const sum = static_cast<float*>(places[static_cast<std::size_t>(root)].target);
                       base::tree_sum<float>(parts, sum, values.size());
                     });
    count_star(values.size_bytes(), root, false);
  }

  void barrier() override {
    group_->exchange(rank_, {.kind = OperationKind::barrier}, {}, [&](const std::vector<RankBuffers>&) {
      if (across() != nullptr) across()->barrier();
    });
    count_exchange(0, 0);
  }

  void abort(const std::string& reason, base::ErrorKind kind) override { group_->abort(rank_, reason, kind); }
  void check() const override { group_->check(); }
  void at(std::int64_t step, const char* phase) override { group_->at(rank_, step, phase); }
  [[nodiscard]] Traffic traffic() const override { return group_->traffic(rank_); }

 private:
  [[nodiscard]] ProcessGroup* across() const { return group_->across(); }
  std::unique_ptr<Pending> reduce(const Description& what, std::span<const float> src, std::span<float> dst) {
    if (size() == 1) {
      group_->check();
      group_->count(rank_, {.collectives = 1});
      copy(dst.data(), src.data(), dst.size_bytes());
      const auto now = base::Clock::now();
      return finished(now, now);
    }
    if (!progress_.joinable() && group_->ranks() > 1)
      progress_ = std::thread([group = group_.get(), rank = rank_] { group->serve(rank); });
    return std::make_unique<Reduction>(group_, rank_, what,
                                       RankBuffers{.source = src.data(), .target = dst.data()});
  }
  void require_root(int root) const {
    base::expects(root >= 0 && root < size(), "0 <= root < size");
    base::expects(across() == nullptr, "the ranks are those of one process");
  }
  /// Counts `bytes` between the root and each other rank of its process, from the root or to it.
  void count_star(std::size_t bytes, int root, bool from_root) {
    const auto each = static_cast<std::int64_t>(bytes);
    const std::int64_t here = rank() == root ? each * (group_->ranks() - 1) : each;
    if ((rank() == root) == from_root)
      count_exchange(here, 0);
    else
      count_exchange(0, here);
  }
  static void copy(void* target, const void* source, std::size_t bytes) {
    if (bytes > 0 && target != source) std::memcpy(target, source, bytes);
  }
  /// Counts traffic as if each rank moved its own part, although the last rank to arrive does the work.
  void count_exchange(std::int64_t sent, std::int64_t received) {
    const bool alone = group_->ranks() == 1;
    group_->count(rank_, {.collectives = 1,
                          .steps = alone ? 0 : 1,
                          .bytes_sent = alone ? 0 : sent,
                          .bytes_received = alone ? 0 : received});
  }

  std::shared_ptr<Group> group_;  ///< shared with the other ranks' communicators and their pending reductions
  int rank_;
  std::thread progress_;
};

}  // namespace

std::unique_ptr<Communicator> join(std::shared_ptr<Group> group, int rank) {
  return std::make_unique<Local>(std::move(group), rank);
}

}  // namespace paceline::comm::local
