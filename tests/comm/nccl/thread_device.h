#pragma once

/// A device for tests of collectives: its streams are threads, so that they really go on beside the host and
/// beside each other, and what is not ordered races.

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "base/summation_tree.h"
#include "comm/nccl/gate.h"

namespace paceline::comm {

/// A stream: what is put on it runs in order, in a thread of its own.
class WorkQueue {
 public:
  WorkQueue() : thread_([this] { run(); }) {}
  /// Runs what is left.
  ~WorkQueue() {
    put({});
    thread_.join();
  }
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void put(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    wake_.notify_one();
  }
  /// Done when the stream has come so far.
  [[nodiscard]] std::shared_future<base::TimePoint> mark() {
    auto promise = std::make_shared<std::promise<base::TimePoint>>();
    put([promise] { promise->set_value(base::Clock::now()); });
    return promise->get_future().share();
  }
  void wait_for(std::shared_future<base::TimePoint> mark) {
    put([mark = std::move(mark)] { mark.wait(); });
  }

 private:
  void run() {
    while (true) {
      std::function<void()> work;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return !work_.empty(); });
        work = std::move(work_.front());
        work_.pop_front();
      }
      if (!work) return;
      work();
    }
  }
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> work_;
  std::thread thread_;
};

class ThreadSideStream final : public base::SideStream {
 public:
  ThreadSideStream(WorkQueue& engine, std::string device, Gate& queries)
      : engine_(engine), device_(std::move(device)), queries_(queries) {}
  [[nodiscard]] std::string device() const override { return device_; }
  [[nodiscard]] void* native() const override { return const_cast<WorkQueue*>(&queue_); }
  void enter() const override {}
  void follow_engine() override { queue_.wait_for(engine_.mark()); }
  void engine_follows(int mark) override { engine_.wait_for(at(mark)); }
  void tree_sum(float* first, int parts, std::size_t stride, std::size_t count, float* dst) override {
    queue_.put([=] {
      std::vector<const float*> arrays;
      for (int part = 0; part < parts; ++part)
        arrays.push_back(first + static_cast<std::size_t>(part) * stride);
      base::tree_sum<float>(arrays, dst, count);
    });
  }
  [[nodiscard]] int make_mark() override {
    std::promise<base::TimePoint> done;
    done.set_value({});
    marks_.push_back(done.get_future().share());
    return static_cast<int>(marks_.size()) - 1;
  }
  void set(int mark) override { marks_[static_cast<std::size_t>(mark)] = queue_.mark(); }
  [[nodiscard]] bool is_done(int mark) const override {
    queries_.pass();
    return at(mark).wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  void wait(int mark) override { at(mark).wait(); }
  [[nodiscard]] base::TimePoint done_at(int mark) override { return at(mark).get(); }

 private:
  [[nodiscard]] const std::shared_future<base::TimePoint>& at(int mark) const {
    return marks_[static_cast<std::size_t>(mark)];
  }
  WorkQueue& engine_;
  const std::string device_;
  Gate& queries_;
  std::vector<std::shared_future<base::TimePoint>> marks_;
  WorkQueue queue_;  ///< last: it runs what it was given before the rest is gone
};

/// Threads   one. Keeps all memory until it ends: streams may still touch it when nobody owns it any more.
class ThreadDevice final : public base::Memory {
 public:
  explicit ThreadDevice(std::string device) : device_(std::move(device)) {}
  [[nodiscard]] std::string name() const override { return device_; }
  [[nodiscard]] bool is_host() const override { return false; }
  [[nodiscard]] base::OwnedArray allocate(std::size_t size) const override {
    // One more, so that an empty array too has a place of its own.
    blocks_.push_back(
        std::shared_ptr<float>(new float[size + 1](), [](const float* gone) { delete[] gone; }));
    return {.data = blocks_.back(), .size = size, .memory = this};
  }
  void fill(base::Array dst, float value) const override {
    queue_.put([=] { std::fill_n(dst.data, dst.size, value); });
  }
  void copy(base::Array src, base::Array dst) const override {
    queue_.put([=] { std::copy_n(src.data, src.size, dst.data); });
  }
  void add(base::Array left, base::Array right, base::Array dst) const override {
    queue_.put([=] {
      for (std::size_t i = 0; i < dst.size; ++i) dst.data[i] = left.data[i] + right.data[i];
    });
  }
  void mix(base::Array src, double keep, base::Array dst) const override {
    queue_.put([=] {
      for (std::size_t i = 0; i < dst.size; ++i)
        dst.data[i] = static_cast<float>(keep) * dst.data[i] + static_cast<float>(1 - keep) * src.data[i];
    });
  }
  void read(base::Array src, std::span<float> dst) const override {
    queue_.put([=] { std::copy_n(src.data, src.size, dst.data()); });
    queue_.mark().wait();
  }
  void write(std::span<const float> src, base::Array dst) const override {
    queue_.put(
        [dst, values = std::vector<float>(src.begin(), src.end())] { std::ranges::copy(values, dst.data); });
  }
  /// Puts work of the engine's on its stream.
  void put(std::function<void()> work) const { queue_.put(std::move(work)); }
  [[nodiscard]] std::unique_ptr<base::SideStream> make_side_stream() const override {
    return std::make_unique<ThreadSideStream>(queue_, device_, *queries_);
  }
  /// What every query of a side stream begins with. Whoever opens it keeps it, since the device may be gone
  /// before that returns.
  [[nodiscard]] std::shared_ptr<Gate> queries() const { return queries_; }

 private:
  const std::string device_;
  const std::shared_ptr<Gate> queries_ = std::make_shared<Gate>();
  mutable std::vector<std::shared_ptr<float>> blocks_;
  mutable WorkQueue queue_;  ///< last: it runs what it was given before the memory is gone
};

}  // namespace paceline::comm
