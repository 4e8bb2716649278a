#include "store_client.hpp"

#include <c10/util/Exception.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "sockets.hpp"

namespace pipewright::exec {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds pause_between_attempts{100};

[[noreturn]] void fail_with(const std::string& why) { C10_THROW_ERROR(DistNetworkError, why); }

std::string as_text(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

std::vector<std::uint8_t> as_bytes(const std::string& text) { return {text.begin(), text.end()}; }

}  // namespace

StoreClient::StoreClient(Place place, milliseconds timeout, std::shared_ptr<StoreServer> hosted)
    : Store(timeout), place_(std::move(place)), hosted_(std::move(hosted)) {
  const auto until = Clock::now() + timeout;
  while (!connects()) {
    if (Clock::now() >= until)
      fail_with("no store of a job with a secret answers there");
    std::this_thread::sleep_for(pause_between_attempts);
  }
}

/// Returns false if another attempt may succeed.
bool StoreClient::connects() {
  socket_ = connect_to(place_.address, place_.port);
  if (!socket_)
    return false;
  patience_ = Clock::now() + handshake_limit;
  channel_.emplace(SecureChannel::Role::Client, place_.secret);
  try {
    flush();
    while (!channel_->is_authenticated())
      receive_some();
    // During many connection attempts the server may have closed this one. Only an answer proves
    // that it has not.
    ask({"count"});
  } catch (const WrongSecret&) {
    fail_with("the job's store has another secret (PIPEWRIGHT_JOB_SECRET)");
  } catch (const std::exception&) {
    return false;
  }
  patience_.reset();
  return true;
}

Message StoreClient::ask(const Message& request) {
  const std::lock_guard lock(mutex_);
  try {
    channel_->send(request);
    flush();
    while (true) {
      if (auto answer = channel_->next_message())
        return *std::move(answer);
      receive_some();
    }
  } catch (const c10::Error&) {
    throw;
  } catch (const std::exception& error) {
    fail_with(error.what());
  }
}

void StoreClient::receive_some() {
  if (patience_) {
    pollfd event{socket_.get(), POLLIN, 0};
    const auto left = std::chrono::duration_cast<milliseconds>(*patience_ - Clock::now()).count();
    if (left <= 0 || poll(&event, 1, static_cast<int>(left)) == 0)
      fail_with("the job's store does not answer");
  }
  std::array<char, 16384> bytes{};
  const auto count = recv(socket_.get(), bytes.data(), bytes.size(), 0);
  if (count == 0)
    fail_with("the job's store has closed the connection");
  if (count < 0 && errno != EINTR)
    fail_with(std::strerror(errno));
  if (count < 0)
    return;
  channel_->receive({bytes.data(), static_cast<std::size_t>(count)});
  flush();
}

void StoreClient::flush() {
  const std::string bytes = channel_->take_outgoing();
  for (std::size_t done = 0; done < bytes.size();) {
    const auto count =
        ::send(socket_.get(), bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR)
      fail_with(std::strerror(errno));
    done += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
}

Message StoreClient::values_of(const std::vector<std::string>& keys, milliseconds timeout) {
  Message request{"wait", std::to_string(timeout.count())};
  request.insert(request.end(), keys.begin(), keys.end());
  Message reply = ask(request);
  if (reply.front() != "all")
    C10_THROW_ERROR(DistStoreError, "some keys were not set in the job's store in time");
  reply.erase(reply.begin());
  return reply;
}

c10::intrusive_ptr<c10d::Store> StoreClient::clone() {
  return c10::make_intrusive<StoreClient>(place_, timeout_, hosted_);
}

void StoreClient::set(const std::string& key, const std::vector<std::uint8_t>& value) {
  ask({"set", key, as_text(value)});
}

std::vector<std::uint8_t> StoreClient::compareSet(const std::string& key,
                                                  const std::vector<std::uint8_t>& expected,
                                                  const std::vector<std::uint8_t>& desired) {
  return as_bytes(ask({"compare", key, as_text(expected), as_text(desired)}).at(0));
}

std::vector<std::uint8_t> StoreClient::get(const std::string& key) {
  return as_bytes(values_of({key}, timeout_).at(0));
}

std::int64_t StoreClient::add(const std::string& key, std::int64_t value) {
  return std::stoll(ask({"add", key, std::to_string(value)}).at(0));
}

bool StoreClient::deleteKey(const std::string& key) { return ask({"delete", key}).at(0) == "yes"; }

bool StoreClient::check(const std::vector<std::string>& keys) {
  Message request{"check"};
  request.insert(request.end(), keys.begin(), keys.end());
  return ask(request).at(0) == "yes";
}

std::int64_t StoreClient::getNumKeys() { return std::stoll(ask({"count"}).at(0)); }

void StoreClient::wait(const std::vector<std::string>& keys) { wait(keys, timeout_); }

void StoreClient::wait(const std::vector<std::string>& keys, const milliseconds& timeout) {
  values_of(keys, timeout);
}

void StoreClient::append(const std::string& key, const std::vector<std::uint8_t>& value) {
  ask({"append", key, as_text(value)});
}

std::vector<std::vector<std::uint8_t>> StoreClient::multiGet(const std::vector<std::string>& keys) {
  std::vector<std::vector<std::uint8_t>> values;
  for (const std::string& value : values_of(keys, timeout_))
    values.push_back(as_bytes(value));
  return values;
}

void StoreClient::multiSet(const std::vector<std::string>& keys,
                           const std::vector<std::vector<std::uint8_t>>& values) {
  for (std::size_t each = 0; each < keys.size(); ++each)
    set(keys[each], values.at(each));
}

}  // namespace pipewright::exec
