#include "measure/visible_record.h"

#include <map>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/visible.h"
#include "measure/record_fields.h"

namespace paceline::measure {
namespace {

class VisibleTexts {
 public:
  static constexpr bool kWrites = false;
  template <typename T>
  void operator()(const char* /*key*/, T& value) {
    take(value);
  }

 private:
  void take(std::string& value) { value = base::visible(value); }
  void take(PhaseSeconds& /*value*/) {}
  template <typename T>
  requires std::is_arithmetic_v<T>
  void take(T& /*value*/) {}
  template <typename T>
  void take(std::optional<T>& value) {
    if (value) take(*value);
  }
  template <typename T>
  void take(std::vector<T>& values) {
    for (auto& value : values) take(value);
  }
  template <typename T>
  void take(std::map<std::string, T>& values) {
    std::map<std::string, T> shown;
    for (auto& [key, value] : values) {
      take(value);
      shown.emplace(base::visible(key), std::move(value));
    }
    values = std::move(shown);
  }
  template <typename T>
  requires std::is_class_v<T>
  void take(T& value) { fields(*this, value); }
};

}  // namespace

void make_visible(Record& record) {
  VisibleTexts texts;
  fields(texts, record);
}

}  // namespace paceline::measure
