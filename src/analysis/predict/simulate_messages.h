#pragma once

/// Sends every message of an all-reduce in an event simulation: the oracle of the closed forms in
/// collective_cost.h, and the answer where several collectives share links.
///
/// Links share fairly: at every moment the rates of all messages under way are the max-min fair ones of the
/// ports they pass. A rank has a port out of and one into it over its node's link, a node over its network
/// cards, a switch to the others. Nodes are spread over the switches in turn.

#include <optional>
#include <vector>

#include "analysis/predict/cluster.h"

namespace paceline::analysis {

/// Messages and what each of them waits for.
class MessageSchedule {
 public:
  /// Returns its number. It begins when all that it waits for has left or, `wait_s` ago, arrived; occupies
  /// its ports until its bytes have left; and arrives one latency later. A message from a rank to itself
  /// takes no time: a point at which others meet.
  int send(int from, int to, double bytes, double wait_s = 0);
  /// `later` waits until `earlier` has arrived; -1: for nothing.
  void after_arrival(int later, int earlier) { wait(later, earlier, false); }
  /// `later` waits until the bytes of `earlier` have left; -1: for nothing.
  void after_sending(int later, int earlier) { wait(later, earlier, true); }

  struct Message {
    int from = 0, to = 0;
    double bytes = 0, wait_s = 0;
  };
  struct Wait {
    int earlier = 0, later = 0;
    bool is_for_sending = false;
  };
  [[nodiscard]] const std::vector<Message>& messages() const { return messages_; }
  [[nodiscard]] const std::vector<Wait>& waits() const { return waits_; }

 private:
  void wait(int later, int earlier, bool is_for_sending) {
    if (earlier >= 0) waits_.push_back({earlier, later, is_for_sending});
  }
  std::vector<Message> messages_;
  std::vector<Wait> waits_;
};

/// The time at which the last message arrives.
///
/// Cost     events times messages that are under way: 64 ranks in milliseconds, a ring of 1,024 in seconds
[[nodiscard]] double finish_seconds(const MessageSchedule& schedule, const Cluster& cluster, int workers);

/// The seconds of one all-reduce by messages, with the launch and the emulated link of all_reduce_cost(),
/// whose algorithm `automatic` stands for. Nothing where there are no messages to send.
[[nodiscard]] std::optional<double> simulated_all_reduce(const Cluster& cluster, int workers, double bytes);

}  // namespace paceline::analysis
