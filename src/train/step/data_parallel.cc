#include "train/step/data_parallel.h"

#include <algorithm>
#include <span>

#include "train/given/resolve.h"

namespace paceline::train {
namespace {

std::size_t outputs_of(std::int64_t local_batch, int classes) {
  return static_cast<std::size_t>(local_batch) * static_cast<std::size_t>(classes) + kVoteFloats;
}

}  // namespace

std::int64_t data_parallel_bytes(const Options& options, const Resolved& resolved, std::int64_t pixels,
                                 int classes) {
  const std::int64_t others = resolved.workers - 1;
  const std::int64_t inputs = resolved.local_batch * (4 * pixels + (mixes_images(options) ? 12 : 4));
  const auto outputs = static_cast<std::int64_t>(4 * outputs_of(resolved.local_batch, classes));
  return others * inputs + 2 * resolved.workers * outputs;
}

DataParallelStepper::DataParallelStepper(const StepContext& in)
    : WaitedSteps(in), outputs_(outputs_of(job_.resolved.local_batch, job_.graph.classes())) {
  const auto samples = static_cast<std::size_t>(job_.resolved.local_batch);
  if (is_root()) {
    all_outputs_.resize(outputs_.size() * static_cast<std::size_t>(communicator_.size()));
  } else {
    images_.resize(samples * static_cast<std::size_t>(job_.source.train->format().bytes()));
    labels_.resize(samples);
    second_labels_.resize(mixes_images(job_.options) ? samples : 0);
  }
  if (!engine_.gradients().memory->is_host()) gradients_.resize(engine_.gradients().size);
  const std::int64_t whole = engine_.layout().elements;
  engine_.cut_backward({&whole, 1});  // nothing is sent before the end
}

void DataParallelStepper::exchange(const char* phase, std::int64_t update,
                                   const std::function<void()>& collective) {
  communicator_.at(update + 1, phase);
  log_.run_exposed(ledger_, collective);
}

const data::Batch& DataParallelStepper::part_of(const data::Batch* whole, const Counters& done) {
  const std::int64_t samples = job_.resolved.local_batch;
  batch_ = {.images = images_,
            .labels = labels_,
            .second_labels = second_labels_,
            .epoch = done.epoch,
            .step = done.step,
            .first_position = done.step * job_.resolved.global_batch + communicator_.rank() * samples};
  // Worker 0's part is used in place; nothing is written to it.
  const auto scatter = [&]<typename T>(std::span<const T> all, std::span<T> own, std::span<const T>& mine) {
    if (whole != nullptr) {
      const std::size_t count = all.size() / static_cast<std::size_t>(communicator_.size());
      mine = all.first(count);
      own = {const_cast<T*>(mine.data()), count};
    }
    communicator_.scatter(std::as_bytes(all), std::as_writable_bytes(own), 0);
  };
  const data::Batch all = whole != nullptr ? *whole : data::Batch{};
  exchange("the scatter of inputs", done.update, [&] {
    scatter(all.images, std::span(images_), batch_.images);
    scatter(all.labels, std::span(labels_), batch_.labels);
    if (mixes_images(job_.options))
      scatter(all.second_labels, std::span(second_labels_), batch_.second_labels);
  });
  return batch_;
}

Votes DataParallelStepper::agree(const engine::LossSums& local, const StepOrder& order) {
  const auto votes = std::span(outputs_).last(kVoteFloats);
  std::ranges::copy(as_floats(votes_of(local, order)), votes.begin());
  const auto mine = std::as_writable_bytes(std::span(outputs_));
  const auto all = std::as_writable_bytes(std::span(all_outputs_));
  exchange("the gather of outputs", order.update, [&] { communicator_.gather(mine, all, 0); });
  if (is_root()) {
    const auto vote = [&](std::size_t worker, std::size_t which) -> float& {
      return all_outputs_[(worker + 1) * outputs_.size() - kVoteFloats + which];
    };
    const auto workers = static_cast<std::size_t>(communicator_.size());
    for (std::size_t which = 0; which < kVoteFloats; ++which) {
      float sum = 0;
      for (std::size_t worker = 0; worker < workers; ++worker) sum += vote(worker, which);
      for (std::size_t worker = 0; worker < workers; ++worker) vote(worker, which) = sum;
    }
  }
  exchange("the scatter of the outputs' gradients", order.update,
           [&] { communicator_.scatter(all, mine, 0); });
  return votes_from(votes);
}

void DataParallelStepper::reduce_gradients(std::int64_t update) {
  const auto array = engine_.gradients();
  std::span<float> values = gradients_;
  if (gradients_.empty())
    values = array.host();
  else
    array.memory->read(array, gradients_);
  exchange("the reduction of gradients", update, [&] { communicator_.reduce(values, 0); });
  if (is_root() && !gradients_.empty()) array.memory->write(gradients_, array);
}

void DataParallelStepper::send_weights(std::int64_t update) {
  if (is_root()) engine_.fetch();
  exchange("the broadcast of weights", update,
           [&] { communicator_.broadcast(std::as_writable_bytes(engine_.weights()), 0); });
  if (!is_root()) engine_.weights_changed();
}

StepResult DataParallelStepper::run(const data::Batch& batch, const StepOrder& order) {
  ledger_.enter(measure::Phase::forward);
  communicator_.at(order.update + 1, "forward");
  const auto local = engine_.forward({.images = batch.images,
                                      .labels = batch.labels,
                                      .gradient_scale = 1.0 / static_cast<double>(job_.resolved.global_batch),
                                      .step = static_cast<std::uint64_t>(order.update),
                                      .first_position = batch.first_position,
                                      .second_labels = batch.second_labels});
  StepResult result{.local = local, .all = agree(local, order)};
  result.verdict = guard_.see(result.all);
  ledger_.enter(measure::Phase::backward);
  communicator_.at(order.update + 1, "backward");
  engine_.backward([](std::int64_t) {});
  reduce_gradients(order.update);
  ledger_.enter(measure::Phase::update);
  if (is_root() && result.is_updated()) result.gradient_norm = apply_update(order);
  send_weights(order.update);
  ledger_.enter(measure::Phase::other);
  return result;
}

}  // namespace paceline::train
