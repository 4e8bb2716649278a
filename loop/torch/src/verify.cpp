#include "pipewright/loop_torch/verify.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "pipewright/exec/rank/serial.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/stopped.hpp"

namespace pipewright::loop {
namespace {

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor left = a.detach().cpu().contiguous(), right = b.detach().cpu().contiguous();
  return left.sizes() == right.sizes() && left.dtype() == right.dtype() &&
         std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
}

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

}  // namespace

bool can_verify(const plan::Program& program) { return !program.asynchronous; }

SerialOutcome train_serially(const Workload& workload, const std::vector<int>& gradient_groups,
                             int steps, const std::atomic<bool>* stop, const StepReport& report) {
  exec::SerialTrainer serial(workload.setup(), static_cast<int>(gradient_groups.size()),
                             gradient_groups, workload.device());
  SerialOutcome outcome;
  for (int step = 0; step < steps; ++step) {
    if (stop != nullptr && *stop)
      throw plan::Stopped{};
    const auto result = serial.step(step);
    if (report)
      report(step, result);
    outcome.losses.push_back(result.loss);
  }
  for (const auto& [name, parameter] : serial.named_parameters())
    outcome.parameters[name] = parameter.detach();
  return outcome;
}

Verification compare(const TrainingOutcome& pipelined, const SerialOutcome& serial) {
  Verification found;
  const auto first = static_cast<std::size_t>(pipelined.first_step);
  for (std::size_t at = 0; at < pipelined.losses.size(); ++at) {
    const double expected = serial.losses.at(first + at), loss = pipelined.losses[at];
    ++found.steps;
    if (same_bits(expected, loss))
      ++found.equal_losses;
    else if (found.first_difference.empty())
      found.first_difference = fmt::format(
          "loss of step {}: {:.17g} without a pipeline, {:.17g} with", first + at, expected, loss);
  }
  for (const auto& [name, parameter] : serial.parameters) {
    ++found.tensors;
    found.parameters += parameter.numel();
    if (const auto own = pipelined.parameters.find(name);
        own != pipelined.parameters.end() && same_bits(parameter, own->second))
      ++found.equal_tensors;
    else if (found.first_difference.empty())
      found.first_difference = fmt::format("parameter {} of layer {}{}", name.second, name.first,
                                           own == pipelined.parameters.end() ? " is missing" : "");
  }
  return found;
}

Verification verify(const Workload& workload, const TrainingOutcome& pipelined,
                    const std::atomic<bool>* stop, const StepReport& report) {
  const int steps = pipelined.first_step + static_cast<int>(pipelined.losses.size());
  return compare(pipelined,
                 train_serially(workload, pipelined.gradient_groups, steps, stop, report));
}

std::string to_string(const Verification& v) {
  auto text = fmt::format(
      "verify: {} of {} losses and {} of {} parameter tensors ({} numbers) are bit-identical to "
      "training without a pipeline",
      v.equal_losses, v.steps, v.equal_tensors, v.tensors, v.parameters);
  if (!v.bit_identical())
    text += "\nverify: first difference: " + v.first_difference;
  return text;
}

plan::Json to_json(const Verification& v) {
  plan::Json json = {{"bit_identical", v.bit_identical()},
                     {"losses", v.steps},
                     {"equal_losses", v.equal_losses},
                     {"parameter_tensors", v.tensors},
                     {"equal_parameter_tensors", v.equal_tensors},
                     {"parameters", v.parameters}};
  if (!v.bit_identical())
    json["first_difference"] = v.first_difference;
  return json;
}

}  // namespace pipewright::loop
