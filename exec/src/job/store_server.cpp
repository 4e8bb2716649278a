#include "store_server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cpu/unpinned_thread.hpp"
#include "sockets.hpp"

namespace pipewright::exec {
namespace {

using std::chrono::milliseconds;

/// The limit of unauthenticated connections. One more ends the oldest of them.
constexpr int most_unauthenticated = 64;
/// The limit of connections accepted before existing clients are served, so that many connection
/// attempts do not starve a handshake.
constexpr int most_accepted_at_once = most_unauthenticated / 4;
/// The pause after an accept that failed because the process has too many open files.
constexpr milliseconds pause_without_files{50};

bool is_retryable() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

long long number_in(const std::string& text) { return text.empty() ? 0 : std::stoll(text); }

}  // namespace

StoreServer::Client::Client(FileDescriptor accepted, const std::string& secret)
    : socket(std::move(accepted)),
      channel(SecureChannel::Role::Server, secret),
      until(Clock::now() + handshake_limit) {}

StoreServer::StoreServer(FileDescriptor listening, std::string secret)
    : listening_(std::move(listening)), wake_(eventfd(0, EFD_CLOEXEC)), secret_(std::move(secret)) {
  if (!wake_)
    throw std::runtime_error("the job's store cannot create an event to be woken by");
  fcntl(listening_.get(), F_SETFL, fcntl(listening_.get(), F_GETFL) | O_NONBLOCK);
  thread_ = unpinned_thread([this] { serve(); });
}

StoreServer::~StoreServer() {
  ending_ = true;
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

int StoreServer::port() const { return port_of(listening_); }

void StoreServer::serve() {
  while (!ending_) {
    std::vector<pollfd> events{{wake_.get(), POLLIN, 0}, {listening_.get(), POLLIN, 0}};
    for (const Client& client : clients_)
      events.push_back({client.socket.get(),
                        static_cast<short>(POLLIN | (client.outgoing.empty() ? 0 : POLLOUT)), 0});
    poll(events.data(), events.size(), milliseconds_to_next_deadline());
    auto event = events.begin() + 2;
    for (Client& client : clients_) {
      if ((event->revents & POLLOUT) != 0)
        flush(client);
      if ((event->revents & ~POLLOUT) != 0)
        receive_from(client);
      ++event;
    }
    if (events[1].revents != 0)
      accept_clients();
    end_waits();
    clients_.remove_if([](const Client& client) { return client.closed; });
  }
}

void StoreServer::accept_clients() {
  for (int count = 0; count < most_accepted_at_once; ++count) {
    FileDescriptor socket(
        accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      if (!is_retryable())
        std::this_thread::sleep_for(pause_without_files);
      return;
    }
    disable_nagle(socket);
    make_room();
    clients_.emplace_back(std::move(socket), secret_);
    receive_from(clients_.back());  // the client speaks first and may have done so
  }
}

void StoreServer::make_room() {
  const auto unauthenticated = [](const Client& client) {
    return !client.closed && !client.channel.is_authenticated();
  };
  if (std::ranges::count_if(clients_, unauthenticated) >= most_unauthenticated)
    close(*std::ranges::find_if(clients_, unauthenticated));
}

void StoreServer::receive_from(Client& client) {
  std::array<char, 16384> bytes{};
  if (client.closed)
    return;
  const auto count = recv(client.socket.get(), bytes.data(), bytes.size(), 0);
  if (count < 0 && is_retryable())
    return;
  if (count <= 0)
    return close(client);
  try {
    const bool was_authenticated = client.channel.is_authenticated();
    client.channel.receive({bytes.data(), static_cast<std::size_t>(count)});
    if (!was_authenticated && client.channel.is_authenticated())
      client.until = Clock::time_point::max();
    while (client.awaited.empty()) {
      const auto request = client.channel.next_message();
      if (!request)
        break;
      answer(client, *request);
    }
    flush(client);
  } catch (const std::exception&) {
    flush(client);  // sends the alert that says why
    close(client);
  }
}

/// Carries out a request of StoreClient.
void StoreServer::answer(Client& client, const Message& request) {
  const std::string& operation = request.at(0);
  if (operation == "wait")
    return begin_wait(client, request);
  if (operation == "check")
    return reply(client, {has_all({request.begin() + 1, request.end()}) ? "yes" : "no"});
  if (operation == "count")
    return reply(client, {std::to_string(values_.size())});
  const std::string& key = request.at(1);
  if (operation == "delete")
    return reply(client, {values_.erase(key) > 0 ? "yes" : "no"});
  const auto found = values_.find(key);
  if (operation == "compare" &&
      (found == values_.end() ? !request.at(2).empty() : found->second != request.at(2)))
    return reply(client, {found == values_.end() ? request.at(2) : found->second});
  changed_ = true;
  std::string& value = values_[key];
  if (operation == "add")
    value = std::to_string(number_in(value) + number_in(request.at(2)));
  else if (operation == "append")
    value += request.at(2);
  else
    value = request.at(operation == "compare" ? 3 : 2);
  reply(client, {operation == "set" ? "" : value});
}

void StoreServer::begin_wait(Client& client, const Message& request) {
  client.awaited.assign(request.begin() + 2, request.end());
  if (client.awaited.empty())
    return reply(client, {"all"});
  client.until = Clock::now() + milliseconds(number_in(request.at(1)));
  changed_ = true;  // the keys may be there
}

/// Answers waits whose keys are all set or whose time is over, and closes late handshakes.
void StoreServer::end_waits() {
  const bool changed = std::exchange(changed_, false);
  for (Client& client : clients_) {
    const bool has_come = changed && !client.awaited.empty() && has_all(client.awaited);
    if (client.closed || (!has_come && Clock::now() < client.until))
      continue;
    if (!client.channel.is_authenticated()) {
      close(client);
      continue;
    }
    Message message{has_come ? "all" : "late"};
    if (has_come)
      for (const std::string& key : client.awaited)
        message.push_back(values_.at(key));
    client.awaited.clear();
    client.until = Clock::time_point::max();
    reply(client, message);
  }
}

bool StoreServer::has_all(const Message& keys) const {
  return std::ranges::all_of(keys, [&](const std::string& key) { return values_.contains(key); });
}

void StoreServer::reply(Client& client, const Message& message) {
  client.channel.send(message);
  flush(client);
}

void StoreServer::flush(Client& client) {
  client.outgoing += client.channel.take_outgoing();
  const auto count =
      send(client.socket.get(), client.outgoing.data(), client.outgoing.size(), MSG_NOSIGNAL);
  if (count > 0)
    client.outgoing.erase(0, static_cast<std::size_t>(count));
  else if (count < 0 && !is_retryable())
    close(client);
}

void StoreServer::close(Client& client) {
  rejected_ += client.closed || client.channel.is_authenticated() ? 0 : 1;
  client.closed = true;
}

int StoreServer::milliseconds_to_next_deadline() const {
  auto next = Clock::now() + std::chrono::hours(1);
  for (const Client& client : clients_)
    next = std::min(next, client.until);
  const auto left = std::chrono::duration_cast<milliseconds>(next - Clock::now()).count();
  return static_cast<int>(std::max<long>(0, left)) + 1;
}

}  // namespace pipewright::exec
