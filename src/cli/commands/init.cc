#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/topology.h"
#include "cli/commands/commands.h"
#include "cli/options/arguments.h"
#include "cli/screen/screen.h"
#include "cluster/make_backend.h"
#include "engine/make.h"
#include "init/data_facts.h"
#include "init/proposal.h"
#include "train/run.h"

namespace paceline::cli {
namespace {

void require_free(const std::filesystem::path& out, bool force) {
  base::require_directory_of(out, "--out");
  if (!base::is_there(out)) return;
  if (!force)
    base::fail(
        ErrorKind::usage,
        "init: {} exists already and was not changed; write another file with --out FILE.toml, or overwrite "
        "it with --force",
        out.string());
  if (!base::is_file(out))
    base::fail(ErrorKind::usage, "init: {} is not a file, and --force overwrites only files", out.string());
}

/// Files as the recipe finds them, which looks beside itself.
init::GivenModel given_in(const Settings& settings) {
  init::GivenModel given{.weights = settings.train.weights};
  if (settings.is_given("model")) given.model = settings.train.model;
  if (!given.weights.empty() && given.model.empty())
    base::fail(ErrorKind::usage,
               "init: --weights {} needs the model whose weights they are; add --model NAME or FILE.toml",
               given.weights);
  if (settings.init.out.has_parent_path())
    for (std::string* file : {&given.model, &given.weights})
      if (std::filesystem::exists(*file)) *file = std::filesystem::absolute(*file).string();
  return given;
}

/// A proposal with a batch that fits this machine's memory.
init::Proposal propose_what_fits(const init::DataFacts& facts, const init::GivenModel& given,
                                 train::Setup& setup) {
  init::MachineFacts machine{.cores = base::usable_cores(), .precision = engine::auto_precision("cpu")};
  while (true) {
    auto proposal = init::propose(facts, machine, given);
    const auto backend = cluster::make_backend(proposal.options.device, nullptr, {});
    // Of given weights it also says whether they are the model's.
    setup = given.weights.empty() ? train::inspect(proposal.options, backend)
                                  : train::rehearse(proposal.options, backend);
    if (setup.excess.empty()) return proposal;
    if (proposal.options.global_batch <= 1) base::fail(ErrorKind::device, "init: {}", setup.excess);
    machine.most_batch = proposal.options.global_batch / 2;
  }
}

}  // namespace

int init_command(const Settings& settings) {
  const auto& out = settings.init.out;
  if (out.extension() != ".toml")
    base::fail(ErrorKind::usage, "init: --out {} must end in .toml, by which commands know a recipe",
               out.string());
  // A missing folder is reported first; examining one takes seconds.
  if (std::filesystem::exists(settings.init.directory)) require_free(out, settings.init.force);
  const auto facts = init::inspect_data(settings.init.directory, base::usable_cores());
  for (const auto& line : init::findings(facts)) print(line + "\n");
  std::fflush(stdout);
  train::Setup setup;
  const auto proposal = propose_what_fits(facts, given_in(settings), setup);
  const auto file = base::shell_word(out.string());
  base::write_file(out, init::recipe_text(facts, proposal, file));
  (void)parse(kTrain, {out.string()});  // checks that the recipe can be read
  const auto& chosen = proposal.options;
  print("{:<12}{}, batch {}, {:g} epoch{} of {} steps; {:.2f} GB of {:.2f} GB of memory\n", "chosen",
        chosen.model, chosen.global_batch, chosen.epochs, chosen.epochs == 1 ? "" : "s",
        setup.resolved.steps_per_epoch, base::gigabytes(setup.memory.plan_bytes),
        base::gigabytes(setup.memory.available_bytes));
  for (const auto& warning : proposal.warnings) print("{:<12}{}\n", "look at", warning);
  print("{:<12}{}, with a reason for each choice\n\nnext:\n", "wrote", out.string());
  print(
      "  paceline train {} --plan     # settings, memory, steps; writes nothing\n"
      "  paceline train {} --quick    # 30 updates: whether it runs\n"
      "  paceline train {}            # the training{}\n",
      file, file, file,
      proposal.is_long ? "; long on this machine: see the reason of epochs in the recipe" : "");
  return 0;
}

}  // namespace paceline::cli
