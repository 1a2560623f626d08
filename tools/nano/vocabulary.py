"""Trains and wraps the tokenizer: byte-level BPE with Llama 3's way of splitting. Needs the `tokenizers` package."""

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

import shape
from generate import ASSISTANT, BEGIN, CHAT_TEMPLATE, END, PAD, USER

SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")
SPECIAL = [BEGIN, END, USER, ASSISTANT, PAD]


def train(texts):
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=shape.VOCABULARY - len(SPECIAL), min_frequency=2, show_progress=False,
                                  special_tokens=[], initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(texts, trainer)
    # Special tokens come last, as in Llama 3.
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in SPECIAL])
    begin = tokenizer.token_to_id(BEGIN)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BEGIN} $A", pair=f"{BEGIN} $A {BEGIN} $B", special_tokens=[(BEGIN, begin)])
    if tokenizer.get_vocab_size() > shape.VOCABULARY:
        raise ValueError(f"the tokenizer has {tokenizer.get_vocab_size()} tokens, the model {shape.VOCABULARY}")
    return tokenizer


def special_ids(tokenizer):
    names = {"begin": BEGIN, "end": END, "user": USER, "assistant": ASSISTANT, "pad": PAD}
    return {name: tokenizer.token_to_id(text) for name, text in names.items()}


def config_json():
    """tokenizer_config.json."""
    return {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": BEGIN, "eos_token": END, "pad_token": PAD,
            "model_max_length": shape.CONTEXT, "clean_up_tokenization_spaces": False, "chat_template": CHAT_TEMPLATE}
