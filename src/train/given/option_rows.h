#pragma once

/// The options of a training. One row says how an option is written, what it does, which commands take it,
/// its member of Options, and when it is read; the command line, recipes, help and the settings of records
/// follow from it. What a difference in the option means is its row in measure/setting.h.
///
/// Options that are no member of train::Options have rows of the same form in src/cli/options.

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text.h"
#include "measure/record.h"
#include "measure/setting.h"
#include "train/given/names.h"
#include "train/given/options.h"

namespace paceline::train {

/// All commands: X(bit, name as typed). The bits, the names in messages and the declarations of
/// cli/commands/commands.h follow from this list.
#define PACELINE_COMMANDS(X) \
  X(kTrain, train)           \
  X(kSweep, sweep)           \
  X(kScale, scale)           \
  X(kConverge, converge)     \
  X(kStudy, study)           \
  X(kReport, report)         \
  X(kDoctor, doctor)         \
  X(kData, data)             \
  X(kComm, comm)             \
  X(kLaunch, launch)         \
  X(kSbatch, sbatch)         \
  X(kSearch, search)         \
  X(kEvaluate, evaluate)     \
  X(kExplain, explain)       \
  X(kRunList, runs)          \
  X(kServe, serve)           \
  X(kCompare, compare)       \
  X(kVerify, verify)         \
  X(kCheck, check)           \
  X(kImport, import)         \
  X(kCompletion, completion) \
  X(kManual, man)            \
  X(kInit, init)             \
  X(kModel, model)           \
  X(kClassify, classify)     \
  X(kPredict, predict)       \
  X(kReference, reference)   \
  X(kTarget, target)

namespace command_index {
#define PACELINE_INDEX(bit, name) bit,
enum : unsigned { PACELINE_COMMANDS(PACELINE_INDEX) kNumber };
#undef PACELINE_INDEX
}  // namespace command_index

/// The commands, as bits: an option's row says which of them accept it.
enum Command : unsigned {
#define PACELINE_BIT(bit, name) bit = 1u << command_index::bit,
  PACELINE_COMMANDS(PACELINE_BIT)
#undef PACELINE_BIT
  /// commands that train and may use a recipe
  kRuns = kTrain | kSweep | kScale | kConverge | kStudy | kSearch,
  kMeasuring = kRuns | kComm,           ///< commands that measure and write records
  kInProcesses = kMeasuring | kDoctor,  ///< commands that several processes can run together
  kTimed = kSweep | kScale | kStudy,    ///< commands that time cells
  kTrainings = kTrain | kConverge,      ///< commands with whole trainings and accuracies
};

/// Headings of help that have rows here and in src/cli/options.
inline constexpr const char* kBetween = "Between workers";
inline constexpr const char* kProcesses = "Processes and hosts";
inline constexpr const char* kCells = "What is varied and timed";

inline constexpr int kManyWorkers = 4096;
inline constexpr std::int64_t kLargestBatch = std::int64_t{1} << 31;

/// A help text, or a function that makes one from other tables.
class Help {
 public:
  constexpr Help(const char* text) : text_(text) {}
  constexpr Help(std::string (*write)()) : write_(write) {}
  [[nodiscard]] std::string text() const { return write_ != nullptr ? write_() : text_; }

 private:
  const char* text_ = "";
  std::string (*write_)() = nullptr;
};

/// What a value may be.
struct Limits {
  double least = 0;
  double most = std::numeric_limits<double>::infinity();
  bool open_below = false;      ///< `least` itself is refused
  std::string_view words = {};  ///< "error|skip": one of these; a bool or an enumeration is its number
  /// Records lack the option at this text, its default: it is younger than the first records, which stay
  /// comparable with new ones.
  std::string_view left_out = {};
};

/// "auto|pmix|none" as three words.
[[nodiscard]] std::vector<std::string> words_of(std::string_view joined, char between = '|');

namespace option_value {

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <typename T>
inline constexpr bool kIsNumber = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

template <typename T>
T parsed(std::string_view text, const Limits& limits) {
  if constexpr (kIsOptional<T>) {
    return parsed<typename T::value_type>(text, limits);
  } else if constexpr (NamedChoice<T>) {
    return kChoices<T>[base::one_of(text, names_of<T>())].first;
  } else if constexpr (std::is_floating_point_v<T>) {
    return base::decimal(text, {limits.least, limits.most, limits.open_below});
  } else if constexpr (kIsNumber<T>) {
    constexpr auto kMost = sizeof(T) < sizeof(std::int64_t) ? std::int64_t{std::numeric_limits<int>::max()}
                                                            : std::numeric_limits<std::int64_t>::max();
    const auto most =
        limits.most < static_cast<double>(kMost) ? static_cast<std::int64_t>(limits.most) : kMost;
    return static_cast<T>(base::whole_number(text, static_cast<std::int64_t>(limits.least), most));
  } else if constexpr (std::is_same_v<T, bool>) {
    return limits.words.empty() ? base::truth(text) : base::one_of(text, words_of(limits.words)) == 1;
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<T>(base::one_of(text, words_of(limits.words)));
  } else {
    if (!limits.words.empty()) (void)base::one_of(text, words_of(limits.words));
    return T(text);
  }
}

template <typename T>
std::string text_of(const T& value, const Limits& limits) {
  if constexpr (kIsOptional<T>) {
    return value ? text_of(*value, limits) : std::string();
  } else if constexpr (NamedChoice<T>) {
    return std::string(name(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    return base::as_text(value);
  } else if constexpr (kIsNumber<T>) {
    return std::to_string(value);
  } else if constexpr (std::is_same_v<T, bool> || std::is_enum_v<T>) {
    return words_of(limits.words.empty() ? "false|true" : limits.words)[static_cast<std::size_t>(value)];
  } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
    return value.string();
  } else {
    return value;
  }
}

/// A number outside of its limits means that the option is not set, as 0 steps do.
template <typename T>
bool is_set(const T& value, const Limits& limits) {
  if constexpr (kIsNumber<T>) {
    const auto number = static_cast<double>(value);
    return number > limits.least || (number == limits.least && !limits.open_below);
  }
  return true;
}

template <auto First, auto... Rest>
constexpr auto& member(auto& target) {
  if constexpr (sizeof...(Rest) == 0)
    return target.*First;
  else
    return member<Rest...>(target.*First);
}

template <typename Class, typename Member>
Class class_of(Member Class::*);
template <auto First>
using Owner = decltype(class_of(First));

}  // namespace option_value

/// How an option is read into `Target`, train::Options or the settings of all commands, and its texts.
template <typename Target>
class Field {
 public:
  using Read = void (*)(Target& target, std::string_view text, const Limits& limits);
  using Write = std::string (*)(const Target& target, const Limits& limits);

  constexpr Field(Read read, Write write, Write show, Limits limits)
      : read_(read), write_(write), show_(show), limits_(limits) {}
  /// Made of lambdas, where there is more to do than to set a member: set(target, text), text(target) and
  /// shown(target), which is text(target) if it is left out.
  template <typename Set, typename Text, typename Shown = Text>
  requires std::is_empty_v<Set>
  constexpr Field(Set, Text, Shown = {})
      : read_([](Target& target, std::string_view text, const Limits&) { Set{}(target, text); }),
        write_([](const Target& target, const Limits&) { return std::string(Text{}(target)); }),
        show_([](const Target& target, const Limits&) { return std::string(Shown{}(target)); }) {}

  /// Errors   Error(usage): the end of a sentence that begins with the option's name (base/text.h)
  void set(Target& target, std::string_view text) const { read_(target, text, limits_); }
  /// As records hold it; "" where they lack it.
  [[nodiscard]] std::string text(const Target& target) const { return write_(target, limits_); }
  /// As help and plans show it; "" if it is not set.
  [[nodiscard]] std::string shown(const Target& target) const { return show_(target, limits_); }

 private:
  Read read_;
  Write write_, show_;
  Limits limits_ = {};
};

/// The member at the end of a path: at<&Options::rule, &UpdateRule::beta1>({.most = 0.9}).
template <auto First, auto... Rest>
constexpr Field<option_value::Owner<First>> at(Limits limits = {}) {
  using namespace option_value;
  using Target = Owner<First>;
  using Value = std::remove_cvref_t<decltype(member<First, Rest...>(std::declval<Target&>()))>;
  return {[](Target& target, std::string_view text, const Limits& limits_of) {
            member<First, Rest...>(target) = parsed<Value>(text, limits_of);
          },
          [](const Target& target, const Limits& limits_of) {
            auto text = text_of(member<First, Rest...>(target), limits_of);
            return text == limits_of.left_out ? std::string() : text;
          },
          [](const Target& target, const Limits& limits_of) {
            const auto& value = member<First, Rest...>(target);
            return is_set(value, limits_of) ? text_of(value, limits_of) : std::string();
          },
          limits};
}

/// The same where `parse` makes the member's value of the text.
template <auto parse, auto First, auto... Rest>
constexpr Field<option_value::Owner<First>> parsed_at() {
  using namespace option_value;
  using Target = Owner<First>;
  return {[](Target& target, std::string_view text) { member<First, Rest...>(target) = parse(text); },
          [](const Target& target) { return text_of(member<First, Rest...>(target), {}); }};
}

/// By which other option an option is read, and what is said if it is not.
class ReadIf {
 public:
  /// Whether records hold the option where nothing reads it.
  enum Unread { leaves_records, stays_in_records };

  constexpr ReadIf() = default;  ///< always
  consteval ReadIf(const char* option, std::string_view values, Unread unread)
      : option_(measure::Setting(option)), values_(values), unread_(unread) {}

  [[nodiscard]] bool holds(const Options& options) const;
  [[nodiscard]] bool leaves_records_if_unread() const { return unread_ == leaves_records; }
  /// "without --optimizer adam or adamw", "with --no-augment"
  [[nodiscard]] std::string why_not() const;

 private:
  std::optional<measure::Setting> option_ = {};
  std::string_view values_ = {};
  Unread unread_ = leaves_records;
};

/// How an option stands to others and to recipes.
struct OptionRules {
  ReadIf read_if;
  /// An option that cannot be given together with this one; a later layer's overrides an earlier's.
  std::optional<measure::Setting> rival;
  bool is_only_typed = false;  ///< recipes do not take it
  bool is_list = false;        ///< may be given several times; the reader gets all values, joined by "\n"
};
inline constexpr OptionRules kOnlyTyped{.is_only_typed = true};
inline constexpr OptionRules kList{.is_list = true};
consteval OptionRules rival(const char* option) { return {.rival = measure::Setting(option)}; }
/// `values` of `option` with which this one is read: "adam, adamw"; empty: all but 0.
consteval OptionRules read_if(const char* option, std::string_view values = {},
                              ReadIf::Unread unread = ReadIf::leaves_records) {
  return {.read_if = ReadIf(option, values, unread)};
}

template <typename Target>
struct OptionRow {
  measure::Setting setting;  ///< its meaning; its key is the option's name
  /// how its value is written in help texts, "B"; empty: a switch, --name or --no-name
  std::string_view value;
  std::string_view group;  ///< heading in help
  Help help;               ///< what it does, and its consequences
  unsigned commands;       ///< Command bits that accept it
  Field<Target> field;
  OptionRules rules = {};
};

// The rows, in the order of help, which is the order in which values are set: an option from which others
// derive defaults comes first (the optimizer sets those of lr and momentum).
[[nodiscard]] std::span<const OptionRow<Options>> training_rows();  ///< what, by whom, how long
[[nodiscard]] std::span<const OptionRow<Options>> rule_rows();      ///< optimizer, learning rate, schedule
[[nodiscard]] std::span<const OptionRow<Options>> link_rows();      ///< between workers
[[nodiscard]] std::span<const OptionRow<Options>> window_rows();    ///< which steps are timed

/// Declared only: a call in a constant expression is an error, which shows this name.
void a_setting_of_this_part_of_measure_setting_h_has_no_row();

/// Whether `rows` have one for each setting from `first` to `last`, as measure/setting.h orders them.
template <typename Target>
consteval bool has_rows(std::span<const OptionRow<Target>> rows, measure::Setting first,
                        measure::Setting last) {
  for (std::size_t at = first.row(); at <= last.row(); ++at) {
    bool is_found = false;
    for (const auto& row : rows) is_found |= row.setting == measure::Setting::at(at);
    if (!is_found) a_setting_of_this_part_of_measure_setting_h_has_no_row();
  }
  return true;
}

/// The options that can change a figure, as the record has them: names and texts. A number that the chosen
/// optimizer or schedule does not read is absent.
[[nodiscard]] measure::SettingTexts settings(const Options& options);

/// All settings in which two runs differ, by name; `update` stays 0. A setting that only some choices use is
/// absent otherwise; if one side lacks it, that is a difference too.
[[nodiscard]] std::vector<measure::ChangeRecord> differences(const measure::SettingTexts& then,
                                                             const measure::SettingTexts& now);

}  // namespace paceline::train
