#include "comm/algorithms/staged.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

// Collectives through slots.
//
//   process   0 ... P-1, each with X bytes that only it can reach
//   block     a part of the buffer; numbers continue through all collectives
//   segment   a block's part of about 1/P; process p owns segment p of every block
//   slot      a place in shared memory for one block: `given` holds values of a process that others sum,
//             `sums` the sum of its segment. Block n of a process is in slot n mod kSlots
//   signal    for each process and kind of slot, the number of blocks written to it
//
//   give      copy the segments of a block that others own into my slot
//   add up    read my segment from all P slots (my own part from my buffer), add up in the order of the tree,
//             write the sum to my buffer and my other slot
//   take      copy the others' sums to my buffer
//
// This is the exchange (exchange.cc) without the library's two copies of every message: values of other
// processes are summed in place. Slots are small and stay in a cache, and the data of a block that give() has
// read is still there when take() overwrites it. So memory is read once and written once, as in the direct
// all-reduce inside a process.
//
// The three stages of a block are one iteration apart: while block k is given, k-1 is summed and k-2 taken,
// so data that a process waits for had a whole iteration's time to arrive.
//
// Who may overwrite a slot?  `given` of block n, when all have added up block n - kSlots, that is laid their
// sums of it: this is waited for.  `sums` of block n, when all have taken block n - kSlots: they gave block n
// only after that (block n-1 was given before block n-3 was taken, so kSlots >= 4), and add_up() waits until
// they have. Collectives that use one kind of slot alone raise the signal of the other all the same.
//
// Reading a signal that another core has just written takes a large part of a small message's time. A process
// that has given block g has added all blocks up to g - 2, so the value seen while waiting for its block
// usually shows already that a slot is free.
//
// A small message is given as a whole, and every process adds all of it.
//
// Values in memory that all processes can access need slots only to agree on that: each process gives the
// offset of its values, and only if all are equal is the sum computed in place by all at once (direct.cc).

namespace paceline::comm {
namespace {

constexpr std::uint32_t kSlots = 4;
constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kApart = ~std::size_t{0};  ///< offset of values that are not in common memory

std::size_t whole_lines(std::size_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes; }

/// Bytes of one slot for a segment's sum: the longest segment is a line more than its share.
std::size_t sum_bytes(std::size_t block_bytes, int processes) {
  return whole_lines(block_bytes / static_cast<std::size_t>(processes)) + kLineBytes;
}

void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

/// Where `values` begin in `block`, in bytes.
std::size_t place_in(std::span<const std::byte> block, std::span<const float> values) {
  const auto inside = std::as_bytes(values);
  const std::less_equal<const std::byte*> before;  // also valid for pointers into different arrays
  if (!before(block.data(), inside.data()) ||
      !before(inside.data() + inside.size(), block.data() + block.size()))
    return kApart;
  return static_cast<std::size_t>(inside.data() - block.data());
}

/// Prefetches cache lines for writing while other processes still work. Otherwise a small message would wait
/// for the lines.
void fetch_for_writing(std::byte* begin, std::size_t bytes) {
#if defined(__x86_64__)
  for (std::size_t at = 0; at < bytes; at += kLineBytes) asm volatile("prefetchw %0" : : "m"(begin[at]));
#else
  for (std::size_t at = 0; at < bytes; at += kLineBytes) __builtin_prefetch(begin + at, 1);
#endif
}

}  // namespace

std::size_t Staged::room(int processes, std::size_t block_bytes) {
  const auto p = static_cast<std::size_t>(processes);
  return p * (2 * sizeof(Signal) + kSlots * (block_bytes + sum_bytes(block_bytes, processes)));
}

Staged::Staged(std::span<std::byte> room, int process, int processes, std::size_t block_bytes,
               SpinLimits limits)
    : room_(room),
      process_(process),
      processes_(processes),
      block_bytes_(block_bytes),
      limits_(limits),
      parts_(static_cast<std::size_t>(processes)),
      given_(static_cast<std::size_t>(processes)) {
  base::expects(block_bytes % kLineBytes == 0, "block_bytes % 64 == 0");
  base::expects(room.size() >= Staged::room(processes, block_bytes), "the room is large enough");
  for (int step = 1; step < processes; ++step) others_.push_back((process + step) % processes);
}

Signal& Staged::signal(Slot which, int process) const {
  const std::size_t at = 2 * static_cast<std::size_t>(process) + (which == Slot::sums ? 1 : 0);
  return reinterpret_cast<Signal*>(room_.data())[at];
}

std::byte* Staged::slot(Slot which, int process, std::uint32_t number) const {
  const auto p = static_cast<std::size_t>(processes_);
  const std::size_t at = static_cast<std::size_t>(process) * kSlots + number % kSlots;
  std::byte* const given = room_.data() + 2 * p * sizeof(Signal);
  if (which == Slot::given) return given + at * block_bytes_;
  return given + p * kSlots * block_bytes_ + at * sum_bytes(block_bytes_, processes_);
}

bool Staged::wait_for(Slot which, int process, std::uint32_t target) {
  waited_for_ = which;
  waited_until_ = target;
  if (!wait(signal(which, process), target, limits_, *keep_waiting_)) return false;
  if (which == Slot::given) given_[static_cast<std::size_t>(process)] = target;
  return true;
}

bool Staged::wait_for_all(Slot which, std::uint32_t target) {
  return std::all_of(others_.begin(), others_.end(),
                     [&](int other) { return wait_for(which, other, target); });
}

bool Staged::wait_for_free_slot(std::uint32_t number) {
  return std::all_of(others_.begin(), others_.end(), [&](int other) {
    const std::uint32_t seen = given_[static_cast<std::size_t>(other)];
    // Blocks below `seen` were given, those below seen - 2 added up; below number + 1 - kSlots is asked for.
    if (static_cast<std::int32_t>(seen - 2 - (number + 1 - kSlots)) >= 0) return true;
    return wait_for(Slot::sums, other, number + 1 - kSlots);
  });
}

std::vector<int> Staged::missing() const {
  std::vector<int> list;
  for (const int other : others_)
    if (!signal(waited_for_, other).has(waited_until_)) list.push_back(other);
  return list;
}

void Staged::put(Slot which, std::uint32_t number, std::size_t offset, std::span<const std::byte> bytes) {
  copy_bytes(slot(which, process_, number) + offset, bytes.data(), bytes.size());
  moved_.bytes_sent += static_cast<std::int64_t>(bytes.size());
}

void Staged::raise(Slot which, std::uint32_t number) { signal(which, process_).raise(number + 1); }

void Staged::begin(const KeepWaiting& keep_waiting) {
  keep_waiting_ = &keep_waiting;
  moved_ = {};
}

Segment Staged::segment(Segment block, int owner) const {
  const Segment inside = direct_segment(block.count(), owner, processes_);
  return {block.begin + inside.begin, block.begin + inside.end};
}

bool Staged::give(std::span<const float> src, Segment block, std::uint32_t number) {
  if (!wait_for_free_slot(number)) return false;
  for (const int other : others_) {
    const Segment theirs = segment(block, other);
    put(Slot::given, number, (theirs.begin - block.begin) * sizeof(float),
        std::as_bytes(src.subspan(theirs.begin, theirs.count())));
  }
  raise(Slot::given, number);
  return true;
}

bool Staged::add_up(std::span<const float> src, std::span<float> dst, Segment block, std::uint32_t number) {
  const Segment mine = segment(block, process_);
  if (!wait_for_all(Slot::given, number + 1)) return false;
  const std::size_t offset = (mine.begin - block.begin) * sizeof(float);
  parts_[static_cast<std::size_t>(process_)] = src.data() + mine.begin;
  for (const int other : others_)
    parts_[static_cast<std::size_t>(other)] =
        reinterpret_cast<const float*>(slot(Slot::given, other, number) + offset);
  direct_sum(parts_, {0, mine.count()}, dst.data() + mine.begin);
  moved_.bytes_received += static_cast<std::int64_t>(others_.size() * mine.count() * sizeof(float));
  put(Slot::sums, number, 0, std::as_bytes(dst.subspan(mine.begin, mine.count())));
  raise(Slot::sums, number);
  return true;
}

bool Staged::take(std::span<float> dst, Segment block, std::uint32_t number) {
  for (const int other : others_) {
    const Segment theirs = segment(block, other);
    if (!wait_for(Slot::sums, other, number + 1)) return false;
    copy_bytes(dst.data() + theirs.begin, slot(Slot::sums, other, number), theirs.count() * sizeof(float));
    moved_.bytes_received += static_cast<std::int64_t>(theirs.count() * sizeof(float));
  }
  return true;
}

bool Staged::small(std::span<const float> src, std::span<float> dst) {
  const std::uint32_t number = next_++;
  if (!wait_for_free_slot(number)) return false;
  put(Slot::given, number, 0, std::as_bytes(src));
  raise(Slot::given, number);
  if (!wait_for_all(Slot::given, number + 1)) return false;
  for (int p = 0; p < processes_; ++p)
    parts_[static_cast<std::size_t>(p)] =
        p == process_ ? src.data() : reinterpret_cast<const float*>(slot(Slot::given, p, number));
  direct_sum(parts_, {0, src.size()}, dst.data());
  raise(Slot::sums, number);
  fetch_for_writing(slot(Slot::given, process_, next_),
                    src.size_bytes());  // free: number + 1 - kSlots was added up
  moved_.steps = 1;
  moved_.bytes_received = static_cast<std::int64_t>(others_.size() * src.size_bytes());
  return true;
}

bool Staged::all_reduce(std::span<const float> src, std::span<float> dst, const KeepWaiting& keep_waiting,
                        std::span<const SharedMemory> common) {
  begin(keep_waiting);
  if (src.empty()) return true;
  if (src.size_bytes() <= std::min(kExchangeSmall, block_bytes_)) return small(src, dst);
  if (common.empty()) return staged(src, dst);

  const std::uint32_t number = next_++;
  const bool in_place = src.data() == dst.data();
  const std::size_t place =
      in_place ? place_in(common[static_cast<std::size_t>(process_)].bytes(), dst) : kApart;
  if (!wait_for_free_slot(number)) return false;
  copy_bytes(slot(Slot::given, process_, number), &place, sizeof place);
  raise(Slot::given, number);
  if (!wait_for_all(Slot::given, number + 1)) return false;
  moved_.steps = 1;
  const bool everywhere = place != kApart && std::all_of(others_.begin(), others_.end(), [&](int other) {
                            return std::memcmp(slot(Slot::given, other, number), &place, sizeof place) == 0;
                          });
  if (everywhere) reduce_in_place(common, place, dst.size());
  raise(Slot::sums, number);
  if (everywhere) return wait_for_all(Slot::sums, number + 1);
  return staged(src, dst);
}

void Staged::reduce_in_place(std::span<const SharedMemory> common, std::size_t place, std::size_t count) {
  std::vector<float*> values;
  for (const auto& block : common) values.push_back(reinterpret_cast<float*>(block.bytes().data() + place));
  const Segment mine = direct_segment(count, process_, processes_);
  direct_all_reduce(std::vector<const float*>(values.begin(), values.end()), values, mine);
  ++moved_.steps;
  moved_.bytes_sent = moved_.bytes_received =
      static_cast<std::int64_t>(others_.size() * mine.count() * sizeof(float));
}

bool Staged::staged(std::span<const float> src, std::span<float> dst) {
  const std::size_t length = block_bytes_ / sizeof(float);
  const std::size_t blocks = (src.size() + length - 1) / length;
  const auto block = [&](std::size_t k) {
    return Segment{k * length, std::min((k + 1) * length, src.size())};
  };
  const auto number = [&](std::size_t k) { return next_ + static_cast<std::uint32_t>(k); };
  for (std::size_t k = 0; k < blocks + 2; ++k) {
    if (k < blocks && !give(src, block(k), number(k))) return false;
    if (k >= 1 && k <= blocks && !add_up(src, dst, block(k - 1), number(k - 1))) return false;
    if (k >= 2 && !take(dst, block(k - 2), number(k - 2))) return false;
  }
  next_ += static_cast<std::uint32_t>(blocks);
  moved_.steps += static_cast<std::int64_t>(blocks) + 2;
  return true;
}

bool Staged::reduce_scatter(std::span<const float> src, std::span<float> dst,
                            const KeepWaiting& keep_waiting) {
  begin(keep_waiting);
  // Block k is piece k of every process's part, each at its owner's place in the slot.
  const std::size_t room = block_bytes_ / static_cast<std::size_t>(processes_) / kLineBytes * kLineBytes;
  const std::size_t length = room / sizeof(float);
  for (std::size_t begin = 0; begin < dst.size(); begin += length, ++next_) {
    const std::size_t count = std::min(length, dst.size() - begin);
    const auto piece_of = [&](int owner) {
      return src.subspan(static_cast<std::size_t>(owner) * dst.size() + begin, count);
    };
    if (!wait_for_free_slot(next_)) return false;
    for (const int other : others_)
      put(Slot::given, next_, static_cast<std::size_t>(other) * room, std::as_bytes(piece_of(other)));
    raise(Slot::given, next_);
    if (!wait_for_all(Slot::given, next_ + 1)) return false;
    for (int p = 0; p < processes_; ++p)
      parts_[static_cast<std::size_t>(p)] =
          p == process_ ? piece_of(p).data()
                        : reinterpret_cast<const float*>(slot(Slot::given, p, next_) +
                                                         static_cast<std::size_t>(process_) * room);
    direct_sum(parts_, {0, count}, dst.data() + begin);
    raise(Slot::sums, next_);
    moved_.bytes_received += static_cast<std::int64_t>(others_.size() * count * sizeof(float));
    ++moved_.steps;
  }
  return true;
}

bool Staged::all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                        const KeepWaiting& keep_waiting) {
  begin(keep_waiting);
  const auto place = [&](int process, std::size_t begin) {
    return all.data() + static_cast<std::size_t>(process) * mine.size() + begin;
  };
  for (std::size_t begin = 0; begin < mine.size(); begin += block_bytes_, ++next_) {
    const std::size_t bytes = std::min(block_bytes_, mine.size() - begin);
    if (!wait_for_free_slot(next_)) return false;
    put(Slot::given, next_, 0, mine.subspan(begin, bytes));
    raise(Slot::given, next_);
    copy_bytes(place(process_, begin), mine.data() + begin, bytes);
    for (const int other : others_) {
      if (!wait_for(Slot::given, other, next_ + 1)) return false;
      copy_bytes(place(other, begin), slot(Slot::given, other, next_), bytes);
      moved_.bytes_received += static_cast<std::int64_t>(bytes);
    }
    raise(Slot::sums, next_);
    ++moved_.steps;
  }
  return true;
}

bool Staged::broadcast(std::span<std::byte> bytes, int root, const KeepWaiting& keep_waiting) {
  begin(keep_waiting);
  for (std::size_t begin = 0; begin < bytes.size(); begin += block_bytes_, ++next_) {
    const auto piece = bytes.subspan(begin, std::min(block_bytes_, bytes.size() - begin));
    if (process_ == root) {
      if (!wait_for_free_slot(next_)) return false;
      put(Slot::given, next_, 0, piece);
      raise(Slot::given, next_);
    } else {
      raise(Slot::given, next_);
      if (!wait_for(Slot::given, root, next_ + 1)) return false;
      copy_bytes(piece.data(), slot(Slot::given, root, next_), piece.size());
      moved_.bytes_received += static_cast<std::int64_t>(piece.size());
    }
    raise(Slot::sums, next_);
    ++moved_.steps;
  }
  return true;
}

bool Staged::barrier(const KeepWaiting& keep_waiting) {
  begin(keep_waiting);
  const std::uint32_t number = next_++;
  raise(Slot::given, number);
  if (!wait_for_all(Slot::given, number + 1)) return false;
  raise(Slot::sums, number);
  moved_.steps = 1;
  return true;
}

}  // namespace paceline::comm
