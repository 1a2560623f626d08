#!/bin/sh
# Pre-training of Llama 3 70B on two nodes of eight B300: TP 8 x DP 2. Megatron-Bridge's recipe for B300 is for 64 GPUs: the
# layout is set here. Run it in the folder of Megatron-Bridge.
exec yoke launch nemo "$@" -- --recipe llama3_70b_pretrain_64gpu_b300_fp8cs_config --mode pretrain --dataset mock \
  model.tensor_model_parallel_size=8 model.pipeline_model_parallel_size=1 model.context_parallel_size=1 \
  model.virtual_pipeline_model_parallel_size=null train.global_batch_size=256
