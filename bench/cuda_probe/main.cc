// The parts of tools/gpu_first that call CUDA and cuDNN themselves: one part in this process.
//
//     cuda_probe PART FILE.json [--seconds N]
//
// What the part finds goes into FILE, which is rewritten as it goes. After N seconds it begins nothing more.
// Ends with 0 when all of the part ran, 1 when some of it failed or was cut off, 2 when nothing could run
// (its reason on stderr), 64 for a wrong command line.

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "cuda_probe/part.h"

namespace paceline::probe {
namespace {

constexpr Part kParts[] = {
    {"libraries", find_libraries}, {"device", describe_device},    {"copies", time_copies},
    {"launches", time_launches},   {"first", check_first_engines}, {"more", check_more_engines},
    {"times", time_convolutions},  {"large", check_large},         {"plans", compare_plans}};

int probe(const Part& part, Findings& findings) {
  int code = 0;
  try {
    part.run(findings);
    if (findings.json.contains("failed") || findings.json.contains("cut_off")) code = 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "cuda_probe: {}: {}\n", part.name, error.what());
    code = findings.json.empty() ? 2 : 1;
    findings.json["error"] = error.what();
  }
  findings.save();
  return code;
}

}  // namespace

void Findings::save() const {
  const auto whole =
      file_.string() + ".new";  // renamed when it is whole: the process may be ended at any time
  std::ofstream stream(whole);
  stream << json.dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
  std::error_code failed;
  if (stream.flush()) std::filesystem::rename(whole, file_, failed);
  if (!stream || failed)
    fmt::print(stderr, "cuda_probe: {} cannot be written: {}\n", file_.string(), std::strerror(errno));
}

bool Findings::attempt(const std::string& what, const std::function<void()>& step) {
  bool succeeded = true;
  try {
    step();
  } catch (const std::exception& error) {
    json["failed"][what] = error.what();
    succeeded = false;
  }
  save();
  return succeeded;
}

bool Findings::has_time_for(const std::string& what) {
  if (std::chrono::steady_clock::now() < end_) return true;
  json["cut_off"] = what;
  return false;
}

}  // namespace paceline::probe

int main(int argc, char** argv) {
  using paceline::probe::kParts;
  const bool has_time = argc == 5 && std::strcmp(argv[3], "--seconds") == 0;
  if (argc == 3 || has_time)
    for (const auto& part : kParts) {
      if (std::strcmp(part.name, argv[1]) != 0) continue;
      const std::chrono::duration<double> seconds(has_time ? std::atof(argv[4]) : 600);
      paceline::probe::Findings findings(
          argv[2], std::chrono::steady_clock::now() +
                       std::chrono::duration_cast<std::chrono::steady_clock::duration>(seconds));
      const int code = paceline::probe::probe(part, findings);
      std::fflush(nullptr);
      _exit(code);  // handlers of the libraries may hang after an error
    }
  fmt::print(stderr, "usage: cuda_probe PART FILE.json [--seconds N]; parts:");
  for (const auto& part : kParts) fmt::print(stderr, " {}", part.name);
  fmt::print(stderr, "\n");
  return 64;
}
