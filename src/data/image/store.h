#pragma once

/// Storage of a data set's encoded images: files of a folder or members of an archive.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace paceline::data {

/// Threads  all functions from any number at once
class ImageStore {
 public:
  virtual ~ImageStore() = default;
  [[nodiscard]] virtual std::int64_t size() const = 0;
  /// Where image `index` is stored, for messages.
  [[nodiscard]] virtual std::string name(std::int64_t index) const = 0;
  /// The encoded image: in place, or read into `buffer`. Valid as long as `buffer` and the store.
  ///
  /// Errors   Error(data): name and the system's reason
  [[nodiscard]] virtual std::span<const std::uint8_t> bytes(std::int64_t index,
                                                            std::vector<std::uint8_t>& buffer) const = 0;
  /// The length of the encoded image; 0 if it is unknown.
  [[nodiscard]] virtual std::int64_t stored_bytes(std::int64_t index) const {
    std::vector<std::uint8_t> buffer;
    return static_cast<std::int64_t>(bytes(index, buffer).size());
  }
};

}  // namespace paceline::data
