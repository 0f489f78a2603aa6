/// Checks bandwidths against the specification of the link.

#include <fmt/format.h>

#include <algorithm>

#include "check/rule.h"

namespace paceline::check {
namespace {

std::optional<double> one_way(const Row& row) {
  const auto link = row.value("link");
  const auto unit = bytes_per_s(row.text("link_unit"));
  if (!link || !unit || *link <= 0) return std::nullopt;
  return *link * *unit / (row.text("link_is") == "both-ways" ? 2 : 1);
}

bool may_reduce_in_switch(const Row& row) {
  const auto& algorithm = row.text("algorithm");
  return algorithm.empty() || has_any(algorithm, {"switch", "nvls", "NVLS", "sharp", "SHARP", "in-network",
                                                  "multimem", "CollNet", "collnet"});
}

void check_above(const Study& study, Findings& findings) {
  for (const auto& [i, row] : study.rows()) {
    const auto claim = claimed_bytes_per_s(row);
    const auto link = one_way(row);
    const auto n = workers(row);
    if (!claim || !link || row.text("link_is").empty() || n == 1.0) continue;
    findings.compared();
    // The rate over the link in one direction; for algbw it is 2(N-1)/N times that.
    const bool is_algbw = row.text("bandwidth_is") == "algbw";
    const double factor = is_algbw && n && *n > 1 ? ring_factor(*n) : 1;
    const bool in_switch = n && *n > 1 && row.text("bandwidth_is") != "sent" && may_reduce_in_switch(row);
    const double most = *link * (in_switch ? 2 * (*n - 1) / (*n + 1) : 1);
    const double unit = *bytes_per_s(row.text("bandwidth_unit"));
    const double limit = std::max(most, *link);
    const double least = (claim->value - 2 * claim->half_unit) * factor, highest = limit / factor / unit;
    if ((is_algbw && in_switch) || least <= limit * (1 + kFollows)) continue;
    findings.add(Severity::error, {{i}, claim->text, Figure{highest, 0, highest}},
                 fmt::format("{} {} is more than the link gives one way: {} {}{}.", claim->text,
                             row.text("bandwidth_unit"), shown(highest), row.text("bandwidth_unit"),
                             limit > *link ? ", a reduction in the switch included" : ""));
  }
}

void check_share(const Study& study, Findings& findings) {
  for (const auto& [i, row] : study.rows()) {
    const auto claim = claimed_bytes_per_s(row);
    const auto share = row.number("claimed_utilisation");
    const auto link = one_way(row);
    if (!claim || !share || !link || row.text("link_is").empty() || share->value <= 0) continue;
    const auto right = times(interval_of(*claim), 1 / *link);
    if (meets(*share, right, kFollows)) continue;
    const bool is_of_both = meets(*share, times(right, 0.5), kExplains);
    // GB/s divided by Gbit/s, or the reverse: the units' names are easily confused.
    const bool is_of_bits =
        meets(*share, times(right, 1.0 / 8), kExplains) || meets(*share, times(right, 8), kExplains);
    findings.add(
        is_of_both || is_of_bits ? Severity::error : Severity::warning,
        {{i}, share->text, figure_of(right.middle(), right)},
        fmt::format("printed a share of the link of {}; {} {} of {} {} one way are {}. {}.", share->text,
                    row.text("claimed_bandwidth"), row.text("bandwidth_unit"),
                    shown(row.text("link_is") == "both-ways" ? *row.value("link") / 2 : *row.value("link")),
                    row.text("link_unit"), shown(right.middle()),
                    is_of_both
                        ? fmt::format("{} is the share of both directions, and a reduction uses each of them",
                                      share->text)
                    : is_of_bits ? fmt::format("{} takes bits for bytes: a byte has 8 bits", share->text)
                                 : "The printed share does not follow from it"));
  }
}

void check_link(const Study& study, Findings& findings) {
  check_above(study, findings);
  check_share(study, findings);
}

constexpr Rule kLinkRules[] = {
    {"bandwidth.link", Severity::error, "claimed_bandwidth bandwidth_unit link link_unit link_is",
     "more than the link gives", check_link, "algorithm claimed_utilisation", "a row that has all of them"},
};

}  // namespace

std::span<const Rule> link_rules() { return kLinkRules; }

}  // namespace paceline::check
