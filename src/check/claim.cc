#include "check/claim.h"

#include <algorithm>
#include <cmath>
#include <map>

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
    if (is_apart && meets(claim.printed, form.value, kExplains)) found.push_back(&form);
  }
  return found;
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
    judgements[i].word = Judgement::Word::unexplained;
    explained[i] = explanations(claims[i]);
    for (const auto* form : explained[i]) ++votes[form->id];
  }
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (explained[i].empty()) continue;
    // Among the forms with the most votes the first, because simple forms come first.
    const auto best = std::ranges::max_element(
        explained[i], [&](const WrongForm* a, const WrongForm* b) { return votes[a->id] < votes[b->id]; });
    judgements[i] = {Judgement::Word::explained, *best};
  }
  return judgements;
}

}  // namespace paceline::check
