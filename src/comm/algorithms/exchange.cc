#include "comm/algorithms/exchange.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/dtype.h"
#include "comm/algorithms/direct.h"
#include "comm/tree.h"

// The exchange all-reduce.
//
//   process   0 ... P-1, each with X bytes that only it can reach
//   block     a part of at most kExchangeBlock bytes, so that what comes in is summed while it is in a cache
//   segment   a block's part of about 1/P; process p owns segment p of every block
//   scatter   everybody sends each segment to its owner, who then adds up P of them
//   gather    the owner sends the sum to everybody
//
// A ring adds as it passes on, ((r1 + r2) + r3) + r0 for one segment and another order for the next, so its
// bits depend on P and on who owns what. Here one process has all P parts of a segment at hand and joins them
// in the order of the tree: the bits are those of P workers in one process. The bytes are a ring's,
// 2 (P-1)/P X, sent in 2 rounds where a ring takes 2 (P-1); the price is P-1 messages at a time.
//
// Rounds are pipelined: block k is scattered in the same round in which the sums of block k-1 are gathered.
//
// As bf16 the rounds are the same. What leaves is packed into a room of its own first, what comes in is
// unpacked when the round is over; a process's own part is added up as it is, in float.
//
// A small message costs its latency, not its bytes: everybody sends everything to everybody in one round, and
// everybody adds up all of it, in the same order, to the same bits.

namespace paceline::comm {
namespace {

/// The others in the order p+1, p+2, ...: so that not everybody begins with process 0.
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

/// The parts of all processes in order: `mine` in my place, those received (in the order of `from`) in
/// theirs.
std::vector<const float*> in_order(const float* mine, std::span<const std::byte> received, std::size_t bytes,
                                   std::span<const int> from, int process) {
  std::vector<const float*> parts(from.size() + 1);
  parts[static_cast<std::size_t>(process)] = mine;
  for (std::size_t i = 0; i < from.size(); ++i)
    parts[static_cast<std::size_t>(from[i])] = reinterpret_cast<const float*>(received.data() + i * bytes);
  return parts;
}

class Call {
 public:
  Call(std::span<float> values, int process, int processes, ExchangeRoom& room, const Round& round)
      : values_(values),
        process_(process),
        processes_(processes),
        others_(others(process, processes)),
        room_(room),
        round_(round) {}

  Moved small() {
    const auto in = room_.take(others_.size(), values_.size_bytes());
    for (std::size_t i = 0; i < others_.size(); ++i) {
      send(others_[i], values_);
      receive(others_[i], in.subspan(i * values_.size_bytes(), values_.size_bytes()));
    }
    run();
    const auto parts = in_order(values_.data(), in, values_.size_bytes(), others_, process_);
    tree_sum<float>(parts, values_.data(), values_.size());
    return moved_;
  }

  Moved large() {
    constexpr std::size_t kBlock = kExchangeBlock / sizeof(float);
    const std::size_t blocks = (values_.size() + kBlock - 1) / kBlock;
    for (std::size_t k = 0; k <= blocks; ++k) {
      if (k > 0) gather(block(k - 1, kBlock));
      std::span<std::byte> in;
      if (k < blocks) in = scatter(block(k, kBlock));
      run();
      if (k < blocks) add_up(block(k, kBlock), in);
    }
    return moved_;
  }

  Moved large_as_bf16() {
    constexpr std::size_t kBlock = kExchangeBlock / sizeof(float);
    const std::size_t blocks = (values_.size() + kBlock - 1) / kBlock;
    const auto room = room_.take(1, kBlock * (sizeof(float) + 4 * sizeof(base::BFloat16)));
    const std::span wide(reinterpret_cast<float*>(room.data()), kBlock);
    const std::span halves(reinterpret_cast<base::BFloat16*>(wide.data() + kBlock), 4 * kBlock);
    const auto out = halves.first(kBlock), sum = halves.subspan(kBlock, kBlock),
               sums = halves.subspan(2 * kBlock, kBlock), in = halves.subspan(3 * kBlock);
    for (std::size_t k = 0; k <= blocks; ++k) {
      const auto before = k > 0 ? block(k - 1, kBlock) : std::span<float>();
      const auto now = k < blocks ? block(k, kBlock) : std::span<float>();
      if (k > 0) gather_as_bf16(before, sum, sums);
      const std::size_t mine = k < blocks ? segment(now, process_).size() : 0;
      if (k < blocks) {
        pack(now, out);
        for (std::size_t i = 0; i < others_.size(); ++i) {
          const auto theirs = segment(now, others_[i]);
          send(others_[i], std::as_bytes(out.subspan(place(now, theirs), theirs.size())));
          receive(others_[i], std::as_writable_bytes(in.subspan(i * mine, mine)));
        }
      }
      run();
      for (const int other : others_) {
        const auto theirs = segment(before, other);
        unpack(sums.subspan(place(before, theirs), theirs.size()), theirs);
      }
      if (k == blocks) break;
      const std::size_t came = mine * others_.size();
      unpack(in.first(came), wide);
      add_up(now, std::as_bytes(wide.first(came)));
    }
    return moved_;
  }

 private:
  /// Where `part` begins in `block`.
  [[nodiscard]] static std::size_t place(std::span<float> block, std::span<float> part) {
    return static_cast<std::size_t>(part.data() - block.data());
  }
  /// My sum goes to all, rounded here as well; theirs come into `sums`, each to its place in the block.
  void gather_as_bf16(std::span<float> block, std::span<base::BFloat16> sum, std::span<base::BFloat16> sums) {
    const auto mine = segment(block, process_);
    pack(mine, sum);
    unpack(sum.first(mine.size()), mine);
    for (const int other : others_) {
      const auto theirs = segment(block, other);
      send(other, std::as_bytes(sum.first(mine.size())));
      receive(other, std::as_writable_bytes(sums.subspan(place(block, theirs), theirs.size())));
    }
  }
  [[nodiscard]] std::span<float> block(std::size_t number, std::size_t count) const {
    const std::size_t begin = number * count;
    return values_.subspan(begin, std::min(count, values_.size() - begin));
  }
  [[nodiscard]] std::span<float> segment(std::span<float> block, int owner) const {
    const Segment part = direct_segment(block.size(), owner, processes_);
    return block.subspan(part.begin, part.count());
  }

  std::span<std::byte> scatter(std::span<float> block) {
    const std::size_t mine = segment(block, process_).size_bytes();
    const auto in = room_.take(others_.size(), mine);
    for (std::size_t i = 0; i < others_.size(); ++i) {
      send(others_[i], segment(block, others_[i]));
      receive(others_[i], in.subspan(i * mine, mine));
    }
    return in;
  }
  void add_up(std::span<float> block, std::span<const std::byte> in) const {
    const auto mine = segment(block, process_);
    const auto parts = in_order(mine.data(), in, mine.size_bytes(), others_, process_);
    tree_sum<float>(parts, mine.data(), mine.size());
  }
  void gather(std::span<float> block) {
    for (const int other : others_) {
      send(other, segment(block, process_));
      receive(other, std::as_writable_bytes(segment(block, other)));
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
    ++moved_.rounds;
    sends_.clear();
    receives_.clear();
  }

  std::span<float> values_;
  int process_, processes_;
  std::vector<int> others_;
  ExchangeRoom& room_;
  const Round& round_;
  std::vector<Send> sends_;
  std::vector<Receive> receives_;
  Moved moved_;
};

}  // namespace

std::span<std::byte> ExchangeRoom::take(std::size_t count, std::size_t bytes) {
  if (buffer_.bytes() < count * bytes) buffer_ = base::Buffer(count * bytes);
  return buffer_.as<std::byte>().first(count * bytes);
}

Moved exchange_all_reduce(std::span<float> values, int process, int processes, ExchangeRoom& room,
                          const Round& round, Carried carried) {
  if (processes == 1 || values.empty()) return {};
  Call call(values, process, processes, room, round);
  if (values.size_bytes() <= kExchangeSmall) return call.small();
  return carried == Carried::bf16 ? call.large_as_bf16() : call.large();
}

Moved exchange_all_gather(std::span<const std::byte> mine, std::span<std::byte> all, int process,
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
  return {.rounds = 1, .bytes_sent = moved, .bytes_received = moved};
}

}  // namespace paceline::comm
