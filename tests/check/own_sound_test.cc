/// Sound tables in people's own words draw no error, and only warnings that are true: of one or two models on
/// 1 to 64 workers, weak or strong, times of steps, epochs or runs or rates, from a true model with noise,
/// with the heads, units and marks that READMEs and spreadsheets have.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "check/check.h"
#include "check/sound.h"

namespace paceline::check {
namespace {

using sound::Draw;

/// A table as text, and what its warnings may be.
struct OwnTable {
  std::string text;
  bool has_slower = false, has_residual = false;
};

std::string with_thousands(std::string text) {
  const auto point = std::min(text.find('.'), text.size());
  for (std::size_t at = point; at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string clock(double seconds) {
  const auto whole = static_cast<int>(std::round(seconds));
  return whole >= 3600 ? fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60)
                       : fmt::format("{}:{:02}", whole / 60, whole % 60);
}

using Cells = std::vector<std::string>;

/// The rows as Markdown or CSV. Cells hold no commas where those separate.
std::string written(Draw& draw, const std::vector<Cells>& lines) {
  const bool of_markdown = draw.chance(0.4);
  std::string text = of_markdown && draw.chance(0.5) ? "# Results\n\nWe measured this.\n\n" : "";
  for (std::size_t k = 0; k < lines.size(); ++k) {
    if (of_markdown) {
      text += fmt::format("| {} |\n", fmt::join(lines[k], " | "));
      if (k == 0) text += fmt::format("|{}\n", fmt::join(Cells(lines[k].size(), "---|"), ""));
      continue;
    }
    Cells cells;
    for (const auto& cell : lines[k]) cells.push_back(table::csv_cell(cell));
    text += fmt::format("{}\n", fmt::join(cells, ","));
  }
  return text;
}

/// What all rows of one table have in common.
struct Form {
  std::string kind;  ///< step, epoch, run, rate
  bool is_strong, has_batch, has_speedup, has_efficiency, has_parts, has_memory, has_models, has_remark;
  int digits;
  std::string workers, time, batch;
  double unit = 1;  ///< seconds of the unit of time
  bool has_clock = false, has_x, has_sign, has_thousands;
};

Form draw_form(Draw& draw) {
  Form form{};
  form.kind = draw.one_of<std::string>({"step", "epoch", "epoch", "run", "rate"});
  form.is_strong = draw.chance(0.4);
  form.has_batch = form.kind == "step" || draw.chance(0.7);
  form.has_speedup = draw.chance(0.7);
  form.has_efficiency = draw.chance(0.6);
  form.has_parts = form.kind != "rate" && draw.chance(0.3);
  form.has_memory = draw.chance(0.4);
  form.has_models = draw.chance(0.3);
  form.has_remark = draw.chance(0.3);
  form.digits = draw.whole(4, 6);
  form.has_x = draw.chance(0.4);
  form.has_sign = draw.chance(0.5);
  form.has_thousands = draw.chance(0.5);
  const bool is_ours = draw.chance(0.3);
  form.workers = is_ours ? "workers"
                         : draw.one_of<std::string>({"GPUs", "# GPUs", "Number of GPUs", "Ranks", "Devices"});
  form.batch = form.is_strong
                   ? draw.one_of<std::string>({"Global batch", "Total batch size"})
                   : draw.one_of<std::string>({"Batch per GPU", "Local batch size", "Batch size per GPU"});
  if (form.kind == "step") form.unit = draw.one_of({1.0, 1e-3});
  const std::string unit = form.unit == 1e-3 ? " (ms)" : draw.one_of<std::string>({" (s)", "", " [s]"});
  if (form.kind == "step")
    form.time = draw.one_of<std::string>({"Step time", "Time per iteration", "Time/step"}) + unit;
  if (form.kind == "epoch")
    form.time = draw.one_of<std::string>({"Epoch time", "Time per epoch", "epoch duration"}) + unit;
  if (form.kind == "run") {
    form.time = draw.one_of<std::string>({"Training time", "Total time", "Wall time"});
    form.has_clock = draw.chance(0.4) && !form.has_parts;
  }
  if (form.kind == "rate")
    form.time = draw.one_of<std::string>({"Throughput (img/s)", "Images/s", "samples/sec"});
  return form;
}

void add_model(Draw& draw, const Form& form, const std::string& model, std::vector<Cells>& lines,
               OwnTable& made) {
  const double image_s = draw.log_between(1e-4, 1e-2), noise = draw.log_between(0.001, 0.012);
  const double samples = draw.one_of({50000.0, 60000.0, 1281167.0}), epochs = draw.whole(2, 40);
  const double local = draw.one_of({32.0, 64.0, 128.0}),
               overhead = draw.between(0.01, 0.15) * image_s * local;
  const double transfer = draw.between(0.01, 0.5) * image_s * local;
  double time0 = 0;
  int n0 = 0;
  for (int n = draw.one_of({1, 1, 1, 2}); n <= draw.one_of({4, 8, 16, 64}); n *= 2) {
    const double b = form.is_strong ? local * 64 / n : local, steps = std::floor(samples / (b * n));
    const double compute = (overhead + image_s * b) * std::exp(draw.normal(noise));
    const double communication = n > 1 ? transfer * 2 * (n - 1) / n * std::exp(draw.normal(noise)) : 0;
    const double many = form.kind == "step" ? 1 : form.kind == "run" ? steps * epochs : steps;
    const double time = (compute + communication) * many, rate = b * n / (compute + communication);
    const double value = form.kind == "rate" ? rate : time / form.unit;
    if (n0 == 0) n0 = n;
    if (time0 == 0) time0 = form.kind == "rate" ? 1 / rate : form.kind == "step" ? time / (b * n) : time;
    const double own = form.kind == "rate" ? 1 / rate : form.kind == "step" ? time / (b * n) : time;
    const double speedup = time0 / own, efficiency = speedup / n * n0;
    made.has_slower = made.has_slower || speedup < 1;
    // A residual that is what the communication took, since the computing scaled ideally.
    const double residual = time - (form.kind == "step" && !form.is_strong ? time0 * b * n0 : time0 * n0 / n);
    made.has_residual = made.has_residual || std::abs(residual / (communication * many) - 1) < 0.05;
    Cells cells;
    if (form.has_models) cells.push_back(model);
    cells.push_back(form.workers.starts_with("GPU") && draw.chance(0.2) ? fmt::format("{} GPUs", n)
                                                                        : fmt::format("{}", n));
    if (form.has_batch) cells.push_back(fmt::format("{:g}", form.is_strong ? b * n : b));
    auto shown = form.has_clock ? clock(time) : sound::printed(value, form.digits);
    cells.push_back(form.has_thousands && !form.has_clock ? with_thousands(shown) : shown);
    if (form.has_speedup) cells.push_back(sound::printed(speedup, 3) + (form.has_x ? "x" : ""));
    if (form.has_efficiency)
      cells.push_back(form.has_sign ? fmt::format("{:.1f}%", 100 * efficiency)
                                    : fmt::format("{:.3f}", efficiency));
    if (form.has_parts) {
      cells.push_back(sound::printed(compute * many / form.unit, form.digits));
      cells.push_back(n == 1 ? "" : sound::printed(communication * many / form.unit, form.digits));
    }
    if (form.has_memory) cells.push_back(fmt::format("{:.1f}", draw.between(8, 11)));
    if (form.has_remark)
      cells.push_back(n == n0       ? "baseline"
                      : speedup < 1 ? "slower"
                                    : fmt::format("{:.2f}x as fast", speedup));
    lines.push_back(cells);
  }
}

OwnTable draw_own(std::uint64_t seed) {
  Draw draw(seed * 7919 + 17);
  OwnTable made;
  const auto form = draw_form(draw);
  const std::string unit = form.unit == 1e-3 ? " (ms)" : " (s)";
  Cells head;
  if (form.has_models) head.emplace_back("Model");
  head.push_back(form.workers);
  if (form.has_batch) head.push_back(form.batch);
  head.push_back(form.time);
  if (form.has_speedup) head.emplace_back("Speedup");
  if (form.has_efficiency) head.emplace_back("Efficiency");
  if (form.has_parts) {
    head.push_back("Compute" + unit);
    head.push_back("Communication" + unit);
  }
  if (form.has_memory) head.emplace_back("GPU memory (GB)");
  if (form.has_remark) head.emplace_back("Remark");
  std::vector<Cells> lines{head};
  add_model(draw, form, "ResNet-18", lines, made);
  if (form.has_models) add_model(draw, form, "VGG-11", lines, made);
  if (draw.chance(0.15) && !form.has_models) {
    Cells average(head.size(), "");
    average[0] = "Average";
    average[1] = "64";
    lines.push_back(average);
  }
  made.text = written(draw, lines);
  return made;
}

TEST(OwnSound, DrawsOnlyTrueWarnings) {
  const std::uint64_t tables = std::getenv("PACELINE_LONG") != nullptr ? 20000 : 2000;
  std::uint64_t shown = 0, compared = 0;
  for (std::uint64_t seed = 0; seed < tables; ++seed) {
    const auto made = draw_own(seed);
    SCOPED_TRACE(made.text);
    ASSERT_TRUE(table::looks_like_table(made.text));
    const auto table = table::read_table(made.text, "own.md");
    const auto result = check_table(table);
    compared += result.compared > 0 ? 1 : 0;
    for (const auto& finding : result.findings) {
      const bool is_true = (finding.rule == "scaling.slower" && made.has_slower) ||
                           (finding.rule == "parts.residual" && made.has_residual);
      if (finding.severity == Severity::note || (finding.severity == Severity::warning && is_true)) continue;
      if (++shown <= 5)
        ADD_FAILURE() << "seed " << seed << ": " << name(finding.severity) << " " << finding.rule << ": "
                      << finding.sentence << "\n"
                      << made.text;
    }
  }
  EXPECT_EQ(shown, 0U) << "findings in " << tables << " sound tables";
  EXPECT_GT(compared, tables * 9 / 10) << "most of them allow a comparison";
}

}  // namespace
}  // namespace paceline::check
