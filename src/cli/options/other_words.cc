#include "cli/options/other_words.h"

#include <algorithm>
#include <array>

namespace paceline::cli {
namespace {

/// `names` are separated by a blank. In `here` a @ stands for the prefix of options.
struct OtherWord {
  std::string_view names;
  std::string_view here;
};

constexpr auto kWords = std::to_array<OtherWord>({
    {"gpus gpu num-gpus ngpus devices num-devices nproc-per-node world-size np nprocs",
     "@workers N says how many share every global batch, @threads how many cores each computes with, @device "
     "on what"},
    {"num-workers workers-per-gpu num-data-workers dataloader-workers",
     "the threads that prepare batches are @loader-threads N of each worker, 0: none; @workers are those that "
     "compute, as ranks do"},
    {"dry-run plan-only", "'paceline doctor' shows the machine, and @steps 3 trains three steps and stops"},
    {"learning-rate base-lr initial-lr eta", "@lr X"},
    {"wd decay l2", "@weight-decay X"},
    {"warmup-epochs warmup-steps-lr lr-warmup-epochs", "@warmup E, in epochs"},
    {"lr-scheduler scheduler lr-schedule sched", "@schedule constant, step, cosine or one-cycle"},
    {"arch architecture net network", "@model NAME, or a TOML file of layers"},
    {"dataset data-dir data-path data-root root", "@data SPEC, such as cifar10:DIR or folder:DIR"},
    {"amp fp16 mixed-precision bf16 precision-bf16",
     "@precision bf16, or auto: bf16 where it was measured to be faster"},
    {"sync-bn sync-batchnorm syncbn", "@bn sync"},
    {"zero-init-residual", "@zero-gamma"},
    {"max-epochs num-epochs n-epochs nb-epochs", "@epochs E"},
    {"max-steps num-steps iterations iters train-steps", "@steps S"},
    {"val-split validation-fraction val-fraction", "@validation-split X"},
    {"val-every eval-every check-val-every-n-epoch", "@evaluate-every N"},
    {"checkpoint ckpt-path load-checkpoint resume-from",
     "@resume FILE or DIR, of a training's own checkpoints"},
    {"save-dir output-dir logdir log-dir checkpoint-dir default-root-dir", "@out DIR"},
    {"backend dist-backend strategy accelerator",
     "processes are joined by what started them ('paceline launch', mpirun, srun), and @device says on what they "
     "compute"},
    {"local-rank rank node-rank master-addr master-port dist-url rdzv-endpoint",
     "ranks and addresses come from the launcher: 'paceline launch', mpirun, srun or torchrun sets them"},
    {"accumulate-grad-batches gradient-accumulation-steps accumulation-steps",
     "every worker takes its whole part of a batch at once, and the plan says whether it fits; @bn ghost:N keeps "
     "the statistics of the smaller one"},
    {"no-cuda use-cuda cuda cpu", "@device cpu or cuda"},
    {"bucket-cap-mb fusion-threshold fusion-threshold-mb", "@bucket-mb X"},
    {"fp16-allreduce compression gradient-compression", "@gradients-as bf16, between processes"},
    {"nnodes num-nodes",
     "'paceline launch --hosts a:2,b:2 -- train ...' and 'paceline sbatch --nodes N' use several"},
    {"job-name", "of sbatch: --name"},
    {"verbose print-freq log-interval",
     "progress is printed once a second; @log-steps keeps every step's loss"},
    {"profile profiler", "@timeline FILE; every run measures where its time goes, nothing to switch on"},
});

bool has_word(std::string_view words, std::string_view name) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == name) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

}  // namespace

std::optional<std::string> hint_for_other_word(std::string_view name, std::string_view prefix) {
  std::string spelled(name);
  std::replace(spelled.begin(), spelled.end(), '_', '-');
  for (const OtherWord& word : kWords) {
    if (!has_word(word.names, spelled)) continue;
    std::string text = "is not an option: ";
    for (const char letter : word.here)
      if (letter == '@')
        text += prefix;
      else
        text += letter;
    return text;
  }
  return std::nullopt;
}

}  // namespace paceline::cli
