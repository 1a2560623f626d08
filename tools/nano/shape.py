"""The shape of the nano model, in one place, and what follows from it. Pure Python: check.py uses it without PyTorch.

The sizes are chosen so that 2 and 4 tensor-parallel ranks never cut a quantization group: the inputs of o_proj (256)
and down_proj (768) over 4 ranks are 64 and 192, multiples of the group of 32; all heads divide by 4 too.
"""

VOCABULARY = 2048
HIDDEN = 256
INTERMEDIATE = 768
LAYERS = 8
HEADS = 8
KV_HEADS = 4
HEAD_WIDTH = 32
CONTEXT = 2048
ROPE_THETA = 10000.0
NORM_EPSILON = 1e-5
GROUP = 32
FOLDER_BYTES_MOST = 8_000_000

# name within a layer -> [out, in]
LINEARS = {
    "self_attn.q_proj": (HEADS * HEAD_WIDTH, HIDDEN),
    "self_attn.k_proj": (KV_HEADS * HEAD_WIDTH, HIDDEN),
    "self_attn.v_proj": (KV_HEADS * HEAD_WIDTH, HIDDEN),
    "self_attn.o_proj": (HIDDEN, HEADS * HEAD_WIDTH),
    "mlp.gate_proj": (INTERMEDIATE, HIDDEN),
    "mlp.up_proj": (INTERMEDIATE, HIDDEN),
    "mlp.down_proj": (HIDDEN, INTERMEDIATE),
}
NORMS = ("input_layernorm", "post_attention_layernorm")


def linear_names(layers=LAYERS):
    """Full names of the quantized linears with their shapes."""
    return {f"model.layers.{i}.{name}": shape for i in range(layers) for name, shape in LINEARS.items()}


def parameters(layers=LAYERS):
    linears = sum(rows * columns for rows, columns in linear_names(layers).values())
    return linears + VOCABULARY * HIDDEN + (2 * layers + 1) * HIDDEN


def quantization_config():
    weights = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": GROUP,
               "dynamic": False, "actorder": None}
    group = {"targets": ["Linear"], "weights": weights, "input_activations": None, "output_activations": None}
    return {"quant_method": "compressed-tensors", "format": "pack-quantized", "quantization_status": "compressed",
            "kv_cache_scheme": None, "global_compression_ratio": None, "ignore": ["lm_head"],
            "config_groups": {"group_0": group}}


def config_json(special, layers=LAYERS):
    """config.json of the exported folder; special: ids by name. Both spellings of the rope's base are given."""
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "bfloat16", "torch_dtype": "bfloat16",
        "vocab_size": VOCABULARY, "hidden_size": HIDDEN, "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": layers, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_WIDTH, "hidden_act": "silu", "max_position_embeddings": CONTEXT, "initializer_range": 0.02,
        "rms_norm_eps": NORM_EPSILON, "use_cache": True, "tie_word_embeddings": True, "attention_bias": False,
        "attention_dropout": 0.0, "mlp_bias": False, "pretraining_tp": 1, "rope_theta": ROPE_THETA,
        "rope_parameters": {"rope_type": "default", "rope_theta": ROPE_THETA},
        "bos_token_id": special["begin"], "eos_token_id": special["end"], "pad_token_id": special["pad"],
        "quantization_config": quantization_config(),
    }
