#include "check/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace paceline::check {
namespace {

/// The wrong forms that give the printed number and differ from the right values.
std::vector<const WrongForm*> explanations(const Claim& claim) {
  std::vector<const WrongForm*> found;
  // A number close to a right value may be right but rounded twice. So no mistake is named; it is only said
  // not to follow.
  if (std::ranges::any_of(claim.right,
                          [&](const Interval& right) { return meets(claim.printed, right, kApart); }))
    return found;
  for (const auto& form : claim.wrong) {
    // A small difference of two large figures can be matched by chance.
    constexpr double kUndecided = 0.2;
    if (form.value.high - form.value.low > kUndecided * std::abs(form.value.middle())) continue;
    const bool is_apart = std::ranges::all_of(claim.right, [&](const Interval& right) {
      return std::abs(form.value.middle() - right.middle()) > kApart * std::abs(right.middle());
    });
    if (is_apart && meets(claim.printed, form.value, form.tolerance)) found.push_back(&form);
  }
  return found;
}

/// Settings of a program that have columns of their own.
constexpr Column kOfSetup[] = {"program", "model", "device", "train_samples", "covers", "excludes", "clock"};

/// A key of what must agree before two rows may form a ratio, if the time is that of `time_of`.
std::string subject_of_row(const Row& row, std::string_view time_of) {
  return fmt::format("{}\x1f{}\x1f{}\x1f", row.text("model"), row.text("message_bytes"), time_of);
}

/// The kinds of time for which a row may be a baseline; all kinds if its own is not stated.
std::vector<std::string_view> kinds_of(const Row& row) {
  if (!row.knows("time_of")) return {"", "step", "epoch", "run"};
  return {"", row.text("time_of")};
}

std::string program_of(const Row& row) { return texts_of(row, {Column("model"), Column("program")}); }

/// Whether any ratio of the two rows can be formed.
bool has_ratio(const Row& a, const Row& b) {
  if (a.knows("rate_per_s") && b.knows("rate_per_s")) return true;
  return a.knows("time_s") && b.knows("time_s") && a.text("time_of") == b.text("time_of");
}

bool is_equal(const Row& a, const Row& b, Column column) {
  return a.knows(column) && a.text(column) == b.text(column);
}

/// Like differing_settings().empty(), but faster.
bool has_same_settings(const Row& a, const Row& b) {
  for (const Column column : kOfSetup)
    if (a.knows(column) && b.knows(column) && a.text(column) != b.text(column)) return false;
  // Both are in the order of their names.
  for (auto x = a.settings.begin(), y = b.settings.begin(); x != a.settings.end() && y != b.settings.end();) {
    const int order = x->first.compare(y->first);
    if (order == 0 && x->second != y->second) return false;
    if (order <= 0) ++x;
    if (order >= 0) ++y;
  }
  return true;
}

/// How similar row b is to row a, as a candidate for its baseline.
int likeness(const Row& a, const Row& b) {
  int score = has_ratio(a, b) ? 64 : 0;
  score += has_same_settings(a, b) ? 128 : 0;
  const bool is_strong = a.text("scaling") == "strong";
  const auto same = [](std::optional<double> x, std::optional<double> y) { return x && y && *x == *y; };
  const bool same_local = same(local_batch(a), local_batch(b)),
             same_global = same(global_batch(a), global_batch(b));
  score += (is_strong ? same_global : same_local) ? 8 : 0;
  score += (is_strong ? same_local : same_global) ? (a.knows("scaling") ? 1 : 8) : 0;
  score += is_equal(a, b, "batch") ? 4 : 0;
  score += is_equal(a, b, "epochs") ? 2 : 0;
  score += is_equal(a, b, "repeat") ? 1 : 0;
  score += a.text("scaling") == b.text("scaling") ? 1 : 0;
  return score;
}

/// What rows of one program on one device with one set of settings have in common.
std::string setup_of(const Row& row) {
  std::string text = row.text("program") + '\x1f' + row.text("device") + '\x1f';
  for (const auto& [name, value] : row.settings) text += name + '=' + value + '\x1f';
  return text;
}

Interval whole_steps(double samples, double batch) {
  return {std::max(1.0, std::floor(samples / batch)), std::ceil(samples / batch)};
}

}  // namespace

bool follows(const Claim& claim) {
  return std::ranges::any_of(claim.right,
                             [&](const Interval& right) { return meets(claim.printed, right, kFollows); });
}

Interval interval_of(const table::Number& number) {
  return {std::max(0.0, number.value - number.half_unit), number.value + 2 * number.half_unit};
}

Interval exactly_one(double value) { return {value, value}; }

Interval times(const Interval& a, const Interval& b) { return {a.low * b.low, a.high * b.high}; }

Interval divided(const Interval& a, const Interval& b) {
  const double least = std::max(b.low, 1e-300);
  return {a.low / std::max(b.high, 1e-300), a.high / least};
}

Interval times(const Interval& a, double factor) { return {a.low * factor, a.high * factor}; }

bool meets(const table::Number& claim, const Interval& interval, double tolerance) {
  const double t = std::max(2 * claim.half_unit, tolerance * std::abs(claim.value));
  return claim.value + t >= interval.low && claim.value - t <= interval.high;
}

std::vector<Judgement> judge(const std::vector<Claim>& claims) {
  std::vector<Judgement> judgements(claims.size());
  std::vector<std::vector<const WrongForm*>> explained(claims.size());
  std::map<std::string, int> votes;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (follows(claims[i]) || claims[i].right.empty()) continue;
    judgements[i].follows = false;
    explained[i] = explanations(claims[i]);
    for (const auto* form : explained[i]) ++votes[form->id];
  }
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (explained[i].empty()) continue;
    // Among the forms with the most votes the first, because simple forms come first.
    judgements[i].form = *std::ranges::max_element(
        explained[i], [&](const WrongForm* a, const WrongForm* b) { return votes[a->id] < votes[b->id]; });
  }
  return judgements;
}

Study::Study(const Table& table)
    : table_(table), baselines_(table.rows.size()), of_other_settings_(table.rows.size()) {
  for (std::size_t i = 0; i < size(); ++i)
    if (const auto n = workers(row(i))) by_workers_[{*n, program_of(row(i))}].push_back(i);
  find_baselines();
  std::map<std::string, std::size_t> by_text;
  for (std::size_t i = 0; i < size(); ++i) {
    const auto [found, is_new] = by_text.try_emplace(configuration(row(i)), groups_.size());
    if (is_new) groups_.emplace_back();
    groups_[found->second].push_back(i);
  }
}

void Study::find_baselines() {
  Fewest of_subject, of_setup;
  std::map<std::string, std::size_t> by_run;
  std::set<std::string> on_one;  // programs that ran on one worker
  for (std::size_t i = 0; i < size(); ++i) {
    by_run.try_emplace(row(i).text("run"), i);
    if (workers(row(i)) == 1.0) on_one.insert(row(i).text("program"));
    // Rows without a time count too: the others may refer to a row whose time was not printed.
    if (!workers(row(i))) continue;
    for (const auto kind : kinds_of(row(i))) {
      const auto subject = subject_of_row(row(i), kind);
      add(of_subject[subject], i);
      add(of_setup[subject + setup_of(row(i))], i);
    }
  }
  for (std::size_t i = 0; i < size(); ++i) {
    if (row(i).knows("baseline")) {
      const auto found = by_run.find(row(i).text("baseline"));
      if (found != by_run.end() && found->second != i) baselines_[i] = {found->second};
      continue;
    }
    const auto subject = subject_of_row(row(i), row(i).text("time_of"));
    if (const auto found = of_subject.find(subject); found != of_subject.end())
      baselines_[i] = baselines_of(i, found->second);
    if (baselines_[i].empty() || has_same_settings(row(i), row(baselines_[i].front()))) continue;
    std::vector<std::size_t> own;
    if (const auto found = of_setup.find(subject + setup_of(row(i))); found != of_setup.end()) {
      own = baselines_of(i, found->second);
      // The row with the fewest workers of its set-up is itself a baseline if the set-up has more rows.
      if (own.empty() && found->second.has_more) {
        of_other_settings_[i] = std::exchange(baselines_[i], {});
        continue;
      }
    }
    // A parallel program that was not run on one worker is compared with the serial program.
    const auto& base = row(baselines_[i].front());
    if (own.empty() && workers(base) == 1.0 && !on_one.contains(row(i).text("program")) &&
        differing_settings(row(i), base) == std::vector<std::string>{"program"})
      continue;
    if (!own.empty() && !has_same_settings(row(i), row(own.front())))
      baselines_[i] = std::move(own);  // its own, on other data: no ratio, which has to be reported
    else
      of_other_settings_[i] = std::exchange(baselines_[i], std::move(own));
  }
}

void Study::add(Smallest& smallest, std::size_t i) const {
  const double n = *workers(row(i));
  if (!smallest.all.empty() && n != smallest.workers) smallest.has_more = true;
  if (!smallest.all.empty() && n > smallest.workers) return;
  if (smallest.all.empty() || n < smallest.workers) smallest = {.workers = n, .has_more = smallest.has_more};
  smallest.all.push_back(i);
  if (const auto b = local_batch(row(i))) smallest.by_local[*b].push_back(i);
  if (const auto b = global_batch(row(i))) smallest.by_global[*b].push_back(i);
}

std::vector<std::size_t> Study::baselines_of(std::size_t i, const Smallest& fewest) const {
  // With more candidates than this, only the first are searched for the most similar.
  constexpr std::size_t kMany = 64;
  const auto n = workers(row(i));
  if (!n || fewest.all.empty() || fewest.workers >= *n) return {};
  const auto with_batch = [&](const auto& by_batch, std::optional<double> batch) {
    const auto found = batch ? by_batch.find(*batch) : by_batch.end();
    return found == by_batch.end() ? nullptr : &found->second;
  };
  const bool is_strong = row(i).text("scaling") == "strong";
  const auto* candidates = is_strong ? with_batch(fewest.by_global, global_batch(row(i)))
                                     : with_batch(fewest.by_local, local_batch(row(i)));
  if (candidates == nullptr || fewest.all.size() <= kMany) candidates = &fewest.all;
  std::vector<std::size_t> best;
  int best_score = -1;
  for (std::size_t k = 0; k < std::min(candidates->size(), kMany); ++k) {
    const int score = likeness(row(i), row((*candidates)[k]));
    if (score > best_score) best.clear();
    if (score >= best_score) best.push_back((*candidates)[k]);
    best_score = std::max(best_score, score);
  }
  return best;
}

const std::vector<std::size_t>& Study::with_workers(double n, const Row& like) const {
  static const std::vector<std::size_t> kNone;
  const auto found = by_workers_.find({n, program_of(like)});
  return found == by_workers_.end() ? kNone : found->second;
}

std::string configuration(const Row& row, const std::vector<Column>& but) {
  std::string text;
  for (const auto column : Column::all()) {
    if (column.role() != table::ColumnRole::configuration || std::ranges::find(but, column) != but.end())
      continue;
    text += row.text(column) + '\x1f';
  }
  for (const auto& [name, value] : row.settings) text += name + '=' + value + '\x1f';
  return text;
}

std::string texts_of(const Row& row, std::initializer_list<Column> columns) {
  std::string text;
  for (const auto column : columns) text += row.text(column) + '\x1f';
  return text;
}

bool knows_any(const Row& row, std::initializer_list<Column> columns) {
  return std::ranges::any_of(columns, [&](Column column) { return row.knows(column); });
}

std::optional<double> workers(const Row& row) {
  const auto n = row.value("workers");
  return n && *n > 0 ? n : std::nullopt;
}

std::optional<double> local_batch(const Row& row) {
  if (const auto b = row.value("local_batch"); b && *b > 0) return b;
  const auto all = row.value("global_batch");
  const auto n = workers(row);
  if (all && n && *all > 0) return *all / *n;
  const auto unlabelled = row.value("batch");
  return unlabelled && n && *n == 1 && *unlabelled > 0 ? unlabelled : std::nullopt;
}

std::optional<double> global_batch(const Row& row) {
  if (const auto all = row.value("global_batch"); all && *all > 0) return all;
  const auto one = row.value("local_batch");
  const auto n = workers(row);
  if (one && n && *one > 0) return *one * *n;
  const auto unlabelled = row.value("batch");
  return unlabelled && n && *n == 1 && *unlabelled > 0 ? unlabelled : std::nullopt;
}

double accumulation(const Row& row) {
  for (const auto& [name, text] : row.settings)
    if (name.find("accum") != std::string::npos)
      if (const auto number = table::read_number(text); number && number->value >= 1) return number->value;
  return 1;
}

std::optional<Interval> images(const Row& row) {
  const auto& of = row.text("time_of");
  const auto batch = global_batch(row);
  if (of == "step") return batch ? std::optional(exactly_one(*batch)) : std::nullopt;
  const auto samples = row.value("train_samples");
  const auto epochs = of == "epoch" ? std::optional(1.0) : row.value("epochs");
  if (of.empty()) return std::nullopt;
  if (of == "run" && row.knows("updates") && batch) return exactly_one(*row.value("updates") * *batch);
  if (!samples || !epochs || *samples <= 0 || *epochs <= 0) return std::nullopt;
  if (!batch) return exactly_one(*samples * *epochs);
  const auto a_epoch = whole_steps(*samples, *batch);
  return Interval{std::min(*samples, a_epoch.low * *batch) * *epochs,
                  std::max(*samples, a_epoch.high * *batch) * *epochs};
}

std::optional<Interval> steps(const Row& row) {
  const auto& of = row.text("time_of");
  if (of == "step") return exactly_one(1);
  if (of == "run")
    for (const Column column : {Column("updates"), Column("steps")})
      if (const auto known = row.value(column); known && *known > 0) return exactly_one(*known);
  const auto samples = row.value("train_samples");
  const auto batch = global_batch(row);
  const auto epochs = of == "epoch" ? std::optional(1.0) : row.value("epochs");
  if (of.empty() || !samples || !batch || !epochs || *samples <= 0) return std::nullopt;
  const auto a_epoch = whole_steps(*samples, *batch);
  const Interval all{a_epoch.low * *epochs, a_epoch.high * *epochs};
  // The row may say which of them it was.
  if (const auto known = row.value("steps"); known && *known >= all.low && *known <= all.high)
    return exactly_one(*known);
  return all;
}

std::optional<table::Number> claimed_ratio(const Row& row) {
  const auto speedup = row.number("claimed_speedup");
  return speedup ? speedup : row.number("claimed_efficiency");
}

double noise(const Row& row) {
  constexpr double kNormal = 1.96;
  const auto time = row.value("time_s");
  const auto spread = row.value("spread_s");
  if (!time || !spread || *time <= 0) return kUnknownNoise;
  const double part = *spread / *time;
  const double n = std::max(1.0, row.value("repeats").value_or(1));
  const auto& is = row.text("spread_is");
  if (is == "ci95") return part;
  if (is == "se") return kNormal * part;
  if (is == "range") return part / 2;
  const bool is_of_mean = row.text("statistic") == "mean" || row.text("statistic") == "median";
  return kNormal * part / (is_of_mean ? std::sqrt(n) : 1);
}

Interval with_noise(const Interval& figure, double noise_a, double noise_b) {
  const double factor = std::exp(std::hypot(noise_a, noise_b));
  return {figure.low / factor, figure.high * factor};
}

std::vector<std::string> differing_settings(const Row& a, const Row& b) {
  std::vector<std::string> names;
  for (const Column column : kOfSetup)
    if (a.knows(column) && b.knows(column) && a.text(column) != b.text(column))
      names.emplace_back(column.name());
  for (const auto& [name, text] : a.settings) {
    const auto found = b.settings.find(name);
    if (found != b.settings.end() && found->second != text) names.push_back(name);
  }
  return names;
}

}  // namespace paceline::check
