#include "table/import/trace_reader.h"

#include <fmt/format.h>

#include <istream>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "table/import/gz_file.h"
#include "table/table.h"

namespace paceline::table {
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
      (key_ == "ts" ? event_.begin_us : event_.length_us) = one;
      if (key_ == "ts") event_.has_begin = true;
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
      if (key_ == "ph")
        event_.phase = std::move(text);
      else if (key_ == "cat")
        event_.category = std::move(text);
      else if (key_ == "name")
        event_.name = std::move(text);
      else if (key_ == "pid")
        event_.process = std::move(text);
      else if (key_ == "tid")
        event_.thread = std::move(text);
      else if (key_ == "ts" || key_ == "dur")
        take_written_number(text);
    } else if (levels_.size() == event_depth_ + 1 && !levels_.back().is_array &&
               levels_.back().key == "args") {
      event_.args[key_] = std::move(text);
    }
  }

  void take_written_number(const std::string& text) {
    const auto number = read_number(text);
    if (!number) return;
    (key_ == "ts" ? event_.begin_us : event_.length_us) = number->value;
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

TraceFacts read_trace(const std::filesystem::path& path, bool may_be_cut,
                      const std::function<void(TraceEvent&)>& takes) {
  GzFile file(path);
  std::istream content(&file);
  TraceFacts facts;
  Handler handler(facts, takes);
  if (json::sax_parse(content, &handler) && !file.is_damaged()) return facts;
  const bool has_ended = file.is_damaged() || std::istream(&file).peek() == std::istream::traits_type::eof();
  if (may_be_cut && has_ended && handler.position() >= file.taken()) return facts;
  base::fail(base::ErrorKind::data, "{}: byte {}{}: {}; {}", path.string(), handler.position(),
             file.is_damaged() ? " of its content" : "", handler.what(),
             file.is_damaged() ? "the gzip data is damaged or cut there: fetch it again" : "was it cut?");
}

}  // namespace paceline::table
