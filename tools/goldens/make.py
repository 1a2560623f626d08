"""Tiny language models with random weights, and what transformers computes from them in float32.

    python3 tools/goldens/make.py OUT       # one folder for each model of the table below

Those with quantized weights are made by quantized.py beside it. Each folder is a model folder (config.json, model.safetensors, tokenizer files) with golden.json (prompts, ids, greedy
continuations with the margin of each choice) and golden.safetensors (logits of every prompt; of the long one the last
four positions) beside it. Weights are drawn so large that choices are clear: a margin below 0.02 is drawn again.
"""
import json
import pathlib
import shutil
import sys

import torch
import transformers
from safetensors.torch import save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOKENIZER = ROOT / "tests/golden/llama-f32"
PROMPTS = ["Hello, world!", "def main(argv):\n    return ", "Zwei Ochsen ziehen den Wagen.", "牛 and 🐂 pull 12345 logs"]
GREEDY = 24
MARGIN_LEAST = 0.02
SHARED = dict(vocab_size=768, hidden_size=64, num_hidden_layers=3, intermediate_size=192, bos_token_id=763,
              eos_token_id=767, max_position_embeddings=2048, pad_token_id=None)

MODELS = {
    # Llama 2's kind: as many heads of keys as of queries, no head_dim, biases everywhere, linear rope scaling.
    "llama-biased-f16": (transformers.LlamaConfig, torch.float16, dict(
        num_attention_heads=4, num_key_value_heads=4, attention_bias=True, mlp_bias=True, rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0})),
    # A window much shorter than the long prompt.
    "mistral-window-bf16": (transformers.MistralConfig, torch.bfloat16, dict(
        num_attention_heads=8, num_key_value_heads=2, sliding_window=24, rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 1000000.0})),
    # Biases on q, k, v; a window in the last layer only; tied.
    "qwen2-window-f32": (transformers.Qwen2Config, torch.float32, dict(
        num_attention_heads=4, num_key_value_heads=2, sliding_window=32, use_sliding_window=True, max_window_layers=2,
        tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 1000000.0})),
    # Norms on q and k; heads wider than C / H.
    "qwen3-bf16": (transformers.Qwen3Config, torch.bfloat16, dict(
        num_attention_heads=4, num_key_value_heads=2, head_dim=32,
        rope_parameters={"rope_type": "default", "rope_theta": 1000000.0})),
}


def draw(model, seed, stored):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if "norm" in name:
                value = 1 + 0.2 * noise
            elif name.endswith("bias"):
                value = 0.3 * noise
            elif "embed" in name:
                value = noise
            elif "lm_head" in name:
                value = noise * 12 / parameter.shape[1] ** 0.5  # logits far apart
            else:
                value = noise * 1.5 / parameter.shape[1] ** 0.5
            parameter.copy_(value.to(stored).float())


def quantize_linears(model, quantize):
    """Each linear gets the values that its stored form means; returns that form, and what is stored as it is."""
    stored, plain = {}, dict(model.state_dict())
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear):
            tensors, values = quantize(module.weight.data)
            module.weight.data.copy_(values)
            stored.update({f"{name}.{key}": value for key, value in tensors.items()})
            del plain[f"{name}.weight"]
    return stored, plain


def greedy(model, ids):
    tokens, margins = [], []
    for _ in range(GREEDY):
        logits = model(torch.tensor([ids + tokens])).logits[0, -1]
        best = torch.topk(logits, 2).values
        tokens.append(int(logits.argmax()))
        margins.append(float(best[0] - best[1]))
    return tokens, margins


def make(name, folder, kind, stored, own, quantize=None, section=None):
    config = kind(**{**SHARED, **own})
    config._attn_implementation = "eager"
    tokenizer = transformers.AutoTokenizer.from_pretrained(TOKENIZER)
    for seed in range(100):
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(config).float().eval()
        draw(model, seed, stored)
        quantized, plain = quantize_linears(model, quantize) if quantize else ({}, model.state_dict())
        cases, tensors = [], {}
        with torch.no_grad():
            for index, prompt in enumerate(PROMPTS):
                ids = tokenizer(prompt)["input_ids"]
                tokens, margins = greedy(model, ids)
                tensors[f"logits.{index}"] = model(torch.tensor([ids])).logits[0].contiguous()
                cases.append({"prompt": prompt, "ids": ids, "greedy": tokens, "margins": margins})
            ids = tokenizer(" ".join(PROMPTS * 12))["input_ids"][:300]
            tensors["logits.long_last"] = model(torch.tensor([ids])).logits[0, -4:].contiguous()
            # No prompt: the ids were cut from a longer text, and the frame's token is among them.
            cases.append({"ids": ids, "note": "the last four positions only"})
        if min(min(case["margins"]) for case in cases[:-1]) > MARGIN_LEAST:
            break
    else:
        raise SystemExit(f"{name}: no seed gives clear choices")
    folder.mkdir(parents=True)
    config.dtype = stored
    del config._attn_implementation_internal
    config.architectures = [type(model).__name__]
    config.save_pretrained(folder)
    if section:
        file = folder / "config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **section}, indent=2) + "\n")
    weights = {key: value.to(stored).contiguous() for key, value in plain.items()
               if not (config.tie_word_embeddings and key == "lm_head.weight")}
    save_file({**weights, **quantized}, folder / "model.safetensors", metadata={"format": "pt"})
    save_file(tensors, folder / "golden.safetensors")
    made_with = f"transformers {transformers.__version__}, torch {torch.__version__}, float32 on CPU, seed {seed}"
    (folder / "golden.json").write_text(json.dumps({"made_with": made_with, "cases": cases}, indent=1) + "\n")
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(TOKENIZER / file, folder / file)
    print(name, "seed", seed, "least margin", min(min(case["margins"]) for case in cases[:-1]))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name, model in MODELS.items():
        make(name, pathlib.Path(sys.argv[1]) / name, *model)
