#include "engine/cuda/input_buffers.h"

#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "engine/program.h"

namespace paceline::engine::cuda {

StoredImages::StoredImages(Runtime& runtime, const DeviceMemory& memory, const graph::Graph& graph,
                           std::int64_t count)
    : memory_(memory), shape_(graph.input_shape()), is_there_(static_cast<std::size_t>(count)) {
  if (count == 0) return;
  block_ = runtime.allocate(static_cast<std::size_t>(bytes(graph, count)));
  images_ = block_ + table_bytes(shape_.channels);
}

std::int64_t StoredImages::table_bytes(int channels) {
  return whole_lines(std::int64_t{256} * channels * static_cast<std::int64_t>(sizeof(float)));
}

std::int64_t StoredImages::bytes(const graph::Graph& graph, std::int64_t count) {
  if (count == 0) return 0;
  return table_bytes(graph.input_shape().channels) + count * graph.input_shape().elements();
}

void StoredImages::set_byte_values(std::span<const float> values) {
  base::expects(block_ != nullptr && values.size() == 256 * static_cast<std::size_t>(shape_.channels),
                "the engine keeps images, and there is a value for each byte of each channel");
  memory_.upload(block_, values.data(), values.size_bytes());
  has_values_ = true;
}

void StoredImages::store(std::int64_t first, std::span<const std::uint8_t> pixels) {
  const auto image = static_cast<std::size_t>(shape_.elements());
  const auto count = static_cast<std::int64_t>(pixels.size() / image);
  base::expects(pixels.size() % image == 0 && first >= 0 &&
                    first + count <= static_cast<std::int64_t>(is_there_.size()),
                "whole images are stored, where the engine has room for them");
  memory_.upload(images_ + first * static_cast<std::int64_t>(image), pixels.data(), pixels.size());
  std::fill_n(is_there_.begin() + first, count, true);
}

void StoredImages::blacken(bool is_black) {
  is_black_ = is_black;
  if (!is_black || block_ == nullptr) return;
  const std::int64_t table = table_bytes(shape_.channels), image = shape_.elements();
  const std::vector<std::byte> zeros(static_cast<std::size_t>(std::max(table, image)));
  if (!has_values_) memory_.upload(block_, zeros.data(), static_cast<std::size_t>(table));
  if (!is_there_.front()) memory_.upload(images_, zeros.data(), static_cast<std::size_t>(image));
}

void StoredImages::check(std::span<const base::SampleDraw> draws) const {
  base::expects(has_values_ || is_black_, "the values of bytes are set before images are shown");
  for (const base::SampleDraw& draw : draws) {
    base::expects(draw.index >= 0 && static_cast<std::size_t>(draw.index) < is_there_.size() &&
                      (is_there_[static_cast<std::size_t>(draw.index)] || is_black_),
                  "a draw names an image that was stored");
    base::expects(draw.reflects == 0 ||
                      (std::abs(draw.shift_y) < shape_.height && std::abs(draw.shift_x) < shape_.width),
                  "a draw reflects less than an image");
  }
}

InputBuffers::Offsets InputBuffers::offsets(const graph::Graph& graph, const graph::Layout& layout,
                                            const CompileOptions& options) {
  const std::int64_t sample = options.stored_images > 0 ? static_cast<std::int64_t>(sizeof(base::SampleDraw))
                                                        : 4 * graph.input_shape().elements();
  Offsets offsets;
  offsets.labels = whole_lines(options.batch * sample);
  offsets.second_labels = offsets.labels + whole_lines(std::int64_t{4} * options.batch);
  const std::int64_t second =
      options.has_two_labels ? static_cast<std::int64_t>(sizeof(base::SecondLabel)) : 0;
  offsets.numbers = offsets.second_labels + whole_lines(second * options.batch);
  offsets.update = offsets.numbers + whole_lines(static_cast<std::int64_t>(sizeof(StepNumbers)));
  const std::size_t slots = options.training ? layout.slots.size() : 0;
  offsets.all = offsets.update + whole_lines(static_cast<std::int64_t>(slots * sizeof(UpdateNumbers)));
  offsets.current = options.stored_images > 0 ? 0 : offsets.labels;
  return offsets;
}

InputBuffers::InputBuffers(Runtime& runtime, Stream copies, const graph::Graph& graph,
                           const graph::Layout& layout, const CompileOptions& options)
    : runtime_(runtime),
      copies_(copies),
      classes_(graph.classes()),
      takes_draws_(options.stored_images > 0),
      has_two_labels_(options.has_two_labels),
      offsets_(offsets(graph, layout, options)),
      current_(runtime.allocate(static_cast<std::size_t>(offsets_.bytes_of_current()))) {
  // An update without a forward pass finds a step that is not queued.
  runtime.fill_bytes(copies, current_, 0, static_cast<std::size_t>(offsets_.bytes_of_current()));
  runtime.synchronize(copies);
  for (Set& set : sets_) {
    set.pinned = runtime.allocate_pinned(static_cast<std::size_t>(offsets_.all));
    std::fill_n(set.pinned, offsets_.all, std::byte{0});  // gaps are copied too
    set.device = runtime.allocate(static_cast<std::size_t>(offsets_.all));
    set.copied = runtime.make_event();
    set.read = runtime.make_event();
  }
}

InputBuffers::Batch InputBuffers::put(const StepInput& input, Stream reader, const Queued& queued) {
  const auto require_class = [&](std::size_t n, std::int32_t label) {
    if (label < 0 || label >= classes_)
      base::fail(
          base::ErrorKind::data,
          "loss: every label must be in [0, {}), but sample {} of the batch has {}; check the data set "
          "and the model's classes",
          classes_, n, label);
  };
  for (std::size_t n = 0; n < input.labels.size(); ++n) require_class(n, input.labels[n]);
  for (std::size_t n = 0; n < input.second_labels.size(); ++n) require_class(n, input.second_labels[n].label);
  if (puts_ > 0) runtime_.record(set(puts_ - 1).read, reader);
  const Set& set = this->set(puts_);
  if (puts_ - read_ >= kSets) {
    runtime_.synchronize(set.read);
    read_ = puts_ - kSets + 1;
  }
  ++puts_;
  const StepNumbers numbers{.gradient_scale = input.gradient_scale,
                            .step = input.step,
                            .first_position = input.first_position,
                            .stop = queued.flags.stop ? 1 : 0,
                            .enough = queued.flags.enough ? 1 : 0,
                            .is_first_pass = queued.is_first_pass ? 1 : 0,
                            .report = queued.report};
  const auto stage = [&](std::int64_t offset, const auto& values) {
    const auto bytes = std::as_bytes(std::span(values));
    std::ranges::copy(bytes, set.pinned + offset);
  };
  stage(offsets_.labels, input.labels);
  stage(offsets_.second_labels, input.second_labels);
  stage(offsets_.numbers, std::span(&numbers, 1));
  stage(offsets_.update, queued.update);
  if (takes_draws_) {
    stage(0, input.draws);
  } else {
    stage(0, input.images);
    runtime_.copy_to_device(copies_, set.device, set.pinned, input.images.size_bytes());
  }
  runtime_.copy_to_device(copies_, set.device + offsets_.current, set.pinned + offsets_.current,
                          static_cast<std::size_t>(offsets_.bytes_of_current()));
  runtime_.record(set.copied, copies_);
  runtime_.wait(reader, set.copied);
  runtime_.copy_on_device(reader, current_, set.device + offsets_.current,
                          static_cast<std::size_t>(offsets_.bytes_of_current()));
  return {.images = takes_draws_ ? nullptr : reinterpret_cast<const float*>(set.device),
          .draws = takes_draws_ ? in_current<base::SampleDraw>(0) : nullptr,
          .labels = in_current<std::int32_t>(offsets_.labels),
          .second_labels = has_two_labels_ ? in_current<base::SecondLabel>(offsets_.second_labels) : nullptr,
          .numbers = step_numbers()};
}

}  // namespace paceline::engine::cuda
