#include "base/buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace paceline::base {
namespace {

constexpr std::size_t kAlignment = 64;
/// Blocks of at least this size get their own mapping. The allocator would keep them after they are freed, so
/// a study that measures many configurations would hold the memory of all.
constexpr std::size_t kMapped = std::size_t{1} << 20;
/// Huge pages pay for arrays that span several of them; below that they would only waste memory.
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kHuge = 4 * kHugePage;

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

[[noreturn]] void fail_refused(std::size_t bytes) {
  fail(ErrorKind::device, "memory: the system refused {:.1f} MB; use a smaller batch or free memory",
       static_cast<double>(bytes) / 1e6);
}

}  // namespace

Buffer::Buffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  if (bytes < kMapped) {
    data_ = static_cast<std::byte*>(std::aligned_alloc(kAlignment, round_up(bytes, kAlignment)));
    if (data_ == nullptr) fail_refused(bytes);
    return;
  }
  const bool huge = bytes >= kHuge;
  const std::size_t room =
      huge ? round_up(bytes, kHugePage) + kHugePage : bytes;  // untouched pages cost nothing
  void* const begin =
      ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) fail_refused(bytes);
  mapped_ = {static_cast<std::byte*>(begin), room};
  data_ = mapped_.data();
  if (!huge) return;
  data_ = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(begin), kHugePage));
  ::madvise(data_, round_up(bytes, kHugePage), MADV_HUGEPAGE);
}

std::size_t Buffer::resident_bytes(std::size_t bytes) {
  return bytes < kHuge ? bytes : round_up(bytes, kHugePage);
}

Buffer::~Buffer() {
  if (owner_) return;
  if (mapped_.empty())
    std::free(data_);
  else
    ::munmap(mapped_.data(), mapped_.size());
}

void Buffer::fill_zero() {
  if (bytes_ > 0) std::memset(data_, 0, bytes_);
}

}  // namespace paceline::base
