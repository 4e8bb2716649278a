// LibTorch's CUDA operators, computed by those for the CPU: the memory of the stand-in's devices is
// host memory, so a CPU tensor over the same memory works. An operator is computed when it is
// called, after all earlier work of its stream. The memory that it reads and writes is reported to
// the race detector. During a capture of its stream it is computed as well, to learn what its
// results look like (an index must be valid); at the end of the capture the stream restores the
// memory that was changed, and the graph computes the operator again.
//
// Some operators stay LibTorch's own: views and empty tensors, which need no kernel, and copies of
// contiguous memory, which the runtime's calls move.

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/copy_native.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <cstring>
#include <set>
#include <string>

#include "streams.hpp"

namespace standin {
namespace {

using c10::IValue;
using torch::jit::Stack;

/// Returns the operators that stay LibTorch's own: they need no kernel, or copy with the runtime's
/// calls.
const std::set<std::string>& kept() {
  static const std::set<std::string> names{
      "aten::empty",     "aten::empty_strided",       "aten::set_",
      "aten::resize_",   "aten::_local_scalar_dense", "aten::record_stream",
      "aten::is_pinned", "aten::_pin_memory",         "aten::is_set_to",
      "aten::_to_copy",  "aten::_efficientzerotensor"};
  return names;
}

/// Returns true for operators whose CUDA kernels throw if results must be deterministic: the list
/// of torch.use_deterministic_algorithms, LibTorch 2.11.
bool is_never_the_same(const std::string& name) {
  static const std::set<std::string> names{"_adaptive_avg_pool2d_backward",
                                           "_adaptive_avg_pool3d_backward",
                                           "adaptive_max_pool2d_backward",
                                           "avg_pool3d_backward",
                                           "max_pool3d_with_indices_backward",
                                           "fractional_max_pool2d_backward",
                                           "fractional_max_pool3d_backward",
                                           "max_unpool2d",
                                           "max_unpool3d",
                                           "upsample_linear1d_backward",
                                           "upsample_bilinear2d_backward",
                                           "upsample_bicubic2d_backward",
                                           "upsample_trilinear3d_backward",
                                           "reflection_pad1d_backward",
                                           "reflection_pad2d_backward",
                                           "reflection_pad3d_backward",
                                           "nll_loss2d_forward",
                                           "_ctc_loss_backward",
                                           "grid_sampler_2d_backward",
                                           "grid_sampler_3d_backward",
                                           "histc",
                                           "put_"};
  return names.contains(name.substr(name.find("::") + 2));
}

bool is_view(const c10::FunctionSchema& schema) {
  return std::any_of(schema.returns().begin(), schema.returns().end(), [](const c10::Argument& r) {
    return r.alias_info() != nullptr && !r.alias_info()->isWrite();
  });
}

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

const char* kept_name(const std::string& name) {
  static std::mutex mutex;
  static std::set<std::string> names;
  const std::lock_guard lock(mutex);
  return names.insert(name).first->c_str();
}

std::size_t extent(const at::Tensor& tensor) {
  return tensor.numel() == 0
             ? 0
             : at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(),
                                                tensor.element_size(), /*storage_offset=*/0);
}

at::Tensor on_cpu(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda())
    return tensor;
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(),
                       tensor.options().device(at::kCPU).pinned_memory(false));
}

/// Returns a value in which each tensor is replaced by the result of `each`.
template <class Each>
IValue changed(const IValue& value, const Each& each) {
  if (value.isTensor())
    return each(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector())
      list.push_back(each(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
      list.push_back(tensor ? std::optional(each(*tensor)) : std::nullopt);
    return list;
  }
  return value;
}

/// A call of an operator, with the caller's device tensors and the CPU tensors for computing.
class Call {
 public:
  Call(const c10::OperatorHandle& op, Stack& stack) : op_(op) {
    const auto& arguments = op.schema().arguments();
    const std::size_t first = stack.size() - arguments.size();
    name_ = kept_name(op.schema().name());
    for (std::size_t a = 0; a < arguments.size(); ++a) {
      const IValue& value = stack[first + a];
      const bool writes = is_written(arguments[a]);
      mine_.push_back(value);
      cpu_.push_back(on_cpu_of(value, writes));
    }
    stack.resize(first);
    if (stream_ == nullptr)
      stream_ = c10::cuda::getCurrentCUDAStream().stream();
  }

  void perform(Stack& stack) {
    Stream& stream = stream_of(stream_);
    if (stream.is_captured()) {
      capture(stream);
    } else {
      stream.perform({.told = named(PipewrightStandinWork::Kernel, "cudaLaunchKernel", name_),
                      .task = [this] { results_ = compute(); },
                      .accesses = accesses_});
      fill(hand_out(stream), results_);
    }
    stack.insert(stack.end(), answers_.begin(), answers_.end());
  }

 private:
  IValue on_cpu_of(const IValue& value, bool writes) {
    if (value.isDevice()) {
      if (value.toDevice().is_cuda())
        device_ = at::Device(at::kCUDA, value.toDevice().has_index() ? value.toDevice().index()
                                                                     : c10::cuda::current_device());
      return IValue(at::Device(at::kCPU));
    }
    if (value.isGenerator() && value.toGenerator().device().is_cuda())
      return IValue();
    return changed(value, [&](const at::Tensor& tensor) {
      if (!tensor.defined() || !tensor.is_cuda())
        return tensor;
      if (stream_ == nullptr)
        stream_ = c10::cuda::getCurrentCUDAStream(tensor.get_device()).stream();
      device_ = tensor.device();
      accesses_.push_back({tensor.const_data_ptr(), extent(tensor), writes, name_});
      if (writes && tensor.numel() == 0)  // the operator will resize it
        return at::empty({0}, tensor.options().device(at::kCPU));
      return on_cpu(tensor);
    });
  }

  Stack compute() const {
    const at::AutoDispatchBelowADInplaceOrView below;
    Stack stack = cpu_;
    op_.callBoxed(stack);
    return stack;
  }

  /// Returns the caller's argument that this CPU tensor stands for; undefined if the tensor is new.
  at::Tensor argument_of(const at::Tensor& result) const {
    for (std::size_t a = 0; a < cpu_.size(); ++a)
      if (is_written(op_.schema().arguments()[a])) {
        const auto own = tensors_of(cpu_[a]), callers = tensors_of(mine_[a]);
        for (std::size_t t = 0; t < own.size(); ++t)
          if (own[t].is_same(result))
            return callers[t];
      }
    return {};
  }

  static std::vector<at::Tensor> tensors_of(const IValue& value) {
    std::vector<at::Tensor> all;
    changed(value, [&](const at::Tensor& tensor) {
      all.push_back(tensor);
      return tensor;
    });
    return all;
  }

  /// The memory to which a CPU result must be copied; null if it is in the right place.
  struct Place {
    void* memory = nullptr;
    std::size_t bytes = 0;
  };

  /// Returns device tensors to the caller: its own, or new ones.
  std::vector<Place> hand_out(Stream& stream) {
    std::vector<Place> places;
    const auto hand = [&](const at::Tensor& result) {
      at::Tensor mine = argument_of(result);
      if (!result.defined() || (mine.defined() && mine.numel() == result.numel())) {
        places.emplace_back();
        return mine;
      }
      if (mine.defined())
        mine.resize_(result.sizes());
      else
        mine = at::empty_strided(result.sizes(), result.strides(),
                                 result.options().device(device_).requires_grad(false));
      stream.comes_to({mine.const_data_ptr(), extent(mine), true, name_});
      places.push_back({mine.data_ptr(), extent(result)});
      return mine;
    };
    for (const IValue& result : results_)
      answers_.push_back(changed(result, hand));
    return places;
  }

  static void fill(const std::vector<Place>& places, const Stack& results) {
    auto place = places.begin();
    for (const IValue& result : results)
      for (const at::Tensor& tensor : tensors_of(result)) {
        if (place->bytes > 0)
          std::memcpy(place->memory, tensor.const_data_ptr(), place->bytes);
        ++place;
      }
  }

  void capture(Stream& stream) {
    for (const Access& access : accesses_)
      if (access.writes)
        stream.changes(const_cast<void*>(access.memory), access.bytes);
    results_ = compute();
    const auto places = hand_out(stream);
    for (const Place& place : places)
      stream.changes(place.memory, place.bytes);
    fill(places, results_);
    // The graph owns no device tensor: their memory may be reused within it.
    Call again = *this;
    again.mine_.clear();
    again.results_.clear();
    again.answers_.clear();
    stream.give({.task =
                     [again, places] {
                       const at::NoGradGuard no_grad;
                       fill(places, again.compute());
                     },
                 .accesses = accesses_});
  }

  c10::OperatorHandle op_;
  const char* name_ = "";
  Stack mine_, cpu_, results_, answers_;
  std::vector<Access> accesses_;
  cudaStream_t stream_ = nullptr;
  at::Device device_ = at::Device(at::kCUDA, c10::cuda::current_device());
};

void watch_memory() {
  using c10::CachingDeviceAllocator::TraceEntry;
  c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker([](const TraceEntry& entry) {
    Stream& stream = stream_of(static_cast<cudaStream_t>(entry.stream_));
    const auto* const memory = reinterpret_cast<const void*>(entry.addr_);
    if (entry.action_ == TraceEntry::FREE_COMPLETED && !stream.is_captured())
      stream.comes_to_free(memory, entry.size_);
  });
}

void compute_on_cpu(const c10::OperatorHandle& op, Stack* stack) {
  // Only when there are tensors, because the allocator is created with them.
  static std::once_flag watched;
  std::call_once(watched, watch_memory);
  if (!op.hasKernelForDispatchKey(c10::DispatchKey::CPU) &&
      !op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd))
    throw std::runtime_error("stand-in: " + op.schema().name() + " has no kernel for the CPU");
  if (at::globalContext().deterministicAlgorithms() && is_never_the_same(op.schema().name()))
    throw std::runtime_error(op.schema().name() +
                             " does not have a deterministic implementation, but you set "
                             "'torch.use_deterministic_algorithms(True)'");
  Call(op, *stack).perform(*stack);
}

/// Copies that need a kernel: on one device, between different types or strides.
at::Tensor& copy(at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  const bool is_plain = to.scalar_type() == from.scalar_type() && to.sizes() == from.sizes() &&
                        to.strides() == from.strides() && to.is_non_overlapping_and_dense();
  if (is_plain || !to.is_cuda() || !from.is_cuda())
    return at::native::copy_(to, from, non_blocking);
  if (to.device() != from.device())
    return copy(to, from.expand_as(to).to(to.options().device(from.device())).contiguous(),
                non_blocking);
  const auto stream = c10::cuda::getCurrentCUDAStream(to.get_device()).stream();
  stream_of(stream).give(
      {.told = named(PipewrightStandinWork::Kernel, "cudaLaunchKernel", "aten::copy_"),
       .task =
           [to = on_cpu(to), from = on_cpu(from)]() mutable {
             const at::NoGradGuard no_grad;
             const at::AutoDispatchBelowADInplaceOrView below;
             to.copy_(from);
           },
       .accesses = {{from.const_data_ptr(), extent(from), false, "aten::copy_"},
                    {to.const_data_ptr(), extent(to), true, "aten::copy_"}}});
  return to;
}

/// Suppresses LibTorch's warnings about overridden operators, which is intended here.
struct NoWarnings final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

/// Registers the operators as LibTorch's own library would, overriding its own.
struct Registered {
  torch::Library library{torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__};

  Registered() {
    NoWarnings none;
    const c10::WarningUtils::WarningHandlerGuard guard(&none);
    at::Context& context = at::globalContext();
    context.setUserEnabledCuDNN(false);
    // Attention is computed by the only remaining backend, which consists of other operators.
    context.setSDPUseFlash(false);
    context.setSDPUseMemEfficient(false);
    context.setSDPUseCuDNN(false);
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name :
         dispatcher.getRegistrationsForDispatchKey(c10::DispatchKey::CUDA)) {
      const auto op = dispatcher.findSchema(name);
      if (!op || name.name.rfind("aten::", 0) != 0 || is_view(op->schema()) ||
          kept().contains(name.name) || name.name == "aten::copy_")
        continue;
      override_one(name);
    }
    for (const char* name : {"aten::convolution", "aten::convolution_backward"})
      override_one({name, ""});
    library.impl("copy_",
                 torch::dispatch(c10::DispatchKey::CUDA, torch::CppFunction(TORCH_FN(copy))));
  }

  void override_one(const c10::OperatorName& name) {
    std::string own = name.name.substr(std::strlen("aten::"));
    if (!name.overload_name.empty())
      own += "." + name.overload_name;
    library.impl(own.c_str(), torch::CppFunction::makeFromBoxedFunction<&compute_on_cpu>());
  }
};

const Registered& registered() {
  static Registered* const one = new Registered;
  return *one;
}
[[maybe_unused]] const Registered& at_load = registered();

}  // namespace
}  // namespace standin
