#pragma once

// An encoder-decoder transformer over the bytes of a text, planned layer by layer;
// engine/src/models/encoder_decoder.cpp builds it.

#include "pipewright/plan/model/model_shape.hpp"

namespace pipewright::plan {

/// Pre-norm blocks (Vaswani et al., arXiv 1706.03762). The encoder's blocks see a whole window of
/// text. The decoder's see the encoder's output and the part of the reversed window that was
/// generated so far. Layer 0 embeds both inputs, the last layer is norm and head. Every layer in
/// between outputs both states: the encoder's and the decoder's.
struct EncoderDecoderShape {
  static constexpr auto kind = "encoder-decoder";
  int encoder_blocks = 3;
  int decoder_blocks = 3;
  int hidden = 128;
  int heads = 4;
  int sequence = 32;     // bytes per window
  int vocabulary = 256;  // number of byte values in a text
  friend bool operator==(const EncoderDecoderShape&, const EncoderDecoderShape&) = default;
};
template <>
const ModelDescriptor& descriptor_of<EncoderDecoderShape>();

/// Returns why the heads cannot be partitioned into `parts` parts, and the nearest numbers that
/// work.
std::vector<std::string> faults_of_encoder_decoder_cut(const EncoderDecoderShape& shape, int parts);

}  // namespace pipewright::plan
