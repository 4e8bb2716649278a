L=8
ARGS=(--num-layers ${L} --hidden-size 64 --num-attention-heads=4 # small
  --group-query-attention --num-query-groups 2 --swiglu --vocab-size "100" --seq-length 128 \
  --num-experts 4 --moe-layer-freq '([0]*2+[1]*6)' --moe-router-topk 2 --disable-bias-linear)
run "${ARGS[@]}" --tensor-model-parallel-size ${TP:-2} --sequence-parallel --expert-model-parallel-size 2
