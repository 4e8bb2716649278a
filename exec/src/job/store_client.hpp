#pragma once

// A rank's connection to the store of a job that has a secret.

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "file_descriptor.hpp"
#include "secure_channel.hpp"
#include "store_server.hpp"

namespace pipewright::exec {

/// A client of the job's store. Sends one request at a time, so a wait blocks other calls. Calls
/// throw c10::DistError if the store is gone, and c10::DistStoreError if keys were not set in time.
class StoreClient final : public c10d::Store {
 public:
  struct Place {
    std::string address;
    int port = 0;
    std::string secret;
  };

  /// Retries until `timeout`. `hosted` is the server if this process hosts it; it lives as long as
  /// its client. Throws c10::DistError that says why no connection was made.
  StoreClient(Place place, std::chrono::milliseconds timeout, std::shared_ptr<StoreServer> hosted);

  c10::intrusive_ptr<c10d::Store> clone() override;
  void set(const std::string& key, const std::vector<std::uint8_t>& value) override;
  std::vector<std::uint8_t> compareSet(const std::string& key,
                                       const std::vector<std::uint8_t>& expected,
                                       const std::vector<std::uint8_t>& desired) override;
  std::vector<std::uint8_t> get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t value) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  std::int64_t getNumKeys() override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;
  void append(const std::string& key, const std::vector<std::uint8_t>& value) override;
  std::vector<std::vector<std::uint8_t>> multiGet(const std::vector<std::string>& keys) override;
  void multiSet(const std::vector<std::string>& keys,
                const std::vector<std::vector<std::uint8_t>>& values) override;
  bool hasExtendedApi() const override { return true; }

 private:
  using Clock = std::chrono::steady_clock;

  bool connects();
  Message ask(const Message& request);
  Message values_of(const std::vector<std::string>& keys, std::chrono::milliseconds timeout);
  void receive_some();
  void flush();

  const Place place_;
  const std::shared_ptr<StoreServer> hosted_;
  std::mutex mutex_;
  FileDescriptor socket_;
  std::optional<SecureChannel> channel_;
  std::optional<Clock::time_point> patience_;  // the deadline while it connects
};

}  // namespace pipewright::exec
