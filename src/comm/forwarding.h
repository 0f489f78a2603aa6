#pragma once

/// Base class of communicators that wrap another one: forwards every call; subclasses override some.

#include <memory>
#include <string>
#include <utility>

#include "comm/communicator.h"

namespace paceline::comm {

class Forwarding : public Communicator {
 public:
  explicit Forwarding(std::unique_ptr<Communicator> inner) : inner_(std::move(inner)) {}
  [[nodiscard]] int rank() const override { return inner_->rank(); }
  [[nodiscard]] int size() const override { return inner_->size(); }
  [[nodiscard]] std::string name() const override { return inner_->name(); }
  [[nodiscard]] std::string algorithm() const override { return inner_->algorithm(); }

  std::unique_ptr<Pending> all_reduce(std::span<const float> src, std::span<float> dst) override {
    return inner_->all_reduce(src, dst);
  }
  std::unique_ptr<Pending> reduce_scatter(std::span<const float> src, std::span<float> dst) override {
    return inner_->reduce_scatter(src, dst);
  }
  base::Buffer memory(std::size_t bytes) override { return inner_->memory(bytes); }

  base::OwnedArray array(std::size_t size, const base::Memory& memory) override {
    return inner_->array(size, memory);
  }
  std::unique_ptr<Pending> all_reduce(base::Array src, base::Array dst) override {
    return inner_->all_reduce(src, dst);
  }
  std::unique_ptr<Pending> reduce_scatter(base::Array src, base::Array dst) override {
    return inner_->reduce_scatter(src, dst);
  }
  std::unique_ptr<Pending> all_gather(base::Array mine, base::Array all) override {
    return inner_->all_gather(mine, all);
  }
  std::unique_ptr<Pending> broadcast(base::Array values, int root) override {
    return inner_->broadcast(values, root);
  }
  [[nodiscard]] bool sums_in_tree() const override { return inner_->sums_in_tree(); }
  void demand_tree() override { inner_->demand_tree(); }

  void all_reduce(std::span<double> values, Reduce reduce) override { inner_->all_reduce(values, reduce); }
  void broadcast(std::span<std::byte> bytes, int root) override { inner_->broadcast(bytes, root); }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    inner_->all_gather(mine, all);
  }
  void barrier() override { inner_->barrier(); }
  void scatter(std::span<const std::byte> all, std::span<std::byte> mine, int root) override {
    inner_->scatter(all, mine, root);
  }
  void gather(std::span<const std::byte> mine, std::span<std::byte> all, int root) override {
    inner_->gather(mine, all, root);
  }
  void reduce(std::span<float> values, int root) override { inner_->reduce(values, root); }
  void at(std::int64_t step, const char* phase) override { inner_->at(step, phase); }
  void abort(const std::string& reason, base::ErrorKind kind) override { inner_->abort(reason, kind); }
  void check() const override { inner_->check(); }
  [[nodiscard]] Traffic traffic() const override { return inner_->traffic(); }

 protected:
  [[nodiscard]] Communicator& inner() { return *inner_; }
  [[nodiscard]] const Communicator& inner() const { return *inner_; }

 private:
  const std::unique_ptr<Communicator> inner_;
};

}  // namespace paceline::comm
