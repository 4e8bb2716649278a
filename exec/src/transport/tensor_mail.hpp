#pragma once

// Sends and receives lists of tensors whose forms both ends know: the bytes of each tensor, all
// with one tag, within which Gloo keeps the order.

#include "gloo_mesh.hpp"
#include "tensor_form.hpp"

namespace pipewright::exec {

using Operations = std::vector<GlooMesh::Operation>;

/// Both functions return at once and append the operations that they have started.
void post_tensors(GlooMesh& mesh, const Tensors& tensors, int to, int tag, Operations& started);
void post_receives(GlooMesh& mesh, const Tensors& tensors, int from, int tag, Operations& started);

}  // namespace pipewright::exec
