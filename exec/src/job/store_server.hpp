#pragma once

// The store of a job that has a secret: names and values, for those that know it. One thread serves
// all. Who has not proven within seconds that it knows the secret is turned away, and however many
// try, they are served beside each other and hold up nobody.

#include <atomic>
#include <chrono>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "sealed.hpp"

namespace pipewright::exec {

class StoreServer {
 public:
  /// Serves on `listening`, which it owns from now on.
  StoreServer(int listening, std::string secret);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  int port() const;
  /// How many have come without proof so far.
  int turned_away() const { return turned_away_; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Visitor {
    int socket = -1;
    std::string challenge, received, to_send;
    std::optional<Sealed> line{};  // once it has proven that it knows the secret
    Clock::time_point until{};     // without it: when its time is up
    Message waits{};               // for all of these names
    Clock::time_point waits_until{};
    bool gone = false;
  };

  void serve();
  void admit();
  void make_room();
  void hear(Visitor& visitor);
  void judge(Visitor& visitor);
  void answer(Visitor& visitor, const Message& request);
  void begin_wait(Visitor& visitor, const Message& request);
  void look_at_waits();
  bool has_all(const Message& names) const;
  void reply(Visitor& visitor, const Message& message);
  void send_some(Visitor& visitor);
  void turn_away_late();
  int milliseconds_to_rest() const;

  const int listening_;
  int wake_ = -1;
  const std::string secret_;
  std::map<std::string, std::string> values_;
  std::list<Visitor> visitors_;  // in the order in which they came
  bool changed_ = false;         // a value is new
  std::atomic<int> turned_away_{0};
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

/// Listens on this port of all addresses; 0: on one that is free. Throws std::runtime_error.
int listen_everywhere(int port);

}  // namespace pipewright::exec
