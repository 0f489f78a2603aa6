#include "cli/options/options.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace paceline::cli {

Settings defaults(Command command) {
  Settings settings;
  settings.command = command;
  if (command == kComm) settings.train.workers = 2;  // a single worker has no one to communicate with
  // The first steps of a cell touch memory for the first time, which should not be timed.
  if (command & (kSweep | kScale | kStudy)) settings.train.warmup_steps = 2;
  return settings;
}

namespace {

/// `names` are separated by a blank. In `here` a @ stands for the prefix of options. The row speaks only
/// where all options that it names are options of the command.
struct OtherWord {
  std::string_view names;
  std::string_view here;
  unsigned commands = ~0u;
};

/// Rows for single commands come first: what a word of mpirun, torchrun or Slurm means there.
constexpr auto kWords = std::to_array<OtherWord>({
    {"np nproc nprocs n-procs num-procs num-processes nproc-per-node ntasks ntasks-per-node workers num-workers "
     "gpus gpu num-gpus ngpus gpus-per-node workers-per-node nproc-per-host world-size ranks slots",
     "@processes N, or -n N, says how many are started, each with one worker", kLaunch},
    {"host hostfile host-file machinefile machines nodes nnodes num-nodes nodelist hostlist N",
     "@hosts a:2,b:2 names the hosts and how many processes each runs", kLaunch},
    {"max-restarts", "@restarts K", kLaunch},
    {"mpi launcher backend", "@by mpirun, srun or here", kLaunch},
    {"network-interface network-interfaces iface ifname nics", "@interface NAME", kLaunch},
    {"local-rank rank node-rank master-addr master-port rdzv-endpoint rdzv-backend rdzv-id standalone",
     "launch numbers its processes and chooses where they meet; processes that are started apart read RANK, "
     "WORLD_SIZE, MASTER_ADDR and MASTER_PORT (docs/processes.md)",
     kLaunch},
    {"oversubscribe allow-run-as-root bind-to map-by mca report-bindings x env",
     "launch gives mpirun what it needs; @print shows the line, which can be changed and run by itself",
     kLaunch},
    {"ntasks-per-node tasks-per-node ntasks-per-gpu nproc-per-node np nprocs processes workers num-workers",
     "@workers-per-node N", kSbatch},
    {"ntasks n world-size", "a job has @nodes N times @workers-per-node M workers", kSbatch},
    {"nnodes num-nodes N", "@nodes N", kSbatch},
    {"cpus-per-task cpus cpus-per-gpu cores-per-task threads c", "@cores N, for each worker", kSbatch},
    {"gres gpus-per-task gpu num-gpus ngpus G", "@gpus-per-node N", kSbatch},
    {"mem mem-per-node mem-per-cpu mem-per-gpu", "@memory SIZE, of each host", kSbatch},
    {"job-name J", "@name NAME", kSbatch},
    {"mail-user mail-type", "@mail ADDRESS", kSbatch},
    {"walltime time-limit timelimit t", "@time HH:MM:SS", kSbatch},
    {"queue q p", "@partition NAME", kSbatch},
    {"A", "@account NAME", kSbatch},
    {"output error log o e", "the log's name begins with @name NAME", kSbatch},
    {"image docker singularity apptainer sif", "@container FILE", kSbatch},
    {"module modules load prologue", "@setup 'module load ...'", kSbatch},
    {"exclusive dependency nodelist w exclude x reservation licenses begin comment export chdir D wrap hint "
     "nice signal switches",
     "@slurm '--OPTION=VALUE' hands an option to Slurm as it is", kSbatch},
    {"gpus gpu num-gpus ngpus devices num-devices nproc-per-node world-size np nprocs",
     "@workers N says how many share every global batch, @threads how many cores each computes with, @device "
     "on what"},
    {"num-workers workers-per-gpu num-data-workers dataloader-workers",
     "the threads that prepare batches are @loader-threads N of each worker, 0: none; @workers are those that "
     "compute, as ranks do"},
    {"dry-run plan-only",
     "@plan shows settings and their origins, memory, steps and time, and writes nothing"},
    {"learning-rate base-lr initial-lr eta", "@lr X"},
    {"wd decay l2", "@weight-decay X"},
    {"mixup-alpha", "@mixup A"},
    {"cutmix-alpha cutmix-beta", "@cutmix A"},
    {"warmup-epochs warmup-steps-lr lr-warmup-epochs", "@warmup E, in epochs"},
    {"lr-scheduler scheduler lr-schedule sched",
     "@schedule constant, step, cosine, one-cycle, polynomial or plateau"},
    {"arch architecture net network", "@model NAME, or a TOML file of layers"},
    {"dataset data-dir data-path data-root root", "@data SPEC, such as cifar10:DIR or folder:DIR"},
    {"amp fp16 half mixed-precision bf16 precision-bf16",
     "@precision bf16, fp16 on GPUs without bf16, or auto: bf16 where it was measured to be faster"},
    {"sync-bn sync-batchnorm syncbn", "@bn sync"},
    {"class-weight loss-weights pos-weight", "@class-weights balanced, or FILE"},
    {"weighted-sampler balanced-sampler balanced-sampling class-balanced oversample oversampling",
     "@sampler balanced"},
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

/// Whether all options that `text` names behind a @ are options of `command`.
bool names_options_of(Command command, std::string_view text) {
  for (auto at = text.find('@'); at != std::string_view::npos; at = text.find('@', at + 1)) {
    const auto name = text.substr(at + 1);
    const auto end = std::min(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), name.size());
    if (find_option(name.substr(0, end), command) == nullptr) return false;
  }
  return true;
}

#define PACELINE_NAME(bit, name) std::pair{bit, #name},
constexpr std::array kCommands{PACELINE_COMMANDS(PACELINE_NAME)};
#undef PACELINE_NAME

/// "scale and study": the commands of a row, for messages.
std::string commands_of(unsigned commands) {
  std::string text;
  for (const auto& [bit, name] : kCommands)
    if (commands & bit) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

/// Makes variants with "key value" in their name change that option.
void add_change(Settings& settings, const std::string& key, const std::string& value) {
  const Option* const option = find_option(key, kConverge);
  if (option == nullptr)
    base::fail(ErrorKind::usage, "has '{}={}', but {} {}", key, value, key, why_unknown(key, kConverge, ""));
  if (!option->is_of_the_rule())
    base::fail(
        ErrorKind::usage,
        "has '{}={}', but only options of the learning rule tell variants apart; give --{} to all of them",
        key, value, key);
  const auto change = [option, value](train::Options& options) {
    Settings changed = defaults(kConverge);
    changed.train = options;
    option->set(changed, value);
    options = changed.train;
  };
  try {
    train::Options tried = settings.train;
    change(tried);
  } catch (const base::Error& error) {
    throw base::Error(error.kind(), fmt::format("has '{}={}', whose value {}", key, value, error.what()));
  }
  settings.study.converge.changes[fmt::format("{} {}", key, value)] = change;
}

}  // namespace

std::optional<std::string> hint_for_other_word(std::string_view name, std::string_view prefix,
                                               Command command) {
  std::string spelled(name);
  std::replace(spelled.begin(), spelled.end(), '_', '-');
  for (const OtherWord& word : kWords) {
    const auto names = base::words_of(word.names);
    if (!(word.commands & command) || std::ranges::find(names, spelled) == names.end() ||
        !names_options_of(command, word.here))
      continue;
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

bool Option::is_of_the_rule() const {
  using enum measure::SettingRole;
  return setting.role() == rule || setting.role() == remedy || setting.role() == lr_scaling;
}

std::string commands_that_take(const Option& option) {
  const auto commands = option.commands;
  if ((commands & kRuns) != kRuns) return commands_of(commands);
  const auto others = commands_of(commands & ~kRuns);
  return "all that train" + (others.empty() ? "" : ", " + others);
}

const Option* find_option(std::string_view name, Command command) {
  for (const auto& option : options())
    if (option.name() == name && (option.commands & command)) return &option;
  return nullptr;
}

TypedForm typed_form(const Option& option, Command command, bool is_short) {
  const auto present = option.get(defaults(command));
  const auto help = is_short ? beginning_of(option.help.text()) : option.help.text();
  if (!option.value.empty()) return {std::string(option.name()), help, present};
  const bool is_on = present == "true";
  return {(is_on ? "no-" : "") + std::string(option.name()), (is_on ? "without: " : "") + help, ""};
}

std::string beginning_of(const std::string& text) {
  auto end = text.size();
  for (const char* stop : {"; ", ": ", " (", ". "}) end = std::min(end, text.find(stop));
  return text.substr(0, end);
}

std::string command_name(Command command) { return commands_of(command); }

std::string why_unknown(std::string_view name, Command command, std::string_view prefix) {
  if (name == "batch" || name == "batch-size") {
    if (find_option("batches", command) != nullptr)
      return fmt::format("is not an option of {}; {}batches LIST says which sizes are compared",
                         command_name(command), prefix);
    return fmt::format(
        "is not an option, because with several workers it could mean two things: {0}local-batch b is what "
        "one worker takes a step, {0}global-batch B what all take together (B = workers x b)",
        prefix);
  }
  // Checked before other commands' options: --gpus given to train means the workers, not sbatch's request.
  if (const auto hint = hint_for_other_word(name, prefix, command)) return *hint;
  if (const auto hint = hint_for_other_word(name, prefix, kTrain); hint && (command & (kLaunch | kSbatch)))
    return fmt::format("is not an option of {}; behind the command that it starts: {}", command_name(command),
                       hint->substr(hint->find(':') + 2));
  for (const auto& option : options())
    if (option.name() == name)
      return fmt::format("is not an option of {}; it belongs to {}", command_name(command),
                         commands_of(option.commands));
  std::vector<std::string> known;
  for (const auto& option : options())
    if (option.commands & command) known.emplace_back(option.name());
  if (const auto near = base::nearest_name(name, known))
    return fmt::format("is not an option of {}; did you mean {}{}?", command_name(command), prefix, *near);
  return fmt::format("is not an option of {0}; 'paceline {0} --help' lists them", command_name(command));
}

std::string defaults_of(const Option& option) {
  std::optional<std::string> first;
  std::string text;
  for (const auto& [bit, name] : kCommands) {
    if (!(option.commands & bit)) continue;
    const auto present = option.get(defaults(bit));
    const auto written = present.empty() ? std::string("none") : fmt::format("`{}`", present);
    if (!first)
      text = present.empty() ? "" : written;
    else if (present != *first)
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", name, written);
    if (!first) first = present;
  }
  return text;
}

void choose_variants(Settings& settings, std::string_view text) {
  auto& axes = settings.study.converge;
  const auto all = study::converge_variants();
  axes.variants = {all[0], all[1]};
  for (const std::string& words : base::parts(text)) {
    const auto name = study::variant_name(words);
    if (std::find(axes.variants.begin(), axes.variants.end(), name) != axes.variants.end()) continue;
    axes.variants.push_back(name);
    for (const auto& piece : train::words_of(words, '+'))
      if (const auto equals = piece.find('='); equals != std::string::npos)
        add_change(settings, piece.substr(0, equals), piece.substr(equals + 1));
  }
}

}  // namespace paceline::cli
