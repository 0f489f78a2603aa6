#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <system_error>

#include "base/text.h"
#include "base/word_of.h"
#include "report/text.h"
#include "serve/site.h"

namespace paceline::serve {
namespace {

/// Escapes backslash, quote and line end for the value of a label.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '\\' || letter == '"') out += '\\';
    if (letter == '\n')
      out += "\\n";
    else
      out += letter;
  }
  return out;
}

using Status = const measure::RunStatus&;

struct Metric {
  const char *name, *help;
  std::optional<double> (*value)(Status);
};

std::optional<double> of_count(std::int64_t count) {
  return count > 0 ? std::optional(static_cast<double>(count)) : std::nullopt;
}

constexpr std::array kMetrics{
    Metric{"paceline_images_per_second",
           "Images per second, mean since the previous event; of a study, those of its last cell.",
           [](Status s) { return s.images_per_s; }},
    Metric{"paceline_step_seconds",
           "Seconds per step, mean since the previous event; of a study, those of its last cell.",
           [](Status s) { return s.step_s; }},
    Metric{"paceline_loss", "Mean training loss of the epoch so far.", [](Status s) { return s.loss; }},
    Metric{"paceline_learning_rate", "Learning rate of the last step.",
           [](Status s) { return s.learning_rate; }},
    Metric{"paceline_epoch", "Epoch, from 1.", [](Status s) { return of_count(s.epoch); }},
    Metric{"paceline_step", "Updates done.", [](Status s) { return of_count(s.updates_done); }},
    Metric{"paceline_steps", "Updates of the whole run.", [](Status s) { return of_count(s.updates); }},
    Metric{"paceline_test_accuracy", "Accuracy on the test set, 0 to 1.",
           [](Status s) { return s.test_accuracy; }},
    Metric{"paceline_validation_accuracy", "Accuracy on the validation part, 0 to 1.",
           [](Status s) { return s.validation_accuracy; }},
    Metric{"paceline_cells_done", "Cells of a study that are done.",
           [](Status s) {
             return s.cells > 0 ? std::optional(static_cast<double>(s.cells_done)) : std::nullopt;
           }},
    Metric{"paceline_cells", "Cells of a study.", [](Status s) { return of_count(s.cells); }},
    Metric{"paceline_last_event_timestamp_seconds", "When the last event was written, in seconds since 1970.",
           [](Status s) { return std::optional(s.last_at); }},
};

constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<noscript><meta http-equiv="refresh" content="5"></noscript>
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>Paceline runs</title>
<style>
  :root { color-scheme: light; --paper: #f8f8f5; --card: #fff; --tint: #f1f1ec; --ink: #191d22; --soft: #545e69; --rule: #e3e3dc;
    --accent: #0f6480; --good: #0f6a53; --good-tint: #e3f2ec; --warn: #97420a; --warn-tint: #fcf0e1; --open: #574b9c; --open-tint: #eeecf9; }
  @media (prefers-color-scheme: dark) {
    :root { color-scheme: dark; --paper: #12151a; --card: #1a1e24; --tint: #232930; --ink: #e7e9eb; --soft: #a6b0ba; --rule: #2c333b;
      --accent: #7cc8e2; --good: #6bd2ae; --good-tint: #17312a; --warn: #f3b077; --warn-tint: #362719; --open: #b9aef5; --open-tint: #282544; } }
  * { box-sizing: border-box; }
  body { margin: 0 auto; max-width: 1180px; padding: 18px clamp(16px, 3vw, 48px) 48px; background: var(--paper); color: var(--ink);
    font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
  h1 { font-size: 24px; line-height: 1.25; margin: 0; letter-spacing: -0.008em; }
  .meta, small { color: var(--soft); font-size: 13px; }
  .brand { font-weight: 650; color: var(--accent); }
  .card { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; margin-top: 14px; padding: 4px 18px 8px; }
  table { border-collapse: collapse; width: 100%; }
  th { color: var(--soft); font-size: 13px; font-weight: 600; }
  th, td { border-bottom: 1px solid var(--rule); padding: 8px 14px 8px 0; text-align: left; vertical-align: top; }
  tr:last-child td { border-bottom: 0; }
  a { color: var(--accent); font-weight: 650; text-decoration: none; }
  a:hover { text-decoration: underline; }
  .number { text-align: right; white-space: nowrap; }
  .chip { display: inline-block; font-size: 13px; font-weight: 650; border-radius: 99px; padding: 1px 10px; background: var(--tint); color: var(--soft); white-space: nowrap; }
  .running { background: var(--open-tint); color: var(--open); }
  .complete { background: var(--good-tint); color: var(--good); }
  .failed, .interrupted { background: var(--warn-tint); color: var(--warn); }
  progress { width: 8rem; accent-color: var(--accent); }
  svg { vertical-align: middle; color: var(--accent); }
  @media (max-width: 620px) {
    thead { position: absolute; clip-path: inset(50%); }
    tr, td { display: block; }
    tr { border-bottom: 1px solid var(--rule); padding: 8px 0; }
    td { border: 0; padding: 1px 0; text-align: left !important; }
    td:empty { display: none; }
  }
</style>
<script type="module">
  // The list anew, without moving the page or losing the focus.
  setInterval(async () => {
    const answer = await fetch(location.href).catch(() => null);
    if (!answer?.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html').querySelector('main');
    const at = document.activeElement?.getAttribute('href');
    document.querySelector('main').replaceChildren(...fresh.childNodes);
    [...document.links].find((link) => link.getAttribute('href') === at)?.focus();
  }, 5000);
</script>
</head>
<body>
)";

/// Draws the images per second of the last steps or cells as a line of 100 x 20 pixels.
std::string sparkline(const std::vector<double>& values) {
  if (values.size() < 2) return "";
  const auto most = std::max(1e-9, *std::max_element(values.begin(), values.end()));
  std::string points;
  for (std::size_t i = 0; i < values.size(); ++i)
    points +=
        fmt::format("{:.1f},{:.1f} ", 100.0 * static_cast<double>(i) / static_cast<double>(values.size() - 1),
                    19 - 18 * std::max(0.0, values[i]) / most);
  return fmt::format(
      R"(<svg width="100" height="20" viewBox="0 0 100 20" role="img" aria-label="images/s of the last {} steps or cells, from 0 to {:.0f}"><polyline points="{}" fill="none" stroke="currentColor"/></svg>)",
      values.size(), most, points);
}

/// A sign beside the word: nothing is told by colour alone.
std::string_view sign_of_state(RunState state) {
  return base::word_of<RunState::failed>(state, {"●", "✓", "!", "✗"});
}

std::string row(const Run& run, const std::string& suffix, double now) {
  const auto& status = run.status;
  const auto progress = status.progress();
  std::string bar;
  if (run.state == RunState::running && progress)
    bar = fmt::format(R"(<progress max="1" value="{:.4f}"></progress><br>)", *progress);
  return fmt::format(
      "<tr><td><a href=\"/run/{}{}\">{}</a><br><small>{}{}{}</small></td><td><span class=\"chip {}\">{} "
      "{}</span>{}</td><td>{}{}</td><td class=\"number\">{}</td><td>{}</td><td class=\"number\">{} "
      "ago</td></tr>\n",
      url_text(run.id), suffix, report::markup_text(run.id), report::markup_text(status.kind),
      status.model.empty() ? "" : ", ", report::markup_text(status.model), name(run.state),
      sign_of_state(run.state), name(run.state),
      status.reason.empty() ? "" : fmt::format("<br><small>{}</small>", report::markup_text(status.reason)),
      bar, report::markup_text(progress_text(status)), report::markup_text(best_text(status)),
      sparkline(status.recent), age(now - run.changed_at));
}

}  // namespace

std::string metrics_text(std::span<const Run> runs) {
  std::map<RunState, int> states{
      {RunState::running, 0}, {RunState::complete, 0}, {RunState::interrupted, 0}, {RunState::failed, 0}};
  for (const auto& run : runs) ++states[run.state];
  std::string text =
      "# HELP paceline_runs Runs below the served directory, by state.\n# TYPE paceline_runs gauge\n";
  for (const auto& [state, count] : states)
    text += fmt::format("paceline_runs{{state=\"{}\"}} {}\n", name(state), count);
  for (const auto& metric : kMetrics) {
    std::string samples;
    for (const auto& run : runs) {
      if (run.state != RunState::running) continue;
      if (const auto value = metric.value(run.status))
        samples += fmt::format("{}{{run=\"{}\",kind=\"{}\",model=\"{}\"}} {}\n", metric.name, escaped(run.id),
                               escaped(run.status.kind), escaped(run.status.model), *value);
    }
    if (!samples.empty())
      text += fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n{2}", metric.name, metric.help, samples);
  }
  return text;
}

std::string url_text(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    const bool is_plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                          (letter >= '0' && letter <= '9') ||
                          std::string_view("-._~/").find(letter) != std::string_view::npos;
    if (is_plain)
      out += letter;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(letter));
  }
  return out;
}

std::string list_page(std::span<const Run> runs, const std::string& directory, const std::string& suffix,
                      double now) {
  std::string page(kHead);
  // "." has no name of its own.
  std::error_code unknown;
  const auto whole = std::filesystem::weakly_canonical(directory, unknown).filename().string();
  page += fmt::format(
      "<main>\n<h1>Runs in {}</h1>\n<p class=\"meta\"><span class=\"brand\">Paceline</span> · {} · looks "
      "again every 5 seconds</p>\n<div class=\"card\">\n",
      report::markup_text(unknown || whole.empty() ? directory : whole), base::counted(runs.size(), "run"));
  if (runs.empty())
    return page +
           "<p>There is none yet. A training or a study that is started here makes one.</p>\n</div>\n</main>\n</body>\n</html>\n";
  page +=
      "<table>\n<thead><tr><th>run</th><th>state</th><th>progress</th><th class=\"number\">best so "
      "far</th><th>images/s</th><th class=\"number\">last event</th></tr></thead>\n<tbody>\n";
  for (const auto& run : runs) page += row(run, suffix, now);
  return page + "</tbody>\n</table>\n</div>\n</main>\n</body>\n</html>\n";
}

std::string served_page(std::string page, const std::string& events) {
  constexpr std::string_view kPolicy = "default-src 'none';";
  // The page as built forbids every request; a served page may send requests to its own server.
  if (const auto at = page.find(kPolicy); at != std::string::npos)
    page.insert(at + kPolicy.size(), " connect-src 'self';");
  constexpr std::string_view kHeadTag = "<head>";
  const auto head = page.find(kHeadTag);
  if (!events.empty() && head != std::string::npos)
    page.insert(head + kHeadTag.size(),
                fmt::format("<meta name=\"paceline-live\" content=\"{}\">", report::markup_text(events)));
  return page;
}

}  // namespace paceline::serve
