"""The model and its 4-bit weights: fake quantization while training, packing on export, unpacking to check.

The rule, the same in all three: a group of 32 weights of a row shares the scale max|w| / 7, rounded to BF16; a weight
is q * scale with q in [-8, 7]. Training runs through the rounded weights and passes the gradient straight to the exact
ones, so that what is exported is what was trained.
"""

import torch
import torch.nn.functional as F

import shape


def group_scales(weight):
    groups = weight.detach().float().reshape(weight.shape[0], -1, shape.GROUP)
    return (groups.abs().amax(-1) / 7).clamp_min(1e-6).to(torch.bfloat16)


def quantize(weight):
    """[N, K] -> q int32 in [-8, 7] [N, K], scale BF16 [N, K / 32]."""
    scale = group_scales(weight)
    groups = weight.detach().float().reshape(weight.shape[0], -1, shape.GROUP)
    q = torch.round(groups / scale.float()[..., None]).clamp(-8, 7)
    return q.reshape(weight.shape).to(torch.int32), scale


def dequantize(q, scale):
    groups = q.float().reshape(q.shape[0], -1, shape.GROUP) * scale.float()[..., None]
    return groups.reshape(q.shape)


def pack(q):
    """q [N, K] -> int32 [N, K / 8]: column 8w + j is nibble j of word w, stored as q + 8."""
    nibbles = (q.to(torch.int64) + 8).reshape(q.shape[0], -1, 8)
    words = (nibbles << (4 * torch.arange(8, device=q.device))).sum(-1)
    # Words with the top bit set are negative as int32.
    return torch.where(words >= 2**31, words - 2**32, words).to(torch.int32)


def unpack(words):
    nibbles = (words.to(torch.int64)[..., None] >> (4 * torch.arange(8, device=words.device))) & 15
    return (nibbles - 8).reshape(words.shape[0], -1).to(torch.int32)


class QatLinear(torch.nn.Linear):
    """A linear that can run through its rounded weight. The switch is common to all."""

    rounded = False
    dropout = 0.0

    def forward(self, x):
        weight = self.weight
        if QatLinear.rounded:
            exact = dequantize(*quantize(weight))
            weight = weight + (exact - weight).detach()
        y = F.linear(x, weight)
        return F.dropout(y, self.dropout) if self.dropout and self.training else y


def build(special, dropout=0.0, layers=shape.LAYERS):
    """A LlamaForCausalLM whose linears, but for the tied head, are QatLinear."""
    from transformers import LlamaConfig, LlamaForCausalLM

    fields = shape.config_json(special, layers)
    for name in ("architectures", "model_type", "dtype", "torch_dtype", "quantization_config", "pretraining_tp"):
        fields.pop(name)
    # transformers 5 takes rope_parameters; 4 takes rope_theta and would keep the other as an unknown field.
    import transformers
    fields.pop("rope_theta" if int(transformers.__version__.split(".")[0]) >= 5 else "rope_parameters")
    model = LlamaForCausalLM(LlamaConfig(**fields))
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear) and name.startswith("model.layers."):
            module.__class__ = QatLinear
            # What returns to the residual stream is thinned out, against learning wordings by heart.
            module.dropout = dropout if name.endswith(("o_proj", "down_proj")) else 0.0
    if dropout:
        model.model.embed_tokens.register_forward_hook(
            lambda module, inputs, output: F.dropout(output, dropout) if module.training else output)
    return model.float()


def exported_tensors(model):
    """The tensors of model.safetensors by name, on the CPU."""
    state = {name: tensor.detach() for name, tensor in model.state_dict().items()}
    tensors = {}
    for name in shape.linear_names(model.config.num_hidden_layers):
        weight = state.pop(name + ".weight")
        q, scale = quantize(weight)
        tensors[name + ".weight_packed"] = pack(q).cpu().contiguous()
        tensors[name + ".weight_scale"] = scale.cpu().contiguous()
        tensors[name + ".weight_shape"] = torch.tensor(weight.shape, dtype=torch.int64)
    state.pop("lm_head.weight", None)
    for name, tensor in state.items():
        if "rotary" not in name:
            tensors[name] = tensor.to(torch.bfloat16).cpu().contiguous()
    return tensors


def from_exported(tensors, special, layers=shape.LAYERS):
    """The model that the exported tensors mean, exactly dequantized, in float32."""
    state = {name: tensor.float() for name, tensor in tensors.items()
             if not name.endswith(("weight_packed", "weight_scale", "weight_shape"))}
    for name, (rows, columns) in shape.linear_names(layers).items():
        weight = dequantize(unpack(tensors[name + ".weight_packed"]), tensors[name + ".weight_scale"])
        assert tuple(weight.shape) == (rows, columns) == tuple(tensors[name + ".weight_shape"].tolist())
        state[name + ".weight"] = weight
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model = build(special, layers=layers)
    model.load_state_dict(state, strict=False)
    missing = set(name for name, _ in model.named_parameters()) - set(state)
    assert not missing, f"not in the export: {sorted(missing)}"
    return model.eval()
