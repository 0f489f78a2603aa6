#include "analysis/predict/simulate_messages.h"

#include <algorithm>
#include <array>
#include <queue>

#include "base/error.h"

namespace paceline::analysis {
namespace {

constexpr double kNoLimit = 1e30;  ///< bytes per second, or seconds: rates are subtracted, so not infinity
/// Events closer than this part of the time are one: equal messages differ by rounding.
constexpr double kSameTime = 1e-12;

/// The ports of a cluster, each with what passes it in a second.
class Ports {
 public:
  Ports(const Cluster& cluster, int workers)
      : in_node_((workers + cluster.nodes_of(workers) - 1) / cluster.nodes_of(workers)),
        nodes_(cluster.nodes_of(workers)),
        workers_(workers) {
    const auto limit = [](double rate) { return rate > 0 ? rate : kNoLimit; };
    const auto& network = cluster.network;
    const double card = network.bytes_per_s.low * network.nics_per_node;
    rates_.assign(2 * static_cast<std::size_t>(workers), limit(cluster.node_link.bytes_per_s.low));
    rates_.insert(rates_.end(), 2 * static_cast<std::size_t>(nodes_), limit(card));
    if (network.nodes_per_switch > 0 && nodes_ > network.nodes_per_switch)
      switches_ = (nodes_ + network.nodes_per_switch - 1) / network.nodes_per_switch;
    for (int i = 0; i < switches_; ++i) {
      const int below = nodes_ / switches_ + (i < nodes_ % switches_ ? 1 : 0);
      rates_.insert(rates_.end(), 2, limit(below * card / network.oversubscription.low));
    }
    latency_in_ = cluster.node_link.latency_s.low;
    latency_out_ = network.latency_s.low;
  }

  static constexpr int kMostPorts = 4;
  using Way = std::array<int, kMostPorts>;  ///< -1: no further port
  [[nodiscard]] Way way(int from, int to) const {
    const int a = from / in_node_, b = to / in_node_;
    if (a == b) return {2 * from, 2 * to + 1, -1, -1};
    const int cards = 2 * workers_, ups = cards + 2 * nodes_;
    Way way{cards + 2 * a, cards + 2 * b + 1, -1, -1};
    if (switches_ > 0 && a % switches_ != b % switches_) {
      way[2] = ups + 2 * (a % switches_);
      way[3] = ups + 2 * (b % switches_) + 1;
    }
    return way;
  }
  [[nodiscard]] double latency(int from, int to) const {
    if (from == to) return 0;
    return from / in_node_ == to / in_node_ ? latency_in_ : latency_out_;
  }
  [[nodiscard]] const std::vector<double>& rates() const { return rates_; }

 private:
  int in_node_, nodes_, workers_, switches_ = 0;
  double latency_in_ = 0, latency_out_ = 0;
  std::vector<double> rates_;
};

/// Messages under way, and their max-min fair rates.
class Flows {
 public:
  explicit Flows(const Ports& ports)
      : ports_(ports), left_(ports.rates().size()), users_(ports.rates().size()) {}

  struct Flow {
    int message = 0;
    double bytes_left = 0, bytes = 0, rate = 0;
    Ports::Way way{};
  };

  void add(int message, const MessageSchedule::Message& sent) {
    flows_.push_back({message, sent.bytes, sent.bytes, 0, ports_.way(sent.from, sent.to)});
    is_stale_ = true;
  }
  /// Seconds until the first of them has left.
  [[nodiscard]] double next() {
    if (is_stale_) share();
    double least = kNoLimit;
    for (const auto& flow : flows_) least = std::min(least, flow.bytes_left / flow.rate);
    return least;
  }
  /// Moves on by `seconds` and removes what has left: calls `left` with each.
  template <typename Left>
  void move(double seconds, double now, const Left& left) {
    for (std::size_t i = 0; i < flows_.size();) {
      auto& flow = flows_[i];
      flow.bytes_left -= seconds * flow.rate;
      if (flow.bytes_left > 1e-9 * flow.bytes && flow.bytes_left > kSameTime * now * flow.rate) {
        ++i;
        continue;
      }
      const int message = flow.message;
      flow = flows_.back();
      flows_.pop_back();
      is_stale_ = true;
      left(message);
    }
  }
  [[nodiscard]] bool empty() const { return flows_.empty(); }

 private:
  /// Fills all flows at one rate until a port is full, whose flows then keep their rate; and so on.
  void share() {
    is_stale_ = false;
    left_ = ports_.rates();
    std::ranges::fill(users_, 0);
    std::vector<Flow*> open;
    for (auto& flow : flows_) {
      open.push_back(&flow);
      for (const int port : flow.way)
        if (port >= 0) ++users_[static_cast<std::size_t>(port)];
    }
    while (!open.empty()) {
      const auto share_of = [&](const Flow& flow) {
        double least = kNoLimit;
        for (const int port : flow.way)
          if (port >= 0) {
            const auto i = static_cast<std::size_t>(port);
            least = std::min(least, left_[i] / users_[i]);
          }
        return least;
      };
      double least = kNoLimit;
      for (const auto* flow : open) least = std::min(least, share_of(*flow));
      const auto full = std::partition(
          open.begin(), open.end(), [&](const Flow* flow) { return share_of(*flow) > least * (1 + 1e-9); });
      for (auto one = full; one != open.end(); ++one) (*one)->rate = least;
      for (auto one = full; one != open.end(); ++one)
        for (const int port : (*one)->way)
          if (port >= 0) {
            left_[static_cast<std::size_t>(port)] -= least;
            --users_[static_cast<std::size_t>(port)];
          }
      open.erase(full, open.end());
    }
  }

  const Ports& ports_;
  std::vector<Flow> flows_;
  std::vector<double> left_;
  std::vector<int> users_;
  bool is_stale_ = false;
};

/// Who waits for each message, as lists one after the other.
struct Waiters {
  explicit Waiters(const MessageSchedule& schedule, bool for_sending)
      : begin(schedule.messages().size() + 1) {
    for (const auto& wait : schedule.waits())
      if (wait.is_for_sending == for_sending) ++begin[static_cast<std::size_t>(wait.earlier) + 1];
    for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    later.resize(begin.back());
    auto at = begin;
    for (const auto& wait : schedule.waits())
      if (wait.is_for_sending == for_sending)
        later[at[static_cast<std::size_t>(wait.earlier)]++] = wait.later;
  }
  std::vector<std::size_t> begin;
  std::vector<int> later;
};

}  // namespace

int MessageSchedule::send(int from, int to, double bytes, double wait_s) {
  messages_.push_back({from, to, bytes, wait_s});
  return static_cast<int>(messages_.size()) - 1;
}

double finish_seconds(const MessageSchedule& schedule, const Cluster& cluster, int workers) {
  const Ports ports(cluster, workers);
  const auto& messages = schedule.messages();
  const Waiters for_arrival(schedule, false), for_sending(schedule, true);
  std::vector<int> missing(messages.size());
  std::vector<double> earliest(messages.size());  ///< by what has arrived
  for (const auto& wait : schedule.waits()) ++missing[static_cast<std::size_t>(wait.later)];

  struct Event {
    double at;
    int message;
    bool is_arrival;
    bool operator>(const Event& other) const { return at > other.at; }
  };
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  Flows flows(ports);
  double now = 0;
  const auto met = [&](const Waiters& waiters, int message, bool by_arrival) {
    const auto i = static_cast<std::size_t>(message);
    for (std::size_t k = waiters.begin[i]; k < waiters.begin[i + 1]; ++k) {
      const auto later = static_cast<std::size_t>(waiters.later[k]);
      if (by_arrival) earliest[later] = std::max(earliest[later], now + messages[later].wait_s);
      if (--missing[later] == 0) events.push({std::max(now, earliest[later]), waiters.later[k], false});
    }
  };
  const auto sent = [&](int message) {
    const auto& one = messages[static_cast<std::size_t>(message)];
    met(for_sending, message, false);
    events.push({now + ports.latency(one.from, one.to), message, true});
  };
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (missing[i] == 0) events.push({messages[i].wait_s, static_cast<int>(i), false});
  std::size_t arrived = 0;
  while (!events.empty() || !flows.empty()) {
    double next = flows.empty() ? kNoLimit : now + flows.next();
    if (!events.empty()) next = std::min(next, events.top().at);
    const double seconds = next - now;
    now = next;
    if (!flows.empty()) flows.move(seconds, now, sent);
    while (!events.empty() && events.top().at <= now * (1 + kSameTime)) {
      const Event event = events.top();
      events.pop();
      const auto& one = messages[static_cast<std::size_t>(event.message)];
      if (event.is_arrival) {
        ++arrived;
        met(for_arrival, event.message, true);
      } else if (one.from == one.to || one.bytes <= 0) {
        sent(event.message);
      } else {
        flows.add(event.message, one);
      }
    }
  }
  base::expects(arrived == messages.size(), "finish_seconds: no message waits for itself");
  return now;
}

}  // namespace paceline::analysis
