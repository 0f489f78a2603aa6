// Kernels at the two ends of a step: images, losses, weights, updates, and those of base::Memory.

#include <cstdint>

#include "engine/cuda/kernels/kernel_cases.h"
#include "engine/cuda/kernels/update_tables.h"
#include "graph/zoo.h"

namespace paceline::engine::cuda {
namespace {

/// exp and log of two libraries: a loss is rounded to a multiple of 2^-24, at worst the neighbouring one.
bool is_near_loss(const std::byte* device, const std::byte* host) {
  SampleLoss got, expected;
  std::memcpy(&got, device, sizeof got);
  std::memcpy(&expected, host, sizeof expected);
  return std::abs(got.loss - expected.loss) <= 0x1p-24 && got.correct == expected.correct;
}
bool is_near_probability(const std::byte* device, const std::byte* host) {
  float got, expected;
  std::memcpy(&got, device, sizeof got);
  std::memcpy(&expected, host, sizeof expected);
  return std::abs(got - expected) <= 0x1p-22f * std::abs(expected);
}

std::vector<std::int32_t> random_labels(std::mt19937& generator, int samples, int classes) {
  std::uniform_int_distribution<std::int32_t> draw(0, classes - 1);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(samples));
  for (auto& label : labels) label = draw(generator);
  return labels;
}

struct Logits {
  int samples, views, classes;
  [[nodiscard]] ImageShape shape() const { return {samples * views, classes}; }
  bool is_weighted = false, has_two_labels = false;
  [[nodiscard]] std::size_t probabilities() const { return static_cast<std::size_t>(samples * classes); }
  [[nodiscard]] const double* weights(KernelArrays& arrays, std::mt19937& generator) const {
    if (!is_weighted) return nullptr;
    std::uniform_real_distribution<double> draw(0.5, 2.5);
    std::vector<double> values(static_cast<std::size_t>(classes));
    for (double& value : values) value = draw(generator);
    return arrays.input(values);
  }
  [[nodiscard]] const base::SecondLabel* second_labels(KernelArrays& arrays, std::mt19937& generator) const {
    if (!has_two_labels) return nullptr;
    std::uniform_real_distribution<float> draw(0, 1);
    std::vector<base::SecondLabel> values;
    for (const std::int32_t label : random_labels(generator, samples, classes))
      values.push_back({label, draw(generator)});
    return arrays.input(values);
  }
};

template <typename T>
void add_softmax(KernelCases& cases, const Logits& of) {
  cases.add(named<T>("SoftmaxLoss"), [=](KernelArrays& arrays, std::mt19937& generator) {
    const T* logits = arrays.input(random_images<T>(generator, of.shape()));
    const std::int32_t* labels = arrays.input(random_labels(generator, of.samples, of.classes));
    float* probabilities =
        of.views == 1 ? arrays.output<float>(of.probabilities(), is_near_probability) : nullptr;
    SampleLoss* losses = arrays.output<SampleLoss>(static_cast<std::size_t>(of.samples), is_near_loss);
    return SoftmaxLoss<T>{.logits = logits,
                          .labels = labels,
                          .probabilities = probabilities,
                          .losses = losses,
                          .samples = of.samples,
                          .views = of.views,
                          .classes = of.classes,
                          .padded = of.shape().padded(),
                          .label_smoothing = 0.1,
                          .class_weights = of.weights(arrays, generator),
                          .sum_of_weights = 1.5 * of.classes,
                          .second_labels = of.second_labels(arrays, generator)};
  });
  cases.add(named<T>("SoftmaxBackward"), [=](KernelArrays& arrays, std::mt19937& generator) {
    const float* probabilities = arrays.input(positive_floats(generator, of.probabilities()));
    const std::int32_t* labels = arrays.input(random_labels(generator, of.samples, of.classes));
    const StepNumbers* step = arrays.input(std::vector<StepNumbers>{{.gradient_scale = 0.1}});
    const ImageShape d_logits{of.samples, of.classes};
    return SoftmaxBackward<T>{probabilities,
                              labels,
                              arrays.output<T>(d_logits.stored_elements()),
                              step,
                              of.samples,
                              of.classes,
                              d_logits.padded(),
                              0.1,
                              of.weights(arrays, generator),
                              1.5 * of.classes,
                              of.second_labels(arrays, generator),
                              arrays.input(std::vector<LossScale>{{.scale = 1024}})};
  });
}

void add_loss_fold(KernelCases& cases, int samples) {
  cases.add("LossFold", [=](KernelArrays& arrays, std::mt19937& generator) {
    std::vector<SampleLoss> losses;
    for (const double value : random_doubles(generator, static_cast<std::size_t>(samples)))
      losses.push_back({std::nearbyint(std::abs(value) * 0x1p24) * 0x1p-24, value > 0 ? 1 : 0});
    const SampleLoss* from = arrays.input(losses);
    return LossFold{from, samples, arrays.output<LossResult>(1)};
  });
}

/// Of a first and of a second pass, of finite and other losses.
void add_votes(KernelCases& cases, double loss, bool is_first_pass) {
  const StepReport before{.local = {.loss = 3.25, .correct = 4}, .votes = {}, .is_left_out = 0};
  cases.add("WriteVotes", [=](KernelArrays& arrays, std::mt19937&) {
    const LossResult* result = arrays.input(std::vector<LossResult>{{.loss = loss, .correct = 5}});
    const StepNumbers* numbers = arrays.input(
        std::vector<StepNumbers>{{.stop = 1, .enough = 0, .is_first_pass = is_first_pass ? 1 : 0}});
    StepReport* report = arrays.in_place(std::vector<StepReport>{before});
    return WriteVotes{result, numbers, report, arrays.output<float>(kVotes)};
  });
  cases.add("JudgeVotes", [=](KernelArrays& arrays, std::mt19937&) {
    const float bad = std::isfinite(loss) ? 0.0f : 2.0f;
    const float* votes = arrays.input(std::vector<float>{1, bad, 0, 4095, 7, 0, 0, 1});
    const StepReport* report = arrays.input(std::vector<StepReport>{before});
    const StepNumbers* numbers =
        arrays.input(std::vector<StepNumbers>{{.report = arrays.output<StepReport>(1)}});
    // It is written where a loss is not finite, and only read elsewhere.
    std::int32_t* is_halted =
        bad > 0 ? arrays.in_place(std::vector<std::int32_t>{0})
                : const_cast<std::int32_t*>(arrays.input(std::vector<std::int32_t>{is_first_pass ? 0 : 1}));
    return JudgeVotes{votes, numbers, report, is_halted};
  });
}

}  // namespace

void add_softmax_cases(KernelCases& cases) {
  const std::vector<Logits> all =
      cases.is_small
          ? std::vector<Logits>{{2, 1, 3}, {2, 1, 3, true}, {2, 1, 3, false, true}, {1, 2, 3}}
          : std::vector<Logits>{
                {300, 1, 10}, {5, 1, 1000}, {5, 1, 1000, true}, {40, 3, 17}, {30, 1, 17, true, true}};
  for (const Logits& of : all) {
    for_each_storage([&]<typename T>(T) { add_softmax<T>(cases, of); });
    add_loss_fold(cases, of.samples);
  }
  for (const double loss : {12345.0 + 0x1p-24, 0.0, 0x1p40, std::nan("")})
    for (const bool is_first_pass : {true, false}) add_votes(cases, loss, is_first_pass);
}

namespace {

WeightShape weight_shape(int outs, int ins, int taps) {
  return {outs, padded_channels(outs), ins, padded_channels(ins), taps};
}

template <typename T>
void add_weights(KernelCases& cases, const std::vector<WeightShape>& shapes) {
  cases.add(named<T>("PackWeights"), [=](KernelArrays& arrays, std::mt19937& generator) {
    std::vector<PackedWeight<T>> layers;
    std::int64_t offset = 0;
    int blocks = 0;
    for (const WeightShape& shape : shapes) {
      T* dst = arrays.output<T>(static_cast<std::size_t>(shape.padded_elements()));
      layers.push_back({offset, dst, shape, blocks});
      offset += (shape.elements() + 15) / 16 * 16;
      blocks += PackedWeight<T>::blocks_of(shape);
    }
    const float* weights = arrays.input(random_floats(generator, static_cast<std::size_t>(offset)));
    const PackedWeight<T>* table = arrays.input(layers);
    return PackWeights<T>{weights, table, static_cast<int>(layers.size()), blocks};
  });
  for (const WeightShape& shape : shapes)
    cases.add(named<T>("UnpackGradient"), [=](KernelArrays& arrays, std::mt19937& generator) {
      const auto elements = static_cast<std::size_t>(shape.padded_elements());
      const T* src = arrays.input(Stored<T>(random_values<T>(generator, elements)).values());
      return UnpackGradient<T>{src, arrays.output<float>(static_cast<std::size_t>(shape.elements())), shape};
    });
}

/// base::Memory's: nothing is aligned.
void add_arrays(KernelCases& cases, std::size_t count) {
  const auto n = static_cast<std::int64_t>(count);
  cases.add("ArrayFill", [=](KernelArrays& arrays, std::mt19937&) {
    return ArrayFill{arrays.output<float>(count + 2) + 1, n, 2.5f};
  });
  cases.add("ArrayCopy", [=](KernelArrays& arrays, std::mt19937& generator) {
    const float* src = arrays.input(random_floats(generator, count));
    return ArrayCopy{src, arrays.output<float>(count + 2) + 1, n};
  });
  cases.add("ArrayAdd", [=](KernelArrays& arrays, std::mt19937& generator) {
    const float* left = arrays.input(random_floats(generator, count + 1)) + 1;
    const float* right = arrays.input(random_floats(generator, count));
    return ArrayAdd{left, right, arrays.output<float>(count + 2) + 1, n};
  });
  cases.add("ArrayAdd, in place", [=](KernelArrays& arrays, std::mt19937& generator) {
    float* sum = arrays.in_place(random_floats(generator, count + 3)) + 3;
    return ArrayAdd{sum, arrays.input(random_floats(generator, count)), sum, n};
  });
  cases.add("ArrayMix", [=](KernelArrays& arrays, std::mt19937& generator) {
    float* mixed = arrays.in_place(random_floats(generator, count + 3)) + 3;
    return ArrayMix{arrays.input(random_floats(generator, count)), mixed, n, 0.9f, 0.1f};
  });
  cases.add("ArrayTreeLevel", [=](KernelArrays& arrays, std::mt19937& generator) {
    float* first = arrays.in_place(random_floats(generator, 5 * (count + 1)));
    return ArrayTreeLevel{
        .first = first, .dst = nullptr, .stride = n + 1, .count = n, .parts = 5, .distance = 1};
  });
  cases.add("ArrayTreeLevel, the last", [=](KernelArrays& arrays, std::mt19937& generator) {
    const float* parts = arrays.input(random_floats(generator, 5 * (count + 1)));
    return ArrayTreeLevel{.first = const_cast<float*>(parts),  // which the last level does not write
                          .dst = arrays.output<float>(count + 2) + 1,
                          .stride = n + 1,
                          .count = n,
                          .parts = 5,
                          .distance = 4};
  });
}

template <typename T>
void add_gather(KernelCases& cases, int samples, int channels) {
  constexpr int kHeight = 13, kWidth = 10, kStored = 5;
  cases.add(named<T>("GatherImages"), [=](KernelArrays& arrays, std::mt19937& generator) {
    std::vector<std::uint8_t> stored(static_cast<std::size_t>(kStored * kHeight * kWidth * channels));
    for (auto& byte : stored) byte = static_cast<std::uint8_t>(generator());
    std::uniform_int_distribution<int> shift(-kWidth + 1, kWidth - 1);
    std::vector<base::SampleDraw> draws(static_cast<std::size_t>(samples));
    for (auto& draw : draws)
      draw = {.index = static_cast<std::int32_t>(generator() % kStored),
              .shift_y = shift(generator),
              .shift_x = shift(generator),
              .is_mirrored = static_cast<std::int16_t>(generator() % 2),
              .reflects = static_cast<std::int16_t>(generator() % 2)};
    const int padded = padded_channels(channels);
    const std::int64_t pixels = std::int64_t{1} * (samples + 2) * kHeight * kWidth;
    return GatherImages<T>{
        .stored = arrays.input(stored),
        .byte_values = arrays.input(random_floats(generator, static_cast<std::size_t>(256 * channels))),
        .draws = arrays.input(draws),
        .dst = arrays.output<T>(static_cast<std::size_t>(pixels * padded)),
        .pixels = pixels,
        .samples = samples,
        .height = kHeight,
        .width = kWidth,
        .channels = channels,
        .padded = padded};
  });
}

}  // namespace

void add_flat_cases(KernelCases& cases) {
  const auto weights = cases.is_small ? std::vector{weight_shape(3, 2, 4), weight_shape(2, 9, 1)}
                                      : std::vector{weight_shape(70, 3, 9), weight_shape(13, 70, 9),
                                                    weight_shape(7, 60, 16), weight_shape(64, 64, 9)};
  const int pixels = cases.is_small ? 4 : 3000;
  for_each_storage([&]<typename T>(T) {
    for (const int channels : {1, 3, 11})
      cases.add(named<T>("InputImages"), [=](KernelArrays& arrays, std::mt19937& generator) {
        const int filled = pixels - pixels / 4, padded = padded_channels(channels);
        const float* images =
            arrays.input(random_floats(generator, static_cast<std::size_t>(filled * channels)));
        return InputImages<T>{images,   arrays.output<T>(static_cast<std::size_t>(pixels * padded)),
                              pixels,   filled,
                              channels, padded};
      });
    for (const int channels : {1, 3, 11}) add_gather<T>(cases, cases.is_small ? 2 : 9, channels);
    add_weights<T>(cases, weights);
  });
  if (cases.is_small) return add_arrays(cases, 5);
  add_arrays(cases, 1023);
  add_arrays(cases, 70001);
}

namespace {

/// Usual: a weight longer than a chunk, lengths that are no multiple of 4, a frozen and a slow parameter.
graph::Graph model_to_update(bool is_small) {
  graph::Builder builder("update");
  int x = builder.input({.channels = 3, .height = 8, .width = 8});
  x = builder.conv2d(x, "conv",
                     {.channels = is_small ? 3 : 470, .padding = 1, .rates = {.weight = 0.25, .bias = 1}});
  x = builder.batch_norm(x, "norm", {.momentum = 0.3});
  x = builder.conv2d(x, "stem",
                     {.channels = 3, .stride = 4, .bias = true, .rates = {.weight = 1, .bias = 0}});
  builder.loss(builder.dense(x, "fc", {.features = 7}), 0);
  return builder.finish();
}

/// What all update kernels have in common.
struct Updated {
  graph::Graph graph;
  graph::Layout layout = graph::flat_layout(graph);
  std::vector<LayerWeight> places = places_of(graph, layout);
  UpdateTables tables = update_tables(graph, layout, places);

  /// The weights of the convolutions, of which "stem" has rows that are longer than a tile, usually.
  static std::vector<LayerWeight> places_of(const graph::Graph& graph, const graph::Layout& layout) {
    std::vector<LayerWeight> places;
    for (const graph::Node& node : graph.nodes) {
      if (node.as<graph::Conv2d>() == nullptr) continue;
      const auto& src = graph.nodes[static_cast<std::size_t>(node.inputs.front())].shape;
      const int slot = layout.slot_of_parameter[static_cast<std::size_t>(node.parameters.front())];
      places.push_back({.offset = layout.slots[static_cast<std::size_t>(slot)].offset,
                        .shape = weight_shape(node.shape.channels, src.channels, 9)});
    }
    return places;
  }

  [[nodiscard]] std::size_t elements() const { return static_cast<std::size_t>(layout.elements); }
  [[nodiscard]] std::vector<UpdateNumbers> numbers(const UpdateRule& rule) const {
    return update_numbers(graph, layout, rule, 0.1, 3);
  }
};

template <typename Rule, typename T>
void add_update(KernelCases& cases, const Updated& of, const std::string& name, const UpdateRule& rule) {
  cases.add(named<T>(name.c_str()), [=](KernelArrays& arrays, std::mt19937& generator) {
    const UpdateTile* tiles = arrays.input(of.tables.tiles);
    const UpdateNumbers* numbers = arrays.input(of.numbers(rule));
    const double* rates = nullptr;
    if (rule.has_layer_rates()) rates = arrays.input(random_doubles(generator, of.layout.slots.size()));
    float* weights = arrays.in_place(random_floats(generator, of.elements()));
    const float* gradients = arrays.input(random_floats(generator, of.elements()));
    // Sums of squares are not negative.
    float* state[2] = {};
    for (int i = 0; i < state_slots(rule); ++i)
      state[i] = arrays.in_place(positive_floats(generator, of.elements()));
    std::vector<PackedWeight<T>> layers;
    for (const LayerWeight& place : of.places) {
      const auto elements = static_cast<std::size_t>(place.shape.padded_elements());
      layers.push_back({place.offset,
                        arrays.in_place(Stored<T>(random_values<T>(generator, elements)).values()),
                        place.shape, 0});
    }
    const PackedWeight<T>* table = arrays.input(layers);
    const std::int32_t* is_halted = arrays.input(std::vector<std::int32_t>{0});
    return Update<Rule, T>{tiles,
                           static_cast<int>(of.tables.tiles.size()),
                           of.tables.elements,
                           numbers,
                           rates,
                           weights,
                           gradients,
                           state[0],
                           state[1],
                           table,
                           is_halted};
  });
}

}  // namespace

void add_update_cases(KernelCases& cases) {
  const Updated of{.graph = model_to_update(cases.is_small)};
  const auto chunks = static_cast<int>(of.tables.lars_chunks.size());
  const UpdateRule lars{.kind = UpdateKind::lars, .momentum = 0.9, .weight_decay = 5e-4};
  const UpdateRule lamb{.kind = UpdateKind::lamb, .weight_decay = 1e-2, .epsilon = 1e-6};
  for_each_storage([&]<typename T>(T) {
    add_update<SgdRule, T>(cases, of, "sgd", {.kind = UpdateKind::sgd, .weight_decay = 1e-2});
    add_update<SgdRule, T>(
        cases, of, "nesterov",
        {.kind = UpdateKind::sgd, .momentum = 0.9, .nesterov = true, .weight_decay = 1e-2});
    add_update<AdamRule<false>, T>(cases, of, "adam", {.kind = UpdateKind::adam, .weight_decay = 1e-2});
    add_update<AdamRule<true>, T>(cases, of, "adamw", {.kind = UpdateKind::adamw, .weight_decay = 1e-2});
    add_update<RmspropRule, T>(cases, of, "rmsprop",
                               {.kind = UpdateKind::rmsprop, .momentum = 0.9, .weight_decay = 1e-4});
    add_update<AdadeltaRule, T>(cases, of, "adadelta", {.kind = UpdateKind::adadelta, .epsilon = 1e-6});
    add_update<LarsRule, T>(cases, of, "lars", lars);
    add_update<LambRule, T>(cases, of, "lamb", lamb);
  });
  cases.add("LarsNorms", [=](KernelArrays& arrays, std::mt19937& generator) {
    const LarsChunk* table = arrays.input(of.tables.lars_chunks);
    const float* weights = arrays.input(random_floats(generator, of.elements()));
    const float* gradients = arrays.input(random_floats(generator, of.elements()));
    return LarsNorms{table, chunks, weights, gradients,
                     arrays.output<double>(2 * static_cast<std::size_t>(chunks))};
  });
  cases.add("LambNorms", [=](KernelArrays& arrays, std::mt19937& generator) {
    const LarsChunk* table = arrays.input(of.tables.lars_chunks);
    const UpdateNumbers* numbers = arrays.input(of.numbers(lamb));
    const float* weights = arrays.input(random_floats(generator, of.elements()));
    const float* gradients = arrays.input(random_floats(generator, of.elements()));
    const float* first = arrays.input(random_floats(generator, of.elements()));
    const float* second = arrays.input(positive_floats(generator, of.elements()));
    return LambNorms{table,     chunks, numbers, weights,
                     gradients, first,  second,  arrays.output<double>(2 * static_cast<std::size_t>(chunks))};
  });
  cases.add("LarsRates", [=](KernelArrays& arrays, std::mt19937& generator) {
    const std::int32_t* first_chunk = arrays.input(of.tables.first_lars_chunk);
    const UpdateNumbers* numbers = arrays.input(of.numbers(lars));
    std::vector<double> partial = random_doubles(generator, 2 * static_cast<std::size_t>(chunks));
    for (double& value : partial) value *= value;
    const double* sums = arrays.input(partial);
    const std::size_t slots = of.layout.slots.size();
    return LarsRates{first_chunk, static_cast<int>(slots), numbers, sums, arrays.output<double>(slots)};
  });
  cases.add("GradientSquares", [=](KernelArrays& arrays, std::mt19937& generator) {
    const LarsChunk* table = arrays.input(of.tables.lars_chunks);
    const float* gradients = arrays.input(random_floats(generator, of.elements()));
    return GradientSquares{table, chunks, gradients, arrays.output<double>(static_cast<std::size_t>(chunks))};
  });
  cases.add("AddSquares", [=](KernelArrays& arrays, std::mt19937& generator) {
    const double* sums = arrays.input(random_doubles(generator, 700));
    return AddSquares{sums, 700, arrays.in_place(std::vector<double>{3.5})};
  });
  cases.add("ClipFactor", [=](KernelArrays& arrays, std::mt19937& generator) {
    std::vector<double> partial = random_doubles(generator, 700);
    for (double& value : partial) value *= value;
    const double* sums = arrays.input(partial);
    const StepNumbers* numbers =
        arrays.input(std::vector<StepNumbers>{{.report = arrays.in_place(std::vector<StepReport>(1))}});
    return ClipFactor{
        sums, 700, 2.0, numbers, arrays.in_place(std::vector<StepReport>(1)), arrays.output<float>(1)};
  });
  cases.add("ClipGradients", [=](KernelArrays& arrays, std::mt19937& generator) {
    const LarsChunk* table = arrays.input(of.tables.lars_chunks);
    const float* factor = arrays.input(std::vector<float>{0.37f});
    return ClipGradients{table, chunks, factor, arrays.in_place(random_floats(generator, of.elements()))};
  });
  const std::vector<DeviceLossScale> scale{
      {.state = {.scale = 1024, .clean = 1999, .left_out = 2}, .skips = 1}};
  cases.add("UnscaleGradients", [=](KernelArrays& arrays, std::mt19937& generator) {
    const LarsChunk* table = arrays.input(of.tables.lars_chunks);
    const DeviceLossScale* by = arrays.input(scale);
    return UnscaleGradients{table, chunks, by, arrays.in_place(random_floats(generator, of.elements()))};
  });
  for (const bool overflows : {false, true})
    cases.add(overflows ? "JudgeLossScale, overflow" : "JudgeLossScale",
              [=](KernelArrays& arrays, std::mt19937& generator) {
                std::vector<double> partial = random_doubles(generator, 700);
                if (overflows) partial[300] = std::numeric_limits<double>::infinity();
                const double* sums = arrays.input(partial);
                const auto* is_halted = arrays.input(std::vector<std::int32_t>{0});
                return JudgeLossScale{sums, 700, is_halted, arrays.in_place(scale)};
              });
  cases.add("RunningStatistics", [=](KernelArrays& arrays, std::mt19937& generator) {
    const RunningSlot* slots = arrays.input(of.tables.running);
    float* weights = arrays.in_place(random_floats(generator, of.elements()));
    const float* gradients = arrays.input(random_floats(generator, of.elements()));
    return RunningStatistics{slots, static_cast<int>(of.tables.running.size()), weights, gradients};
  });
}

}  // namespace paceline::engine::cuda
