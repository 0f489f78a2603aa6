#include "engine/ghost/phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/rng.h"
#include "base/text.h"
#include "base/units.h"

namespace paceline::engine::ghost {
namespace {

constexpr std::array kPercent{base::Unit{"%", 0.01}};
/// A worker that is silent for longer would be taken for one that hangs.
constexpr double kLongest_s = 2;

double phase_seconds(std::string_view text) {
  const double seconds = base::number_in_units(text, base::kSecondUnits);
  if (seconds > kLongest_s)
    base::fail(base::ErrorKind::usage, "must give phases of at most {:g} s, got '{}'", kLongest_s, text);
  return seconds;
}

/// "BYTES:TIME/BYTES:TIME"
std::vector<ReadyAt> parse_ready(std::string_view text) {
  std::vector<ReadyAt> ready;
  for (std::string_view rest = text; !rest.empty();) {
    const auto slash = std::min(rest.find('/'), rest.size());
    const auto pair = rest.substr(0, slash);
    rest.remove_prefix(std::min(slash + 1, rest.size()));
    const auto colon = std::min(pair.find(':'), pair.size());
    ready.push_back({base::whole_number(pair.substr(0, colon), 1),
                     phase_seconds(pair.substr(std::min(colon + 1, pair.size())))});
    if (ready.size() > 1 && (ready.back().bytes <= ready[ready.size() - 2].bytes ||
                             ready.back().seconds < ready[ready.size() - 2].seconds))
      base::fail(base::ErrorKind::usage, "must give ready times in ascending order, got '{}'", text);
  }
  return ready;
}

}  // namespace

Phases parse_phases(std::string_view text) {
  constexpr std::string_view kExample = "forward=80ms,backward=160ms,spread=3%";
  Phases phases;
  base::each_part(text, kExample, [&](std::string_view key, std::string_view value) {
    if (key == "forward") phases.forward_s = phase_seconds(value);
    if (key == "backward") phases.backward_s = phase_seconds(value);
    if (key == "update") phases.update_s = phase_seconds(value);
    if (key == "spread") phases.spread = base::number_in_units(value, kPercent);
    if (key == "batch") phases.batch = static_cast<int>(base::whole_number(value, 1, 1'000'000));
    if (key == "ready") phases.ready = parse_ready(value);
    return key == "forward" || key == "backward" || key == "update" || key == "spread" || key == "batch" ||
           key == "ready";
  });
  if (phases.forward_s == 0 || phases.backward_s == 0)
    base::fail(
        base::ErrorKind::usage,
        "must give the record of a run, or times of forward and backward above 0, such as {}; got '{}'",
        kExample, text);
  if (phases.spread > 1)
    base::fail(base::ErrorKind::usage, "must give a spread of at most 100%, got '{}'", text);
  if (!phases.ready.empty() && phases.ready.back().seconds > phases.backward_s)
    base::fail(base::ErrorKind::usage, "must give ready times within the time of backward, got '{}'", text);
  return phases;
}

std::string text_of(const Phases& phases) {
  const auto time = [](double seconds) { return fmt::format("{:.6g}ms", 1e3 * seconds); };
  std::string text = fmt::format("forward={},backward={}", time(phases.forward_s), time(phases.backward_s));
  if (phases.update_s > 0) text += ",update=" + time(phases.update_s);
  if (phases.spread > 0) text += fmt::format(",spread={:.6g}%", 100 * phases.spread);
  if (phases.batch > 0) text += fmt::format(",batch={}", phases.batch);
  for (std::size_t i = 0; i < phases.ready.size(); ++i)
    text += fmt::format("{}{}:{}", i == 0 ? ",ready=" : "/", phases.ready[i].bytes,
                        time(phases.ready[i].seconds));
  return text;
}

double work_factor(double spread, std::uint64_t seed, std::uint64_t step, std::int64_t position) {
  if (spread == 0) return 1;
  const double sigma = std::sqrt(std::log1p(spread * spread));
  base::Rng random(seed, base::Purpose::ghost, step, static_cast<std::uint64_t>(position));
  return std::exp(sigma * static_cast<double>(random.normal()) - sigma * sigma / 2);
}

}  // namespace paceline::engine::ghost
