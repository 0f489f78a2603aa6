#include "cluster/log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "base/line_output.h"
#include "base/text.h"

namespace paceline::cluster {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kToConnect{200};
constexpr milliseconds kToPrint{500};
constexpr milliseconds kToSend{2000};
constexpr std::size_t kLongest = 8192;
constexpr const char* kSaid = "said";

bool is_heard(const char* launch, const std::string& text) {
  const auto address = launch == nullptr ? std::nullopt : comm::address_of(launch);
  if (!address) return false;
  const comm::Socket socket(comm::connect_to(*address, kToConnect));
  if (socket.get() < 0) return false;
  comm::write_line(socket.get(), fmt::format("{} {}", address->token, text.substr(0, kLongest - 64)));
  return comm::read_line(socket.get(), kToPrint) == kSaid;
}

}  // namespace

std::string print_line(std::string_view text) {
  const auto line = fmt::format("paceline: {}\n", base::visible(base::with_short_words(text), true));
  return line.substr(base::write_within(STDERR_FILENO, line, kToPrint));
}

void log_line(const std::string& text) {
  if (is_heard(std::getenv(kEar), base::with_short_words(text))) return;
  if (const auto left = print_line(text); !left.empty()) base::leave_to_cat(STDERR_FILENO, left);
}

Ear::Ear(const std::string& interface, bool is_on_this_host)
    : listener_(interface, is_on_this_host, {.patience = kToSend, .line = kLongest},
                [](const comm::Address& own, std::string_view text, int socket) {
                  if (comm::number_of(comm::word_of(text)) != own.token) return;
                  comm::write_line(socket, kSaid);  // before it waits for a reader itself
                  (void)print_line(text);
                }) {}

}  // namespace paceline::cluster
