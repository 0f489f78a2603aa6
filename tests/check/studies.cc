#include "check/studies.h"

namespace paceline::check::sound {
namespace {

/// The name of a unit of bandwidth in bytes/s.
struct Unit {
  const char* name;
  double bytes;
};
constexpr Unit kUnits[] = {{"GB/s", 1e9},      {"MB/s", 1e6},    {"GiB/s", 1073741824.0},
                           {"Gbit/s", 1.25e8}, {"Gb/s", 1.25e8}, {"MiB/s", 1048576.0}};

Unit a_unit(Draw& draw) { return kUnits[draw.whole(0, 5)]; }

void add_flops(Draw& draw, SoundTable& sound) {
  double least = 1e300;  // seconds that one worker has for an image
  for (std::size_t i = 0; i < sound.truth.size(); ++i)
    least = std::min(least, *sound.table.rows[i].value("workers") / sound.truth[i].rate);
  const double peak = draw.one_of({19.5e12, 312e12, 989e12, 1.2e11}),
               flops = draw.between(0.02, 0.97) * least * peak;
  for (auto& row : sound.table.rows) {
    row.set("flops_per_sample", fmt::format("{:.2e}", flops * 0.995));
    row.set("peak_flops", fmt::format("{:.3e}", peak));
  }
}

/// The rows of another sound study behind those of this one, as another model, or the same with another
/// setting: each has baselines of its own.
void add_study(Draw& draw, SoundTable& sound) {
  const auto other = draw_table(static_cast<std::uint64_t>(draw.whole(0, 1 << 30)));
  const int by = draw.whole(0, 3);
  const auto tell_apart = [&](Row& row, int which) {
    if (by == 0) row.set("model", which == 0 ? "net-a" : "net-b");
    if (by == 1) row.settings["precision"] = which == 0 ? "fp32" : "bf16";
    if (by == 2) row.set("program", which == 0 ? "ours" : "theirs");
    if (by == 3) row.set("device", which == 0 ? "A100" : "H100");
    if (which == 0) return;
    row.set("run", "other " + row.text("run"));
    if (row.knows("baseline")) row.set("baseline", "other " + row.text("baseline"));
  };
  for (auto& row : sound.table.rows) tell_apart(row, 0);
  for (auto row : other.table.rows) {
    tell_apart(row, 1);
    row.line = sound.table.rows.size() + 2;
    sound.table.rows.push_back(row);
  }
}

/// Specification of a link that is wide enough for every claim.
void add_link(Draw& draw, Table& table) {
  double most = 0;
  for (const auto& row : table.rows)
    if (const auto claim = row.value("claimed_bandwidth")) {
      const double n = row.value("workers").value_or(2);
      const double on_link = row.text("bandwidth_is") == "algbw" ? *claim * 2 * (n - 1) / n : *claim;
      most = std::max(most, on_link * (row.text("bandwidth_is").empty() ? 2 : 1));
    }
  if (most <= 0) return;
  const bool both = draw.chance(0.5);
  const double one_way = most * draw.between(1.02, 5);
  for (auto& row : table.rows) {
    if (!row.knows("claimed_bandwidth")) continue;
    row.set("link", printed(one_way * (both ? 2 : 1), 6));
    row.set("link_unit", row.text("bandwidth_unit"));
    row.set("link_is", both ? "both-ways" : "one-way");
    if (draw.chance(0.5))
      row.set("claimed_utilisation", printed(*row.value("claimed_bandwidth") / one_way, 3));
  }
}

}  // namespace

void forget(Table& table, std::initializer_list<Column> columns) {
  for (auto& row : table.rows)
    for (const auto column : columns) row.set(column, "");
}

void vary(Draw& draw, SoundTable& sound) {
  auto& table = sound.table;
  if (draw.chance(0.4)) add_flops(draw, sound);
  if (draw.chance(0.3)) add_link(draw, table);
  if (draw.chance(0.3)) add_study(draw, sound);
  const bool has_setting = draw.chance(0.3), has_words = draw.chance(0.3), per_cent = draw.chance(0.15);
  const int per_node = draw.one_of({1, 2, 4, 8});
  const bool has_nodes = draw.chance(0.3);
  for (auto& row : table.rows) {
    if (has_setting) row.settings["compiler"] = "13.2";
    if (has_words) row.set("covers", "data compute communication update");
    if (has_words) row.set("excludes", "evaluation startup");
    if (has_nodes) row.set("nodes", std::ceil(*row.value("workers") / per_node));
    if (const auto e = row.number("claimed_efficiency"); per_cent && e) {
      const auto dot = e->text.find('.');
      const int decimals = dot == std::string::npos ? 0 : static_cast<int>(e->text.size() - dot - 1);
      row.set("claimed_efficiency", fmt::format("{:.{}f}", e->value * 100, std::max(0, decimals - 2)));
    }
  }
  for (const Column column :
       {Column("scaling"), Column("local_batch"), Column("train_samples"), Column("time_of"),
        Column("rate_of"), Column("communication_is"), Column("compute_s"), Column("bandwidth_is"),
        Column("bandwidth_unit"), Column("algorithm"), Column("claimed_speedup"), Column("spread_is"),
        Column("statistic"), Column("repeats"), Column("time_s"), Column("parameters"), Column("quality_of"),
        Column("link_is"), Column("global_batch")}) {
    const bool is_gone = draw.chance(0.08), is_sparse = draw.chance(0.08);
    for (auto& row : table.rows)
      if (is_gone || (is_sparse && draw.chance(0.3))) row.set(column, "");
  }
}

Table message_table(Draw& draw) {
  Table table{.where = "messages.csv"};
  const int n = draw.one_of({2, 4, 8, 16, 32, 64});
  const double link = draw.log_between(1e8, 4e11), latency = draw.log_between(2e-6, 5e-4),
               noise = draw.log_between(0.001, 0.05);
  const bool in_switch = draw.chance(0.2), says_link = draw.chance(0.5), says_wrong = draw.chance(0.5);
  const std::string is = draw.one_of({"algbw", "busbw", "busbw", "sent"});
  const auto unit = a_unit(draw);
  const int digits = draw.whole(3, 5);
  const double ring = 2.0 * (n - 1) / n, share = draw.between(0.3, 0.95);
  for (double bytes = draw.one_of({8.0, 1024.0, 1e6}); bytes <= 1.1e9;
       bytes *= draw.one_of({2.0, 4.0, 8.0})) {
    const double on_wire = in_switch ? (n + 1.0) / n * bytes : ring * bytes;
    const double seconds = (latency + on_wire / (link * share)) * std::exp(std::abs(draw.normal(noise)));
    Row row;
    row.line = table.rows.size() + 2;
    row.set("run", fmt::format("{:.0f} bytes", bytes));
    row.set("workers", n);
    row.set("message_bytes", bytes);
    row.set("time_s", printed(seconds, digits));
    row.set("time_of", "step");
    if (in_switch) row.set("algorithm", draw.chance(0.5) ? "NVLS" : "reduction in the switch");
    const double sent = in_switch ? on_wire : ring * bytes;
    const double counted = is == "algbw" ? bytes : is == "busbw" ? ring * bytes : sent;
    row.set("claimed_bandwidth", draw.chance(0.2) ? fmt::format("{:.2f}", counted / seconds / unit.bytes)
                                                  : printed(counted / seconds / unit.bytes, digits));
    row.set("bandwidth_unit", unit.name);
    row.set("bandwidth_is", is);
    if (says_wrong) row.set("wrong_elements", 0);
    if (says_link) row.set("link", printed(link / unit.bytes, 6));
    if (says_link) row.set("link_unit", unit.name);
    if (says_link) row.set("link_is", "one-way");
    table.rows.push_back(row);
  }
  return table;
}

Table batch_table(Draw& draw) {
  Table table{.where = "batches.csv"};
  const int n = draw.one_of({2, 4, 8});
  const double samples = draw.one_of({50000.0, 60000.0, 1281167.0}), parameters = 11173962;
  const double image_s = draw.log_between(1e-5, 1e-3), link = draw.log_between(1e9, 1e11);
  const double latency = draw.log_between(1e-6, 1e-4), noise = draw.log_between(0.001, 0.05);
  const auto unit = a_unit(draw);
  const int digits = draw.whole(3, 5), element = draw.one_of({4, 4, 2});
  const bool drops = draw.chance(0.5);
  for (double b = draw.one_of({8.0, 32.0}); b <= 1024; b *= 2) {
    const double steps = drops ? std::floor(samples / (b * n)) : std::ceil(samples / (b * n));
    const double bytes = parameters * element;
    const double transfer = (latency + 2.0 * (n - 1) / n * bytes / link) * std::exp(draw.normal(noise));
    const double compute = (image_s * b + 0.001) * std::exp(draw.normal(noise));
    Row row;
    row.line = table.rows.size() + 2;
    row.set("run", fmt::format("b{:g}", b));
    row.set("workers", n);
    row.set("local_batch", b);
    row.set("train_samples", samples);
    row.set("time_s", printed((compute + transfer) * steps, digits));
    row.set("time_of", "epoch");
    row.set("compute_s", printed(compute * steps, digits));
    row.set("communication_s", printed(transfer * steps, digits));
    row.set("communication_is", "exposed");
    row.set("parameters", parameters);
    row.set("element_bytes", element);
    row.set("claimed_bandwidth", printed(2.0 * (n - 1) / n * bytes / transfer / unit.bytes, digits));
    row.set("bandwidth_unit", unit.name);
    row.set("bandwidth_is", "busbw");
    table.rows.push_back(row);
  }
  return table;
}

Table quality_table(Draw& draw) {
  Table table{.where = "quality.csv"};
  const int tests = draw.one_of({10000, 3925, 50000, 1000}), seeds = draw.whole(1, 5);
  const int digits = draw.whole(3, 6);
  const bool has_mean = draw.chance(0.5) && seeds > 1;
  const double samples = draw.one_of({50000.0, 60000.0, 9469.0}), epochs = draw.whole(1, 90);
  const double rate = draw.log_between(1e-3, 0.5);
  const auto print = [&](double accuracy) { return fmt::format("{:.{}f}", accuracy, digits); };
  int configurations = 0;
  for (const double batch : {64.0, 128.0, 256.0}) {
    if (++configurations > 1 && draw.chance(0.4)) continue;
    const double middle = draw.between(0.3, 0.99), sd = draw.between(0, 0.004);
    double sum = 0, loss_sum = 0, squares = 0;
    for (int seed = 0; seed < seeds; ++seed) {
      const double count = std::round(std::clamp(middle + draw.normal(sd), 0.05, 1.0) * tests),
                   accuracy = count / tests;
      const double loss = (1 - accuracy) * draw.between(1.45, 6) + 0.002;
      sum += accuracy;
      squares += accuracy * accuracy;
      loss_sum += loss;
      Row row;
      row.line = table.rows.size() + 2;
      row.set("run", fmt::format("b{:g}", batch));
      row.set("seed", seed);
      row.set("seeds", seeds);
      row.set("workers", batch / 64);
      row.set("global_batch", batch);
      row.set("train_samples", samples);
      row.set("test_samples", tests);
      row.set("epochs", epochs);
      row.set("updates", std::floor(samples / batch) * epochs);
      row.set("learning_rate", fmt::format("{:.3g}", rate * batch / 64));
      row.set("optimizer", "sgd");
      row.set("accuracy", print(accuracy));
      row.set("loss", fmt::format("{:.4f}", loss));
      row.set("quality_of", "test");
      table.rows.push_back(row);
    }
    if (!has_mean) continue;
    auto row = table.rows.back();
    const double mean = sum / seeds;
    row.line = table.rows.size() + 2;
    row.set("run", fmt::format("b{:g} mean", batch));
    row.set("seed", "");
    row.set("statistic", "mean");
    row.set("accuracy", fmt::format("{:.{}f}", mean, digits + 1));
    row.set("accuracy_sd", fmt::format("{:.5f}", std::sqrt(std::max(0.0, squares / seeds - mean * mean))));
    row.set("loss", fmt::format("{:.4f}", loss_sum / seeds));
    table.rows.push_back(row);
  }
  return table;
}

Table repeat_table(Draw& draw) {
  Table table{.where = "repeats.csv"};
  const int repeats = draw.whole(3, 9), programs = draw.whole(1, 2), digits = draw.whole(3, 5);
  const double noise = draw.log_between(0.002, 0.03), time = draw.log_between(1e-3, 1e3);
  const std::string of = draw.one_of({"step", "epoch", "run"});
  std::vector<std::vector<double>> times(2);
  for (int repeat = 1; repeat <= repeats; ++repeat)
    for (int program = 0; program < programs; ++program) {
      const double one = time * (program == 0 ? 1 : 1.4) * std::exp(draw.normal(noise));
      Row row;
      row.line = table.rows.size() + 2;
      row.set("run", program == 0 ? "ours" : "theirs");
      row.set("program", program == 0 ? "ours" : "theirs");
      row.set("workers", 1);
      row.set("repeat", repeat);
      row.set("seed", repeat);
      row.set("time_s", printed(one, digits));
      row.set("time_of", of);
      row.set("warmup", 10);
      times[static_cast<std::size_t>(program)].push_back(*row.value("time_s"));
      table.rows.push_back(row);
    }
  if (draw.chance(0.3)) return table;
  const std::string is = draw.one_of({"sd", "se", "ci95", "range"});
  for (int program = 0; program < programs; ++program) {
    const auto& all = times[static_cast<std::size_t>(program)];
    double mean = 0, squares = 0;
    for (const double one : all) mean += one / repeats;
    for (const double one : all) squares += (one - mean) * (one - mean);
    const double sd = std::sqrt(squares / (repeats - 1)), root = std::sqrt(repeats);
    Row row = table.rows[static_cast<std::size_t>(program)];
    row.line = table.rows.size() + 2;
    row.set("run", row.text("program") + " mean");
    row.set("repeat", "");
    row.set("seed", "");
    row.set("statistic", "mean");
    row.set("repeats", repeats);
    row.set("time_s", printed(mean, digits));
    row.set("spread_is", is);
    row.set("spread_s", printed(is == "sd"     ? sd
                                : is == "se"   ? sd / root
                                : is == "ci95" ? 1.96 * sd / root
                                               : std::ranges::max(all) - std::ranges::min(all),
                                3));
    table.rows.push_back(row);
  }
  return table;
}

Table run_table(Draw& draw) {
  Table table{.where = "runs.csv"};
  const double samples = draw.one_of({50000.0, 60000.0, 9469.0}), local = draw.one_of({32.0, 64.0, 100.0});
  const double image_s = draw.log_between(1e-5, 1e-2), noise = draw.log_between(0.001, 0.05);
  const double startup = draw.chance(0.5) ? draw.between(0, 0.05) : 0;
  const int epochs = draw.whole(2, 90), digits = draw.whole(3, 5);
  const bool drops = draw.chance(0.5), says_steps = draw.chance(0.5), says_epochs = draw.chance(0.7);
  double run0 = 0;
  for (int n = 1; n <= draw.one_of({2, 4, 8}); n *= 2) {
    const double steps = drops ? std::floor(samples / (local * n)) : std::ceil(samples / (local * n));
    const double epoch = steps * local * image_s * std::exp(draw.normal(noise));
    const double run = epoch * epochs * (1 + startup) * std::exp(draw.normal(noise / 4));
    for (const bool is_run : {false, true}) {
      Row row;
      row.line = table.rows.size() + 2;
      row.set("run", fmt::format("{}{}", is_run ? "run of " : "epoch of ", n));
      row.set("workers", n);
      row.set("local_batch", local);
      row.set("train_samples", samples);
      if (says_epochs) row.set("epochs", epochs);
      row.set("time_s", printed(is_run ? run : epoch, digits));
      row.set("time_of", is_run ? "run" : "epoch");
      if (is_run && says_steps) row.set("steps", steps * epochs);
      if (run0 > 0 && is_run) row.set("claimed_speedup", printed(run0 / run, digits));
      if (run0 > 0 && is_run) row.set("baseline", "run of 1");
      table.rows.push_back(row);
    }
    if (run0 <= 0) run0 = run;
  }
  return table;
}

Table any_table(std::uint64_t seed) {
  Draw draw(seed ^ 0x9e3779b97f4a7c15ULL);
  const double kind = draw.between(0, 1);
  if (kind < 0.1) return message_table(draw);
  if (kind < 0.16) return batch_table(draw);
  if (kind < 0.22) return quality_table(draw);
  if (kind < 0.28) return repeat_table(draw);
  if (kind < 0.34) return run_table(draw);
  auto sound = draw_table(seed);
  if (draw.chance(0.8)) vary(draw, sound);
  return sound.table;
}

}  // namespace paceline::check::sound
