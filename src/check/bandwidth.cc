/// Checks bandwidths against the bytes and seconds in the same row.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "check/rule.h"

namespace paceline::check {

namespace {

/// A known mistake, as a factor on the correct figure.
struct Mistake {
  std::string id;
  double factor;
  std::string what;
};

std::vector<Mistake> unit_mistakes() {
  constexpr double kGib = 1.073741824, kMib = 1.048576;
  return {{"MB for GB", 1e3, "it is in MB, a thousandth of GB"},
          {"GB for MB", 1e-3, "it is in GB, a thousand MB"},
          {"bits", 8, "it is bits a second, not bytes: a byte has eight bits"},
          {"bytes for bits", 1.0 / 8, "it is bytes a second, not bits: a byte has eight bits"},
          {"MiB for GB", 1e9 / 1048576, "it is in MiB"},
          {"GiB", 1 / kGib, "it is in GiB, 1.074 GB each"},
          {"Gibit", 8 / kGib, "it is in Gibit, of 2^30 bits each"},
          {"GB for GiB", kGib, "it is in GB, 0.931 GiB each"},
          {"MiB", 1 / kMib, "it is in MiB, 1.049 MB each"}};
}

/// What the row says about how it reduces: its algorithm, else a program or a setting that implies one.
std::string algorithm_of(const Row& row) {
  if (row.knows("algorithm")) return fmt::format("'{}'", row.text("algorithm"));
  const auto is_of_one_process = [](const std::string& text) {
    std::string words = base::lower_case(text);
    std::erase_if(words, [](char one) { return one == '-' || one == '_' || one == ' ' || one == '.'; });
    return words.find("dataparallel") != std::string::npos &&
           words.find("distributed") == std::string::npos && words.find("ddp") == std::string::npos;
  };
  if (is_of_one_process(row.text("program"))) return fmt::format("'{}'", row.text("program"));
  for (const auto& [name, text] : row.settings)
    if (is_of_one_process(text)) return fmt::format("'{}'", text);
  return "";
}

bool is_no_ring(const Row& row) {
  const auto algorithm = algorithm_of(row);
  if (!row.knows("algorithm")) return !algorithm.empty();
  return has_any(algorithm, {"server", "gather", "broadcast", "one process", "star", "single process",
                             "DataParallel"}) &&
         !has_any(algorithm, {"reduce-scatter", "Distributed"});
}

/// Joins those with one factor, since the figure cannot tell which of them was made, and leaves out those
/// that change nothing: on two workers 2(N-1)/N is 1, and 2(N-1) is what the bytes of two workers are too.
std::vector<Mistake> told_apart(const std::vector<Mistake>& mistakes) {
  constexpr double kSame = 1e-9;
  std::vector<Mistake> all;
  for (const auto& one : mistakes) {
    if (std::abs(one.factor - 1) < kSame) continue;
    const auto same = std::ranges::find_if(
        all, [&](const Mistake& other) { return std::abs(other.factor / one.factor - 1) < kSame; });
    if (same == all.end())
      all.push_back(one);
    else
      same->what += ", or " + one.what;
  }
  return all;
}

/// Mistakes about which bytes are counted. `is`: sent, algbw, busbw.
std::vector<Mistake> formula_mistakes(const Row& row, double k) {
  const double n = *workers(row), ring = ring_factor(n);
  const bool has_factor = row.text("bandwidth_is") != "algbw";
  std::vector<Mistake> all;
  if (k > 1)
    all.push_back({"one step", 1 / k,
                   fmt::format("the bytes of one step were divided by the time of {} steps", shown(k))});
  if (n > 1) {
    if (has_factor) {
      all.push_back({"no ring factor", 1 / ring, fmt::format("2(N-1)/N = {} was left out", shown(ring))});
      all.push_back({"2(N-1)", n, fmt::format("2(N-1) = {:g} was taken for 2(N-1)/N", 2 * (n - 1))});
    } else {
      all.push_back({"ring factor", ring, fmt::format("it is busbw: 2(N-1)/N = {} is in it", shown(ring))});
      all.push_back({"2(N-1)", 2 * (n - 1), fmt::format("2(N-1) = {:g} is in it", 2 * (n - 1))});
    }
    all.push_back({"of all workers", n, fmt::format("the bytes of all {:g} workers were added up", n)});
  }
  const double element = row.value("element_bytes").value_or(4);
  if (element > 1) {
    all.push_back(
        {"elements", 1 / element, fmt::format("elements were counted, of {:g} bytes each", element)});
    all.push_back({"element bytes twice", element,
                   fmt::format("the bytes were taken for elements of {:g} bytes", element)});
  }
  return told_apart(all);
}

/// Each mistake alone, a mistake about bytes with a unit, and the bytes of one step with both.
void add_wrong_bandwidths(Claim& claim, const std::vector<Mistake>& formulas) {
  const auto right = claim.right.front();
  const auto units = unit_mistakes();
  const auto add = [&](const std::vector<const Mistake*>& made) {
    WrongForm form{.id = "",
                   .value = right,
                   .sentence = claim.printed.text + ": ",
                   .tolerance = made.size() > 1 ? kFollows : kExplains};
    double factor = 1;
    for (std::size_t k = 0; k < made.size(); ++k) {
      form.id += (k == 0 ? "" : ", ") + made[k]->id;
      form.sentence += (k == 0 ? "" : k + 1 == made.size() ? ", and " : ", ") + made[k]->what;
      factor *= made[k]->factor;
    }
    form.value = times(right, factor);
    claim.wrong.push_back(std::move(form));
  };
  for (const auto& one : formulas) add({&one});
  for (const auto& one : units) add({&one});
  for (const auto& a : formulas)
    for (const auto& unit : units) add({&a, &unit});
  for (const auto& a : formulas)
    for (const auto& b : formulas)
      if (a.id == "one step" && &a != &b) {
        add({&a, &b});
        for (const auto& unit : units) add({&a, &b, &unit});
      }
}

std::optional<Claim> bandwidth_claim(const Row& row, std::size_t i) {
  const auto claim = row.number("claimed_bandwidth");
  const auto unit = bytes_per_s(row.text("bandwidth_unit"));
  const auto bytes = message_bytes(row);
  const auto seconds = communication_time(row);
  const auto k = reductions(row);
  const auto n = workers(row);
  if (!claim || !unit || !bytes || !seconds || !k || !n || claim->value <= 0) return std::nullopt;
  if (*n <= 1) return std::nullopt;
  const auto& is = row.text("bandwidth_is");
  const auto algbw = times(divided(times(*bytes, *k), interval_of(*seconds)), 1 / *unit);
  Claim one{.row = i, .printed = *claim};
  if (is != "algbw") one.right.push_back(times(algbw, ring_factor(*n)));
  if (is == "algbw" || is.empty()) one.right.push_back(algbw);
  // The size of an element is not stated; half precision is as common as float.
  if (!row.knows("message_bytes") && !row.knows("element_bytes"))
    one.right.push_back(times(one.right.front(), 0.5));
  // With gradient accumulation it is possible that only the last pass reduces.
  if (const double passes = accumulation(row); passes > 1)
    for (std::size_t r = one.right.size(); r-- > 0;) one.right.push_back(times(one.right[r], 1 / passes));
  // An algorithm other than a ring sends X or 2X per step; nothing more precise is known.
  const bool is_other =
      is_no_ring(row) || (row.knows("algorithm") && row.text("algorithm").find("ring") == std::string::npos);
  if (is_other && (is == "sent" || (is.empty() && is_no_ring(row)))) {
    one.right.push_back(algbw);
    one.right.push_back(times(algbw, 2));
    one.right.push_back(times(algbw, (*n + 1) / *n));  // reduced in the switch
  }
  if (follows(one)) return one;
  add_wrong_bandwidths(one, formula_mistakes(row, k->middle()));
  return one;
}

void check_formula(const Study& study, Findings& findings) {
  std::vector<Claim> claims;
  for (const auto& [i, row] : study.rows())
    if (auto one = bandwidth_claim(row, i)) claims.push_back(std::move(*one));
  findings.compared(claims.size());
  const auto judgements = judge(claims);
  for (std::size_t c = 0; c < claims.size(); ++c) {
    if (judgements[c].follows) continue;
    const auto& claim = claims[c];
    const auto& row = study.row(claim.row);
    const auto* form = judgements[c].form;
    const auto right = claim.right.front();
    const auto k = *reductions(row);
    const auto& is = row.text("bandwidth_is");
    findings.add(
        form != nullptr ? Severity::error : Severity::warning,
        {.rows = {claim.row},
         .printed = claim.printed.text,
         .corrected = figure_of(right.middle(), right),
         .cause = judgements[c].cause()},
        fmt::format(
            "printed {} of {} {} on {} workers; {}{} bytes a step x {} step{} in {} s are {} {}. {}{}.",
            is.empty()      ? "a bandwidth"
            : is == "sent"  ? "a bandwidth of what is sent"
            : is == "busbw" ? "a busbw"
                            : "an algbw",
            claim.printed.text, row.text("bandwidth_unit"), row.text("workers"),
            is == "algbw" ? "" : fmt::format("2(N-1)/N = {} x ", shown(ring_factor(*workers(row)))),
            fmt::format("{:.9g}", message_bytes(row)->middle()),
            k.low == k.high ? shown(k.low) : fmt::format("{} to {}", shown(k.low), shown(k.high)),
            k.high == 1 ? "" : "s", communication_time(row)->text, shown(right.middle()),
            row.text("bandwidth_unit"),
            form != nullptr ? form->sentence : "The printed figure does not follow from it",
            is == "algbw" || !is_no_ring(row)
                ? ""
                : "; 2(N-1)/N is what each worker of a ring sends, and " + algorithm_of(row) + " is none"));
  }
}

void check_algorithm(const Study& study, Findings& findings) {
  for (const auto& [i, row] : study.rows()) {
    const auto n = workers(row);
    if (!is_no_ring(row) || !n || *n <= 1 || !row.knows("claimed_bandwidth")) continue;
    const auto& is = row.text("bandwidth_is");
    if (is == "algbw") continue;
    std::optional<Figure> corrected;
    const auto unit = bytes_per_s(row.text("bandwidth_unit"));
    const auto bytes = message_bytes(row);
    const auto seconds = communication_time(row);
    const auto k = reductions(row);
    if (unit && bytes && seconds && k) {
      const auto one = times(divided(times(*bytes, *k), interval_of(*seconds)), 2 / *unit);
      corrected = figure_of(one.middle(), one);
      if (!meets(*row.number("claimed_bandwidth"), times(one, ring_factor(*n) / 2), kExplains)) continue;
    }
    findings.add(
        Severity::warning, {{i}, row.text("claimed_bandwidth"), corrected},
        fmt::format(
            "{} {} counts 2(N-1)/N of the bytes, as a ring sends them, but the algorithm is {}: there the "
            "worker in the middle sends {:g} X and each other one 2 X a step, there and back.",
            row.text("claimed_bandwidth"), row.text("bandwidth_unit"), algorithm_of(row), 2 * (*n - 1)));
  }
}

void check_trend(const Study& study, Findings& findings) {
  constexpr double kFalls = 4;
  const auto key = [](const Row& row) {
    const bool is_compared = row.text("time_of") == "epoch" && global_batch(row) &&
                             row.value("communication_s").value_or(0) > 0 && workers(row).value_or(0) > 1;
    return is_compared ? configuration(row, {"local_batch", "global_batch", "batch", "learning_rate"}) : "";
  };
  for (const auto& rows : sorted_groups(study, key, [](const Row& row) { return *global_batch(row); })) {
    const auto& small = study.row(rows.front());
    const auto& large = study.row(rows.back());
    const double falls = *global_batch(large) / *global_batch(small);
    const double shorter = *small.value("communication_s") / *large.value("communication_s");
    if (falls < kFalls) continue;
    findings.compared();
    if (shorter >= std::sqrt(falls)) continue;
    findings.add(
        Severity::warning, {{rows.back(), rows.front()}, large.text("communication_s")},
        fmt::format(
            "from {} on the bytes of an epoch fall {:g} times, but its communication only {:.2f} times ({} to {} s): "
            "most of it is not transfer, but waiting, latency or what a residual holds.",
            small.name(), falls, shorter, small.text("communication_s"), large.text("communication_s")));
  }
}

/// The rows with a busbw for one number of workers, one row a message size.
struct Sizes {
  double sum = 0, count = 0;
  std::size_t largest = 0;
};

std::map<std::string, Sizes> sizes_by_workers(const Study& study) {
  std::map<std::string, Sizes> all;
  for (std::size_t k = 0; k < study.size(); ++k) {
    const auto& row = study.row(k);
    if (!row.knows("message_bytes") || row.text("bandwidth_is") != "busbw") continue;
    const auto claim = claimed_bytes_per_s(row);
    if (!claim) continue;
    auto& sizes = all[row.text("workers")];
    if (sizes.count == 0 || *row.value("message_bytes") > *study.row(sizes.largest).value("message_bytes"))
      sizes.largest = k;
    sizes.sum += claim->value;
    ++sizes.count;
  }
  return all;
}

/// Finds means of busbw over message sizes. Such a mean is the bandwidth of none of the sizes.
void check_average(const Study& study, Findings& findings) {
  constexpr double kFewest = 3;
  const auto by_workers = sizes_by_workers(study);
  for (const auto& [i, row] : study.rows()) {
    const auto claim = claimed_bytes_per_s(row);
    if (!claim || row.knows("message_bytes") || row.text("bandwidth_is") == "algbw" ||
        row.text("bandwidth_is") == "sent")
      continue;
    const auto found = by_workers.find(row.text("workers"));
    if (found == by_workers.end() || found->second.count < kFewest) continue;
    findings.compared();
    const auto& [sum, count, largest] = found->second;
    const double mean = sum / count;
    const auto right = *claimed_bytes_per_s(study.row(largest));
    if (!meets(*claim, exactly_one(mean), kExplains) || std::abs(mean / right.value - 1) < kApart) continue;
    const double unit = *bytes_per_s(row.text("bandwidth_unit"));
    findings.add(
        Severity::warning,
        {{i, largest}, claim->text, figure_of(right.value / unit, times(interval_of(right), 1 / unit))},
        fmt::format(
            "{} {} is the mean of busbw over {:g} message sizes, most of which are small and ruled by latency; at the "
            "largest one, {} bytes, busbw is {} {}.",
            claim->text, row.text("bandwidth_unit"), count, study.row(largest).text("message_bytes"),
            shown(right.value / unit), row.text("bandwidth_unit")));
  }
}

void check_wrong(const Study& study, Findings& findings) {
  for (const auto& [i, row] : study.rows()) {
    if (row.value("wrong_elements").value_or(0) > 0)
      findings.add(Severity::error, {{i}, row.text("wrong_elements")},
                   fmt::format("{} elements are wrong: what was timed is not this collective.",
                               row.text("wrong_elements")));
  }
}

void check_one_rank(const Study& study, Findings& findings) {
  for (const auto& [i, row] : study.rows()) {
    if (workers(row).value_or(0) != 1 || !row.knows("claimed_bandwidth") ||
        row.text("bandwidth_is") == "algbw")
      continue;
    findings.add(Severity::note, {{i}, row.text("claimed_bandwidth"), Figure{0, 0, 0}},
                 "one worker sends nothing: its busbw is 0 for any time, since 2(N-1)/N is 0.");
  }
}

constexpr Rule kBandwidthRules[] = {
    {"bandwidth.formula", Severity::error,
     "claimed_bandwidth bandwidth_unit workers communication_s|time_s parameters|message_bytes",
     "a bandwidth that does not follow from its bytes and time", check_formula,
     "bandwidth_is communication_s time_of train_samples local_batch", "a row that has all of them"},
    {"bandwidth.algorithm", Severity::warning, "claimed_bandwidth algorithm|program|setting workers",
     "bytes of a ring for an algorithm that is not a ring", check_algorithm, "algorithm"},
    {"bandwidth.trend", Severity::warning, "communication_s workers local_batch|global_batch time_of",
     "communication that does not follow the bytes", check_trend, "",
     "epochs of batches that are four times apart on the same workers"},
    {"bandwidth.average", Severity::warning, "claimed_bandwidth message_bytes",
     "a mean of bandwidths over sizes", check_average, "", "three message sizes and a figure without one"},
    {"bandwidth.wrong", Severity::error, "wrong_elements", "wrong results", check_wrong},
    {"bandwidth.one-rank", Severity::note, "claimed_bandwidth workers", "a bandwidth of one worker",
     check_one_rank},
};

}  // namespace

std::span<const Rule> bandwidth_rules() { return kBandwidthRules; }

}  // namespace paceline::check
