#pragma once

// Counts the memory that captured work keeps, on its rank's account.

#include <algorithm>

#include "account_entry.hpp"

namespace pipewright::exec {

/// The memory that captured work has reserved permanently: the most that its pieces held at once
/// when they were captured. The account sees their tensors during the capture only, not when the
/// work is replayed.
class SetAside {
 public:
  explicit SetAside(AccountEntry* account) : account_(account) {}

  /// Call `begin` right before and `end` right after a piece is captured.
  void begin() {
    account_->subtract(charged_);  // its tensors reuse the reserved memory
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
  std::int64_t held_ = 0, most_ = 0;  // bytes held by tensors of the pieces: now, and at most
  std::int64_t charged_ = 0;          // bytes reserved beyond the tensors
  std::int64_t before_ = 0, peak_before_ = 0;
};

}  // namespace pipewright::exec
