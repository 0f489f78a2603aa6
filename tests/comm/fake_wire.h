#pragma once

/// Processes as threads of the test: a Wire over queues in memory, as strict as a network about sizes.

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

#include "comm/wire.h"

namespace paceline::comm {

/// What lies between the processes: shared by their wires.
struct FakeNetwork {
  explicit FakeNetwork(int number) : processes(number) {}
  const int processes;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::tuple<Channel, int, int>, std::deque<std::vector<std::byte>>>
      queues;  ///< [channel, from, to]
};

class FakeWire : public Wire {
 public:
  FakeWire(std::shared_ptr<FakeNetwork> network, int process)
      : network_(std::move(network)), process_(process) {}
  [[nodiscard]] int process() const override { return process_; }
  [[nodiscard]] int processes() const override { return network_->processes; }
  [[nodiscard]] std::string name() const override { return "fake"; }
  [[nodiscard]] std::string library() const override { return "threads of a test"; }

  std::vector<int> swap(Channel channel, std::span<const Send> sends, std::span<const Receive> receives,
                        const std::function<bool()>& keep_waiting) override {
    std::unique_lock lock(network_->mutex);
    for (const auto& one : sends)
      network_->queues[{channel, process_, one.to}].emplace_back(one.bytes.begin(), one.bytes.end());
    network_->changed.notify_all();
    for (const auto& one : receives) {
      auto& queue = network_->queues[{channel, one.from, process_}];
      while (queue.empty()) {
        if (!keep_waiting()) return {one.from};
        network_->changed.wait_for(lock, std::chrono::milliseconds(2));
      }
      if (queue.front().size() != one.bytes.size()) throw std::logic_error("sizes differ between processes");
      if (!one.bytes.empty()) std::memcpy(one.bytes.data(), queue.front().data(), one.bytes.size());
      queue.pop_front();
    }
    return {};
  }
  void give_up() override {}

 private:
  std::shared_ptr<FakeNetwork> network_;
  int process_;
};

}  // namespace paceline::comm
