#include "pipewright/engine/engine_checkpoints.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <set>
#include <stdexcept>
#include <utility>

#include "pipewright/engine/engine.hpp"
#include "pipewright/exec/checkpoint/check_load.hpp"
#include "pipewright/exec/checkpoint/list_checkpoints.hpp"
#include "pipewright/exec/rank/training_state.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/exec/training/without_memory.hpp"
#include "pipewright/exec/transport/transport.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::engine {
namespace {

void leave_out_frozen(exec::Snapshot& snapshot, const exec::TrainingSetup& setup) {
  for (exec::LayerState& layer : snapshot.layers) {
    std::set<std::string> frozen;
    for (const auto& named : build_without_memory(setup, layer.index)->named_parameters())
      if (!named.value().requires_grad())
        frozen.insert(named.key());
    std::erase_if(layer.parameters,
                  [&](const exec::NamedTensor& tensor) { return frozen.contains(tensor.name); });
  }
}

void leave_out_optimizer(exec::Snapshot& snapshot) {
  snapshot.training.optimizer.clear();
  for (exec::LayerState& layer : snapshot.layers)
    layer.optimizer.clear();
}

/// Opens the checkpoint of a step after verifying all its contents.
exec::Checkpoint open_step(const std::filesystem::path& folder, std::int64_t step) {
  for (const exec::CheckpointInfo& info : exec::list_checkpoints(folder)) {
    if (info.step != step || !info.was_complete)
      continue;
    if (!info.damage.empty())
      throw plan::InputError(info.damage);
    exec::Checkpoint checkpoint = exec::Checkpoint::open(info.folder);
    checkpoint.verify();
    return checkpoint;
  }
  throw plan::InputError(fmt::format("{}: no checkpoint of step {}", folder.string(), step));
}

/// Optimizer state is matched by the layer's index, so names and order of layers must be equal.
void require_same_layers(const exec::Checkpoint& checkpoint, const exec::TrainingSetup& setup,
                         const std::string& optimizer) {
  const auto stored = checkpoint.layers();
  const bool same =
      std::equal(stored.begin(), stored.end(), setup.layers.begin(), setup.layers.end(),
                 [](const exec::LayerShape& theirs, const exec::LayerSpec& ours) {
                   return theirs.name == ours.name;
                 });
  if (!same || checkpoint.training().optimizer != optimizer)
    throw plan::InputError(
        fmt::format("{}: its layers or its optimizer differ from those of this training: set "
                    "training = false to load only its weights",
                    checkpoint.folder().string()));
}

/// Converts the samples that had been read into microbatches of this size.
std::int64_t microbatches_read(const exec::TrainingState& then, int microbatch_size,
                               const std::filesystem::path& folder) {
  const std::int64_t read =
      then.microbatches_read > 0 ? then.microbatches_read : then.step * then.microbatches;
  const std::int64_t samples = read * then.microbatch_size;
  if (samples % microbatch_size != 0)
    throw plan::InputError(fmt::format(
        "{}: {} samples had been read, which is not a multiple of the microbatch size {}",
        folder.string(), samples, microbatch_size));
  return samples / microbatch_size;
}

}  // namespace

exec::StateDict PipelineEngine::module_state_dict(const StateOptions& options) const {
  exec::StateDict state = module_state(*executor_, setup_, options);
  for (const StateHooks& hook : options_.hooks)
    if (hook.saved)
      hook.saved(state);
  return state;
}

IncompatibleKeys PipelineEngine::load_module_state_dict(exec::NamedWeights weights,
                                                        const LoadOptions& options) {
  return load_module_state(*executor_, setup_, std::move(weights), options, options_.hooks);
}

IncompatibleKeys PipelineEngine::load_module_state_dict(exec::StateDict state,
                                                        const LoadOptions& options) {
  return load_module_state_dict(exec::weights_of(std::move(state)), options);
}

bool PipelineEngine::is_first_process() const {
  return options_.execution.only_rank.value_or(0) == 0;
}

/// Broadcasts the first process's text.
std::string PipelineEngine::from_first(const std::string& text) const {
  return options_.execution.only_rank ? everybody().texts(text).front() : text;
}

exec::CheckpointWriter& PipelineEngine::writer_for(const std::filesystem::path& folder,
                                                   const SaveOptions& options) {
  exec::CheckpointOptions wanted;
  wanted.part = options_.execution.only_rank.value_or(0);
  wanted.parts = options_.execution.only_rank ? everybody().size() : 1;
  wanted.keep = options.keep;
  wanted.most_bytes_per_s = options.most_bytes_per_s;
  wanted.report = options.report;
  if (const auto& transport = options_.execution.transport)
    wanted.require_going = [transport] { transport->require_going(); };
  writer_.reset();
  wanted.job = from_first(exec::new_job_id());
  writer_ = std::make_unique<exec::CheckpointWriter>(folder, std::move(wanted));
  return *writer_;
}

void PipelineEngine::save_checkpoint(const std::filesystem::path& folder,
                                     const SaveOptions& options) {
  wait_for_checkpoint();
  exec::Snapshot snapshot = executor_->snapshot(step_, /*copied=*/false);
  if (!options.optimizer)
    leave_out_optimizer(snapshot);
  if (!options.frozen)
    leave_out_frozen(snapshot, setup_);
  snapshot.training.microbatches_read = microbatches_read_;
  snapshot.training.notes = options.notes;
  for (const StateHooks& hook : options_.hooks)
    if (hook.saving_checkpoint)
      hook.saving_checkpoint(snapshot.training.notes);
  const bool copies = options.background && exec::has_room_for_copy(snapshot);
  writer_for(folder, options)
      .save(copies ? exec::copies_of(std::move(snapshot)) : std::move(snapshot));
  if (!copies)
    wait_for_checkpoint();
}

void PipelineEngine::wait_for_checkpoint() {
  if (!writer_)
    return;
  writer_->wait();
  const auto failure = writer_->failure();
  writer_.reset();
  if (const auto& transport = options_.execution.transport)
    transport->require_going();
  if (failure)
    throw std::runtime_error(*failure);
}

exec::TrainingState PipelineEngine::wanted_state() const {
  const auto& devices = options_.execution.devices;
  const auto own = static_cast<std::size_t>(options_.execution.only_rank.value_or(0));
  return training_state(setup_, program_, module_.replicas(), 0,
                        device_in_words(devices.empty() ? exec::RankDevice() : devices.at(own)));
}

/// Restores the weights and, with `training`, the optimizer state and the loss scale.
IncompatibleKeys PipelineEngine::restore(const exec::Checkpoint& checkpoint,
                                         const ResumeOptions& options,
                                         std::vector<std::string>& differences) {
  if (!options.training)
    return load_module_state_dict(weights_of(checkpoint), options.weights);
  const std::string folder = checkpoint.folder().string();
  if (options.weights.rename || options.weights.load)
    throw plan::InputError(folder +
                           ": tensors that are renamed or loaded by a function have no optimizer "
                           "state: set training = false");
  if (checkpoint.training().optimizer.empty())
    throw plan::InputError(folder + ": it has only weights: set training = false to load them");
  exec::LoadCheck check = exec::check_load(checkpoint, exec::shapes_of(setup_), wanted_state());
  differences = std::move(check.differences);
  if (options.weights.strict && !check.obstacles.empty())
    throw plan::InputError(
        fmt::format("{}: cannot be loaded\n{}", folder, plan::listed_lines(check.obstacles)));
  require_same_layers(checkpoint, setup_, wanted_state().optimizer);
  IncompatibleKeys keys = load_module_state_dict(weights_of(checkpoint), options.weights);
  executor_->restore(checkpoint, /*weights=*/false);
  return keys;
}

/// Finds the checkpoint on one process, so that all load the same one or all fail.
std::filesystem::path PipelineEngine::looked_up(const std::filesystem::path& folder,
                                                const ResumeOptions& options) const {
  std::string found;
  if (is_first_process())
    try {
      const auto report = options.report ? options.report : [](const std::string&) {};
      const exec::Checkpoint checkpoint =
          options.step ? open_step(folder, *options.step) : exec::open_newest(folder, report);
      found = "+" + checkpoint.folder().string();
    } catch (const plan::InputError& error) {
      found = std::string("-") + error.what();
    }
  found = from_first(found);
  if (found.front() == '-')
    throw plan::InputError(found.substr(1));
  return found.substr(1);
}

LoadedCheckpoint PipelineEngine::load_checkpoint(const std::filesystem::path& folder,
                                                 const ResumeOptions& options) {
  wait_for_checkpoint();
  const exec::Checkpoint checkpoint = exec::Checkpoint::open(looked_up(folder, options));
  const exec::TrainingState& then = checkpoint.training();
  const std::int64_t read =
      options.training ? microbatches_read(then, options_.microbatch_size, checkpoint.folder()) : 0;
  LoadedCheckpoint loaded{.folder = checkpoint.folder(), .step = then.step, .notes = then.notes};
  loaded.keys = restore(checkpoint, options, loaded.differences);
  if (options.training) {
    step_ = static_cast<int>(then.step);
    microbatches_read_ = to_leave_out_ = read;
  }
  for (const StateHooks& hook : options_.hooks)
    if (hook.loaded_checkpoint)
      hook.loaded_checkpoint(loaded.notes);
  return loaded;
}

/// Skips the data that was read before the checkpoint, if this process reads any.
void PipelineEngine::leave_out_data() {
  for (; source_ && to_leave_out_ > 0 && (needs_.inputs || needs_.targets); --to_leave_out_)
    if (!source_())
      break;
  to_leave_out_ = 0;
}

}  // namespace pipewright::engine
