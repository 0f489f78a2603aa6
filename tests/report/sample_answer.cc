#include "report/sample.h"

namespace paceline::report {

Section sample_answer() {
  Section section{.id = "answer", .title = "Answer"};
  auto& blocks = section.blocks;
  blocks.emplace_back(Answer{
      .id = "best",
      .certainty = Certainty::tie,
      .chip = "2 tie",
      .figure = "Train with 2 workers, 128 images each: 164.8 images/s.",
      .sentence = "1.74 times 1 worker, 1 core. Compute is the limit, not communication.",
      .value = 164.8,
      .low = 162.8,
      .high = 166.2,
      .n = 60,
      .evidence = "hero",
      .records = {"scale-weak-w2-b128-r0"},
      .command = "paceline train --model resnet18-cifar --data synthetic --workers 2 --local-batch 128"});
  blocks.emplace_back(Answer{.id = "batch",
                             .question = "Which batch?",
                             .certainty = Certainty::tie,
                             .chip = "2 tie",
                             .figure = "128",
                             .unit = "images a worker",
                             .sentence = "256 is as good within the noise. 32 is 13 % slower.",
                             .evidence = "batch"});
  blocks.emplace_back(Answer{.id = "limit",
                             .question = "What limits?",
                             .certainty = Certainty::careful,
                             .chip = "maybe disturbed",
                             .figure = "Compute",
                             .unit = "92 %",
                             .sentence = "Waiting for a later worker 4.7 %, moving gradients 2.1 %.",
                             .evidence = "step"});
  blocks.emplace_back(Answer{.id = "accuracy",
                             .question = "What happens to the accuracy?",
                             .figure = "–",
                             .sentence = "No training ran to its end.",
                             .command = "paceline converge --model resnet18-cifar --data synthetic"});
  Figure hero{.id = "hero",
              .finding = "2 workers, a core each: fastest with 128 and 256 images each",
              .note = "What touches the band cannot be told from the best."};
  hero.views.push_back(
      {.name = "images/s",
       .x = {.label = "global batch", .log = true},
       .y = {.label = "throughput", .unit = "images/s"},
       .series = {{.name = "2 workers, a core each",
                   .points = {{.x = 64,
                               .y = 144.1,
                               .low = 142.2,
                               .high = 145.7,
                               .record = "scale-weak-w2-b32-r0",
                               .n = 60},
                              {.x = 256,
                               .y = 164.8,
                               .low = 162.8,
                               .high = 166.2,
                               .mark = "best",
                               .record = "scale-weak-w2-b128-r0",
                               .n = 60}}},
                  {.name = "1 worker, 1 core",
                   .points = {{.x = 32, .y = 86.7, .low = 86.0, .high = 87.9, .mark = "disturbed", .n = 60},
                              {.x = 128, .y = 94.6, .low = 94.0, .high = 95.0, .n = 60}}},
                  {.name = "4 workers on 2 cores",
                   .points = {{.x = 128, .y = 140.4, .mark = "oversubscribed"}},
                   .hidden = true},
                  {.name = "2 times 1 worker, 1 core",
                   .points = {{.x = 64, .y = 173.4}, {.x = 256, .y = 189.2}},
                   .dashed = true}},
       .marks = {{.axis = 'y', .low = 162.8, .high = 166.2, .label = "as good as the best"}}});
  blocks.emplace_back(std::move(hero));
  blocks.emplace_back(
      Next{.steps = {{.title = "Settle batch 128 and 256",
                      .why = "Their intervals overlap.",
                      .command = "paceline scale --model resnet18-cifar --workers 1,2 --batches 128,256",
                      .seconds = 61.5}},
           .not_answered = {"What 4 workers give with a core for each thread."}});
  return section;
}

Section sample_evidence() {
  Section section{.id = "evidence", .title = "Evidence"};
  section.blocks.emplace_back(Waterfall{
      .id = "step",
      .finding = "2 workers lose 13 % of their step: most to sharing (5.7 %)",
      .note = "Means of a step, which add up; grey is within noise.",
      .from_name = "1 worker, 1 core",
      .to_name = "2 workers, a core each",
      .from = 1.353,
      .to = 1.553,
      .changes = {{"sharing", 0.089, "", 0.08, 0.098},
                  {"slowest worker", 0.048, "workers that are alike: saves at most 3.1 %", 0.04, 0.056},
                  {"exposed transfer", 0.062, "", 0.055, 0.069},
                  {"data wait", 0.001, "", -0.002, 0.004, true}},
      .bars = {{"2 workers", 1.553, {0.0573, 0.0309, 0.0399, 0.0006}},
               {"4 workers", 3.66, {0.4, 0.12, 0.11, -0.001}}}});
  section.blocks.emplace_back(Timeline{.id = "timeline",
                                       .finding = "Rank 1 is the later one in each step",
                                       .note = "Two steps of both ranks.",
                                       .lanes = {"rank 0", "rank 0, all-reduce"},
                                       .phases = {"forward", "backward"},
                                       .spans = {{0, 0, 0, 0.4}, {0, 1, 0.4, 1.3}, {1, 1, 0.9, 1.3}}});
  section.blocks.emplace_back(Comparison{.id = "compare",
                                         .finding = "B is 12 % faster at the best cell",
                                         .note = "Ratios with 95 % intervals.",
                                         .name_of_ratio = "images/s, B over A",
                                         .rows = {{.name = "2 workers, 128 images each",
                                                   .word = Comparison::Word::improved,
                                                   .ratio = 1.12,
                                                   .low = 1.08,
                                                   .high = 1.16,
                                                   .before = "164.8 images/s",
                                                   .after = "184.6 images/s"},
                                                  {.name = "1 worker, 32 images",
                                                   .before = "86.7 images/s",
                                                   .after = "90.1 images/s",
                                                   .why = "the baseline was computed in fp32"}}});
  section.blocks.emplace_back(Strip{.id = "step-times",
                                    .finding = "Other programs were at work in 1 of 3 windows",
                                    .note = "Steps over the median of their configuration.",
                                    .windows = {{.name = "1 worker, 1 core, 32 images",
                                                 .record = "w1",
                                                 .seconds = 1.3,
                                                 .typical_s = 0.37,
                                                 .others_cores = 0.02,
                                                 .low = {0.99, 0.985},
                                                 .middle = {1, 1.002},
                                                 .high = {1.01, 1.02}},
                                                {.name = "2 workers, 1 core each, 128 images each",
                                                 .record = "w2",
                                                 .mark = "disturbed",
                                                 .begin_s = 1.3,
                                                 .seconds = 1.5,
                                                 .typical_s = 1.553,
                                                 .others_cores = 0.91,
                                                 .low = {1, 1.3},
                                                 .middle = {1.2, 1.7},
                                                 .high = {1.4, 2.2}},
                                                {.name = "1 worker, 1 core, 8 images",
                                                 .record = "w1b8",
                                                 .mark = "maybe disturbed",
                                                 .begin_s = 2.8,
                                                 .seconds = 0.7,
                                                 .typical_s = 0.1,
                                                 .low = {0.9},
                                                 .middle = {1},
                                                 .high = {1.1}}}});
  return section;
}

}  // namespace paceline::report
