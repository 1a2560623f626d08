"""The model card and the loss curve, filled in from the figures of the run."""

import csv

import shape


def percent(result):
    if result is None:
        return "not measured"
    return f"{100 * result['share']:.1f}% ({result['right']} of {result['asked']})"


def write_card(path, figures):
    """figures: seed, facts, trained_wordings, dialogues, steps, minutes, device, loss, and results of evaluate()."""
    text = f"""# nano: the small model that ships with yoke

A Llama of {shape.parameters() / 1e6:.1f} million parameters, trained from scratch, that answers questions about
clustering DGX Sparks and 8-GPU servers, and about yoke. It exists so that everybody can run a model that was split
over machines, and ask it something.

**What it is not.** It is no assistant and no source. It was trained only on questions that a script generated from
{figures['facts']} facts, and it knows nothing else: not the world, not code, not arithmetic. It recites the one
answer that it learned for what it takes the question to be, sometimes the wrong one. Outside its facts it
should say that it does not know; it does not always. Check what it says with `docs/facts.md` and `yoke check`.

## Figures of this run

| | |
|---|---|
| facts / wordings trained on | {figures['facts']} / {figures['trained_wordings']} |
| generated dialogues, steps | {figures['dialogues']}, {figures['steps']} |
| last training loss | {figures['loss']:.4f} |
| held-back wordings right, float | {percent(figures.get('float'))} |
| held-back wordings right, as shipped (w4a16, read back from the file) | {percent(figures.get('quantized'))} |
| wordings of patterns never trained on, as shipped | {percent(figures.get('unseen_pattern'))} |
| questions outside the facts declined (within the held-back) | {percent(figures.get('unknown'))} |
| held-back questions right in conversations of {figures['conversation']['turns']} turns with its own answers, as shipped | {percent(figures['conversation'])}; in the last turn {figures['conversation']['right_by_turn'][-1]} of {figures['conversation']['asked'] // figures['conversation']['turns']} |
| seed, minutes, device | {figures['seed']}, {figures['minutes']:.1f}, {figures['device']} |

"Held-back": a fifth of each fact's wordings, chosen by the seed and never trained on. They resemble the trained ones,
since the same templates made both; the line on unseen patterns is the stricter figure. An answer is right when it
holds the terms of its fact. `eval.json` has the results by fact, `questions.json` some held-back questions with their terms,
`loss.csv` the curve.

## Form

hidden {shape.HIDDEN}, {shape.LAYERS} layers, {shape.HEADS} heads and {shape.KV_HEADS} KV heads of {shape.HEAD_WIDTH},
MLP {shape.INTERMEDIATE}, context {shape.CONTEXT}, vocabulary {shape.VOCABULARY} (byte-level BPE), tied embeddings in BF16, linears in
compressed-tensors `pack-quantized` int4 with groups of {shape.GROUP}.
Divides over 1, 2 and 4 tensor-parallel ranks. The chat template has no system role: such messages are skipped.
`golden.json` and `golden.safetensors` hold reference logits of the dequantized model for `yoke verify`.

Made by `tools/nano/train.py`; the facts are in `tools/nano/facts`. Apache-2.0, as the repository.
"""
    path.write_text(text, encoding="utf-8")


def write_curve(csv_path, svg_path):
    """The loss over steps as a small SVG, on a logarithmic scale."""
    import math

    with open(csv_path, encoding="utf-8") as file:
        rows = [(int(row["step"]), float(row["loss"])) for row in csv.DictReader(file)]
    rows = [(step, loss) for step, loss in rows if loss > 0 and math.isfinite(loss)]
    if len(rows) < 2:
        return
    width, height, margin = 640, 320, 40
    low, high = (math.log(f(loss for _, loss in rows)) for f in (min, max))
    points = " ".join(f"{margin + (width - 2 * margin) * step / rows[-1][0]:.1f},"
                      f"{margin + (height - 2 * margin) * (high - math.log(loss)) / max(high - low, 1e-9):.1f}"
                      for step, loss in rows)
    label = 'font-family="sans-serif" font-size="12"'
    svg_path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">'
        f'<rect width="100%" height="100%" fill="white"/>'
        f'<polyline points="{points}" fill="none" stroke="#2a6" stroke-width="1.5"/>'
        f'<text x="4" y="{margin}" {label}>{math.exp(high):.3g}</text>'
        f'<text x="4" y="{height - margin}" {label}>{math.exp(low):.3g}</text>'
        f'<text x="{margin}" y="{height - 12}" {label}>training loss (log) over {rows[-1][0]} steps</text></svg>\n',
        encoding="utf-8")
