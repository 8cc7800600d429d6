"""Ways to divide a model among GPUs that a type was measured with."""

from calculator.choice import Choice


class Technique(Choice):
    """Axes of a mesh along which only some types are divided so far."""

    TENSOR_PARALLEL = "tensor_parallel"
    CONTEXT_PARALLEL = "context_parallel"
    EXPERT_PARALLEL = "expert_parallel"
    PIPELINE = "pipeline"
