#include "base/pci_locality.h"

#include <cctype>
#include <charconv>
#include <fstream>

namespace paceline::base {
namespace {

constexpr int kMostCores = 8192;

/// The kernel's form of the bus id: four digits for the domain, lower case.
std::string kernel_name(std::string bus_id) {
  constexpr std::size_t kLength = 12;  // "0000:c1:00.0"; NVML's domain has eight digits
  if (bus_id.size() > kLength) bus_id = bus_id.substr(bus_id.size() - kLength);
  for (char& letter : bus_id) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return bus_id.find('/') == std::string::npos ? bus_id : "";
}

std::string first_line_or_empty(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Parses the number at `at`, and moves `at` past it.
std::optional<int> take_number(const char*& at, const char* end) {
  int number = 0;
  const auto [next, error] = std::from_chars(at, end, number);
  if (error != std::errc() || number < 0 || number >= kMostCores) return std::nullopt;
  at = next;
  return number;
}

}  // namespace

std::optional<std::vector<int>> parse_core_list(const std::string& text) {
  std::vector<int> cores;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    const auto first = take_number(at, end);
    if (!first) return std::nullopt;
    int last = *first;
    if (at != end && *at == '-') {
      const auto to = take_number(++at, end);
      if (!to || *to < *first) return std::nullopt;
      last = *to;
    }
    for (int core = *first; core <= last; ++core) cores.push_back(core);
    if (at == end) break;
    if (*at++ != ',' || at == end) return std::nullopt;
  }
  return cores;
}

std::optional<PciLocality> pci_locality(const std::string& bus_id, const std::filesystem::path& devices) {
  const auto name = kernel_name(bus_id);
  if (name.empty()) return std::nullopt;
  const auto cores = parse_core_list(first_line_or_empty(devices / name / "local_cpulist"));
  if (!cores || cores->empty()) return std::nullopt;
  PciLocality locality{.cores = *cores, .numa = {}};
  const auto node = first_line_or_empty(devices / name / "numa_node");
  const char* at = node.data();
  locality.numa = take_number(at, at + node.size());  // -1: the machine has one node, or it is unknown
  return locality;
}

}  // namespace paceline::base
