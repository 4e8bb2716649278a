#include "pipewright/plan/allocator/instruction_tapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "pipewright/plan/error.hpp"

namespace pipewright::plan {

/// Whether an instruction is the first of its kind and stage in its step.
class InstructionTapes::FirstOfStep {
 public:
  bool operator()(int step, const Instruction& i) {
    if (std::exchange(step_, step) != step)
      seen_.clear();
    return seen_.emplace(i.kind, i.stage).second;
  }

 private:
  int step_ = -1;
  std::set<std::pair<InstructionKind, int>> seen_;
};

/// Who made each tensor, as far as the recording has come.
class InstructionTapes::Recording {
 public:
  Tape tape_of(const RecordedInstruction& recorded) {
    const Instruction& i = recorded.instruction;
    const Key key{i.kind, i.stage, is_first_(recorded.step, i)};
    Tape tape;
    int made = 0;
    for (const StreamEvent& event : recorded.events)
      if (event.bytes > 0) {
        makers_[event.tensor] = {key, made++, recorded.step, i.microbatch};
        tape.push_back({event.bytes});
      } else if (const auto maker = makers_.find(event.tensor); maker != makers_.end()) {
        tape.push_back({event.bytes, made_by(maker->second, recorded)});
      }  // else it stood before
    newest_ = key;
    return tape;
  }
  const Key& newest() const { return newest_; }

 private:
  struct Maker {
    Key by{};
    int place = 0;
    int step = 0;
    int microbatch = 0;
  };
  static Made made_by(const Maker& maker, const RecordedInstruction& dropped_by) {
    const bool same =
        maker.step == dropped_by.step && maker.microbatch == dropped_by.instruction.microbatch;
    return {maker.by, maker.place, same};
  }

  FirstOfStep is_first_;
  std::map<int, Maker> makers_;  // by tensor
  Key newest_{};
};

/// Writes the streams of all ranks.
class InstructionTapes::Writer {
 public:
  explicit Writer(const InstructionTapes& tapes) : tapes_(tapes) {}

  void write(int step, const PlacedInstruction& placed) {
    const Instruction& i = placed.instruction;
    const Key key{i.kind, i.stage, is_first_(step, i)};
    const auto tape = tapes_.tapes_.find(key);
    if (tape == tapes_.tapes_.end()) {
      if (is_send(i.kind) || is_receive(i.kind))
        return;
      throw InputError(fmt::format("{}: nothing like it was recorded", to_string(i)));
    }
    made_by_[{i.kind, i.stage, i.microbatch}] = key;
    int place = 0;
    for (const Entry& entry : tape->second)
      if (entry.bytes > 0)
        make(placed.rank, {key, place++, i.microbatch}, entry.bytes);
      else
        drop(entry, i.microbatch);
  }
  std::vector<TensorStream> take(std::size_t ranks) {
    streams_.resize(ranks);
    return std::move(streams_);
  }

 private:
  /// Its microbatch tells tensors of one place apart.
  using Name = std::tuple<Key, int, int>;
  struct Held {
    std::size_t rank = 0;
    int tensor = 0;
    std::size_t let_go = 0;  // by so many of those who hold it
  };

  void make(int of, const Name& name, std::int64_t bytes) {
    const auto rank = static_cast<std::size_t>(of);
    streams_.resize(std::max(streams_.size(), rank + 1));
    made_.resize(streams_.size());
    const Held held{.rank = rank, .tensor = made_[rank]++};
    streams_[rank].push_back({held.tensor, bytes});
    held_[name] = held;
    newest_[{std::get<0>(name), std::get<1>(name)}] = name;
  }

  void drop(const Entry& entry, int microbatch) {
    const auto found = held_.find(name_of(entry.tensor, microbatch));
    if (found == held_.end())
      return;  // of a step before the first
    Held& held = found->second;
    if (++held.let_go < tapes_.holders_.at(entry.tensor).size())
      return;
    streams_[held.rank].push_back({held.tensor, entry.bytes});
    held_.erase(found);
  }

  Name name_of(const Made& made, int microbatch) {
    const auto& [kind, stage, first] = made.by;
    if (!made.of_microbatch)
      return newest_[{made.by, made.place}];
    return {made_by_[{kind, stage, microbatch}], made.place, microbatch};
  }

  const InstructionTapes& tapes_;
  FirstOfStep is_first_;
  std::vector<TensorStream> streams_;  // by rank
  std::vector<int> made_;              // likewise: how many tensors
  std::map<Name, Held> held_;
  std::map<std::pair<Key, int>, Name> newest_;
  std::map<InstructionKey, Key> made_by_;  // whether the first of its step it was
};

void InstructionTapes::learn(const std::vector<RecordedInstruction>& recorded) {
  Recording recording;
  std::map<Key, Tape> newest;
  for (const RecordedInstruction& one : recorded) {
    Tape tape = recording.tape_of(one);
    newest[recording.newest()] = std::move(tape);
  }
  for (auto& [key, tape] : newest)
    tapes_[key] = tapes_.contains(key) ? merged(tapes_[key], tape) : std::move(tape);
  find_holders();
}

/// The same instruction, before others and behind them: it makes the same, and may let go of more.
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
  for (int step = 0; step < steps; ++step)
    for (const PlacedInstruction& placed : program) {
      writer.write(step, placed);
      ranks = std::max(ranks, placed.rank + 1);
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

}  // namespace pipewright::plan
