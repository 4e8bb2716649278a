#pragma once

// Lists of tensors over a mesh whose forms both ends know: the bytes of each, all under one tag,
// under which Gloo keeps the order.

#include "gloo_mesh.hpp"
#include "tensor_form.hpp"

namespace pipewright::exec {

using Operations = std::vector<GlooMesh::Operation>;

/// Both return at once and add what they have started.
void post_tensors(GlooMesh& mesh, const Tensors& tensors, int to, int tag, Operations& started);
void post_receives(GlooMesh& mesh, const Tensors& tensors, int from, int tag, Operations& started);

}  // namespace pipewright::exec
