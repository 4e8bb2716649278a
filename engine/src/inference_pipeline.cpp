#include "pipewright/engine/inference_pipeline.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <mutex>
#include <optional>
#include <utility>

#include "forward_ranks.hpp"
#include "pipewright/engine/microbatches.hpp"
#include "pipewright/exec/first_line.hpp"
#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::engine {
namespace {

/// Prepends the microbatch's number to a message. The message after the last one has -1 - count,
/// where count is the number of microbatches.
exec::Tensors numbered(std::int64_t number, exec::Tensors payload) {
  payload.insert(payload.begin(), at::full({1}, number, at::kLong));
  return payload;
}

std::int64_t take_number(exec::Tensors& message) {
  const auto number = message.at(0).item<std::int64_t>();
  message.erase(message.begin());
  return number;
}

exec::Tensors in_host_memory(exec::Tensors tensors) {
  for (at::Tensor& tensor : tensors)
    if (tensor.defined())
      tensor = tensor.cpu();
  return tensors;
}

/// Runs the rank's stage on a microbatch.
exec::Tensors forward(const ForwardRank& own, std::int64_t number, exec::Tensors inputs) {
  const plan::Instruction i{plan::InstructionKind::Forward, own.rank, 0, 0};
  try {
    own.stage->begin({.first_microbatch = static_cast<int>(number),
                      .microbatches = 1,
                      .training = false,
                      .keep_outputs = true,
                      .loss = false},
                     /*slots=*/1);
    if (own.is_first())
      own.stage->load(i, {std::move(inputs), {}, 1});
    else
      own.stage->receive_inputs(i, std::move(inputs));
    own.stage->compute(i);
    return own.is_last() ? std::move(own.stage->kept_outputs().front())
                         : own.stage->outputs_for_next(i);
  } catch (const std::exception& error) {
    throw exec::RankFailure(fmt::format("rank {}, microbatch {}: {}", own.rank, number,
                                        exec::first_line(error.what())));
  }
}

/// One rank's loop over microbatches: from the source or the previous rank, to the sink or the next
/// rank.
class InferenceLoop {
 public:
  InferenceLoop(ForwardRank& own, const InferenceOptions& options, const exec::BatchSource& source,
                const InferencePipeline::Sink& sink)
      : own_(own),
        microbatches_(options.microbatches),
        under_way_(options.under_way > 0 ? options.under_way : 2 * own.count),
        source_(source),
        sink_(sink) {}

  /// Returns the number of batches.
  std::int64_t run() {
    std::int64_t number = 0;
    while (auto inputs = next(number)) {
      exec::Tensors outputs = forward(own_, number, std::move(*inputs));
      if (own_.is_last())
        deliver(number, std::move(outputs));
      else
        own_.out->send(numbered(number, std::move(outputs)));
      ++number;
    }
    if (!own_.is_last())
      own_.out->send(numbered(-1 - number, {}));
    await_outputs(number);
    return number / microbatches_;
  }

 private:
  /// Returns the inputs of the next microbatch, or nothing at the end.
  std::optional<exec::Tensors> next(std::int64_t number) {
    if (own_.is_first())
      return read(number);
    exec::Tensors received = own_.in->receive();
    if (take_number(received) < 0)
      return {};
    return received;
  }

  std::optional<exec::Tensors> read(std::int64_t number) {
    await_outputs(number - under_way_ + 1);
    const auto part = static_cast<std::size_t>(number % microbatches_);
    if (part == 0) {
      auto batch = source_();
      if (!batch)
        return {};
      entering_ = split_batch(batch->inputs, microbatches_);
    }
    return std::move(entering_[part]);
  }

  /// On the first rank: blocks until `count` microbatches have left the pipeline. The last rank
  /// sends a message for each.
  void await_outputs(std::int64_t count) {
    for (; own_.is_first() && own_.in && came_out_ < count; ++came_out_)
      own_.in->receive();
  }

  void deliver(std::int64_t number, exec::Tensors outputs) {
    coming_out_.push_back(in_host_memory(std::move(outputs)));
    if (std::ssize(coming_out_) == microbatches_) {
      exec::Tensors whole =
          microbatches_ == 1 ? std::move(coming_out_.front()) : merge_outputs(coming_out_);
      coming_out_.clear();
      sink_(number / microbatches_, std::move(whole));
    }
    if (own_.out)
      own_.out->send(numbered(number, {}));
  }

  ForwardRank& own_;
  const std::int64_t microbatches_, under_way_;
  const exec::BatchSource& source_;
  const InferencePipeline::Sink& sink_;
  std::int64_t came_out_ = 0;
  std::vector<exec::Tensors> entering_, coming_out_;  // microbatches of a batch
};

}  // namespace

struct InferencePipeline::State {
  State(PipelineModule module, InferenceOptions how)
      : options(std::move(how)), ranks(std::move(module), options.where) {}

  InferenceOptions options;
  ForwardRanks ranks;
};

InferencePipeline::InferencePipeline(PipelineModule module, InferenceOptions options) {
  if (options.microbatches < 1)
    throw plan::InputError(
        fmt::format("microbatches is {}, but must be at least 1", options.microbatches));
  if (options.under_way < 0)
    throw plan::InputError(fmt::format(
        "under_way is {}, but must be at least 0 (0: chosen by the pipeline)", options.under_way));
  state_ = std::make_unique<State>(std::move(module), std::move(options));
}

InferencePipeline::~InferencePipeline() = default;

void InferencePipeline::restore(const exec::Checkpoint& checkpoint) {
  state_->ranks.restore(checkpoint);
}

void InferencePipeline::take_weights(const exec::Snapshot& training) {
  state_->ranks.take_weights(training);
}

std::int64_t InferencePipeline::run(const exec::BatchSource& source, const Sink& sink) {
  std::int64_t batches = 0;
  std::mutex mutex;
  state_->ranks.run([&](ForwardRank& own) {
    const std::int64_t count = InferenceLoop(own, state_->options, source, sink).run();
    const std::lock_guard lock(mutex);
    batches = count;
  });
  return batches;
}

}  // namespace pipewright::engine
