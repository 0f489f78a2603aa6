#include "analysis/trainings/noise.h"

#include <fmt/format.h>

#include <cmath>

#include "report/sections/curves.h"
#include "report/sections/parts.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using analysis::NoiseCourse;
using analysis::NoisePoint;
using measure::NoiseScale;

/// With two figures: 1,200 · 120 · 12 · 1.2.
std::string samples_text(double samples) {
  if (samples < 10) return rough(samples);
  const double unit = std::pow(10, std::floor(std::log10(samples)) - 1);
  return integer(unit * std::round(samples / unit));
}

/// " In the second half it was 620 samples [540, 720]."; empty if that is not known.
std::string text_of_second_half(const NoiseCourse& course) {
  if (!course.second_half || course.second_half->low < 1) return "";
  const NoiseScale& scale = *course.second_half;
  if (!scale.batch || !scale.high)
    return fmt::format(" In the second half it was above {}.", samples_text(scale.low));
  return fmt::format(" In the second half it was {} [{}, {}].", samples_text(*scale.batch),
                     samples_text(scale.low), samples_text(*scale.high));
}

}  // namespace

Plot noise_plot(const NoiseCourse& course, const std::string& id, const std::string& caption) {
  Plot plot{
      .id = id + "-noise",
      .title = "Noise scale of the gradient over epochs",
      .caption = fmt::format(
          "From squared norms of gradients of batches of {} and of {}, in {} steps; a "
          "point joins about {} of them, with its 95 % interval. {}.",
          integer(course.small_batch), integer(course.large_batch), integer(course.steps),
          integer(static_cast<double>(course.steps) / static_cast<double>(course.points.size())), caption),
      .x = {.label = "epoch"},
      .y = {.label = "noise scale", .unit = "samples", .log = true}};
  Series line{.name = "noise scale"};
  for (const NoisePoint& point : course.points) {
    const NoiseScale& scale = point.scale;
    // A logarithmic axis has no place for a batch below one sample, and none for an interval without an end.
    if (scale.batch && *scale.batch >= 1 && scale.low >= 1 && scale.high)
      line.points.push_back({.x = point.epochs, .y = *scale.batch, .low = scale.low, .high = scale.high});
  }
  plot.series.push_back(std::move(line));
  return plot;
}

std::string text_about_noise(const NoiseCourse& course) {
  const NoiseScale& scale = course.whole;
  const std::string from =
      fmt::format("(mean over the training, from {} steps; batches of {} and {})", integer(course.steps),
                  integer(course.small_batch), integer(course.large_batch));
  if (!scale.batch || !scale.high) {
    if (scale.low < 1)
      return fmt::format("The noise scale of the gradient is not known: too few steps {}.", from);
    return fmt::format(
        "The noise scale of the gradient is above {} samples {}: batches up to about {}, perhaps far larger ones, cost "
        "almost no more samples than a small one.{}",
        samples_text(scale.low), from, samples_text(analysis::kAlmostNoMore * scale.low),
        text_of_second_half(course));
  }
  return fmt::format(
      "The noise scale of the gradient is {} samples [{}, {}] {}: a batch up to about {} costs almost no more samples than a "
      "small one (at most a tenth), one of {} about twice as many.{}",
      samples_text(*scale.batch), samples_text(scale.low), samples_text(*scale.high), from,
      samples_text(analysis::kAlmostNoMore * *scale.batch), samples_text(*scale.batch),
      text_of_second_half(course));
}

}  // namespace paceline::report
