#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "base/topology.h"
#include "cli/commands/data_images.h"
#include "cli/screen/screen.h"
#include "cluster/interrupt.h"
#include "cluster/launch_line.h"
#include "data/shards/pack.h"
#include "data/stage.h"

namespace paceline::cli {
namespace {

/// A bar on a terminal; in a log a line every half minute.
class CopyProgress {
 public:
  explicit CopyProgress(std::string name, std::string unit)
      : name_(std::move(name)), unit_(std::move(unit)) {}

  void show(std::int64_t done, std::int64_t all) {
    const double elapsed_s = base::seconds_since(began_);
    const Bar bar{
        .name = name_,
        .done = done,
        .all = all,
        .unit = unit_,
        .elapsed_s = elapsed_s,
        .left_s = done == 0 ? 0 : elapsed_s * static_cast<double>(all - done) / static_cast<double>(done)};
    if (screen_.is_live()) return screen_.draw(bar);
    constexpr double kEvery = 30;
    if (elapsed_s < next_s_) return;
    next_s_ = elapsed_s + kEvery;
    screen_.say(bar_line(bar));
  }
  [[nodiscard]] Screen& screen() { return screen_; }
  [[nodiscard]] double elapsed_s() const { return base::seconds_since(began_); }

 private:
  const std::string name_, unit_;
  const base::TimePoint began_ = base::Clock::now();
  Screen screen_{true, Waits::never};  // what is no result goes to standard error
  double next_s_ = 10;
};

}  // namespace

int pack_into_shards(const Settings& settings, const data::Source& source) {
  const auto& asked = settings.data;
  for (const auto& note : source.notes) print("{}\n", note);
  const cluster::Interrupt interrupt;
  CopyProgress progress("pack", "samples");
  const auto packed = data::pack_shards(
      source, asked.pack,
      {.shards = asked.shards,
       .keeps_order = asked.keep_order,
       .max_side = asked.max_side,
       .quality = asked.quality,
       .threads = base::usable_cores()},
      interrupt.token(), [&](std::int64_t done, std::int64_t all) { progress.show(done, all); });
  progress.screen().clear_bar();
  if (!packed) {
    progress.screen().say("interrupted: {} was not written", asked.pack.string());
    return interrupt.exit_code();
  }
  print(
      "{}: {} samples in {} shards, {:.1f} MB, in {:.1f} s{}; training samples {}\n", asked.pack.string(),
      packed->images, packed->files, static_cast<double>(packed->bytes) / 1e6, progress.elapsed_s(),
      asked.max_side > 0 ? fmt::format("; {} scaled down to {} pixels", packed->scaled, asked.max_side) : "",
      asked.keep_order ? "in the order of the data set" : "in an order drawn once");
  if (source.crop_padding > 0)
    print(
        "augmentation: '{}' is cropped after padding by {}, images in shards by random parts of the "
        "area (crop-area=1 takes nearly all of it)\n",
        source.spec, source.crop_padding);
  print("--data {}\n", cluster::shell_line({packed->spec}));
  return 0;
}

int stage_data(const Settings& settings) {
  const auto& asked = settings.data;
  if (asked.to.empty())
    base::fail(ErrorKind::usage,
               "data stage copies the files of '{}' to a directory of this host; name it: --to DIR",
               asked.spec);
  const cluster::Interrupt interrupt;
  CopyProgress progress("stage", "MB");
  const auto staged =
      data::stage(asked.spec, asked.to,
                  {.threads = base::usable_cores(),
                   .stop = interrupt.token(),
                   .waits =
                       [&] {
                         progress.screen().say("{}: another process of this host copies into it; waiting",
                                               asked.to.string());
                       },
                   .progress = [&](std::int64_t done,
                                   std::int64_t all) { progress.show(done / 1'000'000, all / 1'000'000); }});
  progress.screen().clear_bar();
  if (!staged) {
    progress.screen().say("interrupted: stopped as asked; the same command copies what is missing in {}",
                          asked.to.string());
    return interrupt.exit_code();
  }
  const auto megabytes = [](std::int64_t bytes) { return static_cast<double>(bytes) / 1e6; };
  progress.screen().say(
      "{}: {} of {:.1f} MB; {}{}", asked.to.string(), base::counted(staged->files, "file"),
      megabytes(staged->bytes),
      staged->copied == 0
          ? "all were there, and nothing was copied"
          : fmt::format("{} copied, {:.1f} MB in {:.1f} s, and read back with the SHA-256 of the originals",
                        staged->copied, megabytes(staged->copied_bytes), progress.elapsed_s()),
      staged->removed == 0 ? ""
                           : fmt::format("; {} removed that the data set no longer has",
                                         base::counted(staged->removed, "file")));
  print(staged->spec + "\n");  // as it is, for data=$(paceline data stage ...)
  return 0;
}

}  // namespace paceline::cli
