# The plan of "llama3-8b" for torchtitan 0.3.
from torchtitan.config import ParallelismConfig, TrainingConfig


def base(backend: str = "flex"):
    """Two
    lines."""
    spec = model_registry("8B", attn_backend=backend, converters=[])
    return Trainer.Config(
        model_spec=spec,
        optimizer=default_adamw(lr=3e-4, betas=(0.9, 0.95)),
        activation_checkpoint=FullAC.Config(),
    )


def plan():
    config = base()
    config.training = TrainingConfig(
        local_batch_size=8, seq_len=2048, max_norm=float("inf"), disable_cuda_graphs=True
    )
    config.parallelism = ParallelismConfig(
        pipeline_parallel_degree=2,
        module_fqns_per_model_part=[
            ["tok_embeddings", "layers.0"],
            ["layers.1", "norm", "lm_head"],
        ],
    )
    config.parallelism.tensor_parallel_degree = 2
    return config
