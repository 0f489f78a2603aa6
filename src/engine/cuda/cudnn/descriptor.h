#pragma once

/// Descriptor wraps a descriptor of cuDNN's backend interface: an object with typed attributes that is usable
/// once finalised.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cuda/api/cudnn.h"

namespace paceline::engine::cuda::cudnn {

/// The functions to call, and the problem that errors name.
struct CallSite {
  const CudnnApi* api = nullptr;
  std::string problem;
};

/// Owns one descriptor. Setters return the descriptor itself, so that they can be chained.
///
/// Errors   every call except the destructor: Error(device) with call, type of descriptor, attribute, problem
///          and cuDNN's text
class Descriptor {
 public:
  Descriptor(CallSite site, DescriptorType type);
  ~Descriptor() { destroy(); }
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] RawDescriptor raw() const { return raw_; }
  [[nodiscard]] const CallSite& site() const { return site_; }

  Descriptor& set(Attribute attribute, std::span<const std::int64_t> values);
  Descriptor& set(Attribute attribute, std::int64_t value) { return set(attribute, std::span(&value, 1)); }
  Descriptor& set(Attribute attribute, float value);
  Descriptor& set(Attribute attribute, DataType value);
  Descriptor& set(Attribute attribute, ConvolutionMode value);
  Descriptor& set(Attribute attribute, HeuristicsMode value);
  Descriptor& set(Attribute attribute, const Descriptor& value);
  Descriptor& set(Attribute attribute, Handle value);
  Descriptor& set(Attribute attribute, std::span<void* const> pointers);
  Descriptor& set(Attribute attribute, std::string_view text);
  /// Completes the descriptor. Attributes cannot be set afterwards, and most can be read only afterwards.
  Descriptor& finalize();
  /// The same, but returns the status instead of throwing.
  [[nodiscard]] Status try_finalize();

  [[nodiscard]] std::int64_t integer(Attribute attribute) const;
  /// Reads a list of at most `most` C enumerations.
  [[nodiscard]] std::vector<int> notes(Attribute attribute, AttributeType type, int most) const;
  /// Reads one C enumeration.
  [[nodiscard]] int enumeration(Attribute attribute, AttributeType type) const;
  /// The number of descriptors in an attribute. cuDNN does not say it for every attribute: for an engine's
  /// knobs it is 0.
  [[nodiscard]] std::int64_t count_of(Attribute attribute) const;
  /// Reads the first `most` descriptors of an attribute, or all if there are fewer; each has type `type`.
  [[nodiscard]] std::vector<Descriptor> descriptors(Attribute attribute, DescriptorType type,
                                                    std::int64_t most) const;
  [[nodiscard]] Descriptor descriptor(Attribute attribute, DescriptorType type) const;

 private:
  void destroy() noexcept;
  Descriptor& put(Attribute attribute, AttributeType type, std::int64_t count, const void* elements);
  /// Returns the number of elements that the attribute has.
  std::int64_t read(Attribute attribute, AttributeType type, std::int64_t most, void* elements) const;

  CallSite site_;
  DescriptorType type_;
  RawDescriptor raw_ = nullptr;
};

}  // namespace paceline::engine::cuda::cudnn
