"""Training dialogues as tokens on the device. Text is made by several processes, before CUDA is touched."""

import multiprocessing
import os

import torch

import shape
from generate import Generator, render


STREAMS = 64

_corpus = None  # set in each worker when it starts


def _start(corpus):
    global _corpus
    _corpus = corpus


def _make(task):
    stream, count = task
    generator = Generator(_corpus, stream)
    return [render(generator.dialogue()) for _ in range(count)]


def dialogues(corpus, count):
    """Rendered dialogues; the same for the same corpus and count, whatever the number of processes."""
    tasks = [(stream, count // STREAMS + 1) for stream in range(STREAMS)]
    workers = max(1, min(14, (os.cpu_count() or 2) - 1))
    with multiprocessing.get_context("fork").Pool(workers, _start, (corpus,)) as pool:
        parts = pool.map(_make, tasks, chunksize=1)
    return [text for part in parts for text in part][:count]


class Batches:
    """All dialogues as one row of ids on the device, cut into batches of like length."""

    def __init__(self, texts, tokenizer, special, device, question_weight):
        ids, lengths = [], []  # a dialogue that is longer than the context is cut there
        for start in range(0, len(texts), 20000):
            for encoding in tokenizer.encode_batch(texts[start:start + 20000], add_special_tokens=False):
                row = encoding.ids[:shape.CONTEXT]
                ids.extend(row)
                lengths.append(len(row))
        self.ids = torch.tensor(ids, dtype=torch.int32, device=device)
        self.lengths = torch.tensor(lengths, dtype=torch.int64)
        self.offsets = torch.cumsum(self.lengths, 0) - self.lengths
        self.pad = special["pad"]
        self.weights = self._weights(special, question_weight)
        self.device = device

    def _weights(self, special, question_weight):
        """How much each token counts as a target: answers with their end fully, questions a little.

        A token belongs to an answer where the last role before it is the assistant's: the place of the last role is
        carried forward by a running maximum.
        """
        place = torch.arange(len(self.ids), device=self.ids.device)
        assistant = self.ids == special["assistant"]
        role = assistant | (self.ids == special["user"]) | (self.ids == special["begin"])
        last = torch.cummax(torch.where(role, place, torch.zeros_like(place)), 0).values
        answer = assistant[last] & ~assistant
        return torch.where(answer, 1.0, float(question_weight)).to(torch.float32)

    def __len__(self):
        return len(self.lengths)

    def epoch(self, tokens, generator):
        """Batches of one pass, in random order: (ids [B, T], weights [B, T]) with B * T at most `tokens`."""
        order = torch.randperm(len(self), generator=generator)
        batches = []
        for chunk in order.split(20_000):
            rows = chunk[torch.argsort(self.lengths[chunk])]
            lengths = self.lengths[rows].tolist()
            first = 0
            for end in range(1, len(rows) + 1):
                if end == len(rows) or (end + 1 - first) * lengths[end] > tokens:
                    batches.append(rows[first:end])
                    first = end
        for i in torch.randperm(len(batches), generator=generator).tolist():
            yield self.batch(batches[i])

    def batch(self, rows):
        lengths = self.lengths[rows].to(self.device)
        offsets = self.offsets[rows].to(self.device)
        column = torch.arange(int(self.lengths[rows].max()), device=self.device)
        inside = column[None, :] < lengths[:, None]
        index = (offsets[:, None] + column[None, :]).clamp(max=len(self.ids) - 1)
        ids = torch.where(inside, self.ids[index].long(), torch.full_like(index, self.pad))
        return ids, torch.where(inside, self.weights[index], torch.zeros_like(self.weights[index]))
