#pragma once

// What captured work keeps of memory, on the account of its rank.

#include <algorithm>

#include "account_entry.hpp"

namespace pipewright::exec {

/// The memory that captured work has set aside for good: the most that its pieces held at once when
/// they were captured. The account follows their tensors, which come and go then, and are not seen
/// when the work is replayed.
class SetAside {
 public:
  explicit SetAside(AccountEntry* account) : account_(account) {}

  /// Call right before and right after a piece is captured.
  void begin() {
    account_->subtract(charged_);  // its tensors lie in it
    before_ = account_->held;
    peak_before_ = account_->peak;
    account_->peak = before_;
  }
  void end() {
    most_ = std::max(most_, held_ + account_->peak - before_);
    held_ += account_->held - before_;
    charged_ = most_ - held_;
    account_->add(charged_);
    account_->peak = std::max<std::int64_t>(account_->peak, peak_before_);
  }

 private:
  AccountEntry* account_;
  std::int64_t held_ = 0, most_ = 0;  // by tensors of the pieces: now, ever
  std::int64_t charged_ = 0;          // beside the tensors
  std::int64_t before_ = 0, peak_before_ = 0;
};

}  // namespace pipewright::exec
