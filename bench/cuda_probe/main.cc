// What only a GPU can tell, in at most 4 minutes and one JSON file: the first thing to run on a new machine.
//
//     cuda_probe [FILE.json] [--only PART ...] [--limit SECONDS]
//
// Each part is a process of its own with a time limit; what fails is written down with the reason, and the
// rest goes on; --limit shortens all limits. Ends with 0 when all parts ran, 1 when one failed or was cut
// off, 2 without a usable GPU: then the file holds what could be done without.

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "cuda_probe/part.h"

namespace paceline::probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Part kParts[] = {{"libraries", 30, false, find_libraries}, {"device", 20, true, describe_device},
                           {"copies", 15, true, time_copies},        {"launches", 20, true, time_launches},
                           {"times", 60, true, time_convolutions},   {"results", 45, true, check_results},
                           {"large", 20, true, check_large},         {"plans", 30, true, compare_plans}};

constexpr int total_s() {
  int total = 0;
  for (const Part& part : kParts) total += part.limit_s;
  return total;
}
static_assert(total_s() <= 240);

Json read(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return stream ? Json::parse(stream, nullptr, false) : Json();
}

[[noreturn]] void run_in_child(const Part& part, const std::filesystem::path& file, Clock::time_point end) {
  Findings findings(file, end);
  int code = 0;
  try {
    part.run(findings);
    if (findings.json.contains("failed") || findings.json.contains("cut_off")) code = 1;
  } catch (const std::exception& error) {
    findings.json["error"] = error.what();
    code = 1;
  }
  findings.save();
  _exit(code);  // handlers of the libraries may hang after an error
}

/// The part's findings with "ended": "done", or why not. The parent opens no library, so that a child can.
Json run(const Part& part, int limit_s, const std::filesystem::path& file) {
  std::filesystem::remove(file);
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::seconds(limit_s);
  const pid_t child = ::fork();
  if (child == 0) run_in_child(part, file, end - std::chrono::seconds(2));
  int status = 0;
  bool is_late = false;
  while (child > 0 && ::waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() > end && !is_late) {
      is_late = true;
      ::kill(child, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  Json found = read(file);
  if (!found.is_object()) found = Json::object();
  std::string ended = "done";
  if (child < 0)
    ended = fmt::format("not started: {}", std::strerror(errno));
  else if (is_late)
    ended = fmt::format("killed after {} s", limit_s);
  else if (WIFSIGNALED(status))
    ended = fmt::format("ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  else if (found.contains("error"))
    ended = found["error"].get<std::string>();
  else if (WEXITSTATUS(status) != 0)
    ended = found.contains("cut_off") ? "cut off" : "some of it failed";
  found.erase("error");
  found["ended"] = ended;
  found["seconds"] = std::chrono::duration<double>(Clock::now() - begin).count();
  std::filesystem::remove(file);
  return found;
}

void write(const std::filesystem::path& file, const Json& json) {
  std::ofstream stream(file);
  stream << json.dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
  if (!stream.flush()) fmt::print(stderr, "cuda_probe: {} cannot be written\n", file.string());
}

int probe(const std::filesystem::path& out, const std::set<std::string>& only, int limit_s) {
  Json all;
  bool has_gpu = true, failed = false;
  for (const Part& part : kParts) {
    if (!only.empty() && !only.contains(part.name) && std::strcmp(part.name, "device") != 0) continue;
    if (part.needs_gpu && !has_gpu) {
      all[part.name]["ended"] = "not run: there is no usable GPU";
      continue;
    }
    all[part.name] = run(part, std::min(part.limit_s, limit_s), out.string() + ".part");
    const std::string ended = all[part.name]["ended"].get<std::string>();
    fmt::print("{:<10} {:6.1f} s  {}\n", part.name, all[part.name]["seconds"].get<double>(), ended);
    std::fflush(stdout);
    failed = failed || ended != "done";
    // Later parts need what this one found: a device that answers.
    if (std::strcmp(part.name, "device") == 0) has_gpu = all["device"].contains("memory_bytes");
    write(out, all);
  }
  write(out, all);
  if (!has_gpu) fmt::print("no usable GPU: {}\n", all["device"]["ended"].get<std::string>());
  fmt::print("{}\n", out.string());
  return !has_gpu ? 2 : failed ? 1 : 0;
}

}  // namespace

void Findings::save() const {
  std::ofstream stream(file_);
  stream << json.dump(-1, ' ', false, Json::error_handler_t::replace);
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
  std::filesystem::path out = "cuda_probe.json";
  std::set<std::string> only;
  int limit_s = paceline::probe::total_s();
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--out" && i + 1 < argc) {
      out = argv[++i];
    } else if (word == "--only" && i + 1 < argc) {
      while (i + 1 < argc && argv[i + 1][0] != '-') only.insert(argv[++i]);
    } else if (!word.starts_with("-")) {
      out = word;
    } else if (word == "--limit" && i + 1 < argc) {
      limit_s = std::atoi(argv[++i]);
    } else {
      fmt::print(stderr, "usage: cuda_probe [FILE.json] [--only PART ...] [--limit SECONDS]\n");
      return 64;
    }
  }
  return paceline::probe::probe(out, only, limit_s);
}
