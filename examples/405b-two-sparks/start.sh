#!/bin/sh
# Llama 3.1 405B in INT4 on two Sparks with vLLM. Prediction: plan.txt.
exec yoke launch vllm /models/llama-3.1-405b-int4 --plan-as llama-3.1-405b --format int4 --context 4k --requests 4 "$@"
