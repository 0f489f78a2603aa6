#include "engine/memory_requests.h"

#include <algorithm>

namespace paceline::engine {

BufferId MemoryRequests::live(std::int64_t bytes, int first_use, int last_use) {
  requests_.push_back({.bytes = whole_lines(bytes),
                       .first_use = std::min(first_use, last_use),
                       .last_use = std::max(first_use, last_use)});
  return {.kind = BufferId::Kind::live, .index = static_cast<int>(requests_.size()) - 1};
}

void MemoryRequests::extend(BufferId buffer, int moment) {
  auto& request = requests_[static_cast<std::size_t>(buffer.index)];
  request.first_use = std::min(request.first_use, moment);
  request.last_use = std::max(request.last_use, moment);
}

std::int64_t MemoryRequests::bytes(BufferId buffer) const {
  const auto index = static_cast<std::size_t>(buffer.index);
  return buffer.kind == BufferId::Kind::live ? requests_[index].bytes : kept_sizes_[index];
}

BufferId MemoryRequests::kept(std::int64_t bytes) {
  kept_offsets_.push_back(kept_bytes_);
  kept_sizes_.push_back(whole_lines(bytes));
  kept_bytes_ += whole_lines(bytes);
  return {.kind = BufferId::Kind::kept, .index = static_cast<int>(kept_offsets_.size()) - 1};
}

void MemoryRequests::scratch(std::int64_t bytes) {
  scratch_bytes_ = std::max(scratch_bytes_, whole_lines(bytes));
}

void MemoryRequests::place() { placement_ = graph::place(requests_); }

std::int64_t MemoryRequests::offset(BufferId buffer) const {
  const auto index = static_cast<std::size_t>(buffer.index);
  return buffer.kind == BufferId::Kind::live ? placement_.offsets[index] : kept_offsets_[index];
}

}  // namespace paceline::engine
