#!/bin/sh
# Pre-training of a 7B model in FP8 on one node of eight B300: TP 2 x DP 4. Megatron-Bridge has no recipe for 7B: the 8B
# recipe for eight B300 is changed to the shape of Llama 2 7B. Run it in the folder of Megatron-Bridge.
exec yoke launch nemo "$@" -- --recipe llama3_8b_pretrain_8gpu_b300_fp8cs_config --mode pretrain --dataset mock \
  model.tensor_model_parallel_size=2 model.pipeline_model_parallel_size=1 model.context_parallel_size=1 \
  model.num_layers=32 model.hidden_size=4096 model.ffn_hidden_size=11008 model.num_attention_heads=32 \
  model.num_query_groups=32 model.seq_length=4096 train.global_batch_size=512
