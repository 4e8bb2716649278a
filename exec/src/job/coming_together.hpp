#pragma once

// Whether the ranks that a launcher has started have all come together: each holds an end of a pipe
// until it has met the others. It is known at once, also of ranks that ended before.

namespace pipewright::exec {

/// The launcher's.
class ComingTogether {
 public:
  /// Throws std::runtime_error where there is no pipe to be had.
  ComingTogether();
  ~ComingTogether();
  ComingTogether(const ComingTogether&) = delete;
  ComingTogether& operator=(const ComingTogether&) = delete;

  /// In a child that becomes a rank: its program holds an end.
  void hand_on() const;
  /// Once all ranks were started.
  void all_started();
  /// Whether a rank that lives has not met the others yet.
  bool is_going_on() const;

 private:
  int ours_ = -1, theirs_ = -1;
};

/// This process has met the others. Nothing where no launcher asks.
void has_come_together();

}  // namespace pipewright::exec
