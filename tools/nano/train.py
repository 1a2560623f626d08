#!/usr/bin/env python3
"""Trains the nano model on one GPU and writes its folder.

    python3 tools/nano/train.py --out OUT/nano --minutes 9      the real run (one H200: 8 minutes)
    python3 tools/nano/train.py --out OUT/nano --smoke          every part once, in under a minute; a CPU will do

Two phases: first in floating point, then through the rounded 4-bit weights (see model.py), so that rounding costs next
to nothing. The learning rate follows a cosine over the steps, or over the time where the machine is too slow for them.
The folder is written first when the second phase begins and again at the end; --work holds the checkpoint for --resume.
"""

import argparse
import contextlib
import csv
import json
import math
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import torch
import torch.nn.functional as F

import card
import data
import export
import model as nano
import shape
import vocabulary
from evaluate import converse, evaluate
from generate import Corpus, check

STARTED = time.monotonic()


def say(text):
    print(f"[{time.monotonic() - STARTED:6.1f} s] {text}", flush=True)


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the model folder to write")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "yoke-nano",
                        help="where the checkpoint lies")
    parser.add_argument("--minutes", type=float, default=9.0, help="deadline for everything")
    parser.add_argument("--seed", type=int, default=1906)
    parser.add_argument("--steps", type=int, default=9000)
    parser.add_argument("--batch", type=int, default=49_152, help="tokens in a step, padding counted")
    parser.add_argument("--dialogues", type=int, default=140_000)
    parser.add_argument("--rate", type=float, default=1.8e-3, help="highest learning rate")
    parser.add_argument("--decay", type=float, default=0.1, help="weight decay")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--question-weight", type=float, default=0.1, help="how much predicting questions counts")
    parser.add_argument("--rounded-from", type=float, default=0.5, help="share of the steps before 4-bit weights")
    parser.add_argument("--evaluations", type=int, default=8)
    parser.add_argument("--resume", type=pathlib.Path, help="a checkpoint of an earlier run")
    parser.add_argument("--smoke", action="store_true", help="few steps, everything once")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args(arguments)
    if options.smoke:
        options.minutes, options.steps, options.batch, options.dialogues = min(options.minutes, 1.0), 40, 4096, 2000
        options.evaluations = 2
    return options


class Run:
    """One training run: what was made, how far it is, what was measured. Used by one thread."""

    def __init__(self, options):
        self.options = options
        self.device = options.device
        torch.manual_seed(options.seed)
        self.corpus = Corpus(options.seed)
        faults = check(self.corpus)
        if faults:
            raise SystemExit("unsound facts:\n" + "\n".join(faults))
        texts = data.dialogues(self.corpus, options.dialogues)
        say(f"{len(self.corpus.facts) - 1} facts, {len(texts)} dialogues made")
        self.tokenizer = vocabulary.train(part for text in texts[:10_000] for part in self._segments(text))
        self.special = vocabulary.special_ids(self.tokenizer)
        self.batches = data.Batches(texts, self.tokenizer, self.special, self.device, options.question_weight)
        say(f"{self.tokenizer.get_vocab_size()} tokens in the vocabulary, {len(self.batches.ids)} tokens of dialogue")
        self.model = nano.build(self.special, options.dropout).to(self.device)
        say(f"{shape.parameters() / 1e6:.2f} million parameters on {self.device_name()}")
        self.optimizer = self._optimizer()
        self.step, self.loss = 0, float("nan")
        self.best_share, self.best_state = -1.0, None
        self.results = {"float": None, "quantized": None, "unseen_pattern": None, "unknown": None, "conversation": None}
        options.work.mkdir(parents=True, exist_ok=True)
        options.out.mkdir(parents=True, exist_ok=True)
        if options.resume:
            self._resume(options.resume)

    @staticmethod
    def _segments(text):
        """What stands between the special tokens: only that is met by the merges."""
        for piece in text.split("<|"):
            yield piece.split("|>")[-1]

    def device_name(self):
        return torch.cuda.get_device_name() if self.device.startswith("cuda") else self.device

    def _optimizer(self):
        matrices = [p for p in self.model.parameters() if p.dim() >= 2]
        vectors = [p for p in self.model.parameters() if p.dim() < 2]
        groups = [{"params": matrices, "weight_decay": self.options.decay}, {"params": vectors, "weight_decay": 0.0}]
        more = {"fused": True} if self.device.startswith("cuda") else {}
        return torch.optim.AdamW(groups, lr=self.options.rate, betas=(0.9, 0.95), **more)

    def precision(self):
        if self.device.startswith("cuda"):
            return torch.autocast("cuda", dtype=torch.bfloat16)
        return contextlib.nullcontext()

    def progress(self):
        """0 to 1: by steps, or by time where time is shorter. A reserve is kept for the end."""
        reserve = min(95.0, 0.4 * 60 * self.options.minutes)
        spent = (time.monotonic() - STARTED - self.began) / max(1.0, 60 * self.options.minutes - reserve - self.began)
        return min(1.0, max(self.step / self.options.steps, spent))

    def train(self):
        self.began = time.monotonic() - STARTED
        self.model.train()
        self.curve = open(self.options.out / "loss.csv", "w", newline="", encoding="utf-8")
        rows = csv.writer(self.curve)
        rows.writerow(["step", "seconds", "rate", "loss", "rounded"])
        shuffle = torch.Generator().manual_seed(self.options.seed + self.step)
        next_evaluation, window, written = 1 / self.options.evaluations, [], False
        while self.progress() < 1:
            for ids, weights in self.batches.epoch(self.options.batch, shuffle):
                progress = self.progress()
                if progress >= 1:
                    break
                nano.QatLinear.rounded = progress >= self.options.rounded_from
                window.append(self.one_step(ids, weights, progress))
                if self.step % 50 == 0:
                    self.loss = float(torch.stack(window).mean())
                    window = []
                    rows.writerow([self.step, f"{time.monotonic() - STARTED:.1f}", f"{self.rate(progress):.2e}",
                                   f"{self.loss:.5f}", int(nano.QatLinear.rounded)])
                    if not math.isfinite(self.loss):
                        raise SystemExit(f"the loss is {self.loss} at step {self.step}: lower --rate")
                if self.step % 500 == 0:
                    say(f"step {self.step}, {100 * progress:.0f}%, loss {self.loss:.4f}")
                if progress >= next_evaluation:
                    next_evaluation += 1 / self.options.evaluations
                    self.evaluate_now(progress)
                    self.save()
                    if nano.QatLinear.rounded and not written:
                        written = True
                        export.write_model(self.options.out, self.model, self.tokenizer, self.special)
                        say("first export written")
        self.curve.close()
        if window and not math.isfinite(self.loss):
            self.loss = float(torch.stack(window).mean())
        say(f"trained {self.step} steps, loss {self.loss:.4f}")

    def rate(self, progress):
        warm = min(1.0, (self.step + 1) / 200)
        return self.options.rate * warm * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress)))

    def one_step(self, ids, weights, progress):
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(progress)
        with self.precision():
            logits = self.model(input_ids=ids, use_cache=False).logits
        losses = F.cross_entropy(logits[:, :-1].float().flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
        weight = weights[:, 1:].flatten()
        loss = (losses * weight).sum() / weight.sum()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.step += 1
        return loss.detach()

    def evaluate_now(self, progress):
        wordings = self.corpus.sample(2)
        with self.precision():
            result = evaluate(self.model, self.tokenizer, self.special, self.corpus, wordings, self.device)
        kind = "rounded" if nano.QatLinear.rounded else "float"
        share = f"{100 * result['share']:.1f}% of {result['asked']} held back"
        say(f"step {self.step}, {100 * progress:.0f}%: {share}, {kind}")
        if not nano.QatLinear.rounded:
            self.results["float"] = result
        elif result["share"] >= self.best_share:
            self.best_share = result["share"]
            self.best_state = {name: t.detach().cpu().clone() for name, t in self.model.state_dict().items()}

    def save(self):
        path = self.options.work / "checkpoint.pt"
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "step": self.step,
                    "seed": self.options.seed}, str(path) + ".part")
        (self.options.work / "checkpoint.pt.part").replace(path)

    def _resume(self, path):
        state = torch.load(path, map_location=self.device)
        if state["seed"] != self.options.seed:
            raise SystemExit(f"the checkpoint was made with seed {state['seed']}")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = state["step"]
        say(f"resumed at step {self.step}")

    def seconds_left(self):
        return 60 * self.options.minutes - (time.monotonic() - STARTED)

    def finish(self):
        """The better of the last and the best state is exported, then judged as read back from the file."""
        nano.QatLinear.rounded = True
        wordings = self.corpus.sample(2)
        with self.precision():
            last = evaluate(self.model, self.tokenizer, self.special, self.corpus, wordings, self.device)
        if self.best_state is not None and last["share"] < self.best_share:
            say(f"the last state has {100 * last['share']:.1f}%, an earlier {100 * self.best_share:.1f}%: taking that")
            self.model.load_state_dict(self.best_state)
        nano.QatLinear.rounded = False
        tensors = export.write_model(self.options.out, self.model, self.tokenizer, self.special)
        shipped = nano.from_exported(tensors, self.special).to(self.device)
        say("exported; judging what was written")
        short = self.options.smoke or self.seconds_left() < 30
        held_back = self.corpus.sample(2) if short else self.corpus.held_back
        unseen = self.corpus.unseen_pattern[:100 if short else None]
        self.results["quantized"] = self._judged(shipped, held_back, "held back, as shipped")
        self.results["unseen_pattern"] = self._judged(shipped, unseen, "of unseen patterns, as shipped")
        self.results["unknown"] = self._unknown_part(self.results["quantized"])
        self.results["conversation"] = converse(shipped, self.tokenizer, self.special, self.corpus, self.device,
                                                conversations=4 if short else 32)
        say(f"conversations, right by turn: {self.results['conversation']['right_by_turn']}")
        if self.seconds_left() > 10:
            self.results["float"] = self._judged(self.model, held_back, "held back, unrounded weights")
        self._write_results(shipped)

    def _judged(self, model, wordings, what):
        result = evaluate(model, self.tokenizer, self.special, self.corpus, wordings, self.device)
        say(f"{100 * result['share']:.2f}% of {result['asked']} {what}")
        return result

    @staticmethod
    def _unknown_part(result):
        part = result["per_fact"].get("unknown")
        return part and {"share": part["right"] / part["asked"], "right": part["right"], "asked": part["asked"]}

    def _write_results(self, shipped):
        out, options = self.options.out, self.options
        questions = export.held_back_questions(self.corpus, 3)
        export.write_json(out / "questions.json", questions)
        export.write_json(out / "eval.json", {name: result for name, result in self.results.items() if result})
        card.write_curve(out / "loss.csv", out / "loss.svg")
        card.write_card(out / "README.md", {
            "seed": options.seed, "facts": len(self.corpus.facts) - 1, "dialogues": options.dialogues,
            "trained_wordings": sum(len(w) for w in self.corpus.train.values()), "steps": self.step, "loss": self.loss,
            "minutes": (time.monotonic() - STARTED) / 60, "device": self.device_name(), **self.results})
        export.write_golden(out, shipped, self.tokenizer, self.special, questions)
        say("goldens written")
        self._show_wrong()

    def _show_wrong(self):
        wrong = [(key, w) for key, fact in self.results["quantized"]["per_fact"].items() for w in fact["wrong"]]
        for key, case in wrong[:12]:
            print(f"  wrong: {key}: {case['question']} -> {case['answer']}")


def main():
    options = options_of(sys.argv[1:])
    run = Run(options)
    try:
        run.train()
    except KeyboardInterrupt:
        say("stopped: exporting what there is")
    run.finish()
    import check as checker
    faults = checker.faults(options.out)
    say("check: " + ("sound" if not faults else "; ".join(faults)))
    shares = {name: result and round(result["share"], 4) for name, result in run.results.items()}
    print(json.dumps({"out": str(options.out), "steps": run.step, "loss": run.loss, **shares}))
    sys.exit(1 if faults and not options.smoke else 0)


if __name__ == "__main__":
    main()
