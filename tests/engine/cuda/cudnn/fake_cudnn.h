#pragma once

/// A cuDNN in memory, whose calls can fail one after the other: descriptors are maps of attributes, the
/// heuristics propose what the test says. It holds each descriptor to cuDNN's order of calls.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/cuda/api/cudnn.h"

namespace paceline::engine::cuda::cudnn::test {

/// An engine that the fake proposes.
struct FakeEngine {
  std::int64_t index = 0;
  std::vector<int> numerical_notes, behavior_notes;
  std::int64_t workspace = 0;
  Status finalize = kSuccess;  ///< what finalising its plan returns
  Status execute = kSuccess;   ///< what executing its plan returns
};

/// What an execution was given.
struct FakeExecution {
  std::int64_t engine = -1;
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;
  void* workspace = nullptr;
  void* stream = nullptr;
};

struct FakeDescriptor {
  DescriptorType type{};
  bool finalized = false;
  std::map<Attribute, std::vector<char>> attributes;
  const FakeEngine* engine = nullptr;  ///< of engines, their configurations and plans
};

/// The state behind the table, of which there is one: functions of C have no other place for it.
class FakeCudnn {
 public:
  FakeCudnn();
  ~FakeCudnn();
  FakeCudnn(const FakeCudnn&) = delete;
  FakeCudnn& operator=(const FakeCudnn&) = delete;

  [[nodiscard]] const CudnnApi& api() const { return api_; }

  // To be set by a test.
  std::map<HeuristicsMode, std::vector<FakeEngine>> engines;
  int failing_call = -1;  ///< the number of the call that fails, from 0 on; -1: none

  // To be read by a test.
  int calls = 0;
  std::string failed_call;  ///< cuDNN's name of it
  int created = 0, destroyed = 0, handles = 0;
  void* stream = nullptr;
  std::vector<FakeExecution> executions;
  /// All descriptors that were finalised, as they were then.
  std::vector<FakeDescriptor> finalized;

  /// Counts a call; the status that it returns when it is its turn to fail.
  Status enter(const char* name);

 private:
  CudnnApi api_;
};

}  // namespace paceline::engine::cuda::cudnn::test
