#pragma once

// A rank's connection to the store of a job that has a secret.

#include <memory>
#include <mutex>
#include <optional>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "sealed.hpp"
#include "store_server.hpp"

namespace pipewright::exec {

/// Calls go one after the other: one that waits keeps the connection. They throw c10::DistError
/// where the store is gone, and c10::DistStoreError where nothing has come in time.
class StoreOfSecret final : public c10d::Store {
 public:
  struct Place {
    std::string address;
    int port = 0;
    std::string secret;
  };

  /// Tries until `timeout`. `hosted`: the store itself, which lives as long as this. Throws
  /// c10::DistError that says why not.
  StoreOfSecret(Place place, std::chrono::milliseconds timeout,
                std::shared_ptr<StoreServer> hosted);
  ~StoreOfSecret() override;
  StoreOfSecret(const StoreOfSecret&) = delete;
  StoreOfSecret& operator=(const StoreOfSecret&) = delete;

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
  bool meets();
  std::string receive(std::size_t count);
  void send(const std::string& bytes);
  void read_some();
  Message asked(const Message& request);
  Message values_of(const std::vector<std::string>& keys, std::chrono::milliseconds timeout);

  const Place place_;
  const std::shared_ptr<StoreServer> hosted_;
  std::mutex mutex_;
  int socket_ = -1;
  std::string received_;
  std::optional<Sealed> line_;
  std::chrono::steady_clock::time_point patience_;  // while the ends have not met
};

}  // namespace pipewright::exec
