#include "engine/cuda/cudnn/descriptor.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"

namespace paceline::engine::cuda::cudnn {
namespace {

const char* name_of_descriptor(DescriptorType type) {
  using enum DescriptorType;
  constexpr std::pair<DescriptorType, const char*> kNames[] = {
      {convolution, "a convolution's geometry"},    {engine, "an engine"},
      {engine_config, "an engine's configuration"}, {heuristics, "the heuristics"},
      {execution_plan, "an execution plan"},        {knob_choice, "an engine's knob"},
      {convolution_forward, "a convolution"},       {convolution_backward_weights, "a convolution"},
      {convolution_backward_data, "a convolution"}, {operation_graph, "an operation graph"},
      {variant_pack, "a plan's arguments"},         {tensor, "a tensor"}};
  for (const auto& [known, name] : kNames)
    if (known == type) return name;
  return "device properties";
}

}  // namespace

Descriptor::Descriptor(CallSite site, DescriptorType type) : site_(std::move(site)), type_(type) {
  check(*site_.api, site_.api->cudnnBackendCreateDescriptor(type_, &raw_),
        fmt::format("cudnnBackendCreateDescriptor of {}", name_of_descriptor(type_)), site_.problem);
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : site_(std::move(other.site_)), type_(other.type_), raw_(std::exchange(other.raw_, nullptr)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    destroy();
    site_ = std::move(other.site_);
    type_ = other.type_;
    raw_ = std::exchange(other.raw_, nullptr);
  }
  return *this;
}

void Descriptor::destroy() noexcept {
  // A failure is ignored, since nobody could handle it.
  if (raw_ != nullptr) static_cast<void>(site_.api->cudnnBackendDestroyDescriptor(raw_));
  raw_ = nullptr;
}

Descriptor& Descriptor::put(Attribute attribute, AttributeType type, std::int64_t count,
                            const void* elements) {
  const Status status = site_.api->cudnnBackendSetAttribute(raw_, attribute, type, count, elements);
  check(*site_.api, status,
        fmt::format("cudnnBackendSetAttribute of {} (attribute {})", name_of_descriptor(type_),
                    static_cast<int>(attribute)),
        site_.problem);
  return *this;
}

std::int64_t Descriptor::read(Attribute attribute, AttributeType type, std::int64_t most,
                              void* elements) const {
  std::int64_t count = 0;
  const Status status = site_.api->cudnnBackendGetAttribute(raw_, attribute, type, most, &count, elements);
  check(*site_.api, status,
        fmt::format("cudnnBackendGetAttribute of {} (attribute {})", name_of_descriptor(type_),
                    static_cast<int>(attribute)),
        site_.problem);
  return count;
}

Descriptor& Descriptor::set(Attribute attribute, std::span<const std::int64_t> values) {
  return put(attribute, AttributeType::integer64, static_cast<std::int64_t>(values.size()), values.data());
}
Descriptor& Descriptor::set(Attribute attribute, float value) {
  return put(attribute, AttributeType::real32, 1, &value);
}
Descriptor& Descriptor::set(Attribute attribute, DataType value) {
  return put(attribute, AttributeType::data_type, 1, &value);
}
Descriptor& Descriptor::set(Attribute attribute, ConvolutionMode value) {
  return put(attribute, AttributeType::convolution_mode, 1, &value);
}
Descriptor& Descriptor::set(Attribute attribute, HeuristicsMode value) {
  return put(attribute, AttributeType::heuristics_mode, 1, &value);
}
Descriptor& Descriptor::set(Attribute attribute, const Descriptor& value) {
  return put(attribute, AttributeType::descriptor, 1, &value.raw_);
}
Descriptor& Descriptor::set(Attribute attribute, Handle value) {
  return put(attribute, AttributeType::handle, 1, &value);
}
Descriptor& Descriptor::set(Attribute attribute, std::span<void* const> pointers) {
  return put(attribute, AttributeType::pointer, static_cast<std::int64_t>(pointers.size()), pointers.data());
}
Descriptor& Descriptor::set(Attribute attribute, std::string_view text) {
  return put(attribute, AttributeType::character, static_cast<std::int64_t>(text.size()), text.data());
}

Status Descriptor::try_finalize() { return site_.api->cudnnBackendFinalize(raw_); }

Descriptor& Descriptor::finalize() {
  check(*site_.api, try_finalize(), fmt::format("cudnnBackendFinalize of {}", name_of_descriptor(type_)),
        site_.problem);
  return *this;
}

std::int64_t Descriptor::integer(Attribute attribute) const {
  std::int64_t value = 0;
  read(attribute, AttributeType::integer64, 1, &value);
  return value;
}

std::vector<int> Descriptor::notes(Attribute attribute, AttributeType type, int most) const {
  std::vector<int> values(static_cast<std::size_t>(most));
  const std::int64_t count = read(attribute, type, most, values.data());
  // A later cuDNN may have more notes than `most`; the first `most` were read.
  values.resize(static_cast<std::size_t>(std::min<std::int64_t>(count, most)));
  return values;
}

int Descriptor::enumeration(Attribute attribute, AttributeType type) const {
  int value = 0;
  read(attribute, type, 1, &value);
  return value;
}

std::int64_t Descriptor::count_of(Attribute attribute) const {
  return read(attribute, AttributeType::descriptor, 0, nullptr);
}

std::vector<Descriptor> Descriptor::descriptors(Attribute attribute, DescriptorType type,
                                                std::int64_t most) const {
  std::vector<Descriptor> values;
  if (most == 0) return values;
  std::vector<RawDescriptor> raws;
  for (std::int64_t i = 0; i < most; ++i) {
    values.emplace_back(site_, type);
    raws.push_back(values.back().raw_);
  }
  const std::int64_t filled = read(attribute, AttributeType::descriptor, most, raws.data());
  values.erase(values.begin() + std::min(filled, most), values.end());
  return values;
}

Descriptor Descriptor::descriptor(Attribute attribute, DescriptorType type) const {
  Descriptor value(site_, type);
  RawDescriptor raw = value.raw_;
  const std::int64_t count = read(attribute, AttributeType::descriptor, 1, &raw);
  base::expects(count == 1, "an attribute that is one descriptor has one");
  return value;
}

}  // namespace paceline::engine::cuda::cudnn
