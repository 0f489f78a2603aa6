#include <cstdio>
#include <iterator>

#include "cli/commands/commands.h"
#include "measure/environment.h"

namespace paceline::cli {
namespace {

constexpr CommandRow kCommandRows[]{
    {"train", kTrain, "one training; a line per epoch, a record at the end", train_command},
    {"sweep", kSweep, "which batch size: time against batch on one worker", sweep_command},
    {"scale", kScale, "how many workers: speedup, efficiency, and where the time goes", scale_command},
    {"converge", kConverge, "what a large batch does to the accuracy, and each remedy", converge_command},
    {"search", kSearch, "the learning rate, batch, optimizer ... that is best on validation", search_command},
    {"evaluate", kEvaluate, "a checkpoint on a test set: by class, confusions, worst mistakes",
     evaluate_command},
    {"classify", kClassify, "images of your own by a checkpoint: the likeliest classes of each",
     classify_command},
    {"study", kStudy, "sweep, scale, converge as one resumable plan, with a report", study_command},
    {"report", kReport, "tables and a page from records, also later and elsewhere", report_command},
    {"runs", kRunList, "the runs below a directory: list, show, rm", runs_command},
    {"serve", kServe, "reports in a browser that follow runs in progress, and metrics", serve_command},
    {"explain", kExplain, "how the answers follow: formulas with the records' numbers in them",
     explain_command},
    {"compare", kCompare, "two studies or runs, cell by cell: what became faster or slower", compare_command},
    {"verify", kVerify, "whether checkpoints, records, packs and caches are as they were written",
     verify_command},
    {"predict", kPredict,
     "what more workers would bring: steps with intervals, the knee, the limit; and its score",
     predict_command},
    {"target", kTarget, "with how many workers an accuracy is reached soonest, cheapest, before a deadline",
     target_command},
    {"reference", kReference,
     "epochs to an accuracy by batch, as a reference (make); whether trainings need as many (check)",
     reference_command},
    {"check", kCheck, "errors in scaling tables or records, with the right figures", check_command},
    {"import", kImport, "what PyTorch, NCCL, Horovod ... measured, as a table to check and report",
     import_command},
    {"init", kInit, "a recipe for a folder of images of your own, with a reason for each choice",
     init_command},
    {"model", kModel,
     "which models there are (list); layers, shapes, operations, memory of one (show); a trained one as ONNX "
     "(export)",
     model_command},
    {"data", kData,
     "what a data set holds (info), whether all of it reads (verify), one file of it (pack), download "
     "(get)",
     data_command},
    {"comm", kComm, "collectives alone: time, algbw, busbw, correct or not; latency and bandwidth",
     comm_command},
    {"launch", kLaunch, "several processes, here or on several hosts: by mpirun, srun or itself",
     launch_command},
    {"sbatch", kSbatch, "a Slurm job script that continues after a lost host", sbatch_command},
    {"doctor", kDoctor, "this machine: cores, instruction sets, memory, chosen kernels", doctor_command},
    {"completion", kCompletion,
     "the script that makes a shell complete commands and options: bash, zsh or "
     "fish",
     completion_command},
    {"man", kManual, "the manual page of all of this, in roff", man_command},
};
static_assert(std::size(kCommandRows) == train::command_index::kNumber, "every command has its row");

}  // namespace

std::span<const CommandRow> command_rows() { return kCommandRows; }

// completion and man: what the program writes about itself, for shells and for man.

int completion_command(const Settings& settings) {
  std::fputs(completion_script(settings.action, kCommandRows).c_str(), stdout);
  return 0;
}

int man_command(const Settings& /*settings*/) {
  std::fputs(manual_page(kCommandRows, measure::version()).c_str(), stdout);
  return 0;
}

}  // namespace paceline::cli
