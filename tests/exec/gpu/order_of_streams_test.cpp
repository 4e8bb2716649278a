// Use of GPU memory by several streams, as observed by the stand-in for CUDA's runtime.

#include <ATen/ATen.h>

#include "exec/support/standin.hpp"
#include "pipewright/exec/device/capture.hpp"
#include "pipewright/exec/device/devices.hpp"
#include "pipewright/exec/device/stream.hpp"

namespace order_of_streams_test {

using namespace pipewright;
using namespace pipewright::exec;

const at::Device gpu{at::kCUDA, 0};

std::string found() { return test::reports_of_standin(); }

bool says(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

Stream new_stream() {
  if (gpus().names.empty())
    test::skip("no GPU: " + gpus().why_none);
  return Stream::of(gpu, /*urgent=*/false);
}

/// Two streams, and a tensor that the first one has made.
struct Two {
  Two() {
    static_cast<void>(found());
    const OnStream on(first);
    tensor = at::ones({1000}, gpu);
    made = Event::now();
  }
  at::Tensor twice_on_second() const {
    const OnStream on(second);
    return tensor + tensor;
  }

  Stream first = new_stream(), second = new_stream();
  at::Tensor tensor;
  Event made;
};

TEST_CASE("A use without an ordering event is detected", "[cuda]") {
  const Two two;
  const at::Tensor sum = two.twice_on_second();
  CHECK(says(found(), "race: aten::add on stream"));
}

TEST_CASE("Memory freed before another stream has used it is detected", "[cuda]") {
  Two two;
  {
    const OnStream on(two.second);
    two.made.wait();
  }
  const at::Tensor sum = two.twice_on_second();
  CHECK(found() == "");
  two.tensor.reset();
  CHECK(says(found(), "free before use: memory of stream"));
}

TEST_CASE("Tensors that a stream adopts are ordered, and their memory is not reused early",
          "[cuda]") {
  Two two;
  {
    const OnStream on(two.second);
    two.tensor = adopt({two.tensor}, two.made).front();
  }
  const at::Tensor sum = two.twice_on_second();
  two.tensor.reset();
  two.second.finish();
  const OnStream on(two.first);
  const at::Tensor other = at::zeros({1000}, gpu);
  CHECK(found() == "");
}

TEST_CASE("Memory that a stream adopts during another stream's capture is not reused early",
          "[cuda]") {
  Two two;
  const Stream third = new_stream();
  const MemoryAccount account;
  at::Tensor sum;
  std::unique_ptr<CapturedWork> captured;
  {
    const OnStream on(third);
    const auto capturer = make_capturer(account.entry());
    captured = capturer->capture([&] {
      {
        const OnStream beside(two.second);
        two.tensor = adopt({two.tensor}, two.made).front();
      }
      sum = two.twice_on_second();
      two.tensor.reset();
    });
  }
  const OnStream on(two.first);
  const at::Tensor other = at::zeros({1000}, gpu);
  CHECK(found() == "");
}

TEST_CASE("A CUDA graph may not wait for work that is not captured", "[cuda]") {
  const Two two;
  const Stream third = new_stream();
  const MemoryAccount account;
  const OnStream on(third);
  const auto capturer = make_capturer(account.entry());
  CHECK_THROWS_WITH(capturer->capture([&] { two.made.wait(); }),
                    Catch::Contains("uncaptured work in another stream"));
}

}  // namespace order_of_streams_test
