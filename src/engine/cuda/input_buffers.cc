#include "engine/cuda/input_buffers.h"

#include <cstring>

#include "base/error.h"
#include "engine/memory_requests.h"

namespace paceline::engine::cuda {

InputBuffers::Offsets InputBuffers::offsets(const graph::Graph& graph, const CompileOptions& options) {
  const std::int64_t sample = options.stored_images > 0 ? static_cast<std::int64_t>(sizeof(base::SampleDraw))
                                                        : 4 * graph.input_shape().elements();
  Offsets offsets;
  offsets.labels = whole_lines(options.batch * sample);
  offsets.numbers = offsets.labels + whole_lines(std::int64_t{4} * options.batch);
  offsets.all = offsets.numbers + whole_lines(static_cast<std::int64_t>(sizeof(StepNumbers)));
  return offsets;
}

std::int64_t InputBuffers::bytes_of_set(const graph::Graph& graph, const CompileOptions& options) {
  return offsets(graph, options).all;
}

InputBuffers::InputBuffers(Runtime& runtime, Stream copies, const graph::Graph& graph,
                           const CompileOptions& options)
    : runtime_(runtime),
      copies_(copies),
      classes_(graph.classes()),
      takes_draws_(options.stored_images > 0),
      offsets_(offsets(graph, options)) {
  for (Set& set : sets_) {
    set.pinned = runtime.allocate_pinned(static_cast<std::size_t>(offsets_.all));
    set.device = runtime.allocate(static_cast<std::size_t>(offsets_.all));
    set.copied = runtime.make_event();
    set.read = runtime.make_event();
  }
}

void InputBuffers::copy(const Set& set, std::int64_t offset, const void* from, std::int64_t bytes) {
  const auto count = static_cast<std::size_t>(bytes);
  std::memcpy(set.pinned + offset, from, count);
  runtime_.copy_to_device(copies_, set.device + offset, set.pinned + offset, count);
}

InputBuffers::Batch InputBuffers::put(const StepInput& input, Stream reader, StepFlags flags,
                                      bool is_first_pass) {
  for (std::size_t n = 0; n < input.labels.size(); ++n)
    if (input.labels[n] < 0 || input.labels[n] >= classes_)
      base::fail(
          base::ErrorKind::data,
          "loss: every label must be in [0, {}), but sample {} of the batch has {}; check the data set "
          "and the model's classes",
          classes_, n, input.labels[n]);
  if (puts_ > 0) runtime_.record(set(puts_ - 1).read, reader);
  const auto number = static_cast<int>(puts_ % kSets);
  const Set& set = sets_[number];
  if (puts_ - read_ >= kSets) {
    runtime_.synchronize(set.read);
    read_ = puts_ - kSets + 1;
  }
  ++puts_;
  const StepNumbers numbers{.gradient_scale = input.gradient_scale,
                            .step = input.step,
                            .first_position = input.first_position,
                            .stop = flags.stop ? 1 : 0,
                            .enough = flags.enough ? 1 : 0,
                            .is_first_pass = is_first_pass ? 1 : 0};
  if (takes_draws_)
    copy(set, 0, input.draws.data(), static_cast<std::int64_t>(input.draws.size_bytes()));
  else
    copy(set, 0, input.images.data(), static_cast<std::int64_t>(input.images.size_bytes()));
  copy(set, offsets_.labels, input.labels.data(), static_cast<std::int64_t>(input.labels.size_bytes()));
  copy(set, offsets_.numbers, &numbers, static_cast<std::int64_t>(sizeof numbers));
  runtime_.record(set.copied, copies_);
  runtime_.wait(reader, set.copied);
  return {.images = takes_draws_ ? nullptr : reinterpret_cast<const float*>(set.device),
          .draws = takes_draws_ ? reinterpret_cast<const base::SampleDraw*>(set.device) : nullptr,
          .labels = reinterpret_cast<const std::int32_t*>(set.device + offsets_.labels),
          .numbers = reinterpret_cast<const StepNumbers*>(set.device + offsets_.numbers),
          .set = number};
}

}  // namespace paceline::engine::cuda
