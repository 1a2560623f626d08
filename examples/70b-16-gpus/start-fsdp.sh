#!/bin/sh
# The same with PyTorch's own sharding (FSDP) and a script of yours: every GPU holds a sixteenth of the weights.
exec yoke launch torchrun "$@" -- train_fsdp.py --model llama-3-70b --sharding full --precision fp8 --sequence 8192
