#pragma once

/// The interface of all communicators (threads, processes over MPI or gloo, NCCL): collectives over ranks.
///
/// All ranks must call collectives in the same order. Sums are formed in one fixed binary tree over ranks,
/// ((r0 + r1) + (r2 + r3)) + ..., so every rank ends with the same bits, and timing does not change them. For
/// devices' arrays this holds where sums_in_tree() is true. A rank that fails calls abort(); then every
/// waiting or later call on any rank throws Error(comm).

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/archive.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"

namespace paceline::comm {

/// When this rank posted an asynchronous collective, and when it was complete for this rank.
struct Timing {
  base::TimePoint posted{};
  base::TimePoint done{};
};

/// A collective in progress. Call wait() before its memory is touched or freed.
class Pending {
 public:
  virtual ~Pending() = default;
  /// Blocks until complete. Where a device carries out the collective itself (nccl) it does not block: the
  /// engine's later work on the array is ordered after the collective.
  ///
  /// Errors   Error(comm) when a peer is lost or the communicator's deadline passes; contents are then
  ///          undefined
  virtual void wait() = 0;
  [[nodiscard]] virtual bool complete() const = 0;
  /// Blocks until complete, if wait() did not.
  ///
  /// Requires  wait() was called
  /// Errors    as wait()
  [[nodiscard]] virtual Timing timing() const = 0;
};

/// A Pending that is complete.
[[nodiscard]] std::unique_ptr<Pending> finished(base::TimePoint posted,
                                                base::TimePoint done = base::Clock::now());

/// What a rank has moved, since its communicator was made or in one collective; counted, not computed.
struct Traffic {
  std::int64_t collectives = 0;
  std::int64_t steps = 0;           ///< rounds of messages (or of shared-memory phases)
  std::int64_t bytes_sent = 0;      ///< written for or sent to other ranks
  std::int64_t bytes_received = 0;  ///< read from other ranks
  Traffic& operator+=(const Traffic& more) {
    collectives += more.collectives;
    steps += more.steps;
    bytes_sent += more.bytes_sent;
    bytes_received += more.bytes_received;
    return *this;
  }
};

enum class Reduce { sum, min, max };
/// The values of all ranks as one, in the tree's order. At least one value.
[[nodiscard]] double reduced(std::span<const double> values, Reduce reduce);

class Communicator {
 public:
  virtual ~Communicator() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  [[nodiscard]] virtual std::string name() const = 0;  ///< "local", "mpi"
  /// The algorithm of the all-reduce, for tables and formulas.
  [[nodiscard]] virtual std::string algorithm() const = 0;

  // Asynchronous: these return at once; the communicator's own thread does the work. Several may be in
  // progress; they complete in the order posted. Their sources must not change until then.

  /// Sums `src` [count] over all ranks into every rank's `dst` [count], which is `src` or does not overlap
  /// it.
  ///
  /// Cost     docs/collectives.md; local: (N-1)/N * bytes read from other ranks and as much written to them
  [[nodiscard]] virtual std::unique_ptr<Pending> all_reduce(std::span<const float> src,
                                                            std::span<float> dst) = 0;
  [[nodiscard]] std::unique_ptr<Pending> all_reduce(std::span<float> values) {
    return all_reduce(values, values);
  }
  /// The same sum, but each rank gets only its part: `dst` [count] is the sum over ranks of elements
  /// [rank * count, (rank + 1) * count) of their `src` [size() * count]. `dst` is that part of `src` or does
  /// not overlap it.
  [[nodiscard]] virtual std::unique_ptr<Pending> reduce_scatter(std::span<const float> src,
                                                                std::span<float> dst) = 0;

  /// Memory for arrays that are often reduced in place (gradients). If other processes can map it, reductions
  /// copy nothing. Its contents are uninitialised, as a Buffer's.
  ///
  /// A collective call with the same size on every rank, while no reduction is in progress. Memory from an
  /// earlier call stays valid as ordinary memory.
  [[nodiscard]] virtual base::Buffer memory(std::size_t bytes) { return base::Buffer(bytes); }

  // The same for arrays, wherever they lie. These implementations accept arrays on the host; host_staging.h
  // adds devices' arrays.

  /// `size` floats in `memory`, for arrays that are often reduced in place. A collective call, as memory().
  [[nodiscard]] virtual base::OwnedArray array(std::size_t size, const base::Memory& memory);
  /// Requires  this thread may use the array's Memory, now and in Pending::wait()
  [[nodiscard]] virtual std::unique_ptr<Pending> all_reduce(base::Array src, base::Array dst);
  [[nodiscard]] std::unique_ptr<Pending> all_reduce(base::Array values) { return all_reduce(values, values); }
  [[nodiscard]] virtual std::unique_ptr<Pending> reduce_scatter(base::Array src, base::Array dst);
  /// `all` [size() * mine.size] in the order of ranks; `mine` may be this rank's part of it.
  [[nodiscard]] virtual std::unique_ptr<Pending> all_gather(base::Array mine, base::Array all);
  [[nodiscard]] virtual std::unique_ptr<Pending> broadcast(base::Array values, int root);

  /// Whether sums of arrays are formed in the tree's order, on devices too.
  [[nodiscard]] virtual bool sums_in_tree() const { return true; }
  /// Makes sums_in_tree() true from now on, at any cost. All ranks call it, while no reduction is in
  /// progress.
  virtual void demand_tree() {}
  /// Allocates what reductions of arrays of up to `floats` floats need, so that they allocate nothing: on a
  /// device an allocation may wait for the reductions of other ranks. All ranks call it, while no reduction
  /// is in progress.
  virtual void reserve(std::size_t /*floats*/) {}

  // Blocking, for small things (statistics, counts, control).
  virtual void all_reduce(std::span<double> values, Reduce reduce) = 0;
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  /// `all` [size() * mine.size()], in the order of ranks.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  virtual void barrier() = 0;

  // Blocking, to and from one rank, for training with one central device (train/step/data_parallel.h). Only
  // local communicators of one process support them.

  /// `mine` becomes part rank() of the root's `all` [size() * mine.size()]; the other ranks pass an empty
  /// `all`. At the root `mine` may be that part itself.
  virtual void scatter(std::span<const std::byte> all, std::span<std::byte> mine, int root) = 0;
  /// The root's `all` [size() * mine.size()] gets everybody's `mine`, in the order of ranks; the other ranks
  /// pass an empty `all`. At the root `mine` may be its own part.
  virtual void gather(std::span<const std::byte> mine, std::span<std::byte> all, int root) = 0;
  /// The root's `values` become the sum over ranks, in the tree's order; other ranks' values do not change.
  virtual void reduce(std::span<float> values, int root) = 0;

  /// Publishes where this rank is, for errors of other ranks when it is lost: `phase` ("backward") of update
  /// `step` (from 1). Each call also shows that the rank does not hang.
  ///
  /// Cost     three stores
  virtual void at(std::int64_t /*step*/, const char* /*phase*/) {}
  /// Tells every rank that this one has failed, and why; `kind` becomes the exit code of the run.
  virtual void abort(const std::string& reason, base::ErrorKind kind = base::ErrorKind::comm) = 0;
  /// Throws the communicator's failure, if there is one; for threads that wait for something else.
  ///
  /// Threads  any
  virtual void check() const {}
  [[nodiscard]] virtual Traffic traffic() const = 0;
};

/// The values of all `members` of `group` (a Communicator, or a ProcessGroup), in their order; of any type
/// that base/archive.h carries. Collective; the same on every member, but nothing where not `is_wanted`.
///
/// Cost     sends and stores members * the bytes of the longest value, on every member
template <typename T, typename Group>
[[nodiscard]] std::vector<T> gather_values(Group& group, int members, const T& mine, bool is_wanted = true) {
  std::string bytes = base::to_bytes(mine);
  std::uint64_t size = bytes.size();
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(members));
  group.all_gather(std::as_bytes(std::span(&size, 1)), std::as_writable_bytes(std::span(sizes)));
  bytes.resize(*std::ranges::max_element(sizes));
  std::string all(bytes.size() * sizes.size(), '\0');
  if (!all.empty()) group.all_gather(std::as_bytes(std::span(bytes)), std::as_writable_bytes(std::span(all)));
  std::vector<T> values;
  for (std::size_t i = 0; is_wanted && i < sizes.size(); ++i)
    values.push_back(base::from_bytes<T>(std::string_view(all).substr(i * bytes.size(), sizes[i])));
  return values;
}
/// The first member's value, on every member of `group`. Collective.
template <typename T, typename Group>
[[nodiscard]] T value_of_first(Group& group, const T& mine) {
  std::string bytes = base::to_bytes(mine);
  std::uint64_t size = bytes.size();
  group.broadcast(std::as_writable_bytes(std::span(&size, 1)), 0);
  bytes.resize(size);
  group.broadcast(std::as_writable_bytes(std::span(bytes)), 0);
  return base::from_bytes<T>(bytes);
}
/// gather_values(), at rank 0; the other ranks get nothing.
template <typename T>
[[nodiscard]] std::vector<T> gather_at_first(Communicator& ranks, const T& mine) {
  return gather_values(ranks, ranks.size(), mine, ranks.rank() == 0);
}

// Base class of communicators that wrap another one: forwards every call; subclasses override some.

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
  void reserve(std::size_t floats) override { inner_->reserve(floats); }

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
