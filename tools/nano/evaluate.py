"""Greedy answers in batches, judged by the terms of the facts."""

import torch

from facts import judge
from generate import UNCLEAR, render

ANSWER_TOKENS_MOST = 96


@torch.no_grad()
def greedy(model, prompts, end, device, size=1024):
    """Answers as lists of ids, without the end token.

    Rows are padded on the right and nothing is cached: with causal attention the padding is never seen, and the whole
    is a few seconds of a GPU. No mask, no cache, nothing to get wrong.
    """
    answers = [None] * len(prompts)
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    for start in range(0, len(order), size):
        rows = order[start:start + size]
        starts = torch.tensor([len(prompts[i]) for i in rows], device=device)
        lengths = starts.clone()
        width = int(starts.max())
        ids = torch.full((len(rows), width + ANSWER_TOKENS_MOST + 1), end, dtype=torch.long, device=device)
        for r, i in enumerate(rows):
            ids[r, :len(prompts[i])] = torch.tensor(prompts[i], device=device)
        row = torch.arange(len(rows), device=device)
        done = torch.zeros(len(rows), dtype=torch.bool, device=device)
        for _ in range(ANSWER_TOKENS_MOST):
            hidden = model.model(input_ids=ids[:, :int(lengths.max())], use_cache=False).last_hidden_state
            following = model.lm_head(hidden[row, lengths - 1]).float().argmax(-1)
            following = torch.where(done, torch.full_like(following, end), following)
            ids[row, lengths] = following
            done |= following == end
            lengths += (~done).long()
            if bool(done.all()):
                break
        for r, i in enumerate(rows):
            answers[i] = ids[r, int(starts[r]):int(lengths[r])].tolist()
    return answers


def converse(model, tokenizer, special, corpus, device, conversations, turns=24):
    """Held-back questions of random facts, asked one after the other with the model's own answers between them.

    {share, right, asked, turns, right_by_turn: right answers of each turn}; questions without a subject are left out,
    as their answer depends on the turn before.
    """
    asked = [wording for wording in corpus.held_back if wording.key != UNCLEAR]
    talks, right = [[] for _ in range(conversations)], []
    model.eval()
    for turn in range(turns):
        wordings = [asked[(turn * conversations + i) % len(asked)] for i in range(conversations)]
        prompts = [tokenizer.encode(render(talk + [(wording.text, "")], generate=True), add_special_tokens=False).ids
                   for talk, wording in zip(talks, wordings)]
        answers = [tokenizer.decode(ids, skip_special_tokens=True)
                   for ids in greedy(model, prompts, special["end"], device)]
        right.append(sum(judge(answer, corpus.by_key[wording.key].terms)
                         for wording, answer in zip(wordings, answers)))
        for talk, wording, answer in zip(talks, wordings, answers):
            talk.append((wording.text, answer))
    total = turns * conversations
    return {"share": sum(right) / total, "right": sum(right), "asked": total, "turns": turns, "right_by_turn": right}


def prompt_ids(tokenizer, question):
    return tokenizer.encode(render([(question, "")], generate=True), add_special_tokens=False).ids


def evaluate(model, tokenizer, special, corpus, wordings, device):
    """{share, right, asked, per_fact: {key: {right, asked, wrong: [...]}}}"""
    was_training = model.training
    model.eval()
    answers = greedy(model, [prompt_ids(tokenizer, w.text) for w in wordings], special["end"], device)
    model.train(was_training)
    per_fact = {}
    for wording, ids in zip(wordings, answers):
        result = per_fact.setdefault(wording.key, {"right": 0, "asked": 0, "wrong": []})
        answer = tokenizer.decode(ids, skip_special_tokens=True)
        result["asked"] += 1
        if judge(answer, corpus.by_key[wording.key].terms):
            result["right"] += 1
        else:
            result["wrong"].append({"question": wording.text, "answer": answer})
    right = sum(result["right"] for result in per_fact.values())
    return {"share": right / max(1, len(wordings)), "right": right, "asked": len(wordings), "per_fact": per_fact}
