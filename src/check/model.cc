/// Checks the numbers of parameters of well-known networks.

#include <fmt/format.h>

#include <cctype>
#include <cmath>

#include "check/rule.h"

namespace paceline::check {
namespace {

/// parameters = body + per_class x classes, as torchvision counts them (the CIFAR form of ResNet-18: a 3x3
/// stem).
struct KnownModel {
  std::string_view name;
  double body, per_class;
  double usual_classes = 1000;
};

constexpr KnownModel kKnownModels[] = {
    {"resnet18", 11'176'512, 513},       {"resnet34", 21'284'672, 513},
    {"resnet50", 23'508'032, 2049},      {"resnet101", 42'500'160, 2049},
    {"resnet152", 58'143'808, 2049},     {"resnet18cifar", 11'168'832, 513, 10},
    {"vgg16", 134'260'544, 4097},        {"alexnet", 57'003'840, 4097},
    {"densenet121", 6'953'856, 1025},    {"mobilenetv2", 2'223'872, 1281},
    {"efficientnetb0", 4'007'548, 1281}, {"vitb16", 85'798'656, 769},
};

std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char one : name)
    if (std::isalnum(static_cast<unsigned char>(one)) != 0)
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(one)));
  return plain;
}

double count_of(const KnownModel& model, double classes) { return model.body + model.per_class * classes; }

bool is_count(const table::Number& printed, double count) {
  const bool is_whole = printed.text.find_first_of(".eE") == std::string::npos;
  const double t =
      is_whole && std::fmod(printed.value, 1000) != 0 ? 0.5 : std::max(2 * printed.half_unit, 0.005 * count);
  return std::abs(printed.value - count) <= t;
}

/// The model and number of classes with the printed number of parameters; "" if there is none.
std::string whose(const table::Number& printed, double classes) {
  for (const auto& model : kKnownModels)
    for (const double number : {classes, model.usual_classes, 10.0, 100.0, 1000.0})
      if (is_count(printed, count_of(model, number)))
        return fmt::format("{} with {:g} classes", model.name, number);
  return "";
}

void check_parameters(const Study& study, Findings& findings) {
  for (std::size_t i = 0; i < study.size(); ++i) {
    const auto& row = study.row(i);
    const auto printed = row.number("parameters");
    const auto classes = row.value("classes");
    if (!printed || !classes || !row.knows("model")) continue;
    const auto name = plain_name(row.text("model"));
    for (const auto& model : kKnownModels) {
      if (name != model.name) continue;
      const double right = count_of(model, *classes);
      if (is_count(*printed, right)) break;
      // A ResNet-18 modified for small images often keeps the name.
      const auto other = whose(*printed, *classes);
      const bool is_small_form =
          name == "resnet18" && is_count(*printed, count_of(kKnownModels[5], *classes));
      if (is_small_form) break;
      findings.add(other.empty() ? Severity::warning : Severity::error,
                   {{i}, printed->text, Figure{right, right, right}},
                   fmt::format("{} with {:g} classes has {:.0f} parameters, not {}{}.", row.text("model"),
                               *classes, right, printed->text,
                               other.empty() ? "" : fmt::format(", which is the number of {}", other)));
      break;
    }
  }
}

constexpr Rule kModelRules[] = {
    {"model.parameters", Severity::error, "model classes parameters", "another model's number of parameters",
     check_parameters},
};

}  // namespace

std::span<const Rule> model_rules() { return kModelRules; }

}  // namespace paceline::check
