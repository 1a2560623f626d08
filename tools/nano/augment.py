"""Changes to a question that leave its meaning: what people do when they type."""

import re

# Words for which another may stand without naming another fact.
SYNONYMS = {
    "need": ["require", "want"],
    "needs": ["requires", "takes"],
    "Spark": ["DGX Spark", "spark unit", "GB10 box"],
    "Sparks": ["DGX Sparks", "spark units", "GB10 boxes", "sparks"],
    "units": ["boxes", "machines", "Sparks"],
    "cable": ["wire", "cord", "cabel"],
    "Which": ["What", "which one", "Tell me which"],
    "fast": ["quick", "speedy"],
    "large": ["big", "huge"],
    "big": ["large"],
    "memory": ["RAM", "mem"],
    "nodes": ["machines", "hosts"],
    "node": ["machine", "host"],
    "command": ["cmd", "yoke command"],
    "show": ["display", "print"],
    "join": ["connect", "link"],
    "joins": ["connects", "links"],
    "does": ["would", "will"],
    "should": ["shall", "must"],
    "fix": ["mend", "solve"],
    "happens": ["will happen", "occurs"],
    "wrong": ["broken", "not right"],
    "use": ["take", "employ"],
    "run": ["execute", "start"],
    "Explain": ["Describe", "Define", "explain to me"],
    "mean": ["stand for", "signify"],
    "Gb/s": ["Gbps", "gbit/s", "Gbit/s"],
    "GB/s": ["GBps", "gigabytes per second"],
    "tokens": ["toks", "tok"],
    "between": ["among", "in between"],
    "two": ["2", "a pair of"],
    "three": ["3"],
    "four": ["4"],
    "slow": ["sluggish"],
    "rail": ["half"],
    "rails": ["halves"],
}
CONTRACTIONS = [("What is", "What's"), ("what is", "whats"), ("How do I", "How can I"), ("How do I", "how to"),
                ("does not", "doesn't"), ("is not", "isn't"), ("do not", "don't"), ("Do I", "do we"), ("I ", "we ")]
STOP_WORDS = set("a an the is are do does did of to in on for with and i it its that this be can my me you".split())
QUESTION_WORDS = set("what which how why when where who many much should tell about please".split())
OPENINGS = ["Hi, ", "Hello! ", "Hey, ", "Please: ", "Quick question: ", "Tell me, ", "Can you tell me: ", "I wonder, ",
            "Could you say ", "Do you know ", "One question: ", "Ok, ", "So ", "And ", "Sorry, ", "Good morning. "]
CLOSINGS = [" please", ", please", " thanks", " Thank you", " ok?", " exactly", ", roughly", " again", " in short"]
NEIGHBOURS = {"a": "sq", "b": "vn", "c": "xv", "d": "sf", "e": "wr", "f": "dg", "g": "fh", "h": "gj", "i": "uo",
              "j": "hk", "k": "jl", "l": "k", "m": "n", "n": "bm", "o": "ip", "p": "o", "q": "w", "r": "et", "s": "ad",
              "t": "ry", "u": "yi", "v": "cb", "w": "qe", "x": "zc", "y": "tu", "z": "x"}


class Augmenter:
    """Draws from the given random numbers; each change has its own probability and they combine."""

    def __init__(self, rng):
        self.rng = rng

    def chance(self, probability):
        return self.rng.random() < probability

    def apply(self, text):
        if self.chance(0.2):
            return text
        if self.chance(0.25):
            text = self.with_synonym(text)
        if self.chance(0.15):
            text = self.contracted(text)
        if self.chance(0.12):
            text = self.without_words(text, STOP_WORDS, 0.5)
        elif self.chance(0.05):
            text = self.without_words(text, STOP_WORDS | QUESTION_WORDS, 1.0)
        if self.chance(0.06):
            text = self.without_one_word(text)
        if self.chance(0.03):
            text = self.swapped(text)
        if self.chance(0.15):
            text = self.with_typo(text)
        if self.chance(0.12):
            text = self.framed(text)
        return self.punctuated(self.cased(text))

    def with_synonym(self, text):
        words = text.split(" ")
        places = [i for i, word in enumerate(words) if word.rstrip("?.,!") in SYNONYMS]
        for i in places:
            if self.chance(0.6):
                bare = words[i].rstrip("?.,!")
                words[i] = self.rng.choice(SYNONYMS[bare]) + words[i][len(bare):]
        return " ".join(words)

    def contracted(self, text):
        long, short = self.rng.choice(CONTRACTIONS)
        return text.replace(long, short, 1)

    def without_words(self, text, unwanted, probability):
        kept = [w for w in text.split(" ") if w.lower().strip("?.,!") not in unwanted or not self.chance(probability)]
        return " ".join(kept) if len(kept) >= 2 else text

    def without_one_word(self, text):
        words = text.split(" ")
        plain = [i for i, word in enumerate(words) if re.fullmatch(r"[a-z]+[?.,!]?", word)]
        if len(words) < 5 or not plain:
            return text
        del words[self.rng.choice(plain)]
        return " ".join(words)

    def swapped(self, text):
        words = text.split(" ")
        if len(words) < 4:
            return text
        i = self.rng.randrange(len(words) - 1)
        words[i], words[i + 1] = words[i + 1], words[i]
        return " ".join(words)

    def with_typo(self, text):
        """One slip of the finger in a plain word; names with digits or capitals stay whole, as they carry the fact."""
        words = text.split(" ")
        plain = [i for i, word in enumerate(words) if len(word) > 3 and re.fullmatch(r"[A-Z]?[a-z]+[?.,!]?", word)]
        for _ in range(1 + self.chance(0.3)):
            if not plain:
                break
            i = self.rng.choice(plain)
            word, at = words[i], self.rng.randrange(1, len(words[i]) - 1)
            kind = self.rng.randrange(4)
            if kind == 0:
                word = word[:at] + word[at + 1:]
            elif kind == 1:
                word = word[:at] + word[at] + word[at:]
            elif kind == 2:
                word = word[:at] + word[at + 1:at + 2] + word[at] + word[at + 2:]
            else:
                word = word[:at] + self.rng.choice(NEIGHBOURS.get(word[at], word[at])) + word[at + 1:]
            words[i] = word
        return " ".join(words)

    def framed(self, text):
        if self.chance(0.7):
            opening = self.rng.choice(OPENINGS)
            text = opening + (text[0].lower() + text[1:] if self.chance(0.6) else text)
        if self.chance(0.4):
            text = text.rstrip("?.!") + self.rng.choice(CLOSINGS)
        return text

    def cased(self, text):
        draw = self.rng.random()
        if draw < 0.35:
            return text.lower()
        if draw < 0.37:
            return text.upper()
        if draw < 0.42:
            return text[0].upper() + text[1:]
        return text

    def punctuated(self, text):
        draw = self.rng.random()
        if draw < 0.35:
            return text.rstrip("?.! ")
        if draw < 0.40:
            return text.rstrip("?.! ") + self.rng.choice(["??", "?!", " ?", "...", "!", ".", "?"])
        return text
