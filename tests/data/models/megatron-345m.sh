#!/bin/bash
# The sizes of Megatron-LM's example of a GPT with 345M parameters (examples/pretrain_gpt.sh).
HIDDEN=1024
GPT_ARGS="
    --num-layers 24 \
    --hidden-size $HIDDEN \
    --num-attention-heads 16 \
    --seq-length 1024 \
    --max-position-embeddings 1024 \
    --vocab-size 50257 \
    --micro-batch-size 4 \
    --lr 0.00015 \
    --fp16
"
torchrun --nproc_per_node 8 pretrain_gpt.py $GPT_ARGS --tensor-model-parallel-size ${TP:-2}
