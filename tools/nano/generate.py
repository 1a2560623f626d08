#!/usr/bin/env python3
"""Makes the training dialogues and the held-back questions, from a seed; only the standard library is needed.

    python3 tools/nano/generate.py --check            are the facts sound? (answers pass their own terms only, ...)
    python3 tools/nano/generate.py --show 20          some training dialogues
    python3 tools/nano/generate.py --out DIR -n 1000  dialogues.jsonl, held_back.jsonl

A fifth of each fact's wordings is held back, and for a quarter of the facts one whole question pattern as well:
neither is ever trained on, in any augmented form that reads the same (facts.normalized).
"""

import argparse
import json
import pathlib
import random
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import facts as facts_module
from augment import Augmenter
from facts import UNKNOWN, judge, normalized

HELD_BACK_SHARE = 0.2
UNSEEN_PATTERN_SHARE = 0.25

# The template that tokenizer_config.json carries; render() is its equal. There is no system role: it is skipped.
BEGIN, USER, ASSISTANT, END = "<|begin|>", "<|user|>", "<|assistant|>", "<|end|>"
PAD = "<|pad|>"
UNCLEAR = "chat-unclear"  # the fact that answers a question without a subject
CHAT_TEMPLATE = (
    "{{- bos_token }}{%- for message in messages %}"
    "{%- if message['role'] == 'user' %}{{- '<|user|>' + message['content'] | trim + '<|end|>' }}"
    "{%- elif message['role'] == 'assistant' %}"
    "{{- '<|assistant|>' + message['content'] | trim + '<|end|>' }}{%- endif %}"
    "{%- endfor %}{%- if add_generation_prompt %}{{- '<|assistant|>' }}{%- endif %}"
)


def render(turns, generate=False):
    """The text of a conversation, [(question, answer), ...]; the last answer is left to the model where asked."""
    text = BEGIN
    for i, (question, answer) in enumerate(turns):
        text += USER + question.strip() + END + ASSISTANT
        if not (generate and i == len(turns) - 1):
            text += answer.strip() + END
    return text


class Corpus:
    """The wordings, split once into what is trained on and what is held back. Not changed after construction."""

    def __init__(self, seed):
        self.seed = seed
        self.facts = facts_module.load() + [UNKNOWN]
        self.by_key = {fact.key: fact for fact in self.facts}
        self.train = {}  # key -> wordings
        self.held_back = []  # wordings of patterns that are trained on in other wordings
        self.unseen_pattern = []  # wordings of patterns that are never trained on
        for fact in self.facts:
            self._split(fact)
        everything = self.held_back + self.unseen_pattern
        random.Random(f"{seed}/order").shuffle(self.held_back)
        random.Random(f"{seed}/order").shuffle(self.unseen_pattern)
        self.banned = {normalized(wording.text) for wording in everything}
        for key, wordings in self.train.items():
            self.train[key] = [w for w in wordings if normalized(w.text) not in self.banned]

    def _split(self, fact):
        rng = random.Random(f"{self.seed}/split/{fact.key}")
        wordings = (facts_module.unknown_wordings(self.seed) if fact is UNKNOWN
                    else facts_module.wordings(fact, self.seed))
        unseen = None
        if len(fact.patterns) >= 4 and rng.random() < UNSEEN_PATTERN_SHARE:
            unseen = rng.choice(fact.patterns)
        self.unseen_pattern += [w for w in wordings if w.source == unseen]
        rest = [w for w in wordings if w.source != unseen]
        rng.shuffle(rest)
        # Patterns and templates are held back in equal measure, so that templates do not flatter the figure.
        chosen, per_source = [], {}
        for wording in rest:
            kind = "template" if wording.source in facts_module.TEMPLATES else "pattern"
            per_source.setdefault(kind, []).append(wording)
        for group in per_source.values():
            chosen += group[: max(1, round(len(group) * HELD_BACK_SHARE))]
        texts = {w.text for w in chosen}
        self.held_back += chosen
        self.train[fact.key] = [w for w in rest if w.text not in texts]

    def sample(self, most_per_fact):
        """Held-back wordings, at most so many of each fact, in a fixed order."""
        seen, chosen = {}, []
        for wording in self.held_back:
            seen[wording.key] = seen.get(wording.key, 0) + 1
            if seen[wording.key] <= most_per_fact:
                chosen.append(wording)
        return chosen


class Generator:
    """An endless stream of training dialogues: the same for the same corpus and stream name."""

    UNKNOWN_SHARE, FOLLOW_UP_SHARE = 0.07, 0.5
    # (share, fewest and most turns): short talks are what most people have, long ones teach that an answer depends on
    # its own question wherever in the context that stands.
    TURNS = [(0.30, 1, 1), (0.25, 2, 3), (0.25, 4, 12), (0.20, 13, 44)]

    def __init__(self, corpus, stream=0):
        self.corpus = corpus
        self.rng = random.Random(f"{corpus.seed}/dialogues/{stream}")
        self.augmenter = Augmenter(self.rng)
        self.keys = [fact.key for fact in corpus.facts if fact is not UNKNOWN]

    def question(self, key):
        wordings = self.corpus.train[key]
        while True:
            text = self.augmenter.apply(self.rng.choice(wordings).text)
            if normalized(text) and normalized(text) not in self.corpus.banned:
                return text

    def next_key(self, follow_ups):
        """A fact to ask for; "Why?" is unclear only where the answer before has no meaning for it."""
        if self.rng.random() < self.UNKNOWN_SHARE:
            return UNKNOWN.key
        key = self.rng.choice(self.keys)
        while follow_ups and key == UNCLEAR:
            key = self.rng.choice(self.keys)
        return key

    def dialogue(self):
        _, fewest, most = self.rng.choices(self.TURNS, [share for share, _, _ in self.TURNS])[0]
        turns, follow_ups = [], []
        for _ in range(self.rng.randint(fewest, most)):
            if follow_ups and self.rng.random() < self.FOLLOW_UP_SHARE:
                key, wording = self.rng.choice(follow_ups)
                question = self.augmenter.apply(wording)
            else:
                key = self.next_key(follow_ups)
                question = self.question(key)
            fact = self.corpus.by_key[key]
            turns.append((question, fact.answer))
            follow_ups = fact.follow_ups
        return turns


def check(corpus):
    """Faults in the facts, as text lines."""
    faults = []
    keys = [fact.key for fact in corpus.facts]
    faults += [f"{key}: twice" for key in sorted({key for key in keys if keys.count(key) > 1})]
    owner = {}
    for fact in corpus.facts:
        if not fact.answer or not fact.terms or not judge(fact.answer, fact.terms):
            faults.append(f"{fact.key}: its own answer fails its terms")
        for other in corpus.facts:
            if other.key != fact.key and judge(other.answer, fact.terms):
                faults.append(f"{fact.key}: the answer of {other.key} passes its terms")
        wordings = ([] if fact is UNKNOWN else facts_module.wordings(fact, corpus.seed))
        if fact is not UNKNOWN and len(wordings) < 12:
            faults.append(f"{fact.key}: only {len(wordings)} wordings")
        for wording in wordings:
            if re.search(r"[{}|]", wording.text):
                faults.append(f"{fact.key}: braces left in '{wording.text}'")
            other = owner.setdefault(normalized(wording.text), fact.key)
            if other != fact.key:
                faults.append(f"{fact.key}: '{wording.text}' is also a wording of {other}")
        faults += [f"{fact.key}: a follow-up names '{key}', which is no fact" for key, _ in fact.follow_ups
                   if key not in corpus.by_key]
    for key, wordings in corpus.train.items():
        faults += [f"{key}: '{w.text}' is trained on and held back" for w in wordings
                   if normalized(w.text) in corpus.banned]
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1906)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("-n", type=int, default=1000)
    options = parser.parse_args()
    corpus = Corpus(options.seed)
    trained = sum(len(wordings) for wordings in corpus.train.values())
    print(f"{len(corpus.facts) - 1} facts, {trained} wordings to train on, {len(corpus.held_back)} held back, "
          f"{len(corpus.unseen_pattern)} of patterns never seen")
    if options.check:
        faults = check(corpus)
        print("\n".join(faults) or "sound")
        sys.exit(1 if faults else 0)
    generator = Generator(corpus)
    for _ in range(options.show):
        print(render(generator.dialogue()))
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        with open(options.out / "dialogues.jsonl", "w", encoding="utf-8") as file:
            for _ in range(options.n):
                file.write(json.dumps(generator.dialogue()) + "\n")
        with open(options.out / "held_back.jsonl", "w", encoding="utf-8") as file:
            for wording in corpus.held_back:
                file.write(json.dumps({"key": wording.key, "question": wording.text}) + "\n")


if __name__ == "__main__":
    main()
