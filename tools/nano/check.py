#!/usr/bin/env python3
"""Is an exported folder whole? Names, shapes, dtypes, groups, sizes, goldens; only the standard library is needed.

    python3 tools/nano/check.py models/nano
"""

import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import shape

BYTES = {"I32": 4, "I64": 8, "BF16": 2, "F32": 4}
FILES = ["config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json", "model.safetensors",
         "golden.json", "golden.safetensors", "questions.json", "eval.json", "README.md"]


def header_of(path):
    """The entries of a safetensors file, and faults of its layout."""
    raw = path.read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    entries = json.loads(raw[8:8 + length])
    entries.pop("__metadata__", None)
    found, at = [], 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        count = 1
        for size in entry["shape"]:
            count *= size
        begin, end = entry["data_offsets"]
        if begin != at or end - begin != count * BYTES.get(entry["dtype"], 0):
            found.append(f"{path.name}: {name} has {end - begin} bytes at {begin}, expected at {at}")
        at = end
    if at != len(raw) - 8 - length:
        found.append(f"{path.name}: {len(raw) - 8 - length} bytes of data, {at} described")
    return entries, found


def expected_tensors(layers):
    expected = {"model.embed_tokens.weight": ("BF16", [shape.VOCABULARY, shape.HIDDEN]),
                "model.norm.weight": ("BF16", [shape.HIDDEN])}
    for i in range(layers):
        for norm in shape.NORMS:
            expected[f"model.layers.{i}.{norm}.weight"] = ("BF16", [shape.HIDDEN])
    for name, (rows, columns) in shape.linear_names(layers).items():
        expected[name + ".weight_packed"] = ("I32", [rows, columns // 8])
        expected[name + ".weight_scale"] = ("BF16", [rows, columns // shape.GROUP])
        expected[name + ".weight_shape"] = ("I64", [2])
    return expected


def weight_faults(folder, config):
    entries, found = header_of(folder / "model.safetensors")
    expected = expected_tensors(config["num_hidden_layers"])
    found += [f"missing tensor {name}" for name in sorted(set(expected) - set(entries))]
    found += [f"unexpected tensor {name}" for name in sorted(set(entries) - set(expected))]
    for name in sorted(set(expected) & set(entries)):
        is_so = (entries[name]["dtype"], entries[name]["shape"])
        if is_so != expected[name]:
            found.append(f"{name} is {is_so}, expected {expected[name]}")
    return found


def slice_faults():
    found = []
    for ranks in (2, 4):
        for name, (rows, columns) in shape.LINEARS.items():
            if rows % ranks or columns % ranks:
                found.append(f"{name} does not divide by {ranks}")
            elif name.endswith(("o_proj", "down_proj")) and (columns // ranks) % shape.GROUP:
                found.append(f"{name} over {ranks} ranks cuts a group")
        if shape.KV_HEADS % ranks or shape.VOCABULARY % ranks:
            found.append(f"heads or vocabulary do not divide by {ranks}")
    return found


def golden_faults(folder, config):
    entries, found = header_of(folder / "golden.safetensors")
    golden = json.loads((folder / "golden.json").read_text(encoding="utf-8"))
    for i, case in enumerate(golden["cases"]):
        name, rows = (f"logits.{i}", len(case["ids"])) if case["prompt"] is not None else ("logits.long_last", 4)
        if entries.get(name, {}).get("shape") != [rows, config["vocab_size"]]:
            found.append(f"golden: {name} is {entries.get(name)}, expected {rows} rows")
        if any(not 0 <= token < config["vocab_size"] for token in case["ids"] + case.get("greedy", [])):
            found.append(f"golden: case {i} has ids outside the vocabulary")
    for i, case in enumerate(golden["chat"]):
        if entries.get(f"chat_last.{i}", {}).get("shape") != [1, config["vocab_size"]]:
            found.append(f"golden: chat_last.{i} is {entries.get(f'chat_last.{i}')}")
        if case["greedy"][-1] != config["eos_token_id"]:
            found.append(f"golden: chat case {i} does not end")
    return found


def tokenizer_faults(folder, config):
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    ids = list(tokenizer["model"]["vocab"].values()) + [token["id"] for token in tokenizer["added_tokens"]]
    found = []
    if sorted(set(ids)) != list(range(len(set(ids)))) or max(ids) >= config["vocab_size"]:
        found.append(f"tokenizer: ids are not 0..{config['vocab_size'] - 1}")
    by_id = {token["id"]: token["content"] for token in tokenizer["added_tokens"]}
    names = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    for field, name in (("bos_token_id", "bos_token"), ("eos_token_id", "eos_token"), ("pad_token_id", "pad_token")):
        if by_id.get(config[field]) != names[name]:
            found.append(f"tokenizer: {name} {names[name]} is not id {config[field]}")
    return found


def faults(folder):
    """What is wrong with the folder, as text lines; empty where it is sound."""
    folder = pathlib.Path(folder)
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        return [f"missing {name}" for name in missing]
    found = []
    total = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if total > shape.FOLDER_BYTES_MOST:
        found.append(f"{total} bytes in all, more than {shape.FOLDER_BYTES_MOST}")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    special = {"begin": config["bos_token_id"], "end": config["eos_token_id"], "pad": config["pad_token_id"]}
    if config != shape.config_json(special, config["num_hidden_layers"]):
        found.append("config.json differs from tools/nano/shape.py")
    found += weight_faults(folder, config) + slice_faults() + golden_faults(folder, config)
    return found + tokenizer_faults(folder, config)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = faults(sys.argv[1])
    total = sum(path.stat().st_size for path in pathlib.Path(sys.argv[1]).rglob("*") if path.is_file())
    print("\n".join(found) or f"sound: {shape.parameters()} parameters, {total} bytes in all")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
