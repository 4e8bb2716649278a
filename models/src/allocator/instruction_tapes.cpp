#include "pipewright/models/allocator/instruction_tapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "pipewright/plan/error.hpp"

namespace pipewright::models {

/// Determines the turn of each instruction in its step.
class InstructionTapes::Turns {
 public:
  void begin(const std::vector<plan::Instruction>& step) {
    seen_.clear();
    waiting_.clear();
    for (const plan::Instruction& i : step)
      if (makes_gradients(i))
        waiting_[i.stage].insert(i.microbatch);
  }
  Turn of(const plan::Instruction& i) {
    const bool is_first = seen_.emplace(i.kind, i.stage).second;
    if (!makes_gradients(i))
      return is_first ? Turn::First : Turn::Later;
    const bool is_early = *waiting_[i.stage].begin() < i.microbatch;
    waiting_[i.stage].erase(i.microbatch);
    return is_early ? Turn::Early : is_first ? Turn::First : Turn::Later;
  }
  /// Returns true if the gradients of all earlier microbatches have been accumulated.
  bool is_next(int stage, int microbatch) const {
    const auto& waiting = waiting_.at(stage);
    return waiting.empty() || *waiting.begin() > microbatch;
  }

 private:
  static bool makes_gradients(const plan::Instruction& i) {
    return i.kind == plan::InstructionKind::Backward ||
           i.kind == plan::InstructionKind::WeightGradient;
  }

  std::set<std::pair<plan::InstructionKind, int>> seen_;
  std::map<int, std::set<int>> waiting_;  // by stage
};

/// Tracks the instruction that allocated each tensor, up to the current point of the recording.
class InstructionTapes::Recording {
 public:
  void begin(const std::vector<plan::Instruction>& step) { turns_.begin(step); }

  void play(const RecordedInstruction& recorded) {
    const plan::Instruction& i = recorded.instruction;
    const Key key{i.kind, i.stage, turns_.of(i)};
    Tape& tape = tapes_[key];
    tape.clear();
    int made = 0;
    for (const StreamEvent& event : recorded.events)
      if (event.bytes > 0) {
        makers_[event.tensor] = {key, made++, recorded.step, i.microbatch};
        tape.push_back({event.bytes});
      } else if (const auto maker = makers_.find(event.tensor); maker != makers_.end()) {
        drop(tape, event, maker->second, recorded);
      }  // otherwise it was allocated before the recording
  }
  std::map<Key, Tape>& tapes() { return tapes_; }
  const std::map<Key, std::vector<int>>& aside() const { return aside_; }

 private:
  struct Maker {
    Key by{};
    int place = 0;
    int step = 0;
    int microbatch = 0;
  };
  void drop(Tape& tape, const StreamEvent& event, const Maker& maker,
            const RecordedInstruction& by) {
    const bool same = maker.step == by.step && maker.microbatch == by.instruction.microbatch;
    if (same || std::get<Turn>(maker.by) != Turn::Early) {
      Made made{maker.by, maker.place, same};
      if (same)
        std::get<Turn>(made.by) = Turn::Later;  // its actual turn does not matter
      tape.push_back({event.bytes, made});
      return;
    }
    if (tape.empty() || tape.back().bytes != 0) {
      tape.push_back({});
      aside_[maker.by].clear();
    }
    aside_[maker.by].push_back(maker.place);
  }

  Turns turns_;
  std::map<Key, Tape> tapes_;
  std::map<Key, std::vector<int>> aside_;
  std::map<int, Maker> makers_;  // by tensor
};

/// Writes the streams of all ranks.
class InstructionTapes::Writer {
 public:
  explicit Writer(const InstructionTapes& tapes) : tapes_(tapes) {}

  void begin(const std::vector<plan::Instruction>& step) {
    turns_.begin(step);
    early_.clear();
  }

  void write(const PlacedInstruction& placed) {
    const plan::Instruction& i = placed.instruction;
    const Key key{i.kind, i.stage, turns_.of(i)};
    const auto tape = tapes_.tapes_.find(key);
    if (tape == tapes_.tapes_.end()) {
      if (is_send(i.kind) || is_receive(i.kind))
        return;
      throw plan::InputError(fmt::format("{}: no such instruction was recorded", to_string(i)));
    }
    made_by_[{i.kind, i.stage, i.microbatch}] = key;
    if (std::get<Turn>(key) == Turn::Early)
      early_[i.stage][i.microbatch] = key;
    int place = 0;
    for (const Entry& entry : tape->second)
      if (entry.bytes > 0)
        make(placed.rank, {key, place++, i.microbatch}, entry.bytes);
      else if (entry.bytes == 0)
        add_what_was_set_aside(i.stage);
      else
        drop(entry, i.microbatch);
  }
  std::vector<TensorStream> take(std::size_t ranks) {
    streams_.resize(ranks);
    return std::move(streams_);
  }

 private:
  /// The microbatch distinguishes tensors with the same key and place.
  using Name = std::tuple<Key, int, int>;
  struct Held {
    std::size_t rank = 0;
    int tensor = 0;
    std::int64_t bytes = 0;
    std::size_t let_go = 0;  // number of holders that have released it
  };

  void make(int of, const Name& name, std::int64_t bytes) {
    const auto rank = static_cast<std::size_t>(of);
    streams_.resize(std::max(streams_.size(), rank + 1));
    made_.resize(streams_.size());
    const Held held{.rank = rank, .tensor = made_[rank]++, .bytes = bytes};
    streams_[rank].push_back({held.tensor, bytes});
    held_[name] = held;
    newest_[{std::get<0>(name), std::get<1>(name)}] = name;
  }

  void drop(const Entry& entry, int microbatch) {
    const auto found = held_.find(name_of(entry.tensor, microbatch));
    if (found == held_.end())
      return;  // belongs to a step before the first
    if (++found->second.let_go == tapes_.holders_.at(entry.tensor).size())
      let_go(found);
  }

  void let_go(std::map<Name, Held>::iterator tensor) {
    const Held& held = tensor->second;
    streams_[held.rank].push_back({held.tensor, -held.bytes});
    held_.erase(tensor);
  }

  void add_what_was_set_aside(int stage) {
    auto& early = early_[stage];
    while (!early.empty() && turns_.is_next(stage, early.begin()->first)) {
      const auto [microbatch, key] = *early.begin();
      early.erase(early.begin());
      if (const auto aside = tapes_.aside_.find(key); aside != tapes_.aside_.end())
        for (const int place : aside->second)
          let_go(held_.find({key, place, microbatch}));
    }
  }

  Name name_of(const Made& made, int microbatch) {
    const auto& [kind, stage, turn] = made.by;
    if (!made.of_microbatch)
      return newest_[{made.by, made.place}];
    return {made_by_[{kind, stage, microbatch}], made.place, microbatch};
  }

  const InstructionTapes& tapes_;
  Turns turns_;
  std::map<int, std::map<int, Key>> early_;  // by stage and microbatch
  std::vector<TensorStream> streams_;        // by rank
  std::vector<int> made_;                    // by rank: number of tensors
  std::map<Name, Held> held_;
  std::map<std::pair<Key, int>, Name> newest_;
  std::map<plan::InstructionKey, Key> made_by_;
};

void InstructionTapes::learn(const std::vector<RecordedInstruction>& recorded) {
  Recording recording;
  for (auto begin = recorded.begin(); begin != recorded.end();) {
    const auto end = std::find_if(begin, recorded.end(), [&](const RecordedInstruction& one) {
      return one.step != begin->step;
    });
    std::vector<plan::Instruction> step;
    for (auto one = begin; one != end; ++one)
      step.push_back(one->instruction);
    recording.begin(step);
    for (; begin != end; ++begin)
      recording.play(*begin);
  }
  for (auto& [key, tape] : recording.tapes())
    tapes_[key] = tapes_.contains(key) ? merged(tapes_[key], tape) : std::move(tape);
  for (const auto& [key, places] : recording.aside())
    aside_[key] = places;
  find_holders();
}

/// Merges the tapes of the same instruction in two orders: the allocations are the same, and the
/// frees are united.
InstructionTapes::Tape InstructionTapes::merged(const Tape& tape, const Tape& other) {
  Tape both;
  auto next = other.begin();
  for (const Entry& entry : tape) {
    if (const auto same = std::find(next, other.end(), entry); same != other.end()) {
      both.insert(both.end(), next, same);
      next = same + 1;
    }
    both.push_back(entry);
  }
  both.insert(both.end(), next, other.end());
  return both;
}

void InstructionTapes::find_holders() {
  holders_.clear();
  for (const auto& [key, tape] : tapes_)
    for (const Entry& entry : tape)
      if (entry.bytes < 0)
        holders_[entry.tensor].emplace(std::get<0>(key), std::get<1>(key));
}

std::vector<TensorStream> InstructionTapes::streams_of(
    const std::vector<PlacedInstruction>& program, int steps) const {
  Writer writer(*this);
  int ranks = 0;
  std::vector<plan::Instruction> instructions;
  for (const PlacedInstruction& placed : program) {
    instructions.push_back(placed.instruction);
    ranks = std::max(ranks, placed.rank + 1);
  }
  for (int step = 0; step < steps; ++step) {
    writer.begin(instructions);
    for (const PlacedInstruction& placed : program)
      writer.write(placed);
  }
  return writer.take(static_cast<std::size_t>(ranks));
}

AllocatorCounters counters_of(const TensorStream& stream, const AllocatorOptions& options) {
  CachingAllocator allocator(options);
  std::map<int, CachingAllocator::Block*> blocks;
  for (const StreamEvent& event : stream)
    if (event.bytes > 0) {
      blocks[event.tensor] = allocator.allocate(event.bytes);
    } else if (const auto block = blocks.extract(event.tensor)) {
      allocator.free(block.mapped());
    }
  return allocator.counters();
}

}  // namespace pipewright::models
