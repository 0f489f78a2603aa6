#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/topology.h"
#include "cli/commands/commands.h"
#include "cli/commands/data_get.h"
#include "cli/commands/data_images.h"
#include "data/dataset.h"
#include "data/twins.h"

namespace paceline::cli {
namespace {

/// Figures from reading every sample of one set.
struct Census {
  std::vector<std::int64_t> per_class;
  std::vector<double> mean, stddev;   ///< per channel, of pixels / 255
  std::vector<std::uint64_t> hashes;  ///< of each sample's pixels
};

std::string_view as_view(const std::vector<std::uint8_t>& pixels) {
  return {reinterpret_cast<const char*>(pixels.data()), pixels.size()};
}

Census take_census(const data::Dataset& set, int classes, const char* name) {
  const auto format = set.format();
  const auto channels = static_cast<std::size_t>(format.channels);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(format.bytes()));
  std::vector<std::uint64_t> sum(channels), squares(channels);
  Census census{.per_class = std::vector<std::int64_t>(static_cast<std::size_t>(classes)),
                .mean = {},
                .stddev = {},
                .hashes = {}};
  for (std::int64_t index = 0; index < set.size(); ++index) {
    const auto label = set.read(index, pixels);
    if (label < 0 || label >= classes)
      base::fail(base::ErrorKind::data, "{} set: sample {} has label {}, and labels go from 0 to {}", name,
                 index, label, classes - 1);
    ++census.per_class[static_cast<std::size_t>(label)];
    census.hashes.push_back(std::hash<std::string_view>{}(as_view(pixels)));
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      sum[i % channels] += pixels[i];
      squares[i % channels] += std::uint64_t{pixels[i]} * pixels[i];
    }
  }
  const double count = static_cast<double>(set.size()) * format.height * format.width * 255;
  for (std::size_t c = 0; c < channels; ++c) {
    const double mean = static_cast<double>(sum[c]) / count;
    census.mean.push_back(mean);
    census.stddev.push_back(
        std::sqrt(std::max(0.0, static_cast<double>(squares[c]) / (count * 255) - mean * mean)));
  }
  return census;
}

void print_duplicates(const char* where, const data::Dataset& first, const Census& first_census,
                      const data::Dataset& second, const Census& second_census) {
  std::vector<std::uint8_t> one(static_cast<std::size_t>(first.format().bytes())), other(one.size());
  const auto equal = [&](const data::Dataset& a, const data::Dataset& b) {
    return [&](std::int64_t i, std::int64_t j) {
      a.read(i, one);
      b.read(j, other);
      return one == other;
    };
  };
  const auto twins = &first == &second ? data::find_twins(first_census.hashes, equal(first, first))
                                       : data::find_twins(first_census.hashes, equal(first, first),
                                                          second_census.hashes, equal(first, second));
  const auto contradicting = std::count_if(twins.begin(), twins.end(), [&](const data::Twin& twin) {
    return first.label(twin.first) != second.label(twin.second);
  });
  fmt::print("duplicates {}: {}\n", where,
             twins.empty() ? "none"
                           : fmt::format("{}, of them {} under another label", twins.size(), contradicting));
}

template <typename Number>
std::string listed(const std::vector<Number>& values) {
  std::string text;
  for (const auto value : values) text += fmt::format("{}{:.4f}", text.empty() ? "" : " ", value);
  return text;
}

void print_classes(const data::Source& source, const Census& train, const Census& test) {
  const auto most =
      std::max<std::int64_t>(1, *std::max_element(train.per_class.begin(), train.per_class.end()));
  std::size_t width = 5;
  for (const auto& name : source.class_names) width = std::max(width, name.size());
  fmt::print("\n  {:>3}  {:<{}} {:>8} {:>8}\n", "", "class", width, "train", "test");
  for (std::size_t c = 0; c < train.per_class.size(); ++c)
    fmt::print("  {:>3}  {:<{}} {:>8} {:>8}  {}\n", c, source.class_names[c], width, train.per_class[c],
               test.per_class[c], std::string(static_cast<std::size_t>(30 * train.per_class[c] / most), '#'));
}

}  // namespace

int data_command(const Settings& settings) {
  if (settings.data.action == "get") return get_data(settings);
  const auto started = base::Clock::now();
  if (settings.data.action == "manifest") return write_image_manifest(settings.data.spec);
  const bool skips = settings.data.action == "pack" && settings.train.skip_bad_images;
  const auto source =
      data::open(settings.data.spec, {.skip_bad_images = skips, .threads = base::usable_cores()});
  const auto format = source.train->format();
  fmt::print("{}: {}\n", source.spec, source.description);
  fmt::print("{} training and {} test images of {}x{}x{} (height, width, channels), {} classes{}\n",
             source.train->size(), source.test->size(), format.height, format.width, format.channels,
             source.classes(), source.synthetic ? "; SYNTHETIC data" : "");
  if (const auto images = image_parts(source); !images.empty()) {
    if (settings.data.action == "pack")
      return pack_images(source, images, settings.data.pack, settings.data.decoded);
    return settings.data.action == "verify" ? verify_images(source, images) : describe_images(source, images);
  }
  if (settings.data.action == "pack")
    base::fail(base::ErrorKind::usage,
               "data pack is for image folders; '{}' has one file for all images already", source.spec);
  const auto train = take_census(*source.train, source.classes(), "training");
  const auto test = take_census(*source.test, source.classes(), "test");
  if (settings.data.action == "verify") {
    fmt::print("all of it reads: {} samples, {:.1f} MB of pixels, every label in range, in {:.1f} s\n",
               source.train->size() + source.test->size(),
               static_cast<double>(format.bytes() * (source.train->size() + source.test->size())) / 1e6,
               base::seconds_since(started));
    print_duplicates("inside train", *source.train, train, *source.train, train);
    print_duplicates("in both train and test", *source.train, train, *source.test, test);
    print_duplicates("inside test", *source.test, test, *source.test, test);
    return 0;
  }
  fmt::print("normalisation used       mean {}   deviation {}\n", listed(source.mean), listed(source.stddev));
  fmt::print("measured, training set   mean {}   deviation {}\n", listed(train.mean), listed(train.stddev));
  fmt::print("measured, test set       mean {}   deviation {}\n", listed(test.mean), listed(test.stddev));
  fmt::print("usual augmentation       {}{}\n",
             source.crop_padding > 0 ? fmt::format("random crop after padding by {}", source.crop_padding)
                                     : std::string("no crop"),
             source.flip != data::Flip::none ? ", horizontal flip" : ", no flip");
  print_classes(source, train, test);
  return 0;
}

}  // namespace paceline::cli
