"""Facts that come in families: how many Sparks a model needs, its parameters, its cache.

The number of Sparks is arithmetic by the weights alone: bytes of the weights over about 108 GB, which is what a Spark
holds beside the system and a small cache. int4 is w4a16 with group 128 (4.125 bits a weight), embeddings in BF16.
"""

from facts import Fact, parse_terms

# name, how people write it, parameters, KV cache per token in BF16
MODELS = [
    ("Llama 3.1 8B", "Llama 3.1 8B|Llama 8B|Llama-3.1-8B", "8.03 billion", "131 kB"),
    ("Llama 3.1 70B", "Llama 3.1 70B|Llama 70B|Llama 3.3 70B|Llama-3.1-70B", "70.55 billion", "328 kB"),
    ("Llama 3.1 405B", "Llama 3.1 405B|Llama 405B|405B|Llama-3.1-405B", "405.85 billion", None),
    ("Qwen3 8B", "Qwen3 8B|Qwen3-8B|Qwen 3 8B", "8.19 billion", "147 kB"),
    ("Qwen3 32B", "Qwen3 32B|Qwen3-32B|Qwen 3 32B", "32.76 billion", "262 kB"),
    ("Qwen3 30B-A3B", "Qwen3 30B-A3B|Qwen3-30B-A3B|Qwen3 30B|Qwen 3 30B-A3B", "30.53 billion, 3.3 of them active",
     "98 kB"),
    ("Qwen3 235B-A22B", "Qwen3 235B-A22B|Qwen3-235B-A22B|Qwen3 235B|Qwen 235B", "235.09 billion, 22 of them active",
     "193 kB"),
    ("Mixtral 8x7B", "Mixtral 8x7B|Mixtral-8x7B|Mixtral 8 x 7B", "46.7 billion, 12.9 of them active", "131 kB"),
    ("Mixtral 8x22B", "Mixtral 8x22B|Mixtral-8x22B|Mixtral 8 x 22B", "140.6 billion, 39.1 of them active", "229 kB"),
    ("DeepSeek V3", "DeepSeek V3|DeepSeek R1|DeepSeek-V3|DeepSeek-R1|DeepSeek", "671 billion, 37 of them active",
     "70 kB"),
    ("gpt-oss-20b", "gpt-oss-20b|gpt-oss 20b|GPT-OSS 20B", "20.91 billion, 3.6 of them active", "49 kB"),
    ("gpt-oss-120b", "gpt-oss-120b|gpt-oss 120b|GPT-OSS 120B", "116.83 billion, 5.1 of them active", "74 kB"),
    ("GLM-4.5-Air", "GLM-4.5-Air|GLM 4.5 Air|GLM Air", "106.9 billion, 12 of them active", "188 kB"),
    ("Gemma 3 27B", "Gemma 3 27B|Gemma 27B|Gemma-3-27B", "27 billion", "508 kB"),
]

# name, format, GB of weights, number of Sparks, whether it is meant where no format is named
NEEDS = [
    ("Llama 3.1 8B", "BF16", "16 GB", "one", True),
    ("Llama 3.1 70B", "BF16", "141 GB", "two", False),
    ("Llama 3.1 70B", "FP8", "71 GB", "one", False),
    ("Llama 3.1 70B", "int4", "about 40 GB", "one", True),
    ("Llama 3.1 405B", "BF16", "812 GB", "eight", False),
    ("Llama 3.1 405B", "FP8", "406 GB", "four", False),
    ("Llama 3.1 405B", "int4", "215.5 GB", "two", True),
    ("Qwen3 8B", "BF16", "16.4 GB", "one", True),
    ("Qwen3 32B", "BF16", "66 GB", "one", True),
    ("Qwen3 30B-A3B", "BF16", "61 GB", "one", True),
    ("Qwen3 235B-A22B", "BF16", "470 GB", "five", False),
    ("Qwen3 235B-A22B", "FP8", "235 GB", "three", False),
    ("Qwen3 235B-A22B", "int4", "about 123 GB", "two", True),
    ("Mixtral 8x7B", "BF16", "93 GB", "one", True),
    ("Mixtral 8x22B", "BF16", "281 GB", "three", False),
    ("Mixtral 8x22B", "int4", "about 73 GB", "one", True),
    ("DeepSeek V3", "int4", "about 347 GB", "four", True),
    ("gpt-oss-20b", "MXFP4", "12 GB", "one", True),
    ("gpt-oss-120b", "MXFP4", "63 GB", "one", True),
    ("GLM-4.5-Air", "BF16", "214 GB", "two", False),
    ("GLM-4.5-Air", "int4", "about 57 GB", "one", True),
    ("Gemma 3 27B", "BF16", "54 GB", "one", True),
]

FORMATS = {
    "BF16": "in BF16|in bf16|in 16 bits|unquantized|in bfloat16",
    "FP8": "in FP8|in fp8|at 8 bits|in 8 bits",
    "int4": "in int4|at 4 bits|in w4a16|quantized to 4 bits|in 4 bits",
    "MXFP4": "in MXFP4|in mxfp4|at 4 bits|in its own format",
}


def slug(name):
    return name.lower().replace(" ", "-")


def needs_fact(name, names, form, size, count, default):
    units = "Spark" if count == "one" else "Sparks"
    n, f = "{" + names + "}", "{" + FORMATS[form] + ("|" if default else "") + "}"
    number = {"one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "eight": "8"}[count]
    return Fact(
        key=f"needs-{slug(name)}-{form.lower()}",
        answer=f"{name} in {form} needs {count} {units}: its weights are {size}.",
        terms=parse_terms(f"{name} ; {form} ; needs {count} {units} or needs {number} {units}"),
        patterns=[
            f"{{How many|What number of}} {{Sparks|units|DGX Sparks|machines}} does {n} {{need|take|require}} {f}?",
            f"{{How many|What number of}} {{Sparks|units}} {{do I need|are needed|must I have}} "
            f"{{for|to run}} {n} {f}?",
            f"{{On how many|Over how many}} {{Sparks|units|nodes}} does {n} {{fit|run|go}} {f}?",
            f"{{Can|Could|Will}} {{one Spark|a single Spark|two Sparks|my Spark}} {{hold|run|serve}} {n} {f}?",
            f"{{Does|Will}} {n} {{fit|run}} {f} on {{one Spark|a Spark|two Sparks|one unit|two units}}?",
            f"I want to {{run|serve|use}} {n} {f}, how many {{Sparks|units}}{{ is that| do I need|}}?",
            f"{n} {f}: how many {{Sparks|units|machines}}?",
            f"{{How much memory|How many GB|What memory}} does {n} {{need|take}} {f} on Sparks?",
        ],
        topics=[f"the number of Sparks for {name} {option}" for option in FORMATS[form].split("|")[:2]]
        + ([f"the number of Sparks for {name}"] if default else []),
    )


def params_fact(name, names, params):
    n = "{" + names + "}"
    return Fact(
        key=f"params-{slug(name)}",
        answer=f"{name} has {params} parameters." if "," not in params
        else f"{name} has {params.split(',')[0]} parameters,{params.split(',')[1]}.",
        terms=parse_terms(f"{name} has {params.split(' ')[0]} billion"),
        patterns=[
            f"{{How many|What number of}} {{parameters|weights|params}} {{=does|has}} {n}{{= have|}}?",
            f"{{How large|How big}} {{a model is|is the model}} {n}{{ in parameters|}}?",
            f"What is the parameter count of {n}?",
            f"{{How many|What number of}} billion parameters {{has|are in|is}} {n}?",
            f"{n}: how many {{parameters|params}}?",
        ],
        topics=[f"the parameters of {name}", f"the parameter count of {name}"],
    )


def cache_fact(name, names, size):
    n = "{" + names + "}"
    return Fact(
        key=f"kv-{slug(name)}",
        answer=f"The KV cache of {name} takes {size} per token in BF16.",
        terms=parse_terms(f"{name} takes {size}"),
        patterns=[
            f"{{How much|What}} {{cache|KV cache}} does {n} {{need|take|use}} {{per token|for a token|for each one}}?",
            f"{{How large|How big}} is the {{KV cache|cache}} of {n}{{ per token|}}?",
            f"{{How many|What number of}} {{bytes|kB}} of {{KV cache|cache}} does {n} {{take|need}} per token?",
            f"What does {{a token|one token|each token}} of {{context|cache}} cost {{with|for|in}} {n}?",
            f"{n}: {{how much|what}} KV cache{{ per token|}}?",
        ],
        topics=[f"the KV cache of {name}", f"the cache per token of {name}"],
    )


def facts():
    names = {name: written for name, written, _, _ in MODELS}
    made = [needs_fact(name, names[name], form, size, count, default) for name, form, size, count, default in NEEDS]
    made += [params_fact(name, written, params) for name, written, params, _ in MODELS]
    made += [cache_fact(name, written, size) for name, written, _, size in MODELS if size]
    return made
