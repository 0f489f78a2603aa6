#include "comm/algorithms/exchange.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/dtype.h"
#include "base/summation_tree.h"
#include "comm/algorithms/direct.h"

// The exchange all-reduce.
//
//   process   0 ... P-1, each with X bytes that only it can reach
//   block     a part of at most kExchangeBlock bytes, so that received data is summed while it is in a cache
//   segment   a block's part of about 1/P; process p owns segment p of every block
//   scatter   every process sends each segment to its owner, which then adds P of them
//   gather    the owner sends the sum to all
//
// A ring adds while it passes data on, ((r1 + r2) + r3) + r0 for one segment and another order for the next,
// so its bits depend on P and on the owners. Here one process has all P parts of a segment and adds them in
// the tree's order: the bits are those of P workers in one process. It sends as many bytes as a ring, 2
// (P-1)/P X, but in 2 rounds instead of 2 (P-1); in return P-1 messages are sent at a time.
//
// Rounds are pipelined: block k is scattered in the same round in which the sums of block k-1 are gathered.
//
// With bf16 the rounds are the same. Data is packed into a buffer before it is sent, and unpacked after the
// round; a process's own part is added unrounded, in float.
//
// A reduce-scatter is the first half alone; its segments are the parts that the caller wants.
//
// A small message costs its latency, not its bytes: all processes send everything to all others in one round,
// and each adds everything in the same order, to the same bits.

namespace paceline::comm {
namespace {

/// The other processes in the order p+1, p+2, ..., so that not all begin with process 0.
std::vector<int> others(int process, int processes) {
  std::vector<int> list;
  for (int step = 1; step < processes; ++step) list.push_back((process + step) % processes);
  return list;
}

void pack(std::span<const float> values, std::span<base::BFloat16> packed) {
  for (std::size_t i = 0; i < values.size(); ++i) packed[i] = base::to_bf16(values[i]);
}
void unpack(std::span<const base::BFloat16> packed, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = base::to_float(packed[i]);
}

/// The parts of all processes in order: `mine` at this process's index, the received ones (in the order of
/// `from`) at theirs.
std::vector<const float*> in_order(const float* mine, std::span<const std::byte> received, std::size_t bytes,
                                   std::span<const int> from, int process) {
  std::vector<const float*> parts(from.size() + 1);
  parts[static_cast<std::size_t>(process)] = mine;
  for (std::size_t i = 0; i < from.size(); ++i)
    parts[static_cast<std::size_t>(from[i])] = reinterpret_cast<const float*>(received.data() + i * bytes);
  return parts;
}

class Exchange {
 public:
  Exchange(std::span<const float> src, std::span<float> dst, int process, int processes, ExchangeRoom& room,
           const Round& round)
      : src_(src),
        dst_(dst),
        process_(process),
        processes_(processes),
        others_(others(process, processes)),
        room_(room),
        round_(round) {}

  Traffic small() {
    const auto in = room_.take(others_.size(), src_.size_bytes());
    for (std::size_t i = 0; i < others_.size(); ++i) {
      send(others_[i], src_);
      receive(others_[i], in.subspan(i * src_.size_bytes(), src_.size_bytes()));
    }
    run();
    const auto parts = in_order(src_.data(), in, src_.size_bytes(), others_, process_);
    base::tree_sum<float>(parts, dst_.data(), dst_.size());
    return moved_;
  }

  Traffic large() {
    const std::size_t blocks = number_of_blocks();
    for (std::size_t k = 0; k <= blocks; ++k) {
      if (k > 0) gather(block(k - 1));
      std::span<std::byte> in;
      if (k < blocks) in = scatter(block(k));
      run();
      if (k < blocks) add_up(block(k), in);
    }
    return moved_;
  }

  Traffic large_as_bf16() {
    const std::size_t blocks = number_of_blocks();
    const auto room = room_.take(1, kBlock * (sizeof(float) + 4 * sizeof(base::BFloat16)));
    const std::span wide(reinterpret_cast<float*>(room.data()), kBlock);
    const std::span halves(reinterpret_cast<base::BFloat16*>(wide.data() + kBlock), 4 * kBlock);
    const auto out = halves.first(kBlock), sum = halves.subspan(kBlock, kBlock),
               sums = halves.subspan(2 * kBlock, kBlock), in = halves.subspan(3 * kBlock);
    for (std::size_t k = 0; k <= blocks; ++k) {
      const Segment before = k > 0 ? block(k - 1) : Segment{};
      const Segment now = k < blocks ? block(k) : Segment{};
      if (k > 0) gather_as_bf16(before, sum, sums);
      const std::size_t mine = k < blocks ? segment(now, process_).count() : 0;
      if (k < blocks) {
        pack(part(src_, now), out);
        for (std::size_t i = 0; i < others_.size(); ++i) {
          const Segment theirs = segment(now, others_[i]);
          send(others_[i], std::as_bytes(out.subspan(theirs.begin - now.begin, theirs.count())));
          receive(others_[i], std::as_writable_bytes(in.subspan(i * mine, mine)));
        }
      }
      run();
      for (const int other : others_) {
        const Segment theirs = segment(before, other);
        unpack(sums.subspan(theirs.begin - before.begin, theirs.count()), part(dst_, theirs));
      }
      if (k == blocks) break;
      const std::size_t came = mine * others_.size();
      unpack(in.first(came), wide);
      add_up(now, std::as_bytes(wide.first(came)));
    }
    return moved_;
  }

  /// Block k of a reduce-scatter is piece k of every process's part.
  Traffic reduce_scatter() {
    const std::size_t length = std::max(kBlock / static_cast<std::size_t>(processes_), std::size_t{1});
    for (std::size_t begin = 0; begin < dst_.size(); begin += length) {
      const std::size_t count = std::min(length, dst_.size() - begin);
      const auto in = room_.take(others_.size(), count * sizeof(float));
      const auto piece_of = [&](int owner) {
        return src_.subspan(static_cast<std::size_t>(owner) * dst_.size() + begin, count);
      };
      for (std::size_t i = 0; i < others_.size(); ++i) {
        send(others_[i], piece_of(others_[i]));
        receive(others_[i], in.subspan(i * count * sizeof(float), count * sizeof(float)));
      }
      run();
      const auto parts = in_order(piece_of(process_).data(), in, count * sizeof(float), others_, process_);
      base::tree_sum<float>(parts, dst_.data() + begin, count);
    }
    return moved_;
  }

 private:
  static constexpr std::size_t kBlock = kExchangeBlock / sizeof(float);

  [[nodiscard]] std::size_t number_of_blocks() const { return (src_.size() + kBlock - 1) / kBlock; }
  template <typename T>
  [[nodiscard]] static std::span<T> part(std::span<T> values, Segment where) {
    return values.subspan(where.begin, where.count());
  }
  /// Sends this process's sum to all, and rounds it here too; receives the other sums into `sums`, each at
  /// its place in the block.
  void gather_as_bf16(Segment block, std::span<base::BFloat16> sum, std::span<base::BFloat16> sums) {
    const auto mine = part(dst_, segment(block, process_));
    pack(mine, sum);
    unpack(sum.first(mine.size()), mine);
    for (const int other : others_) {
      const Segment theirs = segment(block, other);
      send(other, std::as_bytes(sum.first(mine.size())));
      receive(other, std::as_writable_bytes(sums.subspan(theirs.begin - block.begin, theirs.count())));
    }
  }
  [[nodiscard]] Segment block(std::size_t number) const {
    return {number * kBlock, std::min((number + 1) * kBlock, src_.size())};
  }
  [[nodiscard]] Segment segment(Segment block, int owner) const {
    const Segment inside = direct_segment(block.count(), owner, processes_);
    return {block.begin + inside.begin, block.begin + inside.end};
  }

  std::span<std::byte> scatter(Segment block) {
    const std::size_t mine = segment(block, process_).count() * sizeof(float);
    const auto in = room_.take(others_.size(), mine);
    for (std::size_t i = 0; i < others_.size(); ++i) {
      send(others_[i], part(src_, segment(block, others_[i])));
      receive(others_[i], in.subspan(i * mine, mine));
    }
    return in;
  }
  void add_up(Segment block, std::span<const std::byte> in) const {
    const Segment mine = segment(block, process_);
    const auto parts =
        in_order(src_.data() + mine.begin, in, mine.count() * sizeof(float), others_, process_);
    base::tree_sum<float>(parts, dst_.data() + mine.begin, mine.count());
  }
  void gather(Segment block) {
    for (const int other : others_) {
      send(other, part(dst_, segment(block, process_)));
      receive(other, std::as_writable_bytes(part(dst_, segment(block, other))));
    }
  }

  // Empty messages are left out on both sides alike.
  void send(int to, std::span<const float> part) { send(to, std::as_bytes(part)); }
  void send(int to, std::span<const std::byte> part) {
    if (part.empty()) return;
    sends_.push_back({to, part});
    moved_.bytes_sent += static_cast<std::int64_t>(part.size());
  }
  void receive(int from, std::span<std::byte> place) {
    if (place.empty()) return;
    receives_.push_back({from, place});
    moved_.bytes_received += static_cast<std::int64_t>(place.size());
  }
  void run() {
    round_(sends_, receives_);
    ++moved_.steps;
    sends_.clear();
    receives_.clear();
  }

  std::span<const float> src_;
  std::span<float> dst_;
  int process_, processes_;
  std::vector<int> others_;
  ExchangeRoom& room_;
  const Round& round_;
  std::vector<Send> sends_;
  std::vector<Receive> receives_;
  Traffic moved_;
};

void copy(std::span<const float> src, std::span<float> dst) {
  if (!dst.empty() && src.data() != dst.data()) std::copy_n(src.data(), dst.size(), dst.data());
}

}  // namespace

std::span<std::byte> ExchangeRoom::take(std::size_t count, std::size_t bytes) {
  if (buffer_.bytes() < count * bytes) buffer_ = base::Buffer(count * bytes);
  return buffer_.as<std::byte>().first(count * bytes);
}

Traffic exchange_all_reduce(std::span<const float> src, std::span<float> dst, int process, int processes,
                            ExchangeRoom& room, const Round& round, WireFormat wire_format) {
  if (processes == 1) copy(src, dst);
  if (processes == 1 || src.empty()) return {};
  Exchange exchange(src, dst, process, processes, room, round);
  if (src.size_bytes() <= kExchangeSmall) return exchange.small();
  return wire_format == WireFormat::bf16 ? exchange.large_as_bf16() : exchange.large();
}

Traffic exchange_reduce_scatter(std::span<const float> src, std::span<float> dst, int process, int processes,
                                ExchangeRoom& room, const Round& round) {
  if (processes == 1) copy(src, dst);
  if (processes == 1 || dst.empty()) return {};
  return Exchange(src, dst, process, processes, room, round).reduce_scatter();
}

Traffic exchange_all_gather(std::span<const std::byte> mine, std::span<std::byte> all, int process,
                            int processes, const Round& round) {
  const std::size_t bytes = mine.size();
  std::byte* const own = all.data() + static_cast<std::size_t>(process) * bytes;
  if (bytes > 0 && own != mine.data()) std::memcpy(own, mine.data(), bytes);
  if (bytes == 0 || processes == 1) return {};
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (const int other : others(process, processes)) {
    sends.push_back({other, mine});
    receives.push_back({other, all.subspan(static_cast<std::size_t>(other) * bytes, bytes)});
  }
  round(sends, receives);
  const auto moved = static_cast<std::int64_t>(bytes) * (processes - 1);
  return {.steps = 1, .bytes_sent = moved, .bytes_received = moved};
}

}  // namespace paceline::comm
