"""Writes the model folder: weights, tokenizer, configuration, goldens, questions."""

import json
import pathlib

import torch
from safetensors.torch import load_file, save_file

import model as nano
import shape
import vocabulary
from evaluate import ANSWER_TOKENS_MOST, prompt_ids

PLAIN_PROMPTS = ["Hello, world!", "Two machines and one cable", "How many Sparks does Llama 3.1 405B need?",
                 "def main(argv):\n    return ", "二つの計算機", "What is the 13 Gb/s state?", "MTU 9000",
                 "The quick brown fox", "NCCL_IB_HCA", "yoke plan", "1234567890", "Which cable joins two units?"]
PLAIN_CASES, GREEDY_TOKENS, CHAT_CASES, LONG_TOKENS = 4, 24, 6, 400


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write_model(folder, model, tokenizer, special):
    """What an engine needs. Returns the tensors as they are in the file."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(nano.exported_tensors(model), str(folder / "model.safetensors"), metadata={"format": "pt"})
    tokenizer.save(str(folder / "tokenizer.json"))
    write_json(folder / "tokenizer_config.json", vocabulary.config_json())
    write_json(folder / "config.json", shape.config_json(special, model.config.num_hidden_layers))
    write_json(folder / "generation_config.json",
               {"bos_token_id": special["begin"], "eos_token_id": special["end"], "pad_token_id": special["pad"],
                "do_sample": False, "max_new_tokens": ANSWER_TOKENS_MOST})
    return load_file(str(folder / "model.safetensors"))


@torch.no_grad()
def continued(model, ids, count, end=None):
    """Greedy ids with the margins of the best over the second, and the logits of the prompt; stops after `end`."""
    prompt_logits, greedy, margins = None, [], []
    for _ in range(count):
        logits = model(input_ids=torch.tensor([ids + greedy]), use_cache=False).logits[0].float()
        prompt_logits = logits if prompt_logits is None else prompt_logits
        best = logits[-1].topk(2)
        greedy.append(int(best.indices[0]))
        margins.append(float(best.values[0] - best.values[1]))
        if greedy[-1] == end:
            break
    return prompt_logits.contiguous(), greedy, margins


def write_golden(folder, model, tokenizer, special, questions):
    """golden.json and golden.safetensors, from the dequantized model in float32 on the CPU.

    Besides the cases of plain text, `chat` holds conversations, whose ids have special tokens, each with its greedy
    answer to the end and the logits of the last prompt position.
    """
    import transformers

    folder, model = pathlib.Path(folder), model.cpu().float().eval()
    tried = []
    for prompt in PLAIN_PROMPTS:
        ids = tokenizer.encode(prompt).ids
        tried.append((prompt, ids, *continued(model, ids, GREEDY_TOKENS)))
    # Plain prompts are foreign to the model; those with the clearest choices make the steadiest tests.
    tried.sort(key=lambda case: -min(case[4]))
    tensors, cases = {}, []
    for i, (prompt, ids, logits, greedy, margins) in enumerate(tried[:PLAIN_CASES]):
        tensors[f"logits.{i}"] = logits
        cases.append({"prompt": prompt, "ids": ids, "greedy": greedy, "margins": margins})
    text = " ".join(question["question"] for question in questions)
    ids = tokenizer.encode(text).ids[:LONG_TOKENS]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].float()
    tensors["logits.long_last"] = logits[-4:].clone()
    cases.append({"prompt": None, "ids": ids, "note": "logits.long_last holds the last four positions"})
    chat = []
    for i, question in enumerate(questions[:CHAT_CASES]):
        ids = prompt_ids(tokenizer, question["question"])
        logits, greedy, margins = continued(model, ids, ANSWER_TOKENS_MOST, special["end"])
        tensors[f"chat_last.{i}"] = logits[-1:].clone()
        chat.append({"messages": [{"role": "user", "content": question["question"]}], "ids": ids, "greedy": greedy,
                     "margins": margins, "text": tokenizer.decode(greedy, skip_special_tokens=True)})
    made_with = f"transformers {transformers.__version__}, torch {torch.__version__}, float32 on CPU"
    write_json(folder / "golden.json", {"made_with": made_with, "cases": cases, "chat": chat})
    save_file(tensors, str(folder / "golden.safetensors"))


def held_back_questions(corpus, per_fact):
    return [{"key": w.key, "question": w.text, "terms": corpus.by_key[w.key].terms} for w in corpus.sample(per_fact)]
