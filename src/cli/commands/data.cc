#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/topology.h"
#include "cli/commands/commands.h"
#include "cli/commands/data_images.h"
#include "cli/options/options.h"
#include "cli/screen/screen.h"
#include "cluster/interrupt.h"
#include "data/dataset.h"
#include "data/get/get.h"
#include "data/image/inspect.h"

namespace paceline::cli {

namespace {

data::Package find_package(const std::string& name, const std::string& from) {
  const auto& table = data::packages();
  const auto found = std::ranges::find(table, name, &data::Package::name);
  const auto how = data::how_to_get(name);
  if (found == table.end())
    base::fail(ErrorKind::usage, "data get: there is no package '{}'{}", name,
               how.empty() ? base::suggestion(name, data::package_names()) : ": " + how);
  data::Package package = *found;
  if (!from.empty())
    for (auto& file : package.files) file.urls = {from + (from.ends_with('/') ? "" : "/") + file.name};
  return package;
}

/// One line that is redrawn on a terminal; elsewhere a line at every tenth of a file.
class DownloadBar {
 public:
  void operator()(const data::RemoteFile& file, std::int64_t have) {
    if (file.name != name_) {
      name_ = file.name;
      begun_ = base::Clock::now();
      before_ = have;
      tenth_ = -1;
    }
    const double megabytes = static_cast<double>(have) / 1e6;
    const double rate =
        static_cast<double>(have - before_) / 1e6 / std::max(1e-3, base::seconds_since(begun_));
    const bool whole = have == file.bytes;
    const auto tenth = static_cast<int>(10 * have / std::max<std::int64_t>(1, file.bytes));
    if (!live_ && tenth == tenth_) return;
    tenth_ = tenth;
    fmt::print(stderr, "{}{}: {:.1f} of {:.1f} MB, {:.1f} MB/s{}", live_ ? "\r\x1b[K" : "", file.name,
               megabytes, static_cast<double>(file.bytes) / 1e6, rate, live_ && !whole ? "" : "\n");
    std::fflush(stderr);
  }
  void say(const std::string& sentence) const {
    fmt::print(stderr, "{}{}\n", live_ ? "\r\x1b[K" : "", sentence);
    std::fflush(stderr);
  }

 private:
  const bool live_ = ::isatty(STDERR_FILENO) == 1;
  std::string name_;
  base::TimePoint begun_{};
  std::int64_t before_ = 0;
  int tenth_ = -1;
};

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
  Census census;
  census.per_class.resize(static_cast<std::size_t>(classes));
  for (std::int64_t index = 0; index < set.size(); ++index) {
    const auto label = set.read(index, pixels);
    if (label < 0 || label >= classes)
      base::fail(ErrorKind::data, "{} set: sample {} has label {}, and labels go from 0 to {}", name, index,
                 label, classes - 1);
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
  const auto duplicates = &first == &second ? data::find_equal(first_census.hashes, equal(first, first))
                                            : data::find_equal(first_census.hashes, equal(first, first),
                                                               second_census.hashes, equal(first, second));
  const auto contradicting = std::count_if(
      duplicates.begin(), duplicates.end(),
      [&](const data::DuplicatePair& pair) { return first.label(pair.first) != second.label(pair.second); });
  print("duplicates {}: {}\n", where,
        duplicates.empty()
            ? "none"
            : fmt::format("{}, of them {} under another label", duplicates.size(), contradicting));
}

template <typename Number>
std::string listed(const std::vector<Number>& values) {
  return base::joined(values, " ", [](Number value) { return fmt::format("{:.4f}", value); });
}

void print_classes(const data::Source& source, const Census& train, const Census& test) {
  const auto most =
      std::max<std::int64_t>(1, *std::max_element(train.per_class.begin(), train.per_class.end()));
  std::size_t width = 5;
  for (const auto& name : source.class_names) width = std::max(width, name.size());
  print("\n  {:>3}  {:<{}} {:>8} {:>8}\n", "", "class", width, "train", "test");
  for (std::size_t c = 0; c < train.per_class.size(); ++c)
    print("  {:>3}  {:<{}} {:>8} {:>8}  {}\n", c, source.class_names[c], width, train.per_class[c],
          test.per_class[c], std::string(static_cast<std::size_t>(30 * train.per_class[c] / most), '#'));
}

/// Refuses options that another of the commands reads, or another option's absence leaves unread.
void refuse_unread(const Settings& settings) {
  struct Reading {
    measure::Setting option;
    const char* action;
    measure::Setting with;  ///< itself: with no other
  };
  constexpr Reading kReadings[] = {{"list", "verify", "list"},       {"shards", "pack", "shards"},
                                   {"max-side", "pack", "shards"},   {"quality", "pack", "max-side"},
                                   {"keep-order", "pack", "shards"}, {"to", "stage", "to"}};
  for (const auto& [option, action, with] : kReadings) {
    if (!settings.is_given(option)) continue;
    if (settings.action != action)
      base::fail(ErrorKind::usage, "--{} is for data {}, not for data {}; leave it out", option.key(), action,
                 settings.action);
    if (!settings.is_given(with))
      base::fail(ErrorKind::usage, "--{} is read with --{} alone; add that, or leave it out", option.key(),
                 with.key());
  }
  if (settings.data.shards > 0 && settings.data.decoded)
    base::fail(
        ErrorKind::usage,
        "--decoded stores pixels in one file, but --shards keeps the images' own files; leave one out");
}

/// Downloads the package that settings.data names, opens it to check it, and prints the spec that reads it.
/// Returns the exit code. Ctrl-C keeps what was downloaded.
int get_data(const Settings& settings) {
  const auto package = find_package(settings.data.spec, settings.data.from);
  const auto cache = settings.data.cache.empty() ? base::cache_directory() : settings.data.cache;
  const cluster::Interrupt interrupt;
  DownloadBar bar;
  data::DownloadOptions options{.stop = interrupt.token(),
                                .progress = std::ref(bar),
                                .say = [&](const std::string& why) { bar.say(why); }};
  data::Got got;
  try {
    got = data::get(package, cache, options);
  } catch (const base::Error& error) {
    if (interrupt.exit_code() == 0) throw;
    fmt::print(stderr, "paceline: {}\n", error.what());
    return interrupt.exit_code();
  }
  const auto source = data::open(got.spec);
  print("{}: {} ({})\n", package.name, source.description,
        got.was_there ? "it was there, nothing was downloaded" : "downloaded, SHA-256 as published");
  print("--data {}\n", got.spec);
  return 0;
}

}  // namespace

int data_command(const Settings& settings) {
  if (settings.action == "get") return get_data(settings);
  refuse_unread(settings);
  const auto started = base::Clock::now();
  if (settings.action == "stage") return stage_data(settings);
  if (settings.action == "manifest") return write_image_manifest(settings.data.spec);
  const bool skips = settings.action == "pack" && settings.train.skip_bad_images;
  const auto source =
      data::open(settings.data.spec, {.skip_bad_images = skips, .threads = base::usable_cores()});
  const auto format = source.train->format();
  print("{}: {}\n", source.spec, source.description);
  print("{} training and {} test images of {}x{}x{} (height, width, channels), {} classes{}\n",
        source.train->size(), source.test->size(), format.height, format.width, format.channels,
        source.classes(), source.synthetic ? "; SYNTHETIC data" : "");
  if (settings.action == "pack" && settings.data.shards > 0) return pack_into_shards(settings, source);
  if (const auto images = image_parts(source); !images.empty()) {
    if (settings.action == "pack")
      return pack_images(source, images, settings.data.pack, settings.data.decoded);
    return settings.action == "verify" ? verify_images(source, images, settings.data.list)
                                       : describe_images(source, images);
  }
  if (!settings.data.list.empty())
    base::fail(ErrorKind::usage,
               "--list names images in files, but '{}' holds its images in arrays; leave it out",
               source.spec);
  if (settings.action == "pack")
    base::fail(ErrorKind::usage,
               "data pack into one file is for image folders; '{}' has one file for all images already; "
               "--shards N packs any data set",
               source.spec);
  const auto train = take_census(*source.train, source.classes(), "training");
  const auto test = take_census(*source.test, source.classes(), "test");
  if (settings.action == "verify") {
    print("all of it reads: {} samples, {:.1f} MB of pixels, every label in range, in {:.1f} s\n",
          source.train->size() + source.test->size(),
          static_cast<double>(format.bytes() * (source.train->size() + source.test->size())) / 1e6,
          base::seconds_since(started));
    print_duplicates("inside train", *source.train, train, *source.train, train);
    print_duplicates("in both train and test", *source.train, train, *source.test, test);
    print_duplicates("inside test", *source.test, test, *source.test, test);
    return 0;
  }
  print("normalisation used       mean {}   deviation {}\n", listed(source.mean), listed(source.stddev));
  print("measured, training set   mean {}   deviation {}\n", listed(train.mean), listed(train.stddev));
  print("measured, test set       mean {}   deviation {}\n", listed(test.mean), listed(test.stddev));
  print("usual augmentation       {}{}\n",
        source.crop_padding > 0 ? fmt::format("random crop after padding by {}", source.crop_padding)
                                : std::string("no crop"),
        source.flip != data::Flip::none ? ", horizontal flip" : ", no flip");
  print_classes(source, train, test);
  print_unevenness(train.per_class);
  return 0;
}

}  // namespace paceline::cli
