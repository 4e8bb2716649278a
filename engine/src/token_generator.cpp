#include "pipewright/engine/token_generator.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "forward_ranks.hpp"
#include "pipewright/engine/models/generating_layer.hpp"
#include "pipewright/exec/first_line.hpp"
#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/exec/training/without_memory.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::engine {
namespace {

/// A message between ranks: a sequence's tokens, or a stage's outputs for them.
struct Step {
  std::int64_t place = 0;  // cache slot of the sequence; negative: end of the run
  std::int64_t sequence = 0;
  std::int64_t first = 0;  // position of the first token
  std::int64_t room = 0;   // maximum number of tokens that the stages process for the sequence
  at::Tensor values{};     // [1, tokens, …]
};

exec::Tensors to_message(const Step& step) {
  return {at::tensor({step.place, step.sequence, step.first, step.room}, at::kLong), step.values};
}

Step to_step(const exec::Tensors& message) {
  const auto* const words = message.at(0).const_data_ptr<std::int64_t>();
  return {words[0], words[1], words[2], words[3], message.at(1)};
}

/// The KV cache of a stage for one sequence, by layer.
using Memory = std::vector<KvCache>;

GeneratingLayer& generating(exec::Layer& layer, const std::string& name) {
  auto* const found = dynamic_cast<GeneratingLayer*>(&layer);
  if (found == nullptr)
    throw plan::InputError(
        fmt::format("layer {} cannot generate tokens: it is not a GeneratingLayer, as those of the "
                    "models gpt, transformer and hf are",
                    name));
  return *found;
}

/// The state of a rank during a run.
class Generation {
 public:
  Generation(ForwardRank& own, const std::vector<Sequence>& prompts,
             const GenerationOptions& options, const TokenGenerator::TokenCallback& heard)
      : own_(own),
        prompts_(prompts),
        options_(options),
        heard_(heard),
        memories_(
            static_cast<std::size_t>(options.under_way > 0 ? options.under_way : 2 * own.count)),
        sequences_(prompts.size()) {}

  std::vector<Sequence> run() {
    own_.stage->begin({.training = false}, /*slots=*/0);
    if (own_.is_first())
      lead();
    else
      follow();
    return std::move(sequences_);
  }

 private:
  void lead() {
    std::size_t next = 0;
    int under_way = 0;
    for (std::size_t place = 0; place < memories_.size() && next < prompts_.size(); ++place) {
      begin(static_cast<std::int64_t>(place), next++);
      ++under_way;
    }
    while (under_way > 0) {
      const Step chosen = next_choice();
      if (!take(chosen))
        pass_on({chosen.place, chosen.sequence, chosen.first, chosen.room, chosen.values});
      else if (next < prompts_.size())
        begin(chosen.place, next++);
      else
        --under_way;
    }
    if (own_.out)
      own_.out->send(last_message());
  }

  void follow() {
    for (;;) {
      exec::Tensors message = own_.in->receive();
      const Step step = to_step(message);
      if (step.place >= 0) {
        pass_on(step);
        continue;
      }
      for (std::size_t s = 0; s < sequences_.size(); ++s) {
        const at::Tensor& tokens = message.at(2 + s);
        sequences_[s].assign(tokens.const_data_ptr<std::int64_t>(),
                             tokens.const_data_ptr<std::int64_t>() + tokens.numel());
      }
      if (!own_.is_last())
        own_.out->send(std::move(message));
      return;
    }
  }

  /// Returns the final message with all generated tokens, for the following ranks.
  exec::Tensors last_message() const {
    exec::Tensors message = to_message({.place = -1, .values = at::zeros({1})});
    for (const Sequence& sequence : sequences_)
      message.push_back(at::tensor(sequence, at::kLong));
    return message;
  }

  void begin(std::int64_t place, std::size_t sequence) {
    const Sequence& prompt = prompts_[sequence];
    const auto tokens = std::ssize(prompt);
    pass_on({place, static_cast<std::int64_t>(sequence), 0, tokens + options_.new_tokens - 1,
             at::tensor(prompt, at::kLong).unsqueeze(0)});
  }

  /// Records the chosen token. Returns true if the sequence has ended.
  bool take(const Step& chosen) {
    const auto number = static_cast<std::size_t>(chosen.sequence);
    const auto token = chosen.values.item<std::int64_t>();
    sequences_[number].push_back(token);
    if (heard_)
      heard_(number, token);
    return std::ssize(sequences_[number]) == options_.new_tokens ||
           std::find(options_.stop.begin(), options_.stop.end(), token) != options_.stop.end();
  }

  /// Returns the next choice of the last rank, on the first rank.
  Step next_choice() {
    if (own_.in)
      return to_step(own_.in->receive());
    Step chosen = std::move(chosen_.front());
    chosen_.pop_front();
    return chosen;
  }

  /// Runs the stage and sends the result to the next rank.
  void pass_on(Step step) {
    const std::int64_t tokens = step.values.size(1);
    step.values = through_stage(step);
    if (own_.is_last()) {
      step.first += tokens;
      step.values = at::full(
          {1, 1}, choose_token(step.values.cpu(), options_.choice, step.sequence, step.first),
          at::kLong);
    }
    if (own_.out)
      own_.out->send(to_message(step));
    else
      chosen_.push_back(std::move(step));
  }

  at::Tensor through_stage(const Step& step) {
    const auto& layers = own_.stage->layers().all();
    Memory& memory = memories_[static_cast<std::size_t>(step.place)];
    if (step.first == 0)
      memory.assign(layers.size(), KvCache(step.room));
    try {
      at::Tensor values = exec::put_on(step.values, own_.stage->spec().device);
      const std::int64_t tokens = values.size(1);
      for (std::size_t layer = 0; layer < layers.size(); ++layer) {
        values = dynamic_cast<GeneratingLayer&>(*layers[layer]).decode_step(values, memory[layer]);
        memory[layer].advance(tokens);
      }
      return values;
    } catch (const std::exception& error) {
      throw exec::RankFailure(fmt::format("rank {}, sequence {}: {}", own_.rank, step.sequence,
                                          exec::first_line(error.what())));
    }
  }

  ForwardRank& own_;
  const std::vector<Sequence>& prompts_;
  const GenerationOptions& options_;
  const TokenGenerator::TokenCallback& heard_;
  std::vector<Memory> memories_;  // by slot
  std::vector<Sequence> sequences_;
  std::deque<Step> chosen_;  // used if a single rank is both first and last
};

void check(const GenerationOptions& options) {
  check(options.choice);
  if (options.new_tokens < 1)
    throw plan::InputError(
        fmt::format("new_tokens is {}, but must be at least 1", options.new_tokens));
  if (options.under_way < 0)
    throw plan::InputError(fmt::format(
        "under_way is {}, but must be at least 0 (0: chosen by the pipeline)", options.under_way));
}

}  // namespace

struct TokenGenerator::State {
  State(PipelineModule module, ForwardOptions options)
      : ranks(std::move(module), std::move(options)) {
    const exec::TrainingSetup& setup = ranks.setup();
    for (int index = 0; index < static_cast<int>(setup.layers.size()); ++index) {
      layers.push_back(build_without_memory(setup, index));
      generating(*layers.back(), setup.layers[static_cast<std::size_t>(index)].name);
    }
  }

  /// Runs before any computation, so that all processes throw the same error.
  void check_prompts(const std::vector<Sequence>& prompts, int new_tokens) const {
    for (std::size_t p = 0; p < prompts.size(); ++p) {
      if (prompts[p].empty())
        throw plan::InputError(fmt::format("prompt {} has no tokens: it needs one at least", p));
      const auto length = std::ssize(prompts[p]);
      for (const auto& each : layers) {
        const auto& layer = dynamic_cast<const GeneratingLayer&>(*each);
        layer.check_length(length, length + new_tokens - 1);
        try {
          layer.check_tokens(prompts[p]);
        } catch (const plan::InputError& error) {
          throw plan::InputError(fmt::format("prompt {}: {}", p, error.what()));
        }
      }
    }
  }

  ForwardRanks ranks;
  std::vector<std::shared_ptr<exec::Layer>> layers;  // all layers of the model, as meta tensors
};

TokenGenerator::TokenGenerator(PipelineModule module, ForwardOptions options)
    : state_(std::make_unique<State>(std::move(module), std::move(options))) {}

TokenGenerator::~TokenGenerator() = default;

void TokenGenerator::restore(const exec::Checkpoint& checkpoint) {
  state_->ranks.restore(checkpoint);
}

void TokenGenerator::take_weights(const exec::Snapshot& training) {
  state_->ranks.take_weights(training);
}

std::vector<Sequence> TokenGenerator::generate(const std::vector<Sequence>& prompts,
                                               const GenerationOptions& options,
                                               const TokenCallback& heard) {
  check(options);
  state_->check_prompts(prompts, options.new_tokens);
  std::vector<Sequence> sequences;
  std::mutex mutex;
  state_->ranks.run([&](ForwardRank& own) {
    auto of_rank = Generation(own, prompts, options, heard).run();
    const std::lock_guard lock(mutex);
    sequences = std::move(of_rank);
  });
  return sequences;
}

}  // namespace pipewright::engine
