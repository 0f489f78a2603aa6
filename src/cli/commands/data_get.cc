#include "cli/commands/data_get.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>

#include "base/cache_directory.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/nearest.h"
#include "cluster/interrupt.h"
#include "data/dataset.h"
#include "data/get/get.h"

namespace paceline::cli {
namespace {

data::Package find_package(const std::string& name, const std::string& from) {
  const auto& table = data::packages();
  const auto found = std::find_if(table.begin(), table.end(), [&](const auto& p) { return p.name == name; });
  if (const auto how = data::how_to_get(name); found == table.end() && !how.empty())
    base::fail(base::ErrorKind::usage, "data get: there is no package '{}': {}", name, how);
  if (found == table.end())
    base::fail(base::ErrorKind::usage, "data get: there is no package '{}'{}", name,
               base::suggestion(name, data::package_names()));
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

}  // namespace

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
  fmt::print("{}: {} ({})\n", package.name, source.description,
             got.was_there ? "it was there, nothing was downloaded" : "downloaded, SHA-256 as published");
  fmt::print("--data {}\n", got.spec);
  return 0;
}

}  // namespace paceline::cli
