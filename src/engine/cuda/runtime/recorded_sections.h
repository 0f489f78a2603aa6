#pragma once

/// RecordedSections implements Runtime::capture() for runtimes without a device: it records a captured
/// section as the list of items that were enqueued on a stream.

#include <functional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/cuda/runtime/stream.h"

namespace paceline::engine::cuda {

/// `Work`: one item of a stream.
template <typename Work>
class RecordedSections {
 public:
  /// Calls `post` and returns what it passes to add() as a section. If `post` throws, nothing is kept, and
  /// the exception passes on.
  [[nodiscard]] CapturedSection record(Stream stream, const std::function<void()>& post) {
    std::vector<Work> section;
    recording_ = &section;
    stream_ = stream;
    try {
      post();
    } catch (...) {
      recording_ = nullptr;
      throw;
    }
    recording_ = nullptr;
    sections_.push_back(std::move(section));
    return {static_cast<int>(sections_.size()) - 1};
  }
  [[nodiscard]] bool is_recording() const { return recording_ != nullptr; }
  /// The stream of the section being recorded.
  [[nodiscard]] Stream stream() const { return stream_; }
  void add(Work work) { recording_->push_back(std::move(work)); }

  [[nodiscard]] int count() const { return static_cast<int>(sections_.size()); }
  [[nodiscard]] const std::vector<Work>& at(CapturedSection section) const {
    base::expects(section.index >= 0 && section.index < count(), "the runtime captured this section");
    return sections_[static_cast<std::size_t>(section.index)];
  }

 private:
  std::vector<std::vector<Work>> sections_;
  std::vector<Work>* recording_ = nullptr;  ///< null: not recording, work goes to its stream
  Stream stream_;
};

}  // namespace paceline::engine::cuda
