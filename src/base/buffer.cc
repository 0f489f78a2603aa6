#include "base/buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace paceline::base {
namespace {
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
}  // namespace

Buffer::Buffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  // Huge pages pay for arrays that span several of them; below that they would only waste memory.
  const bool huge = bytes >= 4 * kHugePage;
  const std::size_t alignment = huge ? kHugePage : kAlignment;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  data_ = static_cast<std::byte*>(std::aligned_alloc(alignment, rounded));
  if (data_ == nullptr)
    fail(ErrorKind::device, "memory: the system refused {:.1f} MB; use a smaller batch or free memory",
         static_cast<double>(bytes) / 1e6);
  if (huge) ::madvise(data_, rounded, MADV_HUGEPAGE);
}

Buffer::~Buffer() { std::free(data_); }

void Buffer::fill_zero() {
  if (bytes_ > 0) std::memset(data_, 0, bytes_);
}

}  // namespace paceline::base
