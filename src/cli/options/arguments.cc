#include "cli/options/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "cli/options/completion.h"
#include "cli/options/recipe.h"
#include "data/dataset.h"
#include "data/get/get.h"
#include "data/image/listing.h"
#include "graph/zoo.h"
#include "measure/record.h"
#include "train/checkpoint/checkpoint.h"

namespace paceline::cli {
namespace {

/// Whether `word` is an option and not a negative number.
bool looks_like_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9') && word[1] != '.';
}

[[noreturn]] void refuse_unknown(const std::string& word, Command command) {
  const auto bare = word.substr(0, word.find('='));
  const auto name = bare.substr(std::min(bare.find_first_not_of('-'), bare.size()));
  const bool is_letter = bare.size() == 2 && bare[1] != '-';
  if (is_letter && !hint_for_other_word(name, "--", command))
    base::fail(ErrorKind::usage, "{}: options have long names only; 'paceline {} --help' lists them", bare,
               command_name(command));
  base::fail(ErrorKind::usage, "{} {}", bare, why_unknown(name, command));
}

/// Whether the command is told first what to do.
bool names_action(const std::vector<std::string>& words, Command command) {
  const auto actions = actions_of(command);
  return !words.empty() && std::ranges::find(actions, words.front()) != actions.end();
}

void take_data_words(const std::vector<std::string>& words, Settings& settings) {
  const bool packs = !words.empty() && words[0] == "pack";
  if (words.size() != (packs ? 3U : 2U) || !names_action(words, kData))
    base::fail(
        ErrorKind::usage,
        "data takes what to do and a data set: paceline data info|verify {}; paceline data pack "
        "folder:DIR FILE.tar, or SPEC DIR --shards N; paceline data stage SPEC --to DIR; paceline data "
        "manifest folder:DIR; or paceline data get {}",
        data::known_specs(), fmt::join(data::package_names(), "|"));
  if (packs) settings.data.pack = words[2];
  settings.data.spec = words[1];
}

void take_runs_words(const std::vector<std::string>& words, Settings& settings) {
  auto& runs = settings.runs;
  const auto actions = actions_of(kRunList);
  if (!names_action(words, kRunList))
    base::fail(ErrorKind::usage, "runs takes {}{}: paceline runs list [DIR], show RUN.., or rm RUN..",
               fmt::join(actions, ", "),
               words.empty()
                   ? ""
                   : fmt::format(", not '{}'{}", words.front(), base::suggestion(words.front(), actions)));
  runs.paths.assign(words.begin() + 1, words.end());
  if (settings.action != "list" && runs.paths.empty())
    base::fail(ErrorKind::usage, "runs {}: name the run's directory; 'paceline runs list' shows them",
               settings.action);
  if (settings.action == "list" && runs.paths.size() > 1)
    base::fail(ErrorKind::usage, "runs list takes one directory, got {}", runs.paths.size());
}

void take_model_words(const std::vector<std::string>& words, Settings& settings) {
  const bool is_known = names_action(words, kModel);
  if (!is_known || words.size() != (words.front() == "list" ? 1U : 2U))
    base::fail(
        ErrorKind::usage,
        "model takes list, show MODEL, or export CHECKPOINT --onnx FILE: paceline model show resnet50; "
        "got {}{}",
        words.empty() ? "nothing" : fmt::format("{}", fmt::join(words, " ")),
        words.empty() || is_known ? "" : base::suggestion(words.front(), actions_of(kModel)));
  settings.model.name = words.back();
}

void take_classify_words(const std::vector<std::string>& words, Settings& settings) {
  constexpr const char* kForm =
      "paceline classify CHECKPOINT IMAGE.. (files, folders or tar archives of them)";
  if (words.size() < 2)
    base::fail(ErrorKind::usage, "classify takes a checkpoint and the images to classify: {}; got {}", kForm,
               words.empty() ? "neither" : fmt::format("'{}' alone", words.front()));
  if (data::is_image_name(words.front()))
    base::fail(ErrorKind::usage, "classify: '{}' stands where the checkpoint is expected: {}", words.front(),
               kForm);
  settings.classify.checkpoint = words.front();
  settings.classify.images.assign(words.begin() + 1, words.end());
}

/// Assigns words that are neither options nor their values: a recipe, records, a data set.
void take_words(const std::vector<std::string>& words, Settings& settings) {
  if (!words.empty() && !actions_of(settings.command).empty()) settings.action = words.front();
  switch (settings.command) {
    case kReport:
    case kExplain:
      if (words.empty())
        base::fail(ErrorKind::usage, "{} takes the records to read: files, or directories that hold them",
                   command_name(settings.command));
      break;
    case kPredict:
    case kTarget:
      if (words.empty())
        base::fail(ErrorKind::usage, "{} takes what was measured: records, directories that hold them{}",
                   command_name(settings.command),
                   settings.command == kPredict ? ", or a table of steps" : "");
      break;
    case kReference:
      if (words.size() < 2 || !names_action(words, kReference))
        base::fail(ErrorKind::usage, "reference takes make or check, then records of trainings; got {}",
                   words.empty() ? "nothing" : fmt::format("{}", fmt::join(words, " ")));
      settings.report.records.assign(words.begin() + 1, words.end());
      return;
    case kVerify:
      if (words.empty())
        base::fail(ErrorKind::usage, "verify takes the files to check, or directories that hold them");
      break;
    case kCheck:
    case kImport:
      if (words.empty() && settings.check.template_name.empty())
        base::fail(ErrorKind::usage,
                   "{0} takes {1}; 'paceline check --template scaling' prints a table to fill in",
                   command_name(settings.command),
                   settings.command == kCheck ? "the records and tables to check"
                                              : "the files of another program to read");
      break;
    case kRunList:
      return take_runs_words(words, settings);
    case kModel:
      return take_model_words(words, settings);
    case kServe:
      if (words.size() > 1)
        base::fail(ErrorKind::usage, "serve takes one directory, got {}: {}", words.size(),
                   fmt::join(words, " "));
      if (!words.empty()) settings.serve.directory = words.front();
      return;
    case kCompare:
      if (words.empty() || words.size() > 2)
        base::fail(
            ErrorKind::usage,
            "compare takes two records or directories that hold some, before and after: paceline compare "
            "A B; or B alone, which is compared with the run of its kind before it; got {}",
            words.size());
      break;
    case kData:
      return take_data_words(words, settings);
    case kCompletion:
      if (words.size() != 1 || !names_action(words, kCompletion))
        base::fail(ErrorKind::usage, "completion takes one of {}: paceline completion bash",
                   fmt::join(actions_of(kCompletion), ", "));
      return;
    case kInit:
      if (words.size() != 1)
        base::fail(ErrorKind::usage, "init takes one folder, with your images: paceline init DIR; got {}",
                   words.empty() ? "none" : fmt::format("{}: {}", words.size(), fmt::join(words, " ")));
      settings.init.directory = words.front();
      return;
    case kEvaluate:
      settings.evaluate.checkpoint = words.front();
      return;
    case kClassify:
      return take_classify_words(words, settings);
    case kLaunch:
    case kSbatch:
      if (settings.child.empty() && settings.batch.status.empty())
        base::fail(ErrorKind::usage,
                   "{0} needs the command to be started after it: paceline {0} ... -- train ...",
                   command_name(settings.command));
      [[fallthrough]];
    default:
      if (!words.empty())
        base::fail(ErrorKind::usage, "{}: '{}' is not expected; 'paceline {} --help' shows what is",
                   command_name(settings.command), words.front(), command_name(settings.command));
      return;
  }
  settings.report.records.assign(words.begin(), words.end());
}

/// Removes the recipe from the words of a command that trains, and returns it; "" if there is none.
std::string take_recipe(std::vector<std::string>& words, Command command) {
  if (!(command & kRuns) || words.empty()) return "";
  const std::string word = words.front();
  if (!word.ends_with(".toml"))
    base::fail(
        ErrorKind::usage,
        "'{}' is neither an option nor a recipe (a file that ends in .toml); lists are written with commas, "
        "such as 32,128",
        word);
  if (words.size() > 1)
    base::fail(ErrorKind::usage, "'{}' and '{}': {} takes one recipe; put them into one file", words[0],
               words[1], command_name(command));
  words.clear();
  return word;
}

bool asks_for_quick(const std::vector<Assignment>& typed) {
  return std::any_of(typed.begin(), typed.end(), [](const auto& given) {
    return given.option->setting == "quick" && given.text == "true";
  });
}

/// A switch that may have a value: --augment=false means --no-augment.
Assignment switched(Assignment assignment, const std::string& text) {
  try {
    assignment.text = base::truth(text) == base::truth(assignment.text) ? "true" : "false";
  } catch (const base::Error& error) {
    base::fail(ErrorKind::usage, "{} {}", assignment.where, error.what());
  }
  return assignment;
}

/// Removes the command to start from the words of launch and sbatch: everything behind "--", or from "train"
/// or "comm" on. `-n` is accepted for --processes, as mpirun and srun write it.
std::vector<std::string> cut_child(std::vector<std::string>& words) {
  auto begin = std::find(words.begin(), words.end(), "--");
  const bool marked = begin != words.end();
  if (!marked)
    begin = std::find_if(words.begin(), words.end(),
                         [](const std::string& word) { return word == "train" || word == "comm"; });
  std::vector<std::string> child(begin + (marked ? 1 : 0), words.end());
  words.erase(begin, words.end());
  std::replace(words.begin(), words.end(), std::string("-n"), std::string("--processes"));
  return child;
}

/// Checks the command to start before anything is started.
void check_child(Settings& settings) {
  const auto& child = settings.child;
  const unsigned startable = settings.command == kSbatch ? kMeasuring : kInProcesses;
  std::vector<std::string> names;
  for (unsigned bit = 1; bit <= startable; bit <<= 1) {
    if (!(startable & bit)) continue;
    const auto command = static_cast<Command>(bit);
    names.push_back(command_name(command));
    if (child.front() != names.back()) continue;
    const auto parsed = parse(command, {child.begin() + 1, child.end()}).settings;
    settings.child_out = parsed.train.out;
    settings.child_data = parsed.train.data;
    settings.child_device = parsed.train.device;
    settings.plan = settings.plan || parsed.plan;  // a plan starts no processes
    settings.has_child_workers = parsed.is_given("workers");
    return;
  }
  base::fail(ErrorKind::usage, "{} starts {}, not '{}'{}", command_name(settings.command),
             fmt::join(names, ", "), child.front(), base::suggestion(child.front(), names));
}

/// The parts of a command line.
struct ParsedLine {
  bool asks_for_help = false;
  std::vector<Assignment> typed;  ///< the options
  std::vector<std::string> rest;  ///< words that are not options
  std::vector<std::string> notes;
};

/// The option that `name` (without dashes) gives or, as "no-augment", switches off.
std::pair<const Option*, bool> option_typed(const std::string& name, Command command) {
  if (const auto* option = find_option(name, command)) return {option, false};
  if (!name.starts_with("no-") || name.starts_with("no-no-")) return {nullptr, false};
  const auto* option = find_option(name.substr(3), command);
  return {option != nullptr && option->value.empty() ? option : nullptr, true};
}

ParsedLine read_line(const std::vector<std::string>& words, Command command) {
  ParsedLine line;
  std::map<std::pair<const Option*, bool>, std::vector<std::string>> given;  // in the order of the table
  for (auto word = words.begin(); word != words.end(); ++word) {
    const auto equals = std::min(word->find('='), word->size());
    const auto name = word->starts_with("--") ? word->substr(2, equals - 2) : "";
    const auto [option, is_off] = option_typed(name, command);
    if (*word == "-h" || name == "help") {
      line.asks_for_help = true;
    } else if (*word == "--") {  // behind it nothing is an option
      line.rest.insert(line.rest.end(), word, words.end());
      break;
    } else if (option == nullptr) {
      line.rest.push_back(*word);
    } else {
      std::string text = word->substr(std::min(equals + 1, word->size()));
      if (text.empty() && option->value.empty()) text = "true";
      if (text.empty() && ++word == words.end())
        base::fail(ErrorKind::usage, "--{} needs a value; 'paceline {} --help' says which", name,
                   command_name(command));
      given[{option, is_off}].push_back(text.empty() ? *word : text);
    }
  }
  if (line.asks_for_help) return line;
  for (const auto& word : line.rest)
    if (looks_like_option(word)) refuse_unknown(word, command);
  for (const auto& [typed, texts] : given) {
    const auto& [option, is_off] = typed;
    const auto where = fmt::format("--{}{}", is_off ? "no-" : "", option->name());
    if (option->value.empty()) {
      for (const auto& text : texts)
        line.typed.push_back(switched({option, is_off ? "false" : "true", where}, text));
      continue;
    }
    const auto other = std::ranges::find_if(texts, [&](const auto& text) { return text != texts.back(); });
    if (other != texts.end() && !option->rules.is_list)
      line.notes.push_back(
          fmt::format("{} is given as {} and as {}; the last one counts", where, *other, texts.back()));
    line.typed.push_back(
        {option, option->rules.is_list ? fmt::format("{}", fmt::join(texts, "\n")) : texts.back(), where});
  }
  return line;
}

/// "data: synthetic here, cifar10:DIR in the training (t/record.json: data)": shown because figures on other
/// data, or of another evaluation, are not those of the training.
std::vector<std::string> differences_from_training(const std::vector<Assignment>& trained,
                                                   const Settings& settings) {
  std::vector<std::string> notes;
  for (const auto& [option, text, where] : trained) {
    if (option->name() == "local-batch" || option->get(settings) == text) continue;  // it changes no figure
    notes.push_back(fmt::format("{}: {} here, {} in the training ({})", option->name(), option->get(settings),
                                text, where));
  }
  return notes;
}

/// Commands that read a site file: those that start something, run, or examine data.
constexpr unsigned kAtASite = kInProcesses | kLaunch | kSbatch | kEvaluate | kData;

/// Replaces a data set's name from the site file, possibly followed by options ("imagenet,train=100"), by its
/// spec. Returns a note if it did.
std::string take_site_name(const Site& site, std::string& data) {
  const auto comma = std::min(data.find(','), data.size());
  const auto name = data.substr(0, comma);
  const auto found = site.data.find(name);
  if (found == site.data.end()) return "";
  data = found->second + data.substr(comma);
  return fmt::format("{}: {} is {}", site.data_where.at(name), name, data);
}

/// So that users need not type again with which options the model of a checkpoint was trained: those of
/// `evaluate` from the record beside it (data, model, precision, device, batch, validation split ...);
/// without a record those in the checkpoint itself: model and precision.
///
/// Errors   Error(data): there is no such checkpoint, its header is broken, or the record cannot be read
std::vector<Assignment> options_of_checkpoint(const std::filesystem::path& checkpoint) {
  const auto info = train::read_checkpoint_info(checkpoint);
  std::vector<Assignment> given;
  const auto take = [&](const std::string& key, const std::string& text, const std::string& where) {
    if (const auto* option = find_option(key, kEvaluate); option != nullptr && !text.empty())
      given.push_back({option, text, where + ": " + key});
  };
  const auto path = info.path.parent_path() / "record.json";
  if (!std::filesystem::exists(path)) {
    const auto known = graph::model_names();
    if (std::find(known.begin(), known.end(), info.model) != known.end())
      take("model", info.model, info.path.string());
    take("precision", info.precision, info.path.string());
    return given;
  }
  const auto record = measure::read_record(path);
  // On these a sample's logits and loss depend, to the last bit; the number of workers is not among them.
  for (const char* key : {"model", "data", "device", "validation-split", "bad-images", "label-smoothing",
                          "shard", "bn", "test-time-augmentation", "measured-kernels"}) {
    const auto found = record.settings.find(key);
    if (found != record.settings.end() && found->second != "0")  // as --shard has it, which takes none
      take(key, found->second, path.string());
  }
  take("precision", record.precision, path.string());
  take("local-batch", std::to_string(record.local_batch), path.string());
  return given;
}

}  // namespace

Parsed parse(Command command, const std::vector<std::string>& typed_words) {
  std::vector<std::string> words = typed_words, child;
  if (command & (kLaunch | kSbatch)) child = cut_child(words);
  auto [asks_for_help, typed, rest, remarks] = read_line(words, command);
  if (asks_for_help) {
    const bool is_short = std::ranges::find(words, "--help") == words.end();
    return {.settings = defaults(command), .help = help_text(command, is_short)};
  }
  if (command == kEvaluate && rest.size() != 1)
    base::fail(ErrorKind::usage,
               "evaluate takes one checkpoint: a .safetensors file, or the directory of a training");
  std::vector<Assignment> trained;
  if (command == kEvaluate) trained = options_of_checkpoint(rest.front());
  Recipe recipe;
  const auto file = take_recipe(rest, command);
  if (!file.empty()) recipe = read_recipe(file, command);
  if (!asks_for_quick(typed)) recipe.quick.clear();
  if (asks_for_quick(typed) && command != kStudy && !recipe.has_quick)
    base::fail(ErrorKind::usage,
               "--quick is the short form of a recipe, its table [quick], and {}; leave --quick out",
               file.empty() ? "no recipe is given" : file + " has none");
  const Site site = (command & kAtASite) ? read_site(site_files(), command) : Site();
  if (!site.given.empty() && (command & (kLaunch | kSbatch)))
    remarks.push_back("site file: " + base::joined(site.given, ", ", &Assignment::where));
  for (auto* const layer : {&recipe.given, &recipe.quick, &typed})
    for (auto& assignment : *layer)
      if (assignment.option->setting == "data")
        if (const auto note = take_site_name(site, assignment.text); !note.empty()) remarks.push_back(note);
  if (command == kData && rest.size() >= 2) (void)take_site_name(site, rest[1]);
  std::vector<std::string> instead;
  for (const auto& assignment : recipe.given)
    if (std::ranges::any_of(typed, [&](const auto& one) { return one.option == assignment.option; }))
      instead.emplace_back(assignment.option->name());
  if (!instead.empty()) recipe.summary += fmt::format("; typed instead: {}", fmt::join(instead, ", "));
  Parsed parsed{.settings = merge_options(command, {trained, site.given, std::move(recipe.given),
                                                    std::move(recipe.quick), std::move(typed)}),
                .help = ""};
  parsed.settings.recipe = recipe.summary;
  std::ranges::move(differences_from_training(trained, parsed.settings),
                    std::back_inserter(parsed.settings.notes));
  if (!recipe.unused.empty()) parsed.settings.notes.push_back(recipe.unused);
  std::ranges::move(remarks, std::back_inserter(parsed.settings.notes));
  parsed.settings.child = std::move(child);
  take_words(rest, parsed.settings);
  if (!parsed.settings.child.empty()) check_child(parsed.settings);
  return parsed;
}

}  // namespace paceline::cli
