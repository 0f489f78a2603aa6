#include "data/get/download.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <system_error>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/thread_pool.h"
#include "data/file_bytes.h"
#include "data/get/http_request.h"

namespace paceline::data {

std::filesystem::path certificate_file(const base::EnvironmentLookup& environment,
                                       const std::filesystem::path& root) {
  for (const char* name : {"SSL_CERT_FILE", "CURL_CA_BUNDLE"})
    if (const char* const file = environment(name); file != nullptr && *file != '\0') return file;
  constexpr std::array kUsual{"etc/ssl/certs/ca-certificates.crt", "etc/pki/tls/certs/ca-bundle.crt",
                              "etc/ssl/ca-bundle.pem", "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
                              "etc/ssl/cert.pem"};
  for (const char* file : kUsual)
    if (base::is_file(root / file)) return root / file;
  return {};
}

namespace {

namespace fs = std::filesystem;
using base::ErrorKind;

constexpr base::Module kCurl{.kind = ErrorKind::data,
                             .library = "a download",
                             .file = "paceline_curl.so",
                             .entry = "paceline_http_get",
                             .built_with = "libcurl4-openssl-dev",
                             .remedy = "install libcurl4 (Debian: apt-get install libcurl4)",
                             .absent =
                                 "every build and package has it, so the program was copied without "
                                 "it; copy it to the same folder"};

constexpr long kHttpRangeNotThere = 416;
constexpr double kProgressS = 0.2;

/// The downloaded part of a file, kept open and locked while it grows.
class PartialFile {
 public:
  explicit PartialFile(fs::path path)
      : path_(std::move(path)),
        file_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666)) {
    if (!file_.is_open()) fail("cannot be written");
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0)
      base::fail(ErrorKind::data, "{}: another process is writing it; wait for that one, or end it",
                 path_.string());
  }

  [[nodiscard]] std::int64_t bytes() const { return ::lseek(file_.get(), 0, SEEK_END); }
  void clear() {
    if (::ftruncate(file_.get(), 0) != 0) fail("cannot be emptied");
  }
  /// False, with errno, if the disk accepts no more.
  [[nodiscard]] bool append(std::span<const std::byte> bytes) {
    ::lseek(file_.get(), 0, SEEK_END);
    return write_all(file_.get(), bytes);
  }
  void rename_to(const fs::path& target) {
    std::error_code error;
    fs::rename(path_, target, error);
    if (error)
      base::fail(ErrorKind::data, "{}: cannot be renamed to {}: {}", path_.string(), target.string(),
                 error.message());
  }
  [[noreturn]] void fail(const char* what) const {
    base::fail(ErrorKind::data, "{}: {}: {}; is the disk full, or the folder not yours?", path_.string(),
               what, base::reason_of_write(errno));
  }

 private:
  fs::path path_;
  base::Descriptor file_;
};

/// What the requests of one file share.
struct Transfer {
  const RemoteFile& file;
  const DownloadOptions& options;
  PartialFile& part;
  std::int64_t have = 0;
  bool in_pieces = false;  ///< the part came in several requests, perhaps from different versions of the file
  int write_error = 0;     ///< errno of a write that failed
  bool too_long = false;   ///< more was received than the file has
  base::TimePoint told{};

  [[nodiscard]] bool take(std::span<const std::byte> bytes) {
    too_long = have + std::ssize(bytes) > file.bytes;
    if (too_long) return false;
    if (!part.append(bytes)) {
      write_error = errno;
      return false;
    }
    have += std::ssize(bytes);
    return true;
  }

  [[nodiscard]] bool goes_on() {
    if (options.progress && base::seconds_since(told) >= kProgressS) {
      told = base::Clock::now();
      options.progress(file, have);
    }
    return !options.stop.stop_requested();
  }
};

enum class Ending { whole, again, no_use };

struct Attempt {
  Ending ending = Ending::whole;
  std::string reason;
};

/// One request for the missing bytes.
Attempt request(const std::string& url, Transfer& transfer) {
  transfer.have = transfer.part.bytes();
  transfer.in_pieces = transfer.have > 0;
  const HttpRequest asked{.url = url,
                          .certificates = certificate_file(base::process_environment()),
                          .from = transfer.have,
                          .connect_s = transfer.options.connect_s,
                          .stall_s = transfer.options.stall_s,
                          .take = [&](std::span<const std::byte> bytes) { return transfer.take(bytes); },
                          .goes_on = [&] { return transfer.goes_on(); }};
  HttpAnswer answer;
  reinterpret_cast<decltype(&paceline_http_get)>(base::open_module(kCurl))(asked, answer);
  using End = HttpAnswer::End;
  if (answer.end == End::whole && transfer.have == transfer.file.bytes) return {};

  if (transfer.write_error != 0) {
    errno = transfer.write_error;
    transfer.part.fail("cannot be written");
  }
  // The server has a different file, or cannot send a range: start from the begin.
  const bool no_range = answer.end == End::no_range || answer.status == kHttpRangeNotThere;
  if (transfer.too_long || no_range) {
    const bool resumed = transfer.part.bytes() > 0;
    transfer.part.clear();
    if (no_range && resumed) return {Ending::again, "the server gave no part of the file"};
    return {Ending::no_use, fmt::format("the server's file is longer than {} bytes", transfer.file.bytes)};
  }
  if (answer.end == End::whole) {
    const bool is_all =
        answer.announced >= 0;  // the announced length was received: the transfer was not cut off
    if (is_all) transfer.part.clear();
    return {is_all ? Ending::no_use : Ending::again,
            fmt::format("the server gave {} bytes of a file of {}", transfer.have, transfer.file.bytes)};
  }
  const bool refused =
      answer.status >= 400 && answer.status < 500 && answer.status != 408 && answer.status != 429;
  return {refused || answer.end == End::no_such_address ? Ending::no_use : Ending::again, answer.reason};
}

void require_going_on(const DownloadOptions& options, const fs::path& path) {
  if (options.stop.stop_requested())
    base::fail(ErrorKind::data, "{}: stopped; the same command continues where this one stopped",
               path.string());
}

/// Downloads from one address until the part is as long as the file. Returns empty, or why that failed.
std::string fetch(const std::string& url, Transfer& transfer, const fs::path& path) {
  std::string reason;
  double wait = transfer.options.pause_s;
  std::int64_t furthest = transfer.part.bytes();
  for (int left = transfer.options.tries; left > 0;) {
    if (transfer.part.bytes() == transfer.file.bytes) return "";
    const Attempt attempt = request(url, transfer);
    require_going_on(transfer.options, path);
    if (attempt.ending == Ending::whole) return "";
    reason = attempt.reason;
    if (attempt.ending == Ending::no_use) break;
    if (transfer.part.bytes() > furthest) {
      furthest = transfer.part.bytes();
      wait = transfer.options
                 .pause_s;  // there is progress: a long file over a bad connection may be cut off often
      left = transfer.options.tries;
    } else {
      --left;
    }
    if (left > 0 && transfer.options.say)
      transfer.options.say(fmt::format("{}: {}; again in {:g} s", url, reason, wait));
    if (left > 0)
      (void)base::stopped_within(transfer.options.stop, std::chrono::milliseconds(std::llround(1000 * wait)));
    require_going_on(transfer.options, path);
    wait *= 2;
  }
  return reason;
}

}  // namespace

void download(const RemoteFile& file, const fs::path& path, const DownloadOptions& options) {
  PartialFile part(path.string() + ".part");
  if (part.bytes() > file.bytes) part.clear();
  Transfer transfer{.file = file, .options = options, .part = part};
  std::vector<std::string> failures;
  for (const auto& url : file.urls) {
    // Pieces may come from two versions of the file, if the server's changed or an old part was on disk. Then
    // try the same address once more, from the begin.
    for (int rounds = 2; rounds > 0; --rounds) {
      transfer.in_pieces = part.bytes() > 0;
      const std::string reason = fetch(url, transfer, path);
      if (!reason.empty()) {
        failures.push_back(fmt::format("{}: {}", url, reason));
        break;
      }
      const std::string sum = base::sha256_of(path.string() + ".part");
      if (sum == file.sha256) {
        if (options.progress) options.progress(file, file.bytes);
        part.rename_to(path);
        return;
      }
      part.clear();
      if (transfer.in_pieces && rounds > 1) continue;
      failures.push_back(
          fmt::format("{}: its SHA-256 is {}, but that of the publisher's file is {}: it is another file, "
                      "and was deleted",
                      url, sum, file.sha256));
      break;
    }
  }
  base::fail(
      ErrorKind::data,
      "{} could not be downloaded: {}; check the network (does a login page or a proxy answer instead?) and "
      "try again, which continues where this ended, or give another address with --from",
      file.name, fmt::join(failures, "; "));
}

}  // namespace paceline::data
