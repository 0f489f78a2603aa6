#include "engine/cuda/optimizer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "engine/cuda/input_buffers.h"
#include "engine/cuda/kernels/clip.h"
#include "engine/cuda/kernels/loss_scale.h"
#include "engine/cuda/kernels/update.h"
#include "engine/cuda/runtime/device_runtime.h"
#include "engine/cuda/sections.h"

namespace paceline::engine::cuda {

namespace {

bool scales_loss(const CompileOptions& options) {
  return options.training && options.precision == Precision::f16;
}

}  // namespace

/// The tables of update_tables.h and of the layers.
struct Optimizer::Tables {
  UpdateTables update;
  std::vector<LayerWeight> layers;  ///< first those that the update kernel does not pack
  Offsets at;
};

Optimizer::Tables Optimizer::tables_of(const Program& program) {
  Tables tables;
  for (const auto& entry : program.ops())
    if (const auto weight = entry.op->weight()) tables.layers.push_back(*weight);
  std::ranges::stable_partition(tables.layers,
                                [](const LayerWeight& layer) { return !fits_update_tiles(layer.shape); });
  std::int64_t end = 0;
  const auto take = [&](std::size_t count, std::size_t size) {
    const std::int64_t at = end;
    end += whole_lines(static_cast<std::int64_t>(count * size));
    return at;
  };
  if (program.options().training) {
    tables.update = update_tables(program.graph(), program.layout(), tables.layers);
    const std::size_t slots = program.layout().slots.size();
    take(tables.update.tiles.size(), sizeof(UpdateTile));
    tables.at.running = take(tables.update.running.size(), sizeof(RunningSlot));
    const std::size_t chunks = tables.update.lars_chunks.size();
    tables.at.lars_chunks = take(chunks, sizeof(LarsChunk));
    tables.at.norms = take(2 * chunks, sizeof(double));
    if (program.options().rule.has_layer_rates()) {
      tables.at.first_lars_chunk = take(slots + 1, sizeof(std::int32_t));
      tables.at.rates = take(slots, sizeof(double));
    }
    if (program.options().rule.clips()) tables.at.clip = take(1, sizeof(float));
  }
  static_assert(sizeof(PackedWeight<float>) == sizeof(PackedWeight<Bf16>));
  tables.at.layers = take(tables.layers.size(), sizeof(PackedWeight<float>));
  tables.at.all = end;
  return tables;
}

std::int64_t Optimizer::bytes(const Program& program) { return tables_of(program).at.all; }

std::int64_t Optimizer::pinned_bytes(const Program& program) {
  if (!program.options().training) return 0;
  return static_cast<std::int64_t>(program.layout().slots.size() * sizeof(UpdateNumbers));
}

Optimizer::Optimizer(const Program& program, Runtime& runtime, Stream compute, const DeviceMemory& memory,
                     const Arena& arena, FlatArrays arrays, const StepReports& reports,
                     const InputBuffers& inputs)
    : program_(program),
      runtime_(runtime),
      compute_(compute),
      memory_(memory),
      arrays_(std::move(arrays)),
      places_{.report = reports.on_device(),
              .is_halted = reports.is_halted(),
              .step = inputs.step_numbers(),
              .update = inputs.update_numbers()} {
  const Tables tables = tables_of(program);
  offsets_ = tables.at;
  memory_at_ = runtime.allocate(static_cast<std::size_t>(offsets_.all));
  if (const auto pinned = static_cast<std::size_t>(pinned_bytes(program)); pinned > 0) {
    pinned_numbers_ = runtime.allocate_pinned(pinned);
    copied_ = runtime.make_event();
  }
  tiles_ = static_cast<int>(tables.update.tiles.size());
  elements_ = tables.update.elements;
  chunks_ = static_cast<int>(tables.update.lars_chunks.size());
  for (const LarsChunk& chunk : tables.update.lars_chunks) chunk_begins_.push_back(chunk.begin);
  running_ = static_cast<int>(tables.update.running.size());
  put(0, tables.update.tiles);
  put(offsets_.running, tables.update.running);
  if (chunks_ > 0) put(offsets_.lars_chunks, tables.update.lars_chunks);
  if (chunks_ > 0 && program.options().rule.has_layer_rates())
    put(offsets_.first_lars_chunk, tables.update.first_lars_chunk);
  with_storage(program.options().precision, [&]<typename T>(T) {
    std::vector<PackedWeight<T>> layers;
    for (const LayerWeight& layer : tables.layers) {
      layers.push_back({.offset = layer.offset,
                        .dst = arena.at<T>(layer.packed),
                        .shape = layer.shape,
                        .first_block = layers_.blocks});
      layers_.blocks += PackedWeight<T>::blocks_of(layer.shape);
      ++layers_.count;
      if (!fits_update_tiles(layer.shape)) apart_ = layers_;
    }
    put(offsets_.layers, layers);
  });
}

FlatArrays allocate_arrays(Runtime& runtime, const Program& program, float* gradients) {
  const auto allocate = [&] {
    return reinterpret_cast<float*>(
        runtime.allocate(static_cast<std::size_t>(program.layout().elements) * sizeof(float)));
  };
  FlatArrays arrays{.weights = allocate(), .gradients = gradients};
  const CompileOptions& options = program.options();
  const int slots = options.training ? state_slots(options.rule) : 0;
  for (int slot = 0; slot < slots; ++slot) arrays.state.push_back(allocate());
  if (scales_loss(options))
    arrays.loss_scale = reinterpret_cast<DeviceLossScale*>(runtime.allocate(sizeof(DeviceLossScale)));
  return arrays;
}

const std::int32_t* Optimizer::skips() const {
  return arrays_.loss_scale == nullptr ? places_.is_halted : &arrays_.loss_scale->skips;
}

template <typename T>
void Optimizer::put(std::int64_t offset, const std::vector<T>& values) const {
  memory_.upload(memory_at_ + offset, values.data(), values.size() * sizeof(T));
}

template <typename Rule>
void Optimizer::launch(const double* rates) const {
  const auto state = [&](std::size_t slot) {
    return slot < arrays_.state.size() ? arrays_.state[slot] : nullptr;
  };
  with_storage(program_.options().precision, [&]<typename T>(T) {
    runtime_.launch(compute_, Update<Rule, T>{.tiles = at<UpdateTile>(0),
                                              .tile_count = tiles_,
                                              .elements = elements_,
                                              .numbers = places_.update,
                                              .lars_rates = Rule::kIsLars ? rates : nullptr,
                                              .weights = arrays_.weights,
                                              .gradients = arrays_.gradients,
                                              .first = state(0),
                                              .second = state(1),
                                              .layers = at<PackedWeight<T>>(offsets_.layers),
                                              .is_halted = skips()});
  });
}

std::vector<UpdateNumbers> Optimizer::numbers_of(const StepUpdate& update) const {
  const UpdateRule& rule = update.rule;
  base::expects(static_cast<int>(arrays_.state.size()) >= state_slots(rule) &&
                    rule.kind == program_.options().rule.kind &&
                    rule.clip_norm == program_.options().rule.clip_norm,  // it is in a captured launch
                "the engine was compiled for this rule, with as much state");
  return update_numbers(program_.graph(), program_.layout(), rule, update.lr, update.number);
}

void Optimizer::put_numbers(const StepUpdate& update) {
  const auto numbers = numbers_of(update);
  const std::size_t bytes = numbers.size() * sizeof(UpdateNumbers);
  if (bytes == 0) return;
  if (!runtime_.is_done(copied_)) runtime_.synchronize(copied_);
  std::memcpy(pinned_numbers_, numbers.data(), bytes);
  runtime_.copy_to_device(compute_, places_.update, pinned_numbers_, bytes);
  runtime_.record(copied_, compute_);
}

void Optimizer::update() const {
  const UpdateKind kind = program_.options().rule.kind;
  auto* rates = reinterpret_cast<double*>(memory_at_ + offsets_.rates);
  if (arrays_.loss_scale != nullptr) judge_overflow();
  if (program_.options().rule.clips()) clip();
  if (program_.options().rule.has_layer_rates()) compute_rates(rates);
  static_assert(std::tuple_size_v<UpdateRules> == kUpdateKinds,
                "each UpdateKind has its rule in kernels/update.h");
  if (tiles_ > 0) [&]<std::size_t... kKinds>(std::index_sequence<kKinds...>) {
      ((static_cast<std::size_t>(kind) == kKinds ? launch<std::tuple_element_t<kKinds, UpdateRules>>(rates)
                                                 : void()),
       ...);
    }
  (std::make_index_sequence<kUpdateKinds>());
  if (running_ > 0)
    runtime_.launch(compute_, RunningStatistics{.slots = at<RunningSlot>(offsets_.running),
                                                .slot_count = running_,
                                                .weights = arrays_.weights,
                                                .gradients = arrays_.gradients,
                                                .is_halted = skips()});
  pack(apart_);
}

void Optimizer::compute_rates(double* rates) const {
  if (chunks_ == 0) return;
  auto* const norms = reinterpret_cast<double*>(memory_at_ + offsets_.norms);
  if (program_.options().rule.kind == UpdateKind::lamb)
    runtime_.launch(compute_, LambNorms{.chunks = at<LarsChunk>(offsets_.lars_chunks),
                                        .chunk_count = chunks_,
                                        .numbers = places_.update,
                                        .weights = arrays_.weights,
                                        .gradients = arrays_.gradients,
                                        .first = arrays_.state[0],
                                        .second = arrays_.state[1],
                                        .partial = norms});
  else
    runtime_.launch(compute_, LarsNorms{.chunks = at<LarsChunk>(offsets_.lars_chunks),
                                        .chunk_count = chunks_,
                                        .weights = arrays_.weights,
                                        .gradients = arrays_.gradients,
                                        .partial = norms});
  runtime_.launch(compute_, LarsRates{.first_chunk = at<std::int32_t>(offsets_.first_lars_chunk),
                                      .slot_count = static_cast<int>(program_.layout().slots.size()),
                                      .numbers = places_.update,
                                      .partial = norms,
                                      .rates = rates});
}

Optimizer::Chunks Optimizer::chunks_in(std::int64_t begin, std::int64_t end) const {
  const auto first = std::ranges::lower_bound(chunk_begins_, begin),
             last = std::ranges::lower_bound(chunk_begins_, end);
  return {.first = at<LarsChunk>(offsets_.lars_chunks) + (first - chunk_begins_.begin()),
          .count = static_cast<int>(std::max<std::ptrdiff_t>(0, last - first))};
}

double* Optimizer::square(const Chunks& chunks) const {
  auto* const partial = reinterpret_cast<double*>(memory_at_ + offsets_.norms);
  runtime_.launch(compute_, GradientSquares{.chunks = chunks.first,
                                            .chunk_count = chunks.count,
                                            .gradients = arrays_.gradients,
                                            .partial = partial});
  return partial;
}

void Optimizer::add_squares(std::int64_t begin, std::int64_t end, double* sum) const {
  const auto chunks = chunks_in(begin, end);
  if (chunks.count == 0) return;
  const auto* const partial = square(chunks);
  runtime_.launch(compute_, AddSquares{.partial = partial, .chunk_count = chunks.count, .sum = sum});
}

void Optimizer::unscale(std::int64_t begin, std::int64_t end) const {
  const auto chunks = chunks_in(begin, end);
  if (arrays_.loss_scale == nullptr || chunks.count == 0) return;
  runtime_.launch(compute_, UnscaleGradients{.chunks = chunks.first,
                                             .chunk_count = chunks.count,
                                             .scale = arrays_.loss_scale,
                                             .gradients = arrays_.gradients});
}

void Optimizer::judge_overflow() const {
  const auto* const partial = chunks_ == 0 ? nullptr : square({at<LarsChunk>(offsets_.lars_chunks), chunks_});
  runtime_.launch(compute_, JudgeLossScale{.partial = partial,
                                           .chunk_count = chunks_,
                                           .is_halted = places_.is_halted,
                                           .scale = arrays_.loss_scale});
}

void Optimizer::clip() const {
  if (chunks_ == 0) return;
  auto* const factor = reinterpret_cast<float*>(memory_at_ + offsets_.clip);
  const auto* const chunks = at<LarsChunk>(offsets_.lars_chunks);
  const auto* const partial = square({chunks, chunks_});
  runtime_.launch(compute_, ClipFactor{.partial = partial,
                                       .chunk_count = chunks_,
                                       .clip_norm = program_.options().rule.clip_norm,
                                       .numbers = places_.step,
                                       .report = places_.report,
                                       .factor = factor});
  runtime_.launch(
      compute_,
      ClipGradients{
          .chunks = chunks, .chunk_count = chunks_, .factor = factor, .gradients = arrays_.gradients});
}

void Optimizer::pack(const Layers& layers) const {
  if (layers.count == 0) return;
  with_storage(program_.options().precision, [&]<typename T>(T) {
    runtime_.launch(compute_, PackWeights<T>{.weights = arrays_.weights,
                                             .layers = at<PackedWeight<T>>(offsets_.layers),
                                             .layer_count = layers.count,
                                             .blocks = layers.blocks});
  });
}

namespace {

/// Device memory of the CUDA context, loaded kernels and handles for each worker, besides the engine's own
/// blocks. An estimate: an H200 had 580 MB.
constexpr std::int64_t kDriverAndLibraryBytes = 600'000'000;

}  // namespace

graph::MemoryPlan plan_of(const Program& program, const DeviceFacts& device) {
  using Place = graph::MemoryPlan::Place;
  const CompileOptions& options = program.options();
  const std::int64_t flat = program.layout().elements * static_cast<std::int64_t>(sizeof(float));
  const int states = options.training ? state_slots(options.rule) : 0;
  const auto input = InputBuffers::offsets(program.graph(), program.layout(), options);
  graph::MemoryPlan plan;
  // Adds a line for `count` blocks of equal size, each of which is allocated separately.
  const auto on_device = [&](const char* purpose, std::int64_t count, std::int64_t bytes) {
    const auto size = static_cast<std::size_t>(bytes);
    plan.lines.push_back({purpose,
                          count * static_cast<std::int64_t>(device.is_gpu ? allocated_bytes(size) : size),
                          device.is_gpu ? Place::device : Place::host});
  };
  on_device("activations", 1, program.memory().arena_bytes());
  on_device("weights", 1, flat);
  on_device("packed weights and statistics", 1, program.memory().kept_bytes());
  on_device("tables of layers and parameters", 1, Optimizer::bytes(program));
  if (options.training) {
    on_device("gradients", 1, flat + static_cast<std::int64_t>(kVoteFloats * sizeof(float)));
    on_device("optimizer state", states, flat);
  }
  on_device("workspace", 1, program.memory().scratch_bytes());
  on_device("input", InputBuffers::kSets, input.all);
  on_device("labels and numbers of the step", 1, input.bytes_of_current());
  if (options.stored_images > 0)
    on_device("images of the data set", 1, StoredImages::bytes(program.graph(), options.stored_images));
  on_device("loss", 1, static_cast<std::int64_t>(sizeof(LossResult)));
  if (scales_loss(options)) on_device("loss scale", 1, static_cast<std::int64_t>(sizeof(DeviceLossScale)));
  on_device("reports of steps", 1, StepReports::device_bytes());
  if (device.is_gpu) plan.lines.push_back({"driver and libraries", kDriverAndLibraryBytes, Place::device});
  plan.lines.push_back({"host copies of weights and optimizer state", (1 + states) * flat, Place::host});
  plan.lines.push_back({"pinned buffers",
                        InputBuffers::kSets * input.all + program.pinned_bytes() +
                            Optimizer::pinned_bytes(program) + StepReports::pinned_bytes() +
                            (scales_loss(options) ? static_cast<std::int64_t>(sizeof(LossScale)) : 0) +
                            static_cast<std::int64_t>(sizeof(LossResult)) +
                            static_cast<std::int64_t>(DeviceMemory::kStagingBytes),
                        Place::host});
  return plan;
}

}  // namespace paceline::engine::cuda
