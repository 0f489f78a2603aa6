#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/image/listing.h"

namespace paceline::data {
namespace {

using Words = std::vector<std::string>;

constexpr auto kParts = std::to_array<std::pair<std::string_view, Split>>({{"training", kTrain},
                                                                           {"train", kTrain},
                                                                           {"validation", kValidation},
                                                                           {"valid", kValidation},
                                                                           {"val", kValidation},
                                                                           {"testing", kTest},
                                                                           {"test", kTest}});

std::optional<Split> part_of_word(std::string_view word) {
  for (const auto& [name, split] : kParts)
    if (name == word) return split;
  return std::nullopt;
}

/// Words that say nothing of what a folder holds, beside that it is a part.
bool is_empty_word(std::string_view word) {
  constexpr auto kEmpty = std::to_array<std::string_view>(
      {"set",      "sets", "data",  "dataset", "datasets", "image", "images", "img",   "imgs", "picture",
       "pictures", "pics", "photo", "photos",  "file",     "files", "folder", "split", "part", "subset"});
  return std::ranges::find(kEmpty, word) != kEmpty.end() ||
         std::ranges::all_of(word, [](char letter) { return letter >= '0' && letter <= '9'; });
}

bool is_digit(char letter) { return std::isdigit(static_cast<unsigned char>(letter)) != 0; }
bool is_upper(char letter) { return std::isupper(static_cast<unsigned char>(letter)) != 0; }
bool is_lower(char letter) { return std::islower(static_cast<unsigned char>(letter)) != 0; }

/// "TrainImages_2017" as "train", "images", "2017"; "testset" as "test", "set".
Words words_of(std::string_view name) {
  Words words;
  std::string word;
  const auto end_word = [&] {
    const auto part = std::ranges::find_if(kParts, [&](const auto& one) {
      return word.size() > one.first.size() && word.starts_with(one.first) &&
             is_empty_word(std::string_view(word).substr(one.first.size()));
    });
    if (part != kParts.end()) {
      words.emplace_back(part->first);
      word.erase(0, part->first.size());
    }
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  char before = '\0';
  for (const char letter : name) {
    const bool is_of_word = std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
                            static_cast<unsigned char>(letter) >= 0x80;  // of a letter beyond ASCII
    if (!is_of_word || is_digit(letter) != is_digit(before) || (is_lower(before) && is_upper(letter)))
      end_word();
    if (is_of_word) word += base::lower_case(std::string_view(&letter, 1));
    before = letter;
  }
  end_word();
  return words;
}

/// Refuses classes of one name below several folders: "a/cat", "a/dog", "b/cat", "b/dog". That the folders
/// share one name of several is no sign, and said.
void refuse_repeated_names(const std::string& spec, const std::vector<std::string>& classes, bool has_parts,
                           std::vector<std::string>& notes) {
  std::map<std::string_view, std::vector<std::string_view>> folders_of_name;
  std::map<std::string_view, std::set<std::string_view>> names_in;
  for (const std::string_view name : classes) {
    folders_of_name[last_part(name)].push_back(before_last(name));
    names_in[before_last(name)].insert(last_part(name));
  }
  std::string_view shared;
  for (const auto& [name, folders] : folders_of_name) {
    if (folders.size() < 2) continue;
    const auto &a = names_in[folders[0]], &b = names_in[folders[1]];
    std::vector<std::string_view> both;
    std::ranges::set_intersection(a, b, std::back_inserter(both));
    if (both.size() < 2 && both.size() < std::min(a.size(), b.size())) {
      if (shared.empty()) shared = name;
      continue;
    }
    const auto shown = [](std::string_view folder) { return folder.empty() ? "." : folder; };
    base::fail(
        base::ErrorKind::data,
        "data '{}': '{}' and '{}'{} hold classes of the same names ({}{}), so it is not clear what the folders "
        "above are; {}; or add classes=leaf if each path is a class of its own ('{}'), classes=top if the folders "
        "above are the classes",
        spec, shown(folders[0]), shown(folders[1]),
        folders.size() > 2 ? " and " + base::counted(folders.size() - 2, "more folder") : "", name,
        both.size() > 1 ? ", ..." : "",
        has_parts ? "if they are none, put the classes directly into the parts of the set"
                  : "name parts of the set train, val and test, or give one of the folders",
        classes.front());
  }
  if (shared.empty()) return;
  const auto& folders = folders_of_name[shared];
  notes.push_back(
      fmt::format("'{0}/{2}' and '{1}/{2}' are different classes", folders[0], folders[1], shared));
}

/// Refuses a folder "images" beside others, as masks or scans of the same things: it holds all classes.
void refuse_folder_of_all(const std::string& spec, const std::vector<std::string>& classes) {
  constexpr auto kAll =
      std::to_array<std::string_view>({"images", "image", "imgs", "img", "jpegimages", "data", "dataset"});
  for (const auto& name : classes)
    if (std::ranges::find(kAll, base::lower_case(last_part(name))) != kAll.end())
      base::fail(
          base::ErrorKind::data,
          "data '{}': the folder '{}' would be a class, beside '{}'; give the folder that holds a folder for "
          "each class, or add classes=leaf if it is one",
          spec, name, name == classes.front() ? classes.back() : classes.front());
}

/// Says that a class lies inside another.
void note_class_in_class(const std::vector<std::string>& classes, std::vector<std::string>& notes) {
  for (const auto& name : classes)
    for (auto slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1))
      if (std::ranges::binary_search(classes, name.substr(0, slash))) {
        notes.push_back(fmt::format("'{}' is a class beside '{}', in which it lies; classes=top joins them",
                                    name, name.substr(0, slash)));
        return;
      }
}

/// Says of a class of what belongs to no other, as the sets of Caltech have one.
void note_leftovers(const std::vector<std::string>& classes, std::vector<std::string>& notes) {
  for (const auto& name : classes)
    if (const auto words = words_of(last_part(name));
        classes.size() > 2 && (std::ranges::find(words, "background") != words.end() ||
                               std::ranges::find(words, "clutter") != words.end()))
      notes.push_back(fmt::format(
          "'{}' is called as a class of what belongs to no other, and is trained on as any class; published results often "
          "leave such a class out: move the folder away to compare with them",
          name));
}

/// What is left of a name without what people write differently.
std::string bare_name(std::string_view name) {
  auto bare = base::lower_case(name);
  std::erase_if(bare,
                [](char letter) { return std::string_view(" _-.").find(letter) != std::string_view::npos; });
  const bool is_word = bare.size() > 3 && is_lower(bare[bare.size() - 2]);
  if (is_word && bare.back() == 's' && bare[bare.size() - 2] != 's') bare.pop_back();
  return bare;
}

}  // namespace

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }
std::string_view before_last(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::optional<PartName> part_name(std::string_view folder) {
  std::optional<PartName> name;
  std::string rest;
  for (const auto& word : words_of(folder)) {
    if (const auto split = part_of_word(word)) {
      if (name) return std::nullopt;  // "train_test_split"
      name = PartName{.split = *split, .rest = {}};
    } else {
      rest += (rest.empty() ? "" : " ") + word;
    }
  }
  if (name) name->rest = rest;
  return name;
}

std::optional<Split> split_of(std::string_view folder) {
  std::optional<Split> split;
  for (const auto& word : words_of(folder)) {
    const auto part = part_of_word(word);
    if ((part && split) || (!part && !is_empty_word(word))) return std::nullopt;
    if (part) split = part;
  }
  return split;
}

bool is_no_class_beside_a_part(std::string_view folder) {
  constexpr auto kNoClass = std::to_array<std::string_view>(
      {"unlabeled", "unlabelled", "unlabel", "pred", "predict", "prediction", "predictions", "extra", "eval",
       "evaluation", "dev", "holdout", "submission", "sample", "samples", "submissions", "query"});
  if (part_name(folder)) return true;
  const auto words = words_of(folder);
  return std::ranges::any_of(
             words, [&](const auto& word) { return std::ranges::find(kNoClass, word) != kNoClass.end(); }) ||
         std::ranges::all_of(words, [](const auto& word) { return is_empty_word(word); });
}

std::string_view series_of(std::string_view folder) {
  auto end = folder.size();
  while (end > 0 && is_digit(folder[end - 1])) --end;
  constexpr std::string_view kBetween = "_- .";
  // One letter is a number only behind a separator: "sample_a", but not "data".
  if (end == folder.size() && end > 1 && std::isalpha(static_cast<unsigned char>(folder[end - 1])) != 0 &&
      kBetween.find(folder[end - 2]) != std::string_view::npos)
    --end;
  return end == folder.size() ? std::string_view() : folder.substr(0, end);
}

std::vector<std::pair<std::string, std::string>> alike_names(const std::vector<std::string>& classes) {
  std::map<std::string, const std::string*> first;
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto& name : classes)
    if (const auto [found, is_new] = first.emplace(bare_name(name), &name); !is_new)
      pairs.emplace_back(*found->second, name);
  return pairs;
}

void check_class_names(const std::string& spec, const std::vector<std::string>& classes, bool has_parts,
                       std::vector<std::string>& notes) {
  refuse_repeated_names(spec, classes, has_parts, notes);
  refuse_folder_of_all(spec, classes);
  note_class_in_class(classes, notes);
  note_leftovers(classes, notes);
}

}  // namespace paceline::data
