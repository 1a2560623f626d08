"""Golden models with quantized linears, the head too, packed by the projects that define the formats.

    python3 tools/goldens/quantized.py OUT COMPRESSED_TENSORS AUTO_GPTQ     # checkouts of the two projects

compressed-tensors packs and unpacks int4 (its helpers.py), AutoGPTQ packs GPTQ (its qlinear_cuda.py). The reference is
transformers in float32 with the values that the packed tensors mean.
"""
import importlib.util
import pathlib
import sys

import torch
import transformers

from make import make

GROUP = 32
SHAPE = dict(hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             rope_parameters={"rope_type": "default", "rope_theta": 500000.0})


def load(checkout, file):
    spec = importlib.util.spec_from_file_location(pathlib.Path(file).stem, pathlib.Path(checkout) / file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def int4_section(strategy, group, symmetric, actorder):
    weights = {"num_bits": 4, "type": "int", "symmetric": symmetric, "strategy": strategy, "group_size": group,
               "dynamic": False, "actorder": actorder}
    return {"quant_method": "compressed-tensors", "format": "pack-quantized", "quantization_status": "compressed",
            "ignore": [], "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights,
                                                        "input_activations": None, "output_activations": None}}}


def shuffled_groups(columns):
    """Which group each column is of, as ordering by activation leaves it."""
    order = torch.randperm(columns, generator=torch.Generator().manual_seed(columns))
    groups = torch.empty(columns, dtype=torch.int32)
    groups[order] = torch.arange(columns, dtype=torch.int32) // GROUP
    return groups


def ranges(weight, g_idx):
    """The least and largest weight of each row and group, zero among them."""
    columns = [weight[:, g_idx == group] for group in range(int(g_idx.max()) + 1)]
    least = torch.stack([part.amin(1) for part in columns], 1).clamp(max=0)
    most = torch.stack([part.amax(1) for part in columns], 1).clamp(min=0)
    return least, most


def asymmetric_int4(helpers, weight):
    g_idx = shuffled_groups(weight.shape[1])
    least, most = ranges(weight, g_idx)
    scale = ((most - least) / 15).to(torch.bfloat16)
    zero = torch.round(-8 - least / scale.float()).clamp(-8, 7)
    spread = lambda values: values[:, g_idx.long()].float()
    codes = (torch.round(weight / spread(scale)) + spread(zero)).clamp(-8, 7).to(torch.int8)
    packed = helpers.pack_to_int32(codes, 4)
    packed_zero = helpers.pack_to_int32(zero.to(torch.int8), 4, packed_dim=0).contiguous()
    codes = helpers.unpack_from_int32(packed, 4, weight.shape)
    zero = helpers.unpack_from_int32(packed_zero, 4, zero.shape, packed_dim=0)
    return ({"weight_packed": packed, "weight_scale": scale, "weight_zero_point": packed_zero, "weight_g_idx": g_idx,
             "weight_shape": torch.tensor(weight.shape)}, (codes.float() - spread(zero)) * spread(scale))


def channel_int4(helpers, weight):
    scale = (weight.abs().amax(1, keepdim=True) / 7.5).to(torch.bfloat16)
    codes = torch.round(weight / scale.float()).clamp(-8, 7).to(torch.int8)
    packed = helpers.pack_to_int32(codes, 4)
    return ({"weight_packed": packed, "weight_scale": scale, "weight_shape": torch.tensor(weight.shape)},
            helpers.unpack_from_int32(packed, 4, weight.shape).float() * scale.float())


def gptq(qlinear, weight):
    rows, columns = weight.shape
    g_idx = shuffled_groups(columns)
    least, most = ranges(weight, g_idx)
    scale = ((most - least) / 15).half().float()
    zero = torch.round(-least / scale).clamp(1, 15)
    spread = lambda values: values[:, g_idx.long()]
    codes = (torch.round(weight / spread(scale)) + spread(zero)).clamp(0, 15)
    values = (codes - spread(zero)) * spread(scale)
    linear = torch.nn.Linear(columns, rows, bias=False)
    linear.weight.data.copy_(values)
    packed = qlinear.QuantLinear(4, GROUP, columns, rows, False)
    packed.pack(linear, scale, zero.clone(), g_idx)
    return {"qweight": packed.qweight, "qzeros": packed.qzeros, "scales": packed.scales.half(), "g_idx": g_idx}, values


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[1])
    helpers = load(sys.argv[2], "src/compressed_tensors/compressors/pack_quantized/helpers.py")
    qlinear = load(sys.argv[3], "auto_gptq/nn_modules/qlinear/qlinear_cuda.py")
    # Zeros, columns out of order, under the section's older name.
    name = "llama-w4a16-ordered"
    make(name, out / name, transformers.LlamaConfig, torch.bfloat16, SHAPE,
         lambda weight: asymmetric_int4(helpers, weight),
         {"compression_config": int4_section("group", GROUP, False, "group")})
    # One scale for a whole row; biases on q, k, v, which no format quantizes.
    name = "qwen2-w4a16-channel"
    make(name, out / name, transformers.Qwen2Config, torch.bfloat16, SHAPE, lambda weight: channel_int4(helpers, weight),
         {"quantization_config": int4_section("channel", None, True, None)})
    name = "llama-gptq"
    make(name, out / name, transformers.LlamaConfig, torch.float16, SHAPE, lambda weight: gptq(qlinear, weight),
         {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": True, "sym": False,
                                  "lm_head": True, "checkpoint_format": "gptq"}})
