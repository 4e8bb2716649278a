#pragma once

// Lists of tensors over a mesh: their forms first, where the other end does not know them, then the
// bytes of each. All of it has one tag, under which Gloo keeps the order.

#include "gloo_mesh.hpp"
#include "tensor_form.hpp"

namespace pipewright::exec {

using Operations = std::vector<GlooMesh::Operation>;

/// These return at once and add what they have started.
void post_forms(GlooMesh& mesh, const TensorForms& forms, int to, int tag, Operations& started);
void post_tensors(GlooMesh& mesh, const Tensors& tensors, int to, int tag, Operations& started);
void post_receives(GlooMesh& mesh, const Tensors& tensors, int from, int tag, Operations& started);

/// These wait. Throw Aborted.
TensorForms receive_forms(GlooMesh& mesh, int from, int tag);
Tensors receive_tensors(GlooMesh& mesh, const TensorForms& forms, int from, int tag);

}  // namespace pipewright::exec
