#pragma once

// An encoder and a decoder over the bytes of a text, planned layer by layer;
// engine/src/models/encoder_decoder.cpp builds them.

#include "pipewright/plan/model/model_shape.hpp"

namespace pipewright::plan {

/// Pre-norm blocks (Vaswani et al., arXiv 1706.03762): those of the encoder see all of a window of
/// text, those of the decoder what the encoder made of it, and of the same window from its end to
/// its begin what they have written so far. Layer 0 embeds both, the last one is norm and head.
/// Each layer between hands on both: what the encoder and what the decoder has.
struct EncoderDecoderShape {
  static constexpr auto kind = "encoder-decoder";
  int encoder_blocks = 3;
  int decoder_blocks = 3;
  int hidden = 128;
  int heads = 4;
  int sequence = 32;     // bytes of a window
  int vocabulary = 256;  // the bytes of a text
  friend bool operator==(const EncoderDecoderShape&, const EncoderDecoderShape&) = default;
};
template <>
const ModelDescriptor& descriptor_of<EncoderDecoderShape>();

/// Why its heads cannot be shared out in so many parts, and how many would do.
std::vector<std::string> faults_of_encoder_decoder_cut(const EncoderDecoderShape& shape, int parts);

}  // namespace pipewright::plan
