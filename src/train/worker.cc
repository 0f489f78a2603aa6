#include "train/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "data/loader.h"
#include "measure/environment.h"
#include "measure/record_fields.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_schedule.h"
#include "train/checkpoint/restore.h"
#include "train/evaluate.h"
#include "train/record/epoch_figures.h"
#include "train/record/evaluations.h"
#include "train/record/gather.h"
#include "train/record/run_events.h"
#include "train/record/timeline.h"
#include "train/record/window.h"
#include "train/run_ranks.h"
#include "train/step/exposed_comm.h"
#include "train/step/slow_weights.h"
#include "train/step/step_runner.h"

namespace paceline::train {
namespace {

using measure::InPhase;
using measure::Phase;

class Worker {
 public:
  Worker(const Job& job, comm::Communicator& communicator)
      : job_(job),
        communicator_(communicator),
        window_(job, communicator),
        slow_(job.options.lookahead, job.options.ema),
        watch_(job.options.schedule, job.options.early_stopping),
        target_(job.options, job.resolved.global_batch, job.evaluations, communicator.rank() == 0),
        epoch_(job),
        events_(job, communicator.rank() == 0) {}

  WorkerResult run() {
    bind_worker(job_, local_rank(), result_.rank, notes());
    compile();
    restore();
    steps_ = make_step_runner({job_, *engine_, communicator_, ledger_, gradients_log_, recovery_->guard()},
                              notes());
    result_.gradient_bytes = static_cast<std::int64_t>(sizeof(float)) * engine_->layout().elements;
    result_.vote_bytes = steps_->vote_bytes();
    if (is_window() && communicator_.size() > 1)  // before loaders take the cores
      result_.allreduce_peak_gb_per_s = allreduce_peak(communicator_, *steps_);
    communicator_.at(0, "the opening of the loader");
    open_loader();
    communicator_.barrier();
    start_window();
    checkpoint_schedule_->keep_first(standing());
    if (evaluates_first_) evaluate_last_epoch();
    train();
    communicator_.at(0, "what follows the last step");
    test_chosen();
    finish_writing();
    end_window();
    if (is_traced())
      result_.timelines = timeline_.gather(communicator_, job_.backend.place.host, steps_->collectives());
    result_.last_steps =
        recent_steps_.gather(communicator_, !is_of_several_processes(), steps_->collectives());
    if (is_of_several_processes()) gather();
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool is_window() const { return job_.options.window_steps != 0; }
  [[nodiscard]] bool is_traced() const { return !job_.options.timeline.empty(); }
  [[nodiscard]] bool is_root() const { return communicator_.rank() == 0; }
  [[nodiscard]] bool is_of_several_processes() const { return job_.backend.place.processes > 1; }
  [[nodiscard]] const Length& length() const { return job_.resolved.length; }
  [[nodiscard]] std::int64_t end() const { return job_.resolved.end; }

  /// Where sentences for the record go. Only rank 0's are kept; those of the others are not read.
  [[nodiscard]] std::vector<std::string>& notes() { return is_root() ? result_.notes : unread_notes_; }

  /// nullptr if worker 0 distributes the batches.
  [[nodiscard]] const data::Loader* loader() const { return loader_ ? &*loader_ : nullptr; }

  /// Index of this worker within its process.
  [[nodiscard]] int local_rank() const { return job_.local_rank(communicator_.rank()); }

  void compile() {
    communicator_.at(0, "the compilation");
    if (job_.options.shard > 0) communicator_.demand_tree();
    auto options = compile_options(job_.options, job_.resolved, job_.backend, local_rank());
    if (options.batch_norm == engine::BatchNormMode::synchronised)
      options.reduce_statistics = [this](std::span<double> values) {
        if (communicator_.size() == 1) return;
        statistics_log_.run_exposed(ledger_, [&] { communicator_.all_reduce(values, comm::Reduce::sum); });
        result_.norm_bytes += static_cast<std::int64_t>(values.size_bytes());
        ++result_.norm_collectives;
      };
    if (!is_data_parallel(job_.options))  // data-parallel reduces nothing here
      options.gradient_memory = [this](std::size_t size, const base::Memory& memory) {
        return communicator_.array(size, memory);
      };
    options.all_workers_say = [this](std::string_view text) {
      return is_same_everywhere(communicator_, text);
    };
    engine_ = job_.backend.machine->compile(job_.graph, options);
    checkpoint_schedule_.emplace(job_, communicator_, *engine_, slow_, ledger_);
    best_weights_.emplace(communicator_, *engine_, slow_);
    recovery_.emplace(parts(), events_);
  }

  [[nodiscard]] TrainingParts parts() {
    return {job_, communicator_, *engine_, slow_, *best_weights_, *checkpoint_schedule_};
  }

  void restore() {
    const auto at = train::restore(parts(), notes());
    go_on_from(at.standing);
    evaluates_first_ = at.evaluates_first;
    target_.resume(at.is_at_target);
  }

  /// The state of the training as checkpoints keep it.
  [[nodiscard]] TrainingState standing() { return {counters_, watch_.state(), recovery_->guard().state()}; }

  void go_on_from(const TrainingState& at) {
    counters_ = at.counters;
    watch_.resume(at.validation);
    recovery_->guard().resume(at.guard);
  }

  void open_loader() {
    first_update_ = counters_.update;
    auto options = loader_options(job_.options, job_.resolved, communicator_.rank());
    options.start_epoch = counters_.epoch;
    options.start_step = counters_.step;
    options.pool = &job_.pool;
    const auto& train = *job_.source.train;
    // Made once: after a rollback, threads of the previous loader may still read it.
    if (!augment_) augment_.emplace(train.format(), augment_options(job_.options, job_.source));
    if (options.draws) {
      if (!image_store_) image_store_.emplace(job_, *augment_, *engine_);
      options.labels = image_store_->part_of(train, 0, train.size()).labels;
    }
    if (is_root() || !is_data_parallel(job_.options))
      loader_.emplace(train, job_.sampler, *augment_, options);
    evaluator_.emplace(job_, *augment_, *engine_, communicator_, image_store_ ? &*image_store_ : nullptr,
                       slow_);
  }

  void start_window() {
    gradients_log_.clear();
    statistics_log_.clear();
    step_times_.begin(end() - counters_.update, result_.rank);
    result_.norm_bytes = result_.norm_collectives = 0;
    steps_->begin_window(result_.buckets, result_.rank.step_s.capacity(), is_root());
    if (is_traced()) timeline_.start(communicator_, ledger_, gradients_log_, statistics_log_);
    recent_steps_.start(ledger_);
    window_.begin(loader());
    ledger_.start();
  }

  void end_window() {
    window_.end_traffic();
    fold();
    result_.rank.phases = ledger_.totals();
    step_times_.end(result_);
    window_.end(loader(), *engine_, result_);
  }

  /// Gathers the figures of all ranks at rank 0, and checks that the weights are still the same everywhere.
  void gather() {
    result_.rank.host = job_.backend.place.host;
    result_.rank.process = job_.backend.place.process;
    if (job_.peak_is_ours) result_.rank.peak_bytes = measure::peak_resident_bytes();
    if (!has_compared_ && !job_.options.no_exchange) compare();
    result_.all_ranks = comm::gather_at_first(communicator_, result_.rank);
    evaluator_.reset();  // stops reading ahead
    const bool counts = local_rank() == 0 && job_.backend.place.process != 0;
    result_.test_reads_elsewhere = sum_of(communicator_, counts ? job_.test_reads.reads() : 0);
  }

  void compare() {
    has_compared_ = true;
    notes().push_back(compare_weights(communicator_, *engine_));
  }

  void fold() {
    recent_steps_.before_fold(gradients_log_, statistics_log_);
    step_times_.add(result_.buckets, gradients_log_.fold(communicator_, ledger_, result_.rank));
    statistics_log_.fold(communicator_, ledger_, result_.rank);
    recent_steps_.after_fold();
  }

  void train() {
    while (counters_.update < end() && !result_.interrupted) {
      const auto update = counters_.update;
      if (watch_.is_over() || target_.is_reached()) return;  // a resumed run may have nothing left to train
      if (is_window() && update == job_.options.warmup_steps && update > 0) {
        communicator_.barrier();
        start_window();
      }
      try {
        const bool stopped = step(update);
        result_.interrupted = stopped && counters_.update < end();
        if (!is_window()) after_step(stopped || counters_.update == end());
        if (stopped || enough_ || result_.interrupted) return;
      } catch (const Setback& setback) {
        roll_back(setback);
      }
    }
  }

  void roll_back(const Setback& setback) {
    while (!steps_->is_empty()) time_step(steps_->drop());
    checkpoint_schedule_->meet(counters_.update);
    const InPhase restoring(ledger_, Phase::checkpoint);
    communicator_.at(counters_.update, "the rollback");
    go_on_from(recovery_->roll_back(setback));
    std::erase_if(result_.epochs, [&](const auto& epoch) { return epoch.updates > counters_.update; });
    std::erase_if(result_.steps, [&](const auto& step) { return step.update > counters_.update; });
    target_.go_back(counters_.update);
    epoch_.forget();
    count_updates(counters_.update);
    if (loader_) window_.loader_ends(*loader_);
    evaluates_first_ = false;
    open_loader();
    communicator_.barrier();  // no collective begins while another rank allocates
  }

  void count_updates(std::int64_t updates) {
    if (local_rank() == 0) job_.counts.updates_done.store(updates, std::memory_order_relaxed);
    if (is_root()) job_.update_count.set(updates);
  }

  void after_step(bool is_last) {
    if (counters_.step == 0 || is_last) return end_epoch(is_last);
    if (is_evaluated(job_, counters_) && ends_by_evaluation()) return end_epoch(true);
    checkpoint_schedule_->after_step(result_.epochs, standing(),
                                     [this] { return steps_->guard_when_empty(); });
  }

  /// Evaluates inside an epoch; true if the training ends here: at its target, or as it was asked to.
  [[nodiscard]] bool ends_by_evaluation() {
    measure::EpochRecord part{.updates = counters_.update, .seconds = epoch_.seconds(), .lr = epoch_.lr()};
    return !evaluate(part) || target_.is_reached();
  }

  /// Queues a step and finishes steps that are done; true if the run was asked to stop. Every rank finishes
  /// steps at the same places: one when the queue is full, and all before weights or figures are read.
  bool step(std::int64_t update) {
    StepOrder order{.update = update};
    const data::Batch& batch = steps_->next_batch(loader_ ? &*loader_ : nullptr, counters_, order);
    if (is_root() && job_.counts.first_step_s == 0)
      job_.counts.first_step_s = base::seconds_since(job_.options.started);
    order.lr = watch_.rate_factor() * recovery_->guard().rate_factor() *
               learning_rate(job_.options.schedule, job_.resolved.rate.peak, update, length());
    order.enough = window_.is_long_enough(update, step_times_.steps() + 1);
    steps_->post(batch, order);
    slow_.average(update + 1, *engine_, ledger_);
    counters_ = {.update = update + 1, .epoch = batch.epoch, .step = batch.step + 1};
    if (counters_.step == job_.resolved.steps_per_epoch) counters_ = {counters_.update, batch.epoch + 1, 0};
    bool ends = slow_.is_due(update + 1, length().updates) || counters_.update == end() ||
                (is_window() ? counters_.update == job_.options.warmup_steps
                             : counters_.step == 0 || is_evaluated(job_, counters_));
    bool is_stopped = false;
    while (steps_->is_full() || (ends && !steps_->is_empty())) {
      is_stopped = finish(steps_->take()) || is_stopped;
      ends = ends || is_stopped || enough_;
    }
    return is_stopped;
  }

  /// True if the run was asked to stop.
  bool finish(const TakenStep& step) {
    const auto update = step.order.update;
    const double lr = step.order.lr;
    if (step.result.verdict == Verdict::diverged) time_step(step);  // the logs already hold its collectives
    const bool is_updated = recovery_->is_updated(step.result, update, lr);
    if (is_updated) slow_.follow_where_due(update + 1, length().updates, *engine_, ledger_);
    count_updates(update + 1);
    const double seconds = time_step(step);
    enough_ = step.result.all.enough || enough_;
    if (!is_updated) return epoch_.add_skipped(seconds, lr), step.result.all.stop;
    epoch_.add({update + 1, step.result.local, lr, seconds, step.result.gradient_norm, step.result.squares});
    events_.step({update + 1, step.epoch + 1, epoch_.mean_loss(), lr, seconds});
    return step.result.all.stop;
  }

  /// Records that a step is over; returns its seconds.
  double time_step(const TakenStep& step) {
    const auto end = step.end.value_or(base::Clock::now());
    recent_steps_.add(step.begin, end);
    const double seconds = base::seconds(end - step.begin);
    const double blocked = gradients_log_.take_blocked_seconds() + statistics_log_.take_blocked_seconds();
    step_times_.add(result_.rank, seconds, seconds - step.blocked_s - blocked);
    return seconds;
  }

  /// False if the run was asked to stop meanwhile; the run that resumes it evaluates first.
  [[nodiscard]] bool evaluate(measure::EpochRecord& epoch) {
    const InPhase evaluation(ledger_, Phase::evaluation);
    communicator_.at(counters_.update, "the evaluation");
    const auto planned = planned_evaluations(job_, first_update_) + (evaluates_first_ ? 1 : 0);
    if (!evaluator_->evaluate(epoch, planned)) {  // it has stopped reading ahead
      result_.interrupted = true;
      return false;
    }
    recovery_->require_finite_losses(epoch);
    target_.see(epoch, result_.epochs);
    return true;
  }

  void end_epoch(bool last) {
    fold();
    if (epoch_.has_no_loss()) recovery_->all_were_skipped(counters_.update, epoch_.lr());
    auto epoch = epoch_.close(communicator_, result_.steps);
    epoch.epoch = epoch_number(counters_);
    epoch.updates = counters_.update;
    checkpoint_schedule_->meet(counters_.update);
    recovery_->require_finite_weights(epoch, ledger_);
    bool is_abandoned = false;  // the evaluation; a resumed run evaluates the epoch from its checkpoint
    if (is_evaluated(job_, counters_) && !result_.interrupted) {
      auto so_far = result_.epochs;
      so_far.push_back(epoch);
      checkpoint_schedule_->before_evaluation(so_far, standing(), last);
      is_abandoned = !evaluate(epoch);
    }
    result_.epochs.push_back(epoch);
    keep(epoch, is_abandoned || last || target_.is_reached());
    events_.epoch(epoch, result_.epochs.size() == 1);
  }

  /// Keeps the results of an epoch, after its evaluation if it has one: figures, best weights, checkpoint.
  void keep(const measure::EpochRecord& epoch, bool is_due) {
    const bool is_best = watch_.see(epoch);
    checkpoint_schedule_->keep(result_.epochs, standing(),
                               {.is_due = is_due || watch_.is_over(), .is_best = is_best});
    if (is_best) best_weights_->keep();
  }

  /// Evaluates what the checkpoint ends with, an epoch or a part of one that goes on if the target is not
  /// reached: the previous run was lost, or stopped, during that evaluation.
  void evaluate_last_epoch() {
    auto epoch = job_.last_epoch.value_or(measure::EpochRecord());
    epoch.epoch = epoch_number(counters_);
    epoch.updates = counters_.update;
    if (!evaluate(epoch)) return;
    if (counters_.step != 0 && counters_.update != end() && !target_.is_reached()) return;
    checkpoint_schedule_->meet(counters_.update);
    if (is_root() && job_.last_epoch) result_.epochs.push_back(epoch);
    keep(epoch, true);
    if (is_root() && job_.last_epoch) events_.epoch(epoch, true);
  }

  void finish_writing() {
    if (is_window()) return;
    if (const auto left_out = checkpoint_schedule_->finish(counters_.update); !left_out.empty())
      result_.notes.push_back(left_out);
  }

  /// Reads the test set, held back until now, once: with the weights of the best epoch on validation, or with
  /// the last weights if there is none. A run that was stopped or paused does not get here.
  void test_chosen() {
    result_.validation = watch_.state();
    recovery_->tell(result_);
    result_.stopped_early = watch_.is_over() && counters_.update < length().updates;
    if (is_window()) return;
    const bool is_early = result_.stopped_early || target_.is_reached();
    const bool has_ended = !result_.interrupted && (is_early || end() == length().updates);
    if (!has_ended || test_policy(job_.options, job_.source.validation != nullptr) != TestSet::last) return;
    const InPhase evaluation(ledger_, Phase::evaluation);
    communicator_.at(counters_.update, "the evaluation on the test set");
    const auto& chosen = watch_.state();
    std::int64_t epoch = epoch_number(counters_), updates = counters_.update;
    if (is_root()) job_.counts.test_reads_begun = job_.source.test->size();
    checkpoint_schedule_->meet(counters_.update);
    checkpoint_schedule_->keep(result_.epochs, standing(), {});  // its record says so,
    checkpoint_schedule_->meet(counters_.update);                // before it is read
    if (chosen.best_update > 0 && chosen.best_update != counters_.update) {
      if (is_of_several_processes()) compare();  // the weights with which the ranks ended
      best_weights_->put_back();                 // what is written above are the last ones
      epoch = chosen.best_epoch;
      updates = chosen.best_update;
    }
    result_.tested = evaluator_->test();
    result_.interrupted = !result_.tested;
    if (result_.interrupted) return;
    result_.tested->epoch = epoch;
    events_.tested(*result_.tested, updates);
  }

  const Job& job_;
  comm::Communicator& communicator_;
  WorkerResult result_;
  measure::Ledger ledger_;
  CollectiveLog gradients_log_;   ///< the buckets
  CollectiveLog statistics_log_;  ///< synchronised batch norm
  Timeline timeline_;             ///< --timeline
  RecentSteps recent_steps_;
  StepTimes step_times_;
  Window window_;
  std::unique_ptr<engine::Engine> engine_;
  SlowWeights slow_;
  std::optional<data::Augment> augment_;
  std::optional<ImageStore> image_store_;  ///< where the engine keeps the images
  std::optional<data::Loader> loader_;
  std::optional<Evaluator> evaluator_;
  std::unique_ptr<StepRunner> steps_;
  std::optional<CheckpointSchedule> checkpoint_schedule_;
  std::optional<BestWeights> best_weights_;
  ValidationWatch watch_;
  TargetWatch target_;
  Counters counters_;
  std::vector<std::string> unread_notes_;
  bool evaluates_first_ = false;
  std::int64_t first_update_ = 0;  ///< updates before this run, or before its last rollback
  EpochFigures epoch_;
  RunEvents events_;
  std::optional<Recovery> recovery_;
  bool enough_ = false;        ///< whether the ranks agreed to end the window
  bool has_compared_ = false;  ///< whether the weights of all ranks were compared
};

}  // namespace

WorkerResult work(const Job& job, comm::Communicator& communicator) {
  return Worker(job, communicator).run();
}

}  // namespace paceline::train
