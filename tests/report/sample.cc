#include "report/sample.h"

namespace paceline::report {
namespace {

TableCell text(std::string words) { return {.text = std::move(words)}; }
TableCell count(double value) { return {.value = value}; }
TableCell figure(double value, double low, double high, std::string mark = {}) {
  return {.value = value, .low = low, .high = high, .mark = std::move(mark)};
}

Section summary() {
  Section section{.id = "summary", .title = "Summary", .blocks = {}};
  section.blocks.push_back(Paragraph{
      .tone = Paragraph::Tone::finding,
      .text = "Which batch size? 128: 94.6 images/s, within 5 % of the best (98.1 images/s at 512)."});
  section.blocks.push_back(Paragraph{
      .tone = Paragraph::Tone::finding,
      .text = "How many workers? 2 are 1.74 times as fast as 1 at local batch 128 (efficiency 87.1 %)."});
  section.blocks.push_back(
      Paragraph{.tone = Paragraph::Tone::plain,
                .text = "What happens to the accuracy? Not measured: run `paceline converge`."});
  section.blocks.push_back(Paragraph{
      .tone = Paragraph::Tone::warning,
      .text = "Cells marked * had more worker threads than cores: their times say nothing about scaling."});
  return section;
}

Section weak() {
  Section section{.id = "weak-scaling", .title = "Weak scaling: how many workers?", .blocks = {}};
  Table table{.id = "scale-weak-time",
              .title = "Time and efficiency, weak scaling (local batch fixed)",
              .definition =
                  "E = t_step(1)/t_step(N) at the same local batch; scaled speedup = N E; epoch speedup = "
                  "T_epoch(1)/T_epoch(N) over the same data, which already contains N.",
              .columns = {{"local_batch", "local batch", "", Format::integer},
                          {"workers", "workers", "", Format::integer},
                          {"global_batch", "global batch", "", Format::integer},
                          {"step", "step", "s", Format::milliseconds},
                          {"images_per_s", "throughput", "images/s", Format::rate},
                          {"epoch", "epoch", "s", Format::seconds},
                          {"efficiency", "efficiency E", "", Format::percent1},
                          {"scaled_speedup", "scaled speedup N E", "", Format::fixed2},
                          {"epoch_speedup", "epoch speedup", "", Format::fixed2}},
              .rows = {},
              .footnotes = {"* more worker threads than cores.",
                            "est.: steps per epoch x median step, from 20 steps."}};
  table.rows = {
      {count(32), count(1), count(32), figure(0.3690, 0.3641, 0.3722), figure(86.7, 86.0, 87.9),
       figure(576.8, 569.1, 581.8, "est."), count(1), count(1), count(1)},
      {count(32), count(2), count(64), figure(0.4440, 0.4391, 0.4502), figure(144.1, 142.2, 145.7),
       figure(347.2, 343.4, 352.1, "est."), figure(0.831, 0.809, 0.848), figure(1.66, 1.62, 1.70),
       figure(1.66, 1.62, 1.69)},
      {count(32), count(4), count(128), figure(0.9120, 0.8804, 0.9611, "*"), figure(140.4, 133.2, 145.4, "*"),
       figure(356.6, 344.2, 375.8, "est. *"), figure(0.405, 0.379, 0.423, "*"), figure(1.62, 1.52, 1.69, "*"),
       figure(1.62, 1.51, 1.69, "*")},
      {count(128), count(1), count(128), figure(1.3531, 1.3480, 1.3611), figure(94.6, 94.0, 95.0),
       figure(529.1, 527.1, 532.2, "est."), count(1), count(1), count(1)},
      {count(128), count(2), count(256), figure(1.5533, 1.5402, 1.5720), figure(164.8, 162.8, 166.2),
       figure(304.4, 301.9, 308.1, "est."), figure(0.871, 0.858, 0.884), figure(1.74, 1.72, 1.77),
       figure(1.74, 1.71, 1.76)},
      {count(128), count(4), count(512),
       TableCell{.text = "-", .note = "skipped: the plan needs 9.1 GB and 7.6 GB are available"},
       TableCell{.text = "-", .note = "skipped"}, TableCell{.text = "-", .note = "skipped"},
       TableCell{.text = "-", .note = "skipped"}, TableCell{.text = "-", .note = "skipped"},
       TableCell{.text = "-", .note = "skipped"}}};
  section.blocks.push_back(std::move(table));

  section.blocks.push_back(
      Plot{.id = "weak-speedup",
           .kind = PlotKind::line,
           .title = "Scaled speedup against workers",
           .caption = "Two workers keep 83 to 87 % of the ideal; four on two cores gain nothing.",
           .x = {.label = "workers", .unit = "", .log = false},
           .y = {.label = "scaled speedup", .unit = "", .log = false},
           .series = {{.name = "ideal", .points = {{1, 1}, {2, 2}, {4, 4}}, .dashed = true},
                      {.name = "local batch 32",
                       .points = {{1, 1}, {2, 1.66, 1.62, 1.70}, {4, 1.62, 1.52, 1.69, "oversubscribed"}}},
                      {.name = "local batch 128", .points = {{1, 1}, {2, 1.74, 1.72, 1.77}}}},
           .categories = {}});
  return section;
}

Section breakdown() {
  Section section{.id = "breakdown", .title = "Where does the time go?", .blocks = {}};
  section.blocks.push_back(Plot{
      .id = "ledger",
      .kind = PlotKind::stacked_bar,
      .title = "The ledger of a step, mean over ranks",
      .caption =
          "Communication that is not hidden behind the backward pass is 7 % of the step at local batch 128.",
      .x = {.label = "cell", .unit = "", .log = false},
      .y = {.label = "time of a step", .unit = "s", .log = false},
      .series = {{.name = "compute", .points = {{0, 0.361}, {1, 0.372}, {2, 1.342}, {3, 1.431}}},
                 {.name = "exposed transfer", .points = {{0, 0}, {1, 0.041}, {2, 0}, {3, 0.062}}},
                 {.name = "waiting for a rank", .points = {{0, 0}, {1, 0.023}, {2, 0}, {3, 0.048}}},
                 {.name = "data wait", .points = {{0, 0.004}, {1, 0.005}, {2, 0.007}, {3, 0.008}}},
                 {.name = "other", .points = {{0, 0.004}, {1, 0.003}, {2, 0.004}, {3, 0.004}}}},
      .categories = {"b 32, N 1", "b 32, N 2", "b 128, N 1", "b 128, N 2"}});
  section.blocks.push_back(Plot{.id = "throughput",
                                .kind = PlotKind::line,
                                .title = "Throughput against batch",
                                .caption = "The knee is at 128.",
                                .x = {.label = "local batch", .unit = "images", .log = true},
                                .y = {.label = "throughput", .unit = "images/s", .log = false},
                                .series = {{.name = "1 worker",
                                            .points = {{16, 71.2, 70.4, 71.9},
                                                       {32, 86.7, 86.0, 87.9},
                                                       {64, 91.9, 91.2, 92.3},
                                                       {128, 94.6, 94.0, 95.0, "knee"},
                                                       {256, 96.9, 96.3, 97.2},
                                                       {512, 98.1, 97.7, 98.4}}}},
                                .categories = {}});
  section.blocks.push_back(
      Table{.id = "settings",
            .title = "Settings that all cells share",
            .definition = "",
            .columns = {{"setting", "setting", "", Format::text}, {"value", "value", "", Format::text}},
            .rows = {{text("--precision"), text("bf16")}, {text("--optimizer"), text("sgd")}},
            .footnotes = {}});
  return section;
}

Section mistakes() {
  Section section{.id = "evaluation", .title = "What does the model get wrong?", .blocks = {}};
  section.blocks.push_back(Heatmap{.id = "confusion",
                                   .finding = "cat is taken for dog most: 131 of 1,000 images",
                                   .note = "Counts of test images.",
                                   .row_label = "shows",
                                   .column_label = "taken for",
                                   .value = {.label = "images", .format = Format::integer},
                                   .rows = {"cat", "dog"},
                                   .columns = {"cat", "dog", "other"},
                                   .cells = {{.value = 812},
                                             {.value = 131, .note = "13.1 % of cat"},
                                             {.value = 57},
                                             {.value = 98},
                                             {.value = 870},
                                             {.value = 32}},
                                   .is_confusion = true});
  section.blocks.push_back(Heatmap{.id = "search-grid",
                                   .finding = "0.2 with batch 128 is best",
                                   .row_label = "learning rate",
                                   .column_label = "batch",
                                   .value = {.label = "validation accuracy", .format = Format::percent1},
                                   .rows = {"0.1", "0.2"},
                                   .columns = {"128", "512"},
                                   .cells = {{.value = 0.61, .low = 0.60, .high = 0.62},
                                             {.value = 0.52, .low = 0.51, .high = 0.53},
                                             {.value = 0.64, .low = 0.63, .high = 0.65, .mark = "best"},
                                             {.note = "diverged"}}});
  section.blocks.push_back(
      Gallery{.table = {.id = "mistakes",
                        .title = "The most confident mistakes",
                        .columns = {{"sample", "image"},
                                    {"label", "shows"},
                                    {"predicted", "taken for"},
                                    {"probability", "probability", "", Format::percent1}},
                        .rows = {{text("number 17"), text("cat"), text("dog"), count(0.998)},
                                 {text("number 4"), text("dog"), text("cat"), count(0.991)}}},
              .pictures = {"\xff\xd8\xff", ""}});
  return section;
}

}  // namespace

Document sample_document() {
  Document document{
      .title = "Paceline report: resnet18-cifar on synthetic",
      .subtitle = "resnet18-cifar (11,173,962 parameters), synthetic data, 2 cores, 2025-01-31",
      .circumstances = {"Intel Xeon, 2 cores", "CPU, bf16", "24 runs, 60 s measured", "2025-01-31"},
      .trust = "quick study: typical interval ±5 %, widest ±25 %",
      .warnings = {"Data is synthetic: accuracies say nothing about real images.",
                   "2 of 6 cells had more worker threads than cores; they are marked *."},
      .facts = {{"CPU", "Intel(R) Xeon(R) Processor, 2 cores"},
                {"instructions", "avx2, avx512f, avx512_bf16, amx_bf16"},
                {"build", "Release, GCC 12.2.0"},
                {"command", "paceline study --quick"}},
      .sections = {sample_answer(), sample_evidence(), summary(), weak(), breakdown(), mistakes()}};
  for (std::size_t i = 2; i < document.sections.size(); ++i) document.sections[i].is_folded = true;
  return document;
}

}  // namespace paceline::report
