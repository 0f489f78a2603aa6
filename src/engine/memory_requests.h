#pragma once

/// The buffers of an engine: requested while the graph is compiled, placed once, then looked up.
///
/// There are two kinds of buffers. `live` buffers exist from one moment of a training step to another and
/// share an arena. `kept` buffers exist as long as the engine. In addition one `scratch` area serves one op
/// at a time.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/plan.h"

namespace paceline::engine {

struct BufferId {
  enum class Kind { none, live, kept } kind = Kind::none;
  int index = -1;
  explicit operator bool() const { return kind != Kind::none; }
  bool operator==(const BufferId&) const = default;
};

class MemoryRequests {
 public:
  /// Requests a buffer from moment `first_use` to `last_use` (lifetimes.h).
  BufferId live(std::int64_t bytes, int first_use, int last_use);
  /// Extends the life of a live buffer to include `moment`.
  void extend(BufferId buffer, int moment);
  [[nodiscard]] std::int64_t bytes(BufferId buffer) const;
  /// Requests a buffer for the life of the engine.
  BufferId kept(std::int64_t bytes);
  /// Requests that the scratch area has at least `bytes`.
  void scratch(std::int64_t bytes);

  /// Decides the offset of every buffer. No requests are allowed afterwards.
  void place();

  [[nodiscard]] std::int64_t arena_bytes() const { return placement_.bytes; }
  [[nodiscard]] std::int64_t kept_bytes() const { return kept_bytes_; }
  [[nodiscard]] std::int64_t scratch_bytes() const { return scratch_bytes_; }
  [[nodiscard]] std::int64_t offset(BufferId buffer) const;

 private:
  std::vector<graph::BufferRequest> requests_;
  graph::Placement placement_;
  std::vector<std::int64_t> kept_offsets_;
  std::vector<std::int64_t> kept_sizes_;
  std::int64_t kept_bytes_ = 0;
  std::int64_t scratch_bytes_ = 0;
};

/// The addresses of the areas, once they are allocated.
struct Arena {
  const MemoryRequests* requests = nullptr;
  std::byte* arena = nullptr;
  std::byte* kept = nullptr;
  std::byte* scratch = nullptr;

  /// The address of the buffer; null for no buffer.
  template <typename T = std::byte>
  [[nodiscard]] T* at(BufferId buffer) const {
    if (!buffer) return nullptr;
    std::byte* area = buffer.kind == BufferId::Kind::live ? arena : kept;
    return reinterpret_cast<T*>(area + requests->offset(buffer));
  }
};

/// `bytes` rounded up to whole cache lines.
[[nodiscard]] constexpr std::int64_t whole_lines(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace paceline::engine
