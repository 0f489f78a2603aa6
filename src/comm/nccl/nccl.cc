#include "comm/nccl/nccl.h"

#include <span>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "comm/nccl/connection.h"

namespace paceline::comm::nccl {
namespace {

using base::Array;

/// The kernel's name for this start of the machine; empty where it gives none.
std::string boot_id() {
  try {
    return base::read_file("/proc/sys/kernel/random/boot_id");
  } catch (const base::Error&) {
    return "";
  }
}

/// What the devices of two ranks have in common so that NCCL refuses them: "share" one; empty: nothing.
std::string_view in_common(const Offer& one, const Offer& other) {
  const bool known = !one.uuid.empty() && !other.uuid.empty();
  if (known && one.uuid == other.uuid) return "share";
  // Bus ids are those of one machine; virtual machines of one name may have the same ones.
  if (one.device != other.device || one.machine != other.machine) return "";
  return known ? "have parts (MIG) of" : "share";
}

class Posted final : public Pending {
 public:
  Posted(std::shared_ptr<Connection> connection, OperationRef operation)
      : connection_(std::move(connection)), operation_(std::move(operation)) {}
  void wait() override { connection_->order(*operation_); }
  [[nodiscard]] bool complete() const override { return connection_->is_done(*operation_); }
  [[nodiscard]] Timing timing() const override { return connection_->timing(*operation_); }

 private:
  const std::shared_ptr<Connection> connection_;
  const OperationRef operation_;
};

class Nccl final : public Forwarding {
 public:
  Nccl(std::unique_ptr<Communicator> inner, Options options)
      : Forwarding(std::move(inner)), options_(std::move(options)) {}

  [[nodiscard]] std::string name() const override { return is_open() ? "nccl" : inner().name(); }
  [[nodiscard]] std::string algorithm() const override {
    if (!is_open()) return inner().algorithm();
    // Times are between marks on the device, set before the call and after it.
    return fmt::format(
        "{} of NCCL {}, calls {}; the host's numbers: {}", tree_ ? "all-gather and tree" : "the choice",
        version_,
        options_.is_blocking ? "that block" : "that do not block: times contain the start of a thread",
        inner().name());
  }

  base::OwnedArray array(std::size_t size, const base::Memory& memory) override {
    if (!memory.is_host() && this->size() > 1 && &memory != memory_) join(memory);
    return is_open() && &memory == memory_ ? memory.allocate(size) : inner().array(size, memory);
  }

  std::unique_ptr<Pending> all_reduce(Array src, Array dst) override {
    base::expects(src.size == dst.size, "src.size == dst.size");
    if (!carries(src, dst)) return inner().all_reduce(src, dst);
    if (tree_) return gather_and_add("all_reduce", src, 0, dst);
    count(2 * (ranks() - 1), 2 * (dst.bytes() / ranks()) * (ranks() - 1));
    return post("all_reduce", dst.size, "ncclAllReduce", [&](Comm comm, void* stream) {
      return api_->ncclAllReduce(src.data, dst.data, dst.size, kFloat32, kSum, comm, stream);
    });
  }
  std::unique_ptr<Pending> reduce_scatter(Array src, Array dst) override {
    base::expects(src.size == dst.size * ranks(), "src.size == size() * dst.size");
    if (!carries(src, dst)) return inner().reduce_scatter(src, dst);
    if (tree_) return gather_and_add("reduce_scatter", src, static_cast<std::size_t>(rank()) * dst.size, dst);
    count(ranks() - 1, dst.bytes() * (ranks() - 1));
    return post("reduce_scatter", dst.size, "ncclReduceScatter", [&](Comm comm, void* stream) {
      return api_->ncclReduceScatter(src.data, dst.data, dst.size, kFloat32, kSum, comm, stream);
    });
  }
  std::unique_ptr<Pending> all_gather(Array mine, Array all) override {
    base::expects(all.size == mine.size * ranks(), "all.size == size() * mine.size");
    if (!carries(mine, all)) return inner().all_gather(mine, all);
    count(ranks() - 1, mine.bytes() * (ranks() - 1));
    return post("all_gather", all.size, "ncclAllGather", [&](Comm comm, void* stream) {
      return api_->ncclAllGather(mine.data, all.data, mine.size, kFloat32, comm, stream);
    });
  }
  std::unique_ptr<Pending> broadcast(Array values, int root) override {
    if (!carries(values, values)) return inner().broadcast(values, root);
    count(1, values.bytes());
    return post("broadcast", values.size, "ncclBroadcast", [&](Comm comm, void* stream) {
      return api_->ncclBroadcast(values.data, values.data, values.size, kFloat32, root, comm, stream);
    });
  }
  [[nodiscard]] bool sums_in_tree() const override { return is_open() ? tree_ : inner().sums_in_tree(); }
  void demand_tree() override {
    tree_ = true;
    inner().demand_tree();
  }
  void reserve(std::size_t floats) override {
    inner().reserve(floats);
    if (is_open() && tree_ && gathered_.size < floats * ranks())
      gathered_ = memory_->allocate(floats * ranks());
  }

  void check() const override {
    if (is_open()) connection_->check();
    inner().check();
  }
  [[nodiscard]] Traffic traffic() const override { return inner().traffic() += traffic_; }

 private:
  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(size()); }
  [[nodiscard]] bool is_open() const { return connection_ != nullptr; }
  [[nodiscard]] bool carries(Array a, Array b) const {
    return is_open() && a.memory == memory_ && b.memory == memory_;
  }

  /// Joins the devices of all ranks, or agrees with them that it is not possible. Collective.
  void join(const base::Memory& memory) {
    connection_.reset();
    gathered_ = {};
    memory_ = &memory;
    auto stream = memory.make_side_stream();
    Offer mine;
    if (stream == nullptr)
      mine.problem = fmt::format("{} is not a GPU", memory.name());
    else
      mine.device = fmt::format("{} of {}", stream->device(), base::host_name());
    if (stream != nullptr) mine.uuid = stream->uuid();
    mine.machine = boot_id();
    try {
      if (stream != nullptr) api_ = &options_.open();
    } catch (const base::Error& error) {
      mine.problem = error.what();
    }
    const auto offers = gather_values(inner(), size(), mine);
    if (const auto problem = why_not_joined(offers); !problem.empty()) {
      if (rank() == 0 && options_.say)
        options_.say("gradients go through the memory of the host, not through NCCL: " + problem);
      return;
    }
    UniqueId id{};
    const Status status = rank() == 0 ? api_->ncclGetUniqueId(&id) : kSuccess;
    if (status != kSuccess)
      base::fail(base::ErrorKind::comm, "nccl: rank 0 of {}: the start failed: {}", size(),
                 describe_error(*api_, nullptr, status, "ncclGetUniqueId"));
    inner().broadcast(std::as_writable_bytes(std::span(&id, 1)), 0);
    int version = 0;
    (void)api_->ncclGetVersion(&version);  // cannot fail, since it was called before
    version_ = version_text(version);
    auto connection = std::make_shared<Connection>(*api_, std::move(stream), inner(), options_.deadline,
                                                   options_.is_blocking, options_.hangs);
    connection->open(id);
    connection_ = std::move(connection);
  }

  template <typename Call>
  std::unique_ptr<Pending> post(const char* name, std::size_t floats, const char* function, const Call& call,
                                const Connection::Finish& finish = {}) {
    return std::make_unique<Posted>(connection_, connection_->post(name, floats, function, call, finish));
  }

  /// dst = the sum over ranks of their src from `begin` on.
  std::unique_ptr<Pending> gather_and_add(const char* name, Array src, std::size_t begin, Array dst) {
    // For a reduce-scatter all parts are gathered too, since other ranks need theirs.
    reserve(src.size);
    float* const all = gathered_.data.get();
    count(ranks() - 1, src.bytes() * (ranks() - 1));
    return post(
        name, dst.size, "ncclAllGather",
        [&](Comm comm, void* stream) {
          return api_->ncclAllGather(src.data, all, src.size, kFloat32, comm, stream);
        },
        [&](base::SideStream& stream) {
          stream.tree_sum(all + begin, static_cast<int>(ranks()), src.size, dst.size, dst.data);
        });
  }

  /// Counts a ring's traffic, since NCCL does not report what it moves.
  void count(std::size_t steps, std::size_t bytes) {
    const auto moved = static_cast<std::int64_t>(bytes);
    traffic_ += {.collectives = 1,
                 .steps = static_cast<std::int64_t>(steps),
                 .bytes_sent = moved,
                 .bytes_received = moved};
  }

  const Options options_;
  const Api* api_ = nullptr;
  std::string version_;
  const base::Memory* memory_ = nullptr;  ///< the memory of the last decision
  base::OwnedArray gathered_;             ///< the parts of all ranks, for the tree
  bool tree_ = false;
  Traffic traffic_;
  std::shared_ptr<Connection> connection_;  ///< null: inner carries everything
};

}  // namespace

std::string why_not_joined(std::span<const Offer> offers) {
  for (std::size_t rank = 0; rank < offers.size(); ++rank)
    if (!offers[rank].problem.empty()) return fmt::format("rank {}: {}", rank, offers[rank].problem);
  for (std::size_t rank = 0; rank < offers.size(); ++rank)
    for (std::size_t other = rank + 1; other < offers.size(); ++other)
      if (const auto what = in_common(offers[rank], offers[other]); !what.empty())
        return fmt::format("ranks {} and {} {} device {}, which NCCL refuses", rank, other, what,
                           offers[rank].device);
  return "";
}

std::vector<std::unique_ptr<Communicator>> around(std::vector<std::unique_ptr<Communicator>> inner,
                                                  const Options& options) {
  for (auto& one : inner) one = std::make_unique<Nccl>(std::move(one), options);
  return inner;
}

}  // namespace paceline::comm::nccl
