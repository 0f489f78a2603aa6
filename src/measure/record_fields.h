#pragma once

/// The keys of a record's JSON. One list for each struct serves both directions: `fields(archive, value)`
/// names every key once, with its member. The JsonWriter of record_json.cc turns members into JSON, its
/// JsonReader JSON into members, and base/archive.h both into messages between processes. So everything that
/// is written can be read, and a key has one spelling. Those of GPUs are in
/// measure/gpu_record_fields.h, those of a rank beside its members in measure/rank_record.h.

#include "base/archive.h"
#include "measure/record.h"

namespace paceline::measure {

using base::In;
using base::where_present;

template <typename A>
void fields(A& archive, In<A, Environment>& value) {
  archive("host", value.host);
  archive("cpu", value.cpu);
  archive("cores", value.cores);
  archive("memory_bytes", value.memory_bytes);
  archive("instructions", value.instructions);
  archive("os", value.os);
  archive("compiler", value.compiler);
  archive("build", value.build);
  archive("version", value.version);
  archive("libraries", value.libraries);
  archive("load_before", value.load_before);
  where_present(archive, "gpus", value.gpus);
}

template <typename A>
void fields(A& archive, In<A, BucketRecord>& value) {
  archive("bytes", value.bytes);
  archive("transfer_s", value.transfer_s);
  archive("duration_s", value.duration_s);
  where_present(archive, "ready_s", value.ready_s);
}

template <typename A>
void fields(A& archive, In<A, LastStepsRecord::Rank>& value) {
  archive("rank", value.rank);
  where_present(archive, "clock_error_us", value.clock_error_us);
  archive("phase", value.phase);
  archive("begin_us", value.begin_us);
  archive("length_us", value.length_us);
  archive("bucket", value.bucket);
  archive("posted_us", value.posted_us);
  archive("under_way_us", value.under_way_us);
}

template <typename A>
void fields(A& archive, In<A, LastStepsRecord>& value) {
  archive("steps", value.steps);
  archive("ranks_left_out", value.ranks_left_out);
  archive("ranks", value.ranks);
}

template <typename A>
void fields(A& archive, In<A, GradientSquares>& value) {
  archive("every", value.every);
  archive("small_batch", value.small_batch);
  archive("large_batch", value.large_batch);
  archive("mean_of", value.mean_of);
  archive("small", value.small);
  archive("large", value.large);
}

template <typename A>
void fields(A& archive, In<A, EpochRecord>& value) {
  archive("epoch", value.epoch);
  archive("updates", value.updates);
  archive("steps", value.steps);
  archive("seconds", value.seconds);
  archive("lr", value.lr);
  archive("train_loss", value.train_loss);
  archive("train_accuracy", value.train_accuracy);
  archive("test_loss", value.test_loss);
  archive("test_accuracy", value.test_accuracy);
  where_present(archive, "test_top_5", value.test_top_5);
  archive("validation_loss", value.validation_loss);
  archive("validation_accuracy", value.validation_accuracy);
  where_present(archive, "validation_top_5", value.validation_top_5);
  where_present(archive, "ema_test_loss", value.ema_test_loss);
  where_present(archive, "ema_test_accuracy", value.ema_test_accuracy);
  where_present(archive, "ema_validation_loss", value.ema_validation_loss);
  where_present(archive, "ema_validation_accuracy", value.ema_validation_accuracy);
  where_present(archive, "gradient_norm", value.gradient_norm);
  where_present(archive, "largest_gradient_norm", value.largest_gradient_norm);
  where_present(archive, "clipped", value.clipped);
  where_present(archive, "gradient_squares", value.gradient_squares);
}

template <typename A>
void fields(A& archive, In<A, TestSetRecord>& value) {
  archive("policy", value.policy);
  archive("reads", value.reads);
  archive("epoch", value.epoch);
  archive("loss", value.loss);
  archive("accuracy", value.accuracy);
  where_present(archive, "top_5", value.top_5);
  where_present(archive, "ema_loss", value.ema_loss);
  where_present(archive, "ema_accuracy", value.ema_accuracy);
}

template <typename A>
void fields(A& archive, In<A, EvaluatedUpdateRecord>& value) {
  archive("update", value.update);
  archive("samples", value.samples);
  archive("seconds", value.seconds);
  archive("loss", value.loss);
  archive("accuracy", value.accuracy);
}

template <typename A>
void fields(A& archive, In<A, LossScaleRecord>& value) {
  archive("scale", value.scale);
  archive("left_out", value.left_out);
}

template <typename A>
void fields(A& archive, In<A, TargetRecord>& value) {
  archive("quantity", value.quantity);
  archive("value", value.value);
  archive("update", value.update);
  archive("seconds", value.seconds);
}

template <typename A>
void fields(A& archive, In<A, KernelsRecord>& value) {
  archive("chosen_by", value.chosen_by);
  archive("algorithms", value.algorithms);
}

template <typename A>
void fields(A& archive, In<A, ChosenRecord>& value) {
  archive("epoch", value.epoch);
  archive("updates", value.updates);
  archive("validation_loss", value.validation_loss);
  archive("validation_accuracy", value.validation_accuracy);
  archive("stopped_early", value.stopped_early);
  archive("reductions", value.reductions);
}

template <typename A>
void fields(A& archive, In<A, MistakeRecord>& value) {
  archive("index", value.index);
  archive("path", value.path);
  archive("label", value.label);
  archive("predicted", value.predicted);
  archive("probability", value.probability);
}

template <typename A>
void fields(A& archive, In<A, EvaluationRecord>& value) {
  archive("checkpoint", value.checkpoint);
  archive("updates", value.updates);
  archive("part", value.part);
  archive("samples", value.samples);
  archive("loss", value.loss);
  archive("correct", value.correct);
  archive("correct_in_5", value.correct_in_5);
  archive("classes", value.classes);
  archive("confusion", value.confusion);
  archive("mistakes", value.mistakes);
  archive("reads", value.reads);
}

template <typename A>
void fields(A& archive, In<A, CollectiveRecord>& value) {
  archive("collective", value.collective);
  archive("in_place", value.in_place);
  archive("bytes", value.bytes);
  archive("correct", value.correct);
  archive("seconds", value.seconds);
}

template <typename A>
void fields(A& archive, In<A, LinkFitRecord>& value) {
  archive("collective", value.collective);
  archive("in_place", value.in_place);
  archive("alpha_s", value.alpha_s);
  archive("bytes_per_s", value.bytes_per_s);
  archive("residual", value.residual);
}

template <typename A>
void fields(A& archive, In<A, StepRecord>& value) {
  archive("update", value.update);
  archive("loss", value.loss);
  archive("lr", value.lr);
  where_present(archive, "gradient_norm", value.gradient_norm);
}

template <typename A>
void fields(A& archive, In<A, Record::Model>& value) {
  archive("name", value.name);
  archive("parameters", value.parameters);
  archive("training_flops", value.training_flops);
  where_present(archive, "graph_sha256", value.graph_sha256);
  where_present(archive, "bytes_a_sample", value.bytes_a_sample);
  where_present(archive, "bytes_a_step", value.bytes_a_step);
}

template <typename A>
void fields(A& archive, In<A, Record::Data>& value) {
  archive("spec", value.spec);
  archive("name", value.name);
  archive("description", value.description);
  archive("synthetic", value.synthetic);
  archive("train_samples", value.train_samples);
  archive("test_samples", value.test_samples);
  archive("validation_samples", value.validation_samples);
  archive("dropped_per_epoch", value.dropped_per_epoch);
  archive("steps_per_epoch", value.steps_per_epoch);
  where_present(archive, "stored_bytes", value.stored_bytes);
  where_present(archive, "shards", value.shards);
  where_present(archive, "images_on", value.images_on);
  where_present(archive, "eval_resize", value.eval_resize);
  where_present(archive, "eval_size", value.eval_size);
  where_present(archive, "classes", value.classes);
  where_present(archive, "lists_sha256", value.lists_sha256);
  where_present(archive, "class_weights", value.class_weights);
}

template <typename A>
void fields(A& archive, In<A, Record::LearningRate>& value) {
  archive("base", value.base);
  archive("factor", value.factor);
  archive("peak", value.peak);
  archive("rule", value.rule);
  archive("reference_batch", value.reference_batch);
}

template <typename A>
void fields(A& archive, In<A, Record::Memory::Device::Use>& value) {
  archive("total_bytes", value.total_bytes);
  archive("used_bytes", value.used_bytes);
  archive("engines_bytes", value.engines_bytes);
}

template <typename A>
void fields(A& archive, In<A, Record::Memory::Device>& value) {
  archive("workers", value.workers);
  archive("plan_bytes", value.plan_bytes);
  archive("plan_lines", value.plan_lines);
  archive("available_bytes", value.available_bytes);
  where_present(archive, "use", value.use);
}

template <typename A>
void fields(A& archive, In<A, Record::Memory>& value) {
  archive("plan_bytes", value.plan_bytes);
  archive("plan_lines", value.plan_lines);
  archive("peak_bytes", value.peak_bytes);
  archive("available_bytes", value.available_bytes);
  where_present(archive, "device", value.device);
}

template <typename A>
void fields(A& archive, In<A, Record::MeasuredWindow>& value) {
  archive("unit", value.unit);
  archive("warmup_steps", value.warmup_steps);
  archive("steps", value.steps);
  where_present(archive, "timed_of", value.timed_of);
  archive("samples", value.samples);
  archive("wall_s", value.wall_s);
  archive("others_cores", value.others_cores);
  where_present(archive, "others", value.others);
  where_present(archive, "paused_s", value.paused_s);
}

template <typename A>
void fields(A& archive, In<A, OtherProgramRecord>& value) {
  archive("name", value.name);
  archive("cores", value.cores);
}

template <typename A>
void fields(A& archive, In<A, PeakRecord>& value) {
  archive("threads", value.threads);
  archive("precision", value.precision);
  archive("flops_per_s", value.flops_per_s);
  archive("bytes_per_s", value.bytes_per_s);
}

template <typename A>
void fields(A& archive, In<A, Record::Communication>& value) {
  archive("communicator", value.communicator);
  archive("processes", value.processes);
  where_present(archive, "nodes", value.nodes);
  where_present(archive, "processes_of_nodes", value.processes_of_nodes);
  where_present(archive, "placement", value.placement);
  where_present(archive, "parallel", value.parallel);
  archive("launcher", value.launcher);
  archive("library", value.library);
  archive("algorithm", value.algorithm);
  archive("gradient_bytes", value.gradient_bytes);
  where_present(archive, "parameter_bytes", value.parameter_bytes);
  where_present(archive, "statistics_bytes", value.statistics_bytes);
  where_present(archive, "padding_bytes", value.padding_bytes);
  where_present(archive, "vote_bytes", value.vote_bytes);
  where_present(archive, "norm_bytes", value.norm_bytes);
  where_present(archive, "norm_collectives", value.norm_collectives);
  archive("bytes_sent", value.bytes_sent);
  where_present(archive, "bytes_received", value.bytes_received);
  archive("collectives", value.collectives);
  archive("memory_ceiling_gb_per_s", value.memory_ceiling_gb_per_s);
}

template <typename A>
void fields(A& archive, In<A, LossRecord>& value) {
  archive("known_at_s", value.known_at_s);
  archive("detection_s", value.detection_s);
}

template <typename A>
void fields(A& archive, In<A, RestartRecord>& value) {
  archive("reason", value.reason);
  archive("workers", value.workers);
  archive("detection_s", value.detection_s);
  archive("rebuild_s", value.rebuild_s);
  archive("lost_updates", value.lost_updates);
  archive("lost_samples", value.lost_samples);
}

template <typename A>
void fields(A& archive, In<A, ChangeRecord>& value) {
  archive("setting", value.setting);
  archive("then", value.then);
  archive("now", value.now);
  archive("update", value.update);
}

template <typename A>
void fields(A& archive, In<A, RollbackRecord>& value) {
  archive("update", value.update);
  archive("reason", value.reason);
  archive("to_update", value.to_update);
  archive("rate_factor", value.rate_factor);
}

template <typename A>
void fields(A& archive, In<A, Record>& value) {
  archive("kind", value.kind);
  archive("id", value.id);
  archive("status", value.status);
  archive("reason", value.reason);
  archive("updates_done", value.updates_done);
  archive("loss", value.loss);
  archive("restarts", value.restarts);
  archive("changes", value.changes);
  where_present(archive, "rollbacks", value.rollbacks);
  where_present(archive, "skipped_updates", value.skipped_updates);
  where_present(archive, "loss_scale", value.loss_scale);
  archive("created", value.created);
  archive("command", value.command);
  archive("settings", value.settings);
  archive("environment", value.environment);
  archive("model", value.model);
  archive("data", value.data);
  archive("workers", value.workers);
  archive("threads_per_worker", value.threads_per_worker);
  archive("oversubscribed", value.oversubscribed);
  archive("local_batch", value.local_batch);
  archive("global_batch", value.global_batch);
  archive("batch_given_as", value.batch_given_as);
  archive("precision", value.precision);
  archive("device", value.device);
  where_present(archive, "device_name", value.device_name);
  archive("scaling", value.scaling);
  where_present(archive, "also", value.also);
  archive("variant", value.variant);
  archive("repeat", value.repeat);
  archive("learning_rate", value.learning_rate);
  archive("memory", value.memory);
  archive("window", value.window);
  where_present(archive, "peak", value.peak);
  archive("first_step_s", value.first_step_s);
  archive("communication", value.communication);
  archive("ranks", value.ranks);
  archive("buckets", value.buckets);
  where_present(archive, "last_steps", value.last_steps);
  where_present(archive, "gpus", value.gpus);
  archive("epochs", value.epochs);
  archive("steps", value.steps);
  where_present(archive, "evaluations", value.evaluations);
  where_present(archive, "target", value.target);
  where_present(archive, "chosen", value.chosen);
  where_present(archive, "kernels", value.kernels);
  where_present(archive, "test_set", value.test_set);
  where_present(archive, "evaluation", value.evaluation);
  archive("collectives", value.collectives);
  archive("link_fits", value.link_fits);
  archive("notes", value.notes);
}

}  // namespace paceline::measure
