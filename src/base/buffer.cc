#include "base/buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace paceline::base {
namespace {

class HostMemory final : public Memory {
 public:
  [[nodiscard]] std::string name() const override { return "host"; }
  [[nodiscard]] bool is_host() const override { return true; }

  [[nodiscard]] OwnedArray allocate(std::size_t size) const override {
    Buffer buffer(size * sizeof(float));
    buffer.fill_zero();
    return host_array(std::move(buffer));
  }

  void fill(Array dst, float value) const override { std::ranges::fill(dst.host(), value); }
  void copy(Array src, Array dst) const override { read(src, dst.host()); }
  void add(Array left, Array right, Array dst) const override {
    expects(left.size == dst.size && right.size == dst.size, "arrays that are added have one size");
    const float* const a = left.host().data();
    const float* const b = right.host().data();
    float* const sum = dst.host().data();
    for (std::size_t i = 0; i < dst.size; ++i) sum[i] = a[i] + b[i];
  }
  void mix(Array src, double keep, Array dst) const override {
    expects(src.size == dst.size, "arrays that are mixed have one size");
    const float* const from = src.host().data();
    float* const to = dst.host().data();
    const auto kept = static_cast<float>(keep), rest = static_cast<float>(1 - keep);
    for (std::size_t i = 0; i < dst.size; ++i) to[i] = kept * to[i] + rest * from[i];
  }
  void read(Array src, std::span<float> dst) const override {
    expects(src.size == dst.size(), "an array is copied to one of its size");
    std::ranges::copy(src.host(), dst.begin());
  }
  void write(std::span<const float> src, Array dst) const override {
    expects(src.size() == dst.size, "an array is copied to one of its size");
    std::ranges::copy(src, dst.host().begin());
  }
};

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

Array Array::subarray(std::size_t begin, std::size_t count) const {
  expects(begin <= size && count <= size - begin, "a part of an array lies inside it");
  return {data + begin, count, memory};
}

std::span<float> Array::host() const {
  expects(size == 0 || (memory != nullptr && memory->is_host()),
          "an array is a span where it lies on the host");
  return {data, size};
}

const Memory& host_memory() {
  static const HostMemory memory;
  return memory;
}

Array host_array(std::span<float> values) { return {values.data(), values.size(), &host_memory()}; }

OwnedArray host_array(Buffer buffer) {
  const auto owner = std::make_shared<Buffer>(std::move(buffer));
  const auto values = owner->as<float>();
  return {std::shared_ptr<float>(owner, values.data()), values.size(), &host_memory()};
}

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
