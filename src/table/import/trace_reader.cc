#include "table/import/trace_reader.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <istream>

#include "base/error.h"
#include "table/import/import.h"

namespace paceline::table {

Stretches united(std::vector<Stretch> any) {
  std::erase_if(any, [](const Stretch& one) { return !(one.end > one.begin); });
  std::ranges::sort(any, {}, &Stretch::begin);
  Stretches all;
  for (const auto& one : any) {
    if (!all.empty() && one.begin <= all.back().end)
      all.back().end = std::max(all.back().end, one.end);
    else
      all.push_back(one);
  }
  return all;
}

Stretches without(const Stretches& from, const Stretches& what) {
  Stretches all;
  std::size_t k = 0;
  for (auto one : from) {
    while (k < what.size() && what[k].end <= one.begin) ++k;
    for (std::size_t at = k; at < what.size() && what[at].begin < one.end; ++at) {
      if (what[at].begin > one.begin) all.push_back({one.begin, what[at].begin});
      one.begin = std::max(one.begin, what[at].end);
    }
    if (one.begin < one.end) all.push_back(one);
  }
  return all;
}

Stretches clipped(const Stretches& from, double begin, double end) {
  Stretches all;
  auto at = std::ranges::lower_bound(from, begin, {}, &Stretch::end);
  for (; at != from.end() && at->begin < end; ++at)
    if (std::max(at->begin, begin) < std::min(at->end, end))
      all.push_back({std::max(at->begin, begin), std::min(at->end, end)});
  return all;
}

double length(const Stretches& all) {
  double sum = 0;
  for (const auto& one : all) sum += one.end - one.begin;
  return sum;
}

namespace {

using nlohmann::json;

/// The parser calls this for each token. A path of keys gives the position; anything deeper than events is
/// skipped.
class Handler : public nlohmann::json_sax<json> {
 public:
  Handler(TraceFacts& facts, const std::function<void(TraceEvent&)>& takes) : facts_(facts), takes_(takes) {}

  bool null() override { return value(""); }
  bool boolean(bool one) override { return value(one ? "true" : "false"); }
  bool number_integer(number_integer_t one) override {
    return number(static_cast<double>(one), [&] { return std::to_string(one); });
  }
  bool number_unsigned(number_unsigned_t one) override {
    return number(static_cast<double>(one), [&] { return std::to_string(one); });
  }
  bool number_float(number_float_t one, const string_t& text) override {
    return number(one, [&] { return text; });
  }
  bool string(string_t& one) override { return value(std::move(one)); }
  bool binary(binary_t&) override { return true; }

  bool start_object(std::size_t) override { return open(false); }
  bool start_array(std::size_t) override { return open(true); }
  bool key(string_t& one) override {
    key_ = std::move(one);
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    position_ = position;
    what_ = error.what();
    return false;
  }

  [[nodiscard]] std::size_t position() const { return position_; }
  [[nodiscard]] const std::string& what() const { return what_; }

 private:
  struct Level {
    bool is_array;
    std::string key;  ///< the key of the container
  };

  [[nodiscard]] bool in_events() const {
    if (levels_.size() == 1) return levels_[0].is_array;
    return levels_.size() == 2 && levels_[1].is_array && levels_[1].key == "traceEvents";
  }

  bool open(bool is_array) {
    constexpr std::size_t kDeepest = 512;
    if (levels_.size() >= kDeepest) {
      what_ = "it is nested too deeply";
      return false;
    }
    if (event_depth_ == 0 && !is_array && in_events()) {
      event_ = {};
      event_depth_ = levels_.size() + 1;
    }
    levels_.push_back({is_array, std::exchange(key_, {})});
    return true;
  }

  bool close() {
    levels_.pop_back();
    key_.clear();
    if (event_depth_ > 0 && levels_.size() < event_depth_) {
      takes_(event_);
      event_depth_ = 0;
    }
    return true;
  }

  template <typename Text>
  bool number(double one, const Text& text) {
    if (event_depth_ > 0 && levels_.size() == event_depth_ && (key_ == "ts" || key_ == "dur")) {
      set_time(one);
      return true;
    }
    return value(text());
  }

  bool value(std::string text) {
    constexpr std::size_t kMostFacts = 4096;
    if (event_depth_ > 0) {
      take_of_event(std::move(text));
    } else if (levels_.size() == 1 && facts_.size() < kMostFacts) {
      facts_[key_] = std::move(text);
    } else if (levels_.size() > 1 && levels_.size() < 4 && facts_.size() < kMostFacts) {
      facts_.try_emplace(fmt::format("{}.{}", levels_[1].key, key_), std::move(text));
    }
    return true;
  }

  void take_of_event(std::string text) {
    if (levels_.size() == event_depth_) {
      std::string* const member = key_ == "ph"     ? &event_.phase
                                  : key_ == "cat"  ? &event_.category
                                  : key_ == "name" ? &event_.name
                                  : key_ == "pid"  ? &event_.process
                                  : key_ == "tid"  ? &event_.thread
                                                   : nullptr;
      if (member != nullptr) *member = std::move(text);
      if (key_ != "ts" && key_ != "dur") return;
      if (const auto number = read_number(text)) set_time(number->value);
    } else if (levels_.size() == event_depth_ + 1 && !levels_.back().is_array &&
               levels_.back().key == "args") {
      event_.args[key_] = std::move(text);
    }
  }

  void set_time(double us) {
    (key_ == "ts" ? event_.begin_us : event_.length_us) = us;
    if (key_ == "ts") event_.has_begin = true;
  }

  TraceFacts& facts_;
  const std::function<void(TraceEvent&)>& takes_;
  std::vector<Level> levels_;
  std::string key_;
  TraceEvent event_;
  std::size_t event_depth_ = 0;  ///< levels inside an event; 0: outside
  std::size_t position_ = 0;
  std::string what_;
};

}  // namespace

std::string text_in(const TraceFacts& facts, const std::string& key) {
  const auto found = facts.find(key);
  return found == facts.end() ? "" : found->second;
}

TraceFacts read_trace(const std::filesystem::path& path, bool may_be_cut,
                      const std::function<void(TraceEvent&)>& takes) {
  GzFile file(path);
  std::istream content(&file);
  TraceFacts facts;
  Handler handler(facts, takes);
  if (json::sax_parse(content, &handler) && !file.is_damaged()) return facts;
  const bool has_ended = file.is_damaged() || std::istream(&file).peek() == std::istream::traits_type::eof();
  if (may_be_cut && has_ended && handler.position() >= file.taken()) return facts;
  base::fail(base::ErrorKind::data, "{}: byte {}{}: {}{}", path.string(), handler.position(),
             file.is_damaged() ? " of its content" : "", handler.what(),
             file.is_damaged() ? "; the gzip data is damaged or cut there: fetch it again"
             : has_ended && handler.position() >= file.taken() ? "; was it cut?"
                                                               : "");
}

}  // namespace paceline::table
