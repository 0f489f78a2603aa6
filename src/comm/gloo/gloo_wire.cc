/// The messages of wire.h through gloo's TCP transport. Built as a module of its own, paceline_gloo.so, which
/// the program opens only when RANK and WORLD_SIZE are set and no launcher of MPI's is there.
///
/// gloo is used only for point-to-point messages, since comm/algorithms fixes the order of sums.

#include <gloo/config.h>
#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"
#include "comm/gloo/load.h"
#include "comm/gloo/meeting.h"

namespace paceline::comm::gloo {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookAgain{50};  ///< interval at which keep_waiting is called while nothing arrives
constexpr milliseconds kForEver = std::chrono::hours(24 * 365);

using ::gloo::transport::UnboundBuffer;

struct Message {
  int peer = 0;
  bool is_send = false;
  std::unique_ptr<UnboundBuffer> buffer;
};

/// Ends waits. A timeout in gloo would break all connections of the process, so messages are waited for
/// without timeout, and a thread of this class aborts the wait.
class Guard {
 public:
  Guard() : thread_([this] { serve(); }) {}
  ~Guard() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
      changed_.notify_one();
    }
    thread_.join();
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// Waits for `message`; returns false when `keep_waiting` returned false.
  bool wait(Channel channel, Message& message, const std::function<bool()>& keep_waiting) {
    auto& mine = waits_[static_cast<std::size_t>(channel)];
    set(mine, {&message, &keep_waiting});
    try {
      const bool done =
          message.is_send ? message.buffer->waitSend(kForEver) : message.buffer->waitRecv(kForEver);
      set(mine, {});
      return done;
    } catch (...) {
      set(mine, {});
      throw;
    }
  }

 private:
  struct PendingMessage {
    Message* message = nullptr;
    const std::function<bool()>* keep_waiting = nullptr;
  };
  void set(PendingMessage& wait, PendingMessage value) {
    const std::lock_guard lock(mutex_);
    wait = value;
    if (value.message != nullptr && asleep_) changed_.notify_one();
  }
  void serve() {
    std::unique_lock lock(mutex_);
    const auto is_busy = [&] {
      return ends_ || std::any_of(waits_.begin(), waits_.end(),
                                  [](const PendingMessage& wait) { return wait.message != nullptr; });
    };
    while (!ends_) {
      asleep_ = true;
      changed_.wait(lock, is_busy);
      asleep_ = false;
      changed_.wait_for(lock, kLookAgain, [&] { return ends_; });
      for (const PendingMessage& wait : waits_) {
        if (wait.message == nullptr || (*wait.keep_waiting)()) continue;
        if (wait.message->is_send)
          wait.message->buffer->abortWaitSend();
        else
          wait.message->buffer->abortWaitRecv();
      }
    }
  }

  std::mutex mutex_;  ///< guards all of this
  std::condition_variable changed_;
  std::array<PendingMessage, 2> waits_;  ///< [channel]
  bool asleep_ = false, ends_ = false;
  std::thread thread_;  ///< last: it uses all of the above
};

class GlooWire final : public Wire {
 public:
  GlooWire(const Launch& launch, const std::function<void(const std::string&)>& say)
      : process_(launch.process), processes_(launch.processes) {
    try {
      if (process_ == 0) server_.emplace(launch, say);
      if (process_ == 0 && launch.secret.empty() && say)
        say(fmt::format(
            "the meeting at {}:{} is open: whoever reaches this port can take part in the run; to close "
            "it, give all processes the same PACELINE_SECRET",
            launch.meeting_host, server_->port()));
      Meeting meeting(launch, say);
      ::gloo::transport::tcp::attr attributes;
      attributes.hostname = launch.own_address.empty() ? meeting.own_address() : launch.own_address;
      auto device = ::gloo::transport::tcp::CreateDevice(attributes);
      auto context = std::make_shared<::gloo::rendezvous::Context>(process_, processes_);
      context->setTimeout(launch.meet_within);
      context->connectFullMesh(meeting, device);
      context_ = std::move(context);
    } catch (const base::Error&) {
      throw;
    } catch (const std::exception& error) {
      base::fail(base::ErrorKind::comm, "gloo: the processes of this run did not meet: {}", error.what());
    }
  }
  ~GlooWire() override {
    if (!gave_up_) return;
    // Leaks the context, since its destructor would wait for lost processes; the process ends now and the
    // system closes the connections.
    new std::shared_ptr<::gloo::rendezvous::Context>(context_);
    new std::vector<std::unique_ptr<UnboundBuffer>>(std::move(unfinished_));
  }
  GlooWire(const GlooWire&) = delete;
  GlooWire& operator=(const GlooWire&) = delete;

  [[nodiscard]] int process() const override { return process_; }
  [[nodiscard]] int processes() const override { return processes_; }
  [[nodiscard]] std::string name() const override { return "gloo"; }
  [[nodiscard]] std::string library() const override {
    return fmt::format("gloo {}.{}.{} (TCP)", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH);
  }

  std::vector<int> swap(Channel channel, std::span<const Send> sends, std::span<const Receive> receives,
                        const std::function<bool()>& keep_waiting) override {
    std::vector<Message> messages;
    try {
      for (const auto& one : receives) {
        messages.push_back({.peer = one.from, .buffer = buffer(one.bytes.data(), one.bytes.size())});
        messages.back().buffer->recv(one.from, slot(channel, one.from, received_), 0, one.bytes.size());
      }
      for (const auto& one : sends) {
        messages.push_back({.peer = one.to,
                            .is_send = true,
                            .buffer = buffer(const_cast<std::byte*>(one.bytes.data()), one.bytes.size())});
        messages.back().buffer->send(one.to, slot(channel, one.to, sent_), 0, one.bytes.size());
      }
      for (std::size_t i = 0; i < messages.size(); ++i)
        if (!guard_.wait(channel, messages[i], keep_waiting)) return leave(messages, i);
    } catch (const ::gloo::Exception& error) {
      (void)leave(messages, 0);
      base::fail(base::ErrorKind::comm, "gloo: a message between processes failed: {}", error.what());
    }
    return {};
  }

  void give_up() override { gave_up_ = true; }

 private:
  using Counts =
      std::map<int, std::uint64_t>;  ///< [peer]: messages so far, which is the number of the next one

  std::unique_ptr<UnboundBuffer> buffer(std::byte* bytes, std::size_t size) {
    return context_->createUnboundBuffer(bytes, size);
  }
  static std::uint64_t slot(Channel channel, int peer, std::array<Counts, 2>& counts) {
    const auto which = static_cast<std::size_t>(channel);
    return (std::uint64_t{which} << 56) | counts[which][peer]++;
  }
  /// Gives up messages from index `first` on. gloo may refer to them until the end, so they are kept.
  std::vector<int> leave(std::vector<Message>& messages, std::size_t first) {
    std::vector<int> missing;
    const std::lock_guard lock(unfinished_mutex_);
    for (std::size_t i = first; i < messages.size(); ++i) {
      missing.push_back(messages[i].peer);
      unfinished_.push_back(std::move(messages[i].buffer));
    }
    std::sort(missing.begin(), missing.end());
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    return missing;
  }

  int process_, processes_;
  std::optional<MeetingServer> server_;
  std::shared_ptr<::gloo::rendezvous::Context> context_;
  /// [channel]: separate counts, since two threads may use the two channels at once.
  std::array<Counts, 2> sent_, received_;
  std::mutex unfinished_mutex_;
  std::vector<std::unique_ptr<UnboundBuffer>> unfinished_;
  std::atomic<bool> gave_up_ = false;
  Guard guard_;
};

}  // namespace
}  // namespace paceline::comm::gloo

extern "C" paceline::comm::Wire* paceline_open_gloo(const paceline::comm::Launch& launch,
                                                    const std::function<void(const std::string&)>& say) {
  return new paceline::comm::gloo::GlooWire(launch, say);
}
