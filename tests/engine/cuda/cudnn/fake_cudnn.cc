#include "engine/cuda/cudnn/fake_cudnn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace paceline::engine::cuda::cudnn::test {
namespace {

constexpr Status kBadParam = 2000, kNotFinalized = 2004;
FakeCudnn* fake = nullptr;  // the functions of the table have no argument of ours

FakeDescriptor& at(RawDescriptor raw) { return *static_cast<FakeDescriptor*>(raw); }

template <typename T>
std::vector<T> values(const FakeDescriptor& descriptor, Attribute attribute) {
  const auto found = descriptor.attributes.find(attribute);
  if (found == descriptor.attributes.end()) return {};
  std::vector<T> all(found->second.size() / sizeof(T));
  std::memcpy(all.data(), found->second.data(), all.size() * sizeof(T));
  return all;
}

template <typename T>
Status give(const std::vector<T>& all, std::int64_t most, std::int64_t* count, void* elements) {
  *count = static_cast<std::int64_t>(all.size());
  if (elements != nullptr)
    std::memcpy(elements, all.data(), sizeof(T) * static_cast<std::size_t>(std::min(*count, most)));
  return kSuccess;
}

std::size_t bytes_of(AttributeType type) {
  switch (type) {
    case AttributeType::handle:
    case AttributeType::integer64:
    case AttributeType::pointer:
    case AttributeType::descriptor:
      return 8;
    case AttributeType::character:
      return 1;
    default:
      return 4;
  }
}

const std::vector<FakeEngine>& proposed(const FakeDescriptor& heuristics) {
  return fake->engines[values<HeuristicsMode>(heuristics, Attribute::heuristics_mode).at(0)];
}

Status create(Handle* handle) {
  if (const Status failed = fake->enter("cudnnCreate")) return failed;
  ++fake->handles;
  *handle = reinterpret_cast<Handle>(fake);
  return kSuccess;
}

Status destroy(Handle) {
  --fake->handles;
  return fake->enter("cudnnDestroy");
}

Status set_stream(Handle, void* stream) {
  if (const Status failed = fake->enter("cudnnSetStream")) return failed;
  fake->stream = stream;
  return kSuccess;
}

Status create_descriptor(DescriptorType type, RawDescriptor* raw) {
  if (const Status failed = fake->enter("cudnnBackendCreateDescriptor")) return failed;
  ++fake->created;
  *raw = new FakeDescriptor{.type = type};
  return kSuccess;
}

Status destroy_descriptor(RawDescriptor raw) {
  ++fake->destroyed;
  delete &at(raw);
  return fake->enter("cudnnBackendDestroyDescriptor");
}

Status set_attribute(RawDescriptor raw, Attribute attribute, AttributeType type, std::int64_t count,
                     const void* elements) {
  if (const Status failed = fake->enter("cudnnBackendSetAttribute")) return failed;
  if (at(raw).finalized) return kBadParam;
  const char* const begin = static_cast<const char*>(elements);
  at(raw).attributes[attribute].assign(begin, begin + static_cast<std::size_t>(count) * bytes_of(type));
  if (type == AttributeType::descriptor) {
    const FakeDescriptor& value = at(values<RawDescriptor>(at(raw), attribute).at(0));
    if (!value.finalized && value.type != DescriptorType::engine_config) return kNotFinalized;
    if (attribute == Attribute::plan_engine_config) at(raw).engine = value.engine;
  }
  return kSuccess;
}

Status get_attribute(RawDescriptor raw, Attribute attribute, AttributeType, std::int64_t most,
                     std::int64_t* count, void* elements) {
  if (const Status failed = fake->enter("cudnnBackendGetAttribute")) return failed;
  const FakeDescriptor& descriptor = at(raw);
  switch (attribute) {
    case Attribute::heuristics_results: {
      if (!descriptor.finalized) return kNotFinalized;
      const auto& engines = proposed(descriptor);
      *count = static_cast<std::int64_t>(engines.size());
      if (elements != nullptr)
        for (std::size_t i = 0; i < engines.size() && i < static_cast<std::size_t>(most); ++i)
          at(static_cast<RawDescriptor*>(elements)[i]).engine = &engines[i];
      return kSuccess;
    }
    case Attribute::engine_config_engine:
      at(*static_cast<RawDescriptor*>(elements)).engine = descriptor.engine;
      *count = 1;
      return kSuccess;
    case Attribute::engine_config_knob_choices:  // as cuDNN: the count is only said with the choices
      *count = elements == nullptr ? 0 : 1;
      return kSuccess;
    case Attribute::knob_choice_type:
      return give(std::vector<int>{14}, most, count, elements);
    case Attribute::knob_choice_value:
      return give(std::vector<std::int64_t>{1}, most, count, elements);
    case Attribute::engine_global_index:
      return give(std::vector<std::int64_t>{descriptor.engine->index}, most, count, elements);
    case Attribute::engine_numerical_notes:
      return give(descriptor.engine->numerical_notes, most, count, elements);
    case Attribute::engine_behavior_notes:
      return give(descriptor.engine->behavior_notes, most, count, elements);
    case Attribute::plan_workspace_size:
      if (!descriptor.finalized) return kNotFinalized;
      return give(std::vector<std::int64_t>{descriptor.engine->workspace}, most, count, elements);
    default:
      return kBadParam;
  }
}

Status finalize(RawDescriptor raw) {
  if (const Status failed = fake->enter("cudnnBackendFinalize")) return failed;
  FakeDescriptor& descriptor = at(raw);
  if (descriptor.finalized) return kBadParam;
  if (descriptor.type == DescriptorType::execution_plan && descriptor.engine->finalize != kSuccess)
    return descriptor.engine->finalize;
  descriptor.finalized = true;
  fake->finalized.push_back(descriptor);
  return kSuccess;
}

Status execute(Handle, RawDescriptor plan, RawDescriptor arguments) {
  if (const Status failed = fake->enter("cudnnBackendExecute")) return failed;
  if (!at(plan).finalized || !at(arguments).finalized) return kNotFinalized;
  if (at(plan).engine->execute != kSuccess) return at(plan).engine->execute;
  fake->executions.push_back(
      {.engine = at(plan).engine->index,
       .ids = values<std::int64_t>(at(arguments), Attribute::variant_pack_unique_ids),
       .pointers = values<void*>(at(arguments), Attribute::variant_pack_data_pointers),
       .workspace = values<void*>(at(arguments), Attribute::variant_pack_workspace).at(0),
       .stream = fake->stream});
  return kSuccess;
}

const char* error_string(Status status) {
  return status == kExecutionFailed ? "CUDNN_STATUS_EXECUTION_FAILED" : "CUDNN_STATUS_OTHER";
}

void last_error(char* text, std::size_t size) {
  std::strncpy(text, "the fake was told to fail\nand says so in two lines", size);
}

}  // namespace

FakeCudnn::FakeCudnn() {
  EXPECT_EQ(fake, nullptr) << "there is one at a time";
  fake = this;
  api_ = {.cudnnGetVersion = [] { return std::size_t{91900}; },
          .cudnnGetErrorString = error_string,
          .cudnnGetLastErrorString = last_error,
          .cudnnCreate = create,
          .cudnnDestroy = destroy,
          .cudnnSetStream = set_stream,
          .cudnnBackendCreateDescriptor = create_descriptor,
          .cudnnBackendDestroyDescriptor = destroy_descriptor,
          .cudnnBackendSetAttribute = set_attribute,
          .cudnnBackendGetAttribute = get_attribute,
          .cudnnBackendFinalize = finalize,
          .cudnnBackendExecute = execute};
}

FakeCudnn::~FakeCudnn() { fake = nullptr; }

Status FakeCudnn::enter(const char* name) {
  if (calls++ != failing_call) return kSuccess;
  failed_call = name;
  return kExecutionFailed;
}

}  // namespace paceline::engine::cuda::cudnn::test
