#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "analysis/predict/cluster.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace paceline::analysis {
namespace {

using base::ErrorKind;

constexpr double kMicrosecond = 1e-6, kGiga = 1e9, kGigabit = 1e9 / 8;
constexpr double kMost = 1e12;

struct Limits {
  double least = 0, most = kMost;
  bool is_above_least = false;  ///< the least itself is refused
};
constexpr Limits kPositive{.is_above_least = true};

/// One table of the file: typed access to its keys, with errors that give file, line and the key's name.
class FileTable {
 public:
  /// `table`: null if the file has none. Unknown keys are refused.
  FileTable(const toml::table* table, std::string name, const std::string& where,
            std::initializer_list<const char*> keys)
      : table_(table), name_(std::move(name)), where_(where) {
    if (table == nullptr) return;
    const std::vector<std::string> known(keys.begin(), keys.end());
    for (const auto& [key, node] : *table)
      if (std::ranges::find(known, key.str()) == known.end())
        base::fail(ErrorKind::usage, "{}:{}: there is no {}{}", where_, key.source().begin.line,
                   full(key.str()), base::suggestion(key.str(), known));
  }

  [[nodiscard]] bool is_there() const { return table_ != nullptr; }
  [[nodiscard]] bool has(std::string_view key) const { return node(key) != nullptr; }
  [[nodiscard]] const toml::table* sub_table(std::string_view key) const {
    const auto* found = node(key);
    if (found == nullptr) return nullptr;
    if (!found->is_table()) refuse(key, "must be a table, [{}]", full(key));
    return found->as_table();
  }

  template <typename... Args>
  [[noreturn]] void refuse(std::string_view key, fmt::format_string<Args...> format, Args&&... args) const {
    const auto* found = node(key);
    const auto line = found != nullptr ? found->source().begin.line : table_->source().begin.line;
    base::fail(ErrorKind::usage, "{}:{}: {} {}", where_, line, full(key),
               fmt::format(format, std::forward<Args>(args)...));
  }

  [[nodiscard]] std::optional<std::string> text(std::string_view key) const {
    const auto* found = node(key);
    if (found == nullptr) return std::nullopt;
    const auto value = found->value_exact<std::string>();
    if (!value) refuse(key, "must be a text in quotes; correct it");
    return base::visible(*value);
  }
  /// One of these names.
  [[nodiscard]] std::optional<std::string> choice(std::string_view key,
                                                  const std::vector<std::string>& known) const {
    const auto chosen = text(key);
    if (chosen && std::ranges::find(known, *chosen) == known.end())
      refuse(key, "is '{}'{}", *chosen, base::suggestion(*chosen, known));
    return chosen;
  }
  [[nodiscard]] bool truth(std::string_view key, bool otherwise) const {
    const auto* found = node(key);
    if (found == nullptr) return otherwise;
    const auto value = found->value_exact<bool>();
    if (!value) refuse(key, "must be true or false; correct it");
    return *value;
  }
  [[nodiscard]] int whole(std::string_view key, int otherwise, int least, int most) const {
    const auto* found = node(key);
    if (found == nullptr) return otherwise;
    const auto value = found->value_exact<std::int64_t>();
    if (!value) refuse(key, "must be a whole number; correct it");
    if (*value < least || *value > most)
      refuse(key, "must be from {} to {}, but is {}; correct it", least, most, *value);
    return static_cast<int>(*value);
  }
  /// A number, or [low, high].
  [[nodiscard]] std::optional<Range> range(std::string_view key, Limits limits = {}) const {
    const auto* found = node(key);
    if (found == nullptr) return std::nullopt;
    const auto* list = found->as_array();
    if (list == nullptr) return Range::of(number(key, *found, limits));
    if (list->size() != 2) refuse(key, "must be a number, or a range [low, high]; correct it");
    const Range range{number(key, *list->get(0), limits), number(key, *list->get(1), limits)};
    if (range.low > range.high)
      refuse(key, "is a range from {} down to {}; write [{}, {}]", range.low, range.high, range.high,
             range.low);
    return range;
  }
  /// Sets `to` to the key's range in this unit, if it is given.
  void read_range(std::string_view key, double unit, Range& to, Limits limits = {}) const {
    if (const auto given = range(key, limits)) to = given->scaled(unit);
  }

 private:
  [[nodiscard]] const toml::node* node(std::string_view key) const {
    return table_ == nullptr ? nullptr : table_->get(key);
  }
  [[nodiscard]] std::string full(std::string_view key) const {
    return name_.empty() ? std::string(key) : fmt::format("{}.{}", name_, key);
  }
  [[nodiscard]] double number(std::string_view key, const toml::node& value, Limits limits) const {
    const auto whole = value.value_exact<std::int64_t>();
    const auto real = value.value_exact<double>();
    if (!whole && !real) refuse(key, "must be a number, or a range [low, high]; correct it");
    const double number = real ? *real : static_cast<double>(*whole);
    if (!std::isfinite(number) || number < limits.least || number > limits.most ||
        (limits.is_above_least && number == limits.least))
      refuse(key, "must be {} {}{}, but is {}; correct it", limits.is_above_least ? "above" : "at least",
             limits.least, limits.most < kMost ? fmt::format(" and at most {}", limits.most) : "", number);
    return number;
  }

  const toml::table* table_;
  std::string name_;
  const std::string& where_;
};

bool is_one_of(double value, std::initializer_list<double> values) {
  return std::ranges::find(values, value) != values.end();
}

/// What cards are sold as. In GB/s the same number means eight times as much, and for half of these there is
/// such a card too; so only Gbit/s is taken where the number may be either.
void refuse_units_of_card(const FileTable& table, const Range& given, bool as_gbit) {
  for (const double value : {given.low, given.high}) {
    if (!as_gbit && (is_one_of(value, {10, 25, 40, 50, 100}) || value > 100))
      table.refuse(
          "GB_per_s",
          "is {}, which is what cards have in Gbit/s; write Gbit_per_s = {}, or if {} GB/s are meant, "
          "Gbit_per_s = {}",
          value, value, value, 8 * value);
    if (as_gbit && is_one_of(value, {1.25, 3.125, 6.25, 12.5}))
      table.refuse("Gbit_per_s",
                   "is {}, which is what a card of {} Gbit/s has in GB/s; write Gbit_per_s = {}, or if {} "
                   "Gbit/s are meant, GB_per_s = {}",
                   value, 8 * value, 8 * value, value, value / 8);
  }
}

/// NVLink and PCIe are printed as the sum of both ways: 600, 900 and 1,800 GB/s are 300, 450 and 900 one way.
void refuse_units_of_node(const FileTable& table, const Range& given, bool as_gbit) {
  const bool is_one_way = table.truth("one_way", false);
  for (const double value : {given.low, given.high}) {
    if (as_gbit && is_one_of(value, {150, 300, 450, 600, 900, 1800}))
      table.refuse("Gbit_per_s",
                   "is {}, which is what NVLink has in GB/s; write GB_per_s = {}, or if {} Gbit/s are meant, "
                   "GB_per_s = {}",
                   value, value, value, value / 8);
    if (!as_gbit && value > 1800)
      table.refuse("GB_per_s",
                   "is {}, more than any link of a node has; if it is in Gbit/s, write Gbit_per_s = {}",
                   value, value);
    if (!as_gbit && !is_one_way && is_one_of(value, {600, 900, 1800}))
      table.refuse("GB_per_s",
                   "is {}, which vendors print for both ways together; write the {} of one way, or if {} are "
                   "one way, add one_way = true",
                   value, value / 2, value);
  }
}

constexpr Range kShareOfNode{0.75, 0.82}, kShareOfCard{0.75, 0.96};  // cluster_presets.cc

void read_rate(const FileTable& table, Link& link, bool is_network) {
  const auto gb = table.range("GB_per_s", kPositive), gbit = table.range("Gbit_per_s", kPositive);
  if (gb && gbit) table.refuse("GB_per_s", "and Gbit_per_s are both given; leave one of them out");
  const auto share = table.range("share", {.least = 0, .most = 1, .is_above_least = true});
  if (!gb && !gbit) {
    if (share) table.refuse("share", "is a share of GB_per_s or Gbit_per_s, which is not given; add it");
    return;
  }
  const Range given = gbit ? *gbit : *gb;
  (is_network ? refuse_units_of_card : refuse_units_of_node)(table, given, gbit.has_value());
  const Range part = share.value_or(is_network ? kShareOfCard : kShareOfNode);
  const double unit = gbit ? kGigabit : kGiga;
  link.bytes_per_s = {given.low * unit * part.low, given.high * unit * part.high};
}

void read_link(const FileTable& table, Link& link, bool is_network,
               std::optional<std::filesystem::path>& measured) {
  read_rate(table, link, is_network);
  table.read_range("latency_us", kMicrosecond, link.latency_s);
  table.read_range("base_us", kMicrosecond, link.base_s);
  table.read_range("message_us", kMicrosecond, link.message_s);
  link.in_switch = table.truth("in_switch", link.in_switch);
  const auto file = table.text("measured");
  if (file && file->empty()) table.refuse("measured", "names no file; leave it out, or name one");
  if (file) measured = *file;
  if (table.is_there() && !link.exists() && !file)
    table.refuse(is_network ? "Gbit_per_s" : "GB_per_s",
                 "is not given, and no measured file either; add one of them");
}

void read_network(const FileTable& table, Network& network, std::optional<std::filesystem::path>& measured) {
  read_link(table, network, true, measured);
  network.nics_per_node = table.whole("nics_per_node", network.nics_per_node, 1, 1024);
  network.nodes_per_switch = table.whole("nodes_per_switch", network.nodes_per_switch, 1, 1 << 20);
  if (table.choice("topology", {"fat-tree", "one-switch"}) == "one-switch" && table.has("nodes_per_switch"))
    table.refuse("topology", "is one switch, but nodes_per_switch is given; leave one of them out");
  if (const auto over = table.range("oversubscription", {.least = 1, .most = 1024})) {
    if (over->high > 1 && network.nodes_per_switch == 0)
      table.refuse("oversubscription", "is of what leaves a switch; add nodes_per_switch");
    network.oversubscription = *over;
  }
}

void read_node_link(const FileTable& table, Cluster& cluster,
                    std::optional<std::filesystem::path>& measured) {
  Link& link = cluster.node_link;
  read_link(table, link, false, measured);
  if (table.choice("kind", {"switch", "memory"}) == "memory") {
    if (link.in_switch) table.refuse("kind", "is memory, which does not add; leave in_switch out");
    // Workers on processors: the sums are this program's own.
    if (cluster.algorithm == Algorithm::automatic) cluster.algorithm = Algorithm::exchange;
  }
  table.read_range("total_GB_per_s", kGiga, link.total_bytes_per_s, kPositive);
}

void read_emulated(const FileTable& table, Cluster& cluster) {
  if (!table.is_there()) return;
  AddedLink link;
  table.read_range("latency_us", kMicrosecond, link.latency_s);
  table.read_range("GB_per_s", kGiga, link.bytes_per_s, kPositive);
  link.between_nodes = table.choice("between", {"ranks", "hosts"}) == "hosts";
  cluster.emulated = link;
}

void read_storage(const FileTable& table, Cluster& cluster) {
  if (!table.is_there()) return;
  Storage storage = cluster.storage.value_or(Storage{});
  table.read_range("shared_GB_per_s", kGiga, storage.shared_bytes_per_s, kPositive);
  table.read_range("node_GB_per_s", kGiga, storage.node_bytes_per_s, kPositive);
  table.read_range("opens_per_s", 1, storage.opens_per_s, kPositive);
  cluster.storage = storage;
}

void read_cost(const FileTable& table, Cluster& cluster) {
  if (!table.is_there()) return;
  const auto price = table.range("node_hour");
  if (!price) table.refuse("node_hour", "is missing: what a node costs an hour; add it");
  if (!price->is_fixed()) table.refuse("node_hour", "is a range, but must be one number; correct it");
  const auto currency = table.text("currency");
  if (!currency || currency->empty() || currency->size() > 8)
    table.refuse("currency", "must be a short text, \"USD\"; add it");
  cluster.cost = Cost{price->low, *currency};
}

void read_worker(const FileTable& table, Cluster& cluster) {
  table.read_range("speed", 1, cluster.worker_speed, kPositive);
  table.read_range("spread", 1, cluster.worker_spread, {.least = 0, .most = 1});
  table.read_range("adds_GB_per_s", kGiga, cluster.adds_bytes_per_s, kPositive);
}

/// A file without the links that its workers need.
void require_links(const Cluster& cluster, const toml::table& root, const std::string& where) {
  const auto missing = [&](const char* table, const std::string& what) {
    if (root.at_path(table).is_table()) return;
    base::fail(ErrorKind::usage, "{}: {}, but [{}] is missing; add it with its bandwidth", where, what,
               table);
  };
  if (cluster.emulated) return;
  if (cluster.workers_per_node > 1 && !cluster.node_link.exists())
    missing("node.link", fmt::format("a node has {} workers", cluster.workers_per_node));
  if (cluster.nodes > 1 && !cluster.network.exists())
    missing("network", fmt::format("there are {} nodes", cluster.nodes));
}

toml::table parse_cluster_file(std::string_view text, const std::string& where) {
  try {
    return toml::parse(text, where);
  } catch (const toml::parse_error& error) {
    base::fail(ErrorKind::usage, "{}:{}: not TOML: {}; correct the line", where, error.source().begin.line,
               base::visible(error.description()));
  }
}

}  // namespace

Cluster parse_cluster(std::string_view text, const std::string& where, MeasuredFiles* measured) {
  const toml::table root = parse_cluster_file(text, where);
  const FileTable top(&root, "", where,
                      {"schema", "preset", "name", "source", "nodes", "workers_per_node", "memory_GB",
                       "algorithm", "worker", "node", "network", "emulated", "storage", "cost"});
  const auto schema = top.text("schema");
  if (!schema || *schema != kClusterSchema)
    base::fail(ErrorKind::usage, "{}: schema is {}, but must be \"{}\"; correct it", where,
               schema ? fmt::format("\"{}\"", *schema) : "missing", kClusterSchema);
  Cluster cluster;
  if (const auto preset = top.choice("preset", preset_names())) cluster = *find_preset(*preset);
  cluster.name = top.text("name").value_or(where);
  cluster.source = top.text("source").value_or(cluster.source);
  cluster.nodes = top.whole("nodes", cluster.nodes, 1, 1 << 20);
  cluster.workers_per_node = top.whole("workers_per_node", cluster.workers_per_node, 1, 1024);
  if (const auto memory = top.range("memory_GB", kPositive)) cluster.memory_bytes = memory->low * kGiga;
  if (const auto asked = top.choice("algorithm", algorithm_names()))
    cluster.algorithm = *find_algorithm(*asked);
  MeasuredFiles ignored;
  MeasuredFiles& files = measured != nullptr ? *measured : ignored;
  const FileTable node(top.sub_table("node"), "node", where, {"link"});
  read_worker({top.sub_table("worker"), "worker", where, {"speed", "spread", "adds_GB_per_s"}}, cluster);
  read_node_link({node.sub_table("link"),
                  "node.link",
                  where,
                  {"kind", "GB_per_s", "Gbit_per_s", "share", "one_way", "latency_us", "base_us",
                   "message_us", "total_GB_per_s", "in_switch", "measured"}},
                 cluster, files.node_link);
  read_network({top.sub_table("network"),
                "network",
                where,
                {"nics_per_node", "GB_per_s", "Gbit_per_s", "share", "latency_us", "base_us", "message_us",
                 "topology", "nodes_per_switch", "oversubscription", "in_switch", "measured"}},
               cluster.network, files.network);
  read_emulated({top.sub_table("emulated"), "emulated", where, {"latency_us", "GB_per_s", "between"}},
                cluster);
  read_storage(
      {top.sub_table("storage"), "storage", where, {"shared_GB_per_s", "node_GB_per_s", "opens_per_s"}},
      cluster);
  read_cost({top.sub_table("cost"), "cost", where, {"node_hour", "currency"}}, cluster);
  require_links(cluster, root, where);
  return cluster;
}

Cluster read_cluster(const std::string& file_or_preset, MeasuredFiles* measured) {
  if (auto preset = find_preset(file_or_preset)) return *preset;
  if (!base::is_there(file_or_preset))
    base::fail(ErrorKind::usage, "--cluster {}: there is no such file, and no such preset{}",
               base::visible(file_or_preset), base::suggestion(file_or_preset, preset_names()));
  constexpr std::int64_t kLongestFile = 1 << 20;
  return parse_cluster(base::read_regular_file(file_or_preset, kLongestFile), file_or_preset, measured);
}

}  // namespace paceline::analysis
