#pragma once

/// How ranks agree: the interface that every communicator (local, mpi, nccl) offers.
///
/// Collectives must be called by all ranks in the same order. Sums are formed in one fixed binary tree over
/// ranks, ((r0 + r1) + (r2 + r3)) + ..., so every rank ends with the same bits and the result does not depend
/// on timing. Of devices' arrays that is so where sums_in_tree() says it. A rank that fails calls abort();
/// then every waiting or later call on any rank throws Error(comm).

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"

namespace paceline::comm {

/// When an asynchronous collective was posted by this rank, and when it was complete for it.
struct Timing {
  base::TimePoint posted{};
  base::TimePoint done{};
};

/// A collective under way. Must be waited for before its memory is touched or freed.
class Pending {
 public:
  virtual ~Pending() = default;
  /// Blocks until complete. Errors: Error(comm) when a peer is lost or the communicator's deadline passes;
  /// contents are then undefined.
  /// Where a device carries the collective itself (nccl) it does not block: what the array's engine is given
  /// from now on begins behind the collective.
  virtual void wait() = 0;
  [[nodiscard]] virtual bool complete() const = 0;
  /// Requires wait(). Blocks until complete where that did not. Errors: as wait()
  [[nodiscard]] virtual Timing timing() const = 0;
};

/// A collective that is complete, begun at `posted` and done now.
[[nodiscard]] std::unique_ptr<Pending> finished(base::TimePoint posted);

/// What was really moved, by this rank, since the communicator was made.
struct Traffic {
  std::int64_t collectives = 0;
  std::int64_t steps = 0;           ///< rounds of messages (or of shared-memory phases)
  std::int64_t bytes_sent = 0;      ///< written for or handed to other ranks
  std::int64_t bytes_received = 0;  ///< read from other ranks
};

enum class Reduce { sum, min, max };

class Communicator {
 public:
  virtual ~Communicator() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  [[nodiscard]] virtual std::string name() const = 0;  ///< "local", "mpi"
  /// What the all-reduce is: for tables and formulas.
  [[nodiscard]] virtual std::string algorithm() const = 0;

  // Asynchronous: they return at once, progress is made by the communicator's own thread. Several may be
  // under way; they complete in the order posted. What is read must stay as it is until then.

  /// Sums `src` [count] over all ranks into every rank's `dst` [count]: `src` itself, or memory apart from
  /// it. Cost     docs/collectives.md; local: (N-1)/N * bytes read from other ranks and as much written to
  /// them
  [[nodiscard]] virtual std::unique_ptr<Pending> all_reduce(std::span<const float> src,
                                                            std::span<float> dst) = 0;
  [[nodiscard]] std::unique_ptr<Pending> all_reduce(std::span<float> values) {
    return all_reduce(values, values);
  }
  /// The same sum, of which each rank gets its part: `dst` [count] is the sum over ranks of elements
  /// [rank * count, (rank + 1) * count) of their `src` [size() * count]. `dst` may be that part of `src`,
  /// else it lies apart.
  [[nodiscard]] virtual std::unique_ptr<Pending> reduce_scatter(std::span<const float> src,
                                                                std::span<float> dst) = 0;

  /// Memory for what is reduced in place again and again (gradients): where other processes can be given a
  /// way into it, nothing is copied on the way. Contents are as Buffer says.
  ///
  /// Collective, of the same size everywhere, while no reduction is under way; what an earlier call gave is
  /// ordinary memory from then on.
  [[nodiscard]] virtual base::Buffer memory(std::size_t bytes) { return base::Buffer(bytes); }

  // The same for arrays wherever they lie. These carry what lies on the host, as all communicators do;
  // host_bounce.h carries devices' arrays.

  /// Memory for what is reduced in place again and again: `size` floats in `memory`. Collective, as memory().
  [[nodiscard]] virtual base::OwnedArray array(std::size_t size, const base::Memory& memory);
  /// Requires: the array's Memory may be used by this thread, now and in Pending::wait().
  [[nodiscard]] virtual std::unique_ptr<Pending> all_reduce(base::Array src, base::Array dst);
  [[nodiscard]] std::unique_ptr<Pending> all_reduce(base::Array values) { return all_reduce(values, values); }
  [[nodiscard]] virtual std::unique_ptr<Pending> reduce_scatter(base::Array src, base::Array dst);
  /// `all` [size() * mine.size] in the order of ranks; `mine` may be this rank's part of it.
  [[nodiscard]] virtual std::unique_ptr<Pending> all_gather(base::Array mine, base::Array all);
  [[nodiscard]] virtual std::unique_ptr<Pending> broadcast(base::Array values, int root);

  /// Whether sums of arrays are formed in the tree's order, wherever they lie.
  [[nodiscard]] virtual bool sums_in_tree() const { return true; }
  /// From now on they are, whatever it costs. Called by all ranks, while no reduction is under way.
  virtual void demand_tree() {}

  // Blocking, for small things (statistics, counts, control).
  virtual void all_reduce(std::span<double> values, Reduce reduce) = 0;
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  /// all [size() * mine.size()], in the order of ranks.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  virtual void barrier() = 0;

  // Blocking, to and from one rank: what one device in the middle would move (train/data_parallel.h). Among
  // the ranks of one process only: Requires a communicator that offers them, which the local one does.

  /// `mine` becomes part rank() of the root's `all` [size() * mine.size()], which the others leave empty. At
  /// the root `mine` may be that part itself.
  virtual void scatter(std::span<const std::byte> all, std::span<std::byte> mine, int root);
  /// The root's `all` [size() * mine.size()], which the others leave empty, becomes everybody's `mine` in the
  /// order of ranks. At the root `mine` may be its part itself.
  virtual void gather(std::span<const std::byte> mine, std::span<std::byte> all, int root);
  /// The root's `values` become the sum over ranks, in the tree's order; the others' stay.
  virtual void reduce(std::span<float> values, int root);

  /// Where this rank is, for others to say if it is lost: "backward" of update `step` (from 1). That it is
  /// still there is a sign too: it does not hang. Costs three stores.
  virtual void at(std::int64_t step, const char* phase) {
    (void)step;
    (void)phase;
  }
  /// Tells every rank that this one has given up, and why; `kind` is what the run ends with.
  virtual void abort(const std::string& reason, base::ErrorKind kind = base::ErrorKind::comm) = 0;
  /// Throws what the communicator has failed with, if it has: for who waits elsewhere. Threads  any
  virtual void check() const {}
  [[nodiscard]] virtual Traffic traffic() const = 0;
};

}  // namespace paceline::comm
