/// The rows of options about the learning rule: optimizer, learning rate, schedule.

#include "base/text.h"
#include "graph/rates.h"
#include "train/given/option_rows.h"

namespace paceline::train {
namespace {

using O = Options;
using Text = std::string_view;
using Rule = engine::UpdateRule;
using Schedule = ScheduleOptions;
using Lookahead = LookaheadOptions;

constexpr const char* kRule = "Optimizer and schedule";

constexpr OptionRules kWithAdam = read_if("optimizer", "adam, adamw, lamb");
constexpr OptionRules kWithSteps = read_if("schedule", "step");
constexpr OptionRules kWithOneCycle = read_if("schedule", "one-cycle");
constexpr OptionRules kWithPlateau = read_if("schedule", "plateau");
constexpr OptionRules kWithLookahead = read_if("lookahead");
using Ema = EmaOptions;

std::vector<std::string> optimizers() {
  return base::texts_of(engine::update_rules(), &engine::UpdateRuleRow::name);
}

/// Sets the rule with its usual values, so that --optimizer adam alone is a sensible training.
void choose_optimizer(Options& options, std::string_view text) {
  const auto& row = engine::update_rules()[base::one_of(text, optimizers())];
  options.rule = row.usual;
  options.lr = row.usual_lr;
}

std::string optimizer_help() {
  const auto names = optimizers();
  std::string text = names.front();
  for (std::size_t i = 1; i < names.size(); ++i) text += (i + 1 < names.size() ? ", " : " or ") + names[i];
  return text + "; each brings its usual lr, momentum and weight decay";
}

// Checked here, read where the model is made.
std::string frozen_text(Text text) { return (void)graph::frozen_rules(text), std::string(text); }
std::string factors_text(Text text) { return (void)graph::factor_rules(text), std::string(text); }

constexpr OptionRow<Options> kRuleRows[] = {
    {"optimizer", "NAME", kRule, optimizer_help, kRuns,
     Field<O>([](O& o, Text t) { choose_optimizer(o, t); }, [](const O& o) { return name(o.rule.kind); })},
    {"lr", "X", kRule, "learning rate at the peak of the schedule, before --scale-lr", kRuns,
     at<&O::lr>({.open_below = true})},
    {"momentum", "X", kRule, "momentum of sgd, lars and rmsprop", kRuns,
     at<&O::rule, &Rule::momentum>({.most = 0.9999}),
     read_if("optimizer", "sgd, lars, rmsprop", ReadIf::stays_in_records)},
    {"nesterov", "", kRule, "Nesterov momentum (sgd)", kRuns, at<&O::rule, &Rule::nesterov>()},
    {"weight-decay", "X", kRule, "weight decay: how strongly every weight is pulled towards 0", kRuns,
     at<&O::rule, &Rule::weight_decay>()},
    {"decay-norm-and-bias", "", kRule,
     "weight decay on biases, norms and factors of channels too (lars, lamb: never)", kRuns,
     at<&O::rule, &Rule::decay_norm_and_bias>()},
    {"momentum-correction", "", kRule,
     "lars: rescale its velocity when the learning rate changes; the other optimizers need no correction",
     kRuns, at<&O::momentum_correction>({.left_out = "false"}), read_if("optimizer", "lars")},
    {"clip-norm", "X", kRule,
     "gradient clipping: before each update the gradient of the whole network, summed over the workers, is scaled to "
     "at most this L2 norm; 0: off. The record has the norms and how many updates were clipped",
     kRuns, at<&O::rule, &Rule::clip_norm>({.left_out = "0"})},
    {"zero-gamma", "", kRule,
     "the batch norm at the end of every residual branch begins with weight 0, so that each block first "
     "passes its input on",
     kRuns, at<&O::zero_gamma>({.left_out = "false"})},
    {"weights", "FILE", kRule,
     "begin with the weights of a file of safetensors or torch.save() that has the model's names and shapes; "
     "a last layer of other classes is drawn anew",
     kRuns | kInit, at<&O::weights>()},
    {"weights-by", "name|order", kRule,
     "how the arrays of --weights find their places: by name, or one after the other for a file whose names "
     "all differ",
     kRuns, at<&O::weights_by_order>({.words = "name|order", .left_out = "name"}), read_if("weights")},
    {"freeze", "PATTERNS", kRule,
     "do not train these layers or parameters, fc or layer1 or '*.bias', separated by commas; !PATTERN "
     "excepts some; all-but-last is every layer but the one that makes the logits. A frozen batch norm uses "
     "its running statistics and leaves them",
     kRuns, parsed_at<frozen_text, &O::freeze>()},
    {"lr-factor", "PATTERN=X,..", kRule,
     "learning rate of these layers or parameters as a multiple of the others': fc=10,layer4=2", kRuns,
     parsed_at<factors_text, &O::lr_factor>()},
    {"beta1", "X", kRule, "adam, adamw, lamb: decay rate of the gradient's running mean", kRuns,
     at<&O::rule, &Rule::beta1>({.most = 0.999999}), kWithAdam},
    {"beta2", "X", kRule, "adam, adamw, lamb: decay rate of the squared gradient's running mean", kRuns,
     at<&O::rule, &Rule::beta2>({.most = 0.999999}), kWithAdam},
    {"alpha", "X", kRule, "rmsprop: decay rate of the squared gradient's running mean", kRuns,
     at<&O::rule, &Rule::alpha>({.most = 0.999999}), read_if("optimizer", "rmsprop")},
    {"rho", "X", kRule, "adadelta: decay rate of both running means", kRuns,
     at<&O::rule, &Rule::rho>({.most = 0.999999}), read_if("optimizer", "adadelta")},
    {"epsilon", "X", kRule,
     "adam, adamw, rmsprop, adadelta, lamb: small constant (epsilon) that keeps the division finite", kRuns,
     at<&O::rule, &Rule::epsilon>({.open_below = true}),
     read_if("optimizer", "adam, adamw, rmsprop, adadelta, lamb")},
    {"trust", "X", kRule, "lars: the trust coefficient, a layer's step relative to its weights", kRuns,
     at<&O::rule, &Rule::trust>({.open_below = true}), read_if("optimizer", "lars")},
    {"schedule", "KIND", kRule,
     "constant, step, cosine, one-cycle, polynomial, or plateau: lower after epochs without a better validation "
     "figure",
     kRuns, at<&O::schedule, &Schedule::kind>()},
    {"warmup", "EPOCHS", kRule,
     "linear rise of the learning rate before any schedule; converge: a fifth of the training, at most 1 "
     "epoch",
     kRuns, at<&O::schedule, &Schedule::warmup_epochs>()},
    {"warmup-start", "RATE|base", kRule,
     "the learning rate at which the warm-up begins; base: --lr, before it is scaled", kRuns,
     Field<O>(
         [](O& o, Text t) {  // --lr was set before, in the table's order
           o.schedule.warmup_start = t == "base" ? o.lr : base::decimal(t);
         },
         [](const O& o) { return o.schedule.warmup_start > 0 ? base::as_text(o.schedule.warmup_start) : ""; },
         [](const O& o) { return base::as_text(o.schedule.warmup_start); }),
     read_if("warmup")},
    {"step-epochs", "E", kRule, "step: after each E epochs ...", kRuns,
     at<&O::schedule, &Schedule::step_epochs>({.open_below = true}), kWithSteps},
    {"step-factor", "X", kRule, "step: ... the learning rate times this", kRuns,
     at<&O::schedule, &Schedule::step_factor>({.open_below = true}), kWithSteps},
    {"final-factor", "X", kRule,
     "cosine, one-cycle, polynomial: the last learning rate as a fraction of the peak", kRuns,
     at<&O::schedule, &Schedule::final_factor>({.most = 1}),
     read_if("schedule", "cosine, one-cycle, polynomial")},
    {"one-cycle-peak", "X", kRule, "one-cycle: position of the peak as a fraction of the training", kRuns,
     at<&O::schedule, &Schedule::one_cycle_peak>({.most = 1}), kWithOneCycle},
    {"one-cycle-start", "X", kRule, "one-cycle: the first learning rate as a fraction of the peak", kRuns,
     at<&O::schedule, &Schedule::one_cycle_start>({.most = 1}), kWithOneCycle},
    {"plateau-patience", "N", kRule, "plateau: after this many epochs without a better validation figure ...",
     kRuns, at<&O::schedule, &Schedule::plateau_patience>({.least = 1}), kWithPlateau},
    {"plateau-factor", "X", kRule, "plateau: ... the learning rate times this", kRuns,
     at<&O::schedule, &Schedule::plateau_factor>({.most = 1, .open_below = true}), kWithPlateau},
    {"polynomial-power", "X", kRule,
     "polynomial: the learning rate falls with this power of the part that is left of the updates after the warm-up",
     kRuns, at<&O::schedule, &Schedule::polynomial_power>({.open_below = true}),
     read_if("schedule", "polynomial")},
    {"lookahead", "STEPS", kRule,
     "after each STEPS updates, slow weights move towards the trained weights, which then continue from "
     "them; 0: off",
     kRuns, at<&O::lookahead, &Lookahead::steps>({.left_out = "0"})},
    {"lookahead-keep", "X", kRule, "lookahead: the fraction of the slow weights that is kept", kRuns,
     at<&O::lookahead, &Lookahead::keep>({.most = 1}), kWithLookahead},
    {"lookahead-power", "X", kRule,
     "lookahead: if above 0, that fraction grows from 0 with this power of the progress", kRuns,
     at<&O::lookahead, &Lookahead::power>({.most = 100}), kWithLookahead},
    {"ema", "D", kRule,
     "keep an average of weights and running statistics, D of which stays when an update's weights join it; it is "
     "evaluated too, and in checkpoints (ema.NAME); 0: off",
     kRuns, at<&O::ema, &Ema::decay>({.most = 0.999999, .left_out = "0"})},
    {"ema-every", "K", kRule, "ema: only the weights of each K-th update join the average", kRuns,
     at<&O::ema, &Ema::every>({.least = 1, .left_out = "1"}), read_if("ema")},
    {"use-ema", "", kRule,
     "the averaged weights of the checkpoint (train --ema) in place of the trained ones",
     kEvaluate | kClassify | kModel, at<&O::use_ema>()},
    {"scale-lr", "RULE", kRule,
     "linear: learning rate times (global batch / --lr-batch); sqrt: times its square root; none", kRuns,
     at<&O::scale_lr>()},
    {"lr-batch", "B", kRule, "the global batch for which --lr is meant (default 128)", kRuns,
     at<&O::lr_batch>({.least = 1, .most = kLargestBatch}),
     read_if("scale-lr", "linear, sqrt", ReadIf::stays_in_records)},
};
static_assert(has_rows<Options>(kRuleRows, "optimizer", "use-ema"));

}  // namespace

std::span<const OptionRow<Options>> rule_rows() { return kRuleRows; }

}  // namespace paceline::train
