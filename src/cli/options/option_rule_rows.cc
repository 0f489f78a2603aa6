/// The rows of options about the learning rule: optimizer, learning rate, schedule.

#include "cli/options/option_rows.h"
#include "train/given/names.h"

namespace paceline::cli {
namespace {

using train::Options;

constexpr const char* kRule = "Optimizer and schedule";

/// Sets the rule with its usual values, so that --optimizer adam alone is a sensible training.
void choose_optimizer(Options& options, engine::UpdateKind kind) {
  const auto& row = engine::update_rules()[static_cast<std::size_t>(kind)];
  options.rule = row.usual;
  options.lr = row.usual_lr;
}

std::string optimizer_help() {
  const auto names = train::update_kind_names();
  std::string text = names.front();
  for (std::size_t i = 1; i < names.size(); ++i) text += (i + 1 < names.size() ? ", " : " or ") + names[i];
  return text + "; each brings its usual lr, momentum and weight decay";
}

template <typename Value, typename Find>
Value named(std::string_view text, const std::vector<std::string>& names, Find find) {
  return *find(names[one_of(text, names)]);
}

constexpr Option kRuleRows[] = {
    {"optimizer", "NAME", kRule, optimizer_help, kRuns,
     [](S& s, Text t) {
       choose_optimizer(s.train,
                        named<engine::UpdateKind>(t, train::update_kind_names(), train::update_kind));
     },
     [](const S& s) { return std::string(train::name(s.train.rule.kind)); }},
    {"lr", "X", kRule, "learning rate at the peak of the schedule, before --scale-lr", kRuns,
     [](S& s, Text t) { s.train.lr = decimal(t, {.open_below = true}); },
     [](const S& s) { return as_text(s.train.lr); }},
    {"momentum", "X", kRule, "momentum of sgd, lars and rmsprop", kRuns,
     [](S& s, Text t) { s.train.rule.momentum = decimal(t, {.least = 0, .most = 0.9999}); },
     [](const S& s) { return as_text(s.train.rule.momentum); }},
    {"nesterov", "", kRule, "Nesterov momentum (sgd)", kRuns,
     [](S& s, Text t) { s.train.rule.nesterov = truth(t); },
     [](const S& s) { return yes_no(s.train.rule.nesterov); }},
    {"weight-decay", "X", kRule, "weight decay: how strongly every weight is pulled towards 0", kRuns,
     [](S& s, Text t) { s.train.rule.weight_decay = decimal(t); },
     [](const S& s) { return as_text(s.train.rule.weight_decay); }},
    {"decay-norm-and-bias", "", kRule, "weight decay on biases and batch norm too (lars: never)", kRuns,
     [](S& s, Text t) { s.train.rule.decay_norm_and_bias = truth(t); },
     [](const S& s) { return yes_no(s.train.rule.decay_norm_and_bias); }},
    {"momentum-correction", "", kRule,
     "lars: rescale its velocity when the learning rate changes; the other optimizers need no "
     "correction",
     kRuns, [](S& s, Text t) { s.train.momentum_correction = truth(t); },
     [](const S& s) { return yes_no(s.train.momentum_correction); }},
    {"zero-gamma", "", kRule,
     "the batch norm at the end of every residual branch begins with weight 0, so that each block "
     "first passes its input on",
     kRuns, [](S& s, Text t) { s.train.zero_gamma = truth(t); },
     [](const S& s) { return yes_no(s.train.zero_gamma); }},
    {"beta1", "X", kRule, "adam, adamw: decay rate of the gradient's running mean", kRuns,
     [](S& s, Text t) { s.train.rule.beta1 = decimal(t, {.least = 0, .most = 0.999999}); },
     [](const S& s) { return as_text(s.train.rule.beta1); }, kNoRival, true, "--optimizer adam or adamw"},
    {"beta2", "X", kRule, "adam, adamw: decay rate of the squared gradient's running mean", kRuns,
     [](S& s, Text t) { s.train.rule.beta2 = decimal(t, {.least = 0, .most = 0.999999}); },
     [](const S& s) { return as_text(s.train.rule.beta2); }, kNoRival, true, "--optimizer adam or adamw"},
    {"alpha", "X", kRule, "rmsprop: decay rate of the squared gradient's running mean", kRuns,
     [](S& s, Text t) { s.train.rule.alpha = decimal(t, {.least = 0, .most = 0.999999}); },
     [](const S& s) { return as_text(s.train.rule.alpha); }, kNoRival, true, "--optimizer rmsprop"},
    {"rho", "X", kRule, "adadelta: decay rate of both running means", kRuns,
     [](S& s, Text t) { s.train.rule.rho = decimal(t, {.least = 0, .most = 0.999999}); },
     [](const S& s) { return as_text(s.train.rule.rho); }, kNoRival, true, "--optimizer adadelta"},
    {"epsilon", "X", kRule,
     "adam, adamw, rmsprop, adadelta: small constant (epsilon) that keeps the "
     "division finite",
     kRuns, [](S& s, Text t) { s.train.rule.epsilon = decimal(t, {.open_below = true}); },
     [](const S& s) { return as_text(s.train.rule.epsilon); }, kNoRival, true,
     "--optimizer adam, adamw, rmsprop or adadelta"},
    {"trust", "X", kRule, "lars: the trust coefficient, a layer's step relative to its weights", kRuns,
     [](S& s, Text t) { s.train.rule.trust = decimal(t, {.open_below = true}); },
     [](const S& s) { return as_text(s.train.rule.trust); }, kNoRival, true, "--optimizer lars"},
    {"schedule", "KIND", kRule,
     "constant, step, cosine, one-cycle, or plateau: lower after epochs without a better validation figure",
     kRuns,
     [](S& s, Text t) {
       s.train.schedule.kind =
           named<train::ScheduleKind>(t, train::schedule_kind_names(), train::schedule_kind);
     },
     [](const S& s) { return std::string(train::name(s.train.schedule.kind)); }},
    {"warmup", "EPOCHS", kRule,
     "linear rise of the learning rate before any schedule; converge: a fifth of the training, at "
     "most 1 epoch",
     kRuns,
     [](S& s, Text t) { s.train.schedule.warmup_epochs = s.study.converge.warmup_epochs = decimal(t); },
     [](const S& s) {
       const double convergence = s.study.converge.warmup_epochs;
       if (s.command == kConverge) return convergence < 0 ? std::string() : as_text(convergence);
       return as_text(s.train.schedule.warmup_epochs);
     }},
    {"warmup-start", "RATE|base", kRule,
     "the learning rate at which the warm-up begins; base: --lr, before it is scaled", kRuns,
     [](S& s, Text t) {  // in the table's order --lr was set before
       s.train.schedule.warmup_start = t == "base" ? s.train.lr : decimal(t);
     },
     [](const S& s) { return as_text(s.train.schedule.warmup_start); }},
    {"step-epochs", "E", kRule, "step: after each E epochs ...", kRuns,
     [](S& s, Text t) { s.train.schedule.step_epochs = decimal(t, {.open_below = true}); },
     [](const S& s) { return as_text(s.train.schedule.step_epochs); }, kNoRival, true, "--schedule step"},
    {"step-factor", "X", kRule, "step: ... the learning rate times this", kRuns,
     [](S& s, Text t) { s.train.schedule.step_factor = decimal(t, {.open_below = true}); },
     [](const S& s) { return as_text(s.train.schedule.step_factor); }, kNoRival, true, "--schedule step"},
    {"final-factor", "X", kRule, "cosine, one-cycle: the last learning rate as a fraction of the peak", kRuns,
     [](S& s, Text t) { s.train.schedule.final_factor = decimal(t, {.least = 0, .most = 1}); },
     [](const S& s) { return as_text(s.train.schedule.final_factor); }, kNoRival, true,
     "--schedule cosine or one-cycle"},
    {"one-cycle-peak", "X", kRule, "one-cycle: position of the peak as a fraction of the training", kRuns,
     [](S& s, Text t) { s.train.schedule.one_cycle_peak = decimal(t, {.least = 0, .most = 1}); },
     [](const S& s) { return as_text(s.train.schedule.one_cycle_peak); }, kNoRival, true,
     "--schedule one-cycle"},
    {"one-cycle-start", "X", kRule, "one-cycle: the first learning rate as a fraction of the peak", kRuns,
     [](S& s, Text t) { s.train.schedule.one_cycle_start = decimal(t, {.least = 0, .most = 1}); },
     [](const S& s) { return as_text(s.train.schedule.one_cycle_start); }, kNoRival, true,
     "--schedule one-cycle"},
    {"plateau-patience", "N", kRule, "plateau: after this many epochs without a better validation figure ...",
     kRuns, [](S& s, Text t) { s.train.schedule.plateau_patience = small(t, 1); },
     [](const S& s) { return whole(s.train.schedule.plateau_patience); }, kNoRival, true,
     "--schedule plateau"},
    {"plateau-factor", "X", kRule, "plateau: ... the learning rate times this", kRuns,
     [](S& s, Text t) {
       s.train.schedule.plateau_factor = decimal(t, {.least = 0, .most = 1, .open_below = true});
     },
     [](const S& s) { return as_text(s.train.schedule.plateau_factor); }, kNoRival, true,
     "--schedule plateau"},
    {"lookahead", "STEPS", kRule,
     "after each STEPS updates, slow weights move towards the trained weights, which then continue "
     "from them; 0: off",
     kRuns, [](S& s, Text t) { s.train.lookahead.steps = whole_number(t, 0); },
     [](const S& s) { return whole(s.train.lookahead.steps); }},
    {"lookahead-keep", "X", kRule, "lookahead: the fraction of the slow weights that is kept", kRuns,
     [](S& s, Text t) { s.train.lookahead.keep = decimal(t, {.least = 0, .most = 1}); },
     [](const S& s) { return as_text(s.train.lookahead.keep); }, kNoRival, true, "--lookahead"},
    {"lookahead-power", "X", kRule,
     "lookahead: if above 0, that fraction grows from 0 with this power of the progress", kRuns,
     [](S& s, Text t) { s.train.lookahead.power = decimal(t, {.least = 0, .most = 100}); },
     [](const S& s) { return as_text(s.train.lookahead.power); }, kNoRival, true, "--lookahead"},
    {"scale-lr", "RULE", kRule,
     "linear: learning rate times (global batch / --lr-batch); sqrt: times its square root; none", kRuns,
     [](S& s, Text t) {
       s.train.scale_lr = named<train::LrScaling>(t, train::lr_scaling_names(), train::lr_scaling);
     },
     [](const S& s) { return std::string(train::name(s.train.scale_lr)); }},
    {"lr-batch", "B", kRule, "the global batch for which --lr is meant (default 128)", kRuns,
     [](S& s, Text t) { s.train.lr_batch = whole_number(t, 1, kLargestBatch); },
     [](const S& s) { return whole_or_none(s.train.lr_batch); }},
};
static_assert(reads_all(kRuleRows, kRulePart, kLaunchPart),
              "a setting of this part of measure/setting.h has no row here");

}  // namespace

std::span<const Option> rule_rows() { return kRuleRows; }

}  // namespace paceline::cli
