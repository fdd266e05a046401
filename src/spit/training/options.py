"""The options of a token head."""

from dataclasses import dataclass

from spit.options import Options, documented, option

BATCH = 8192  # tokens of a step


@documented
@dataclass(frozen=True)
class HeadOptions(Options):
    """How a token head is trained.

    Example:
        >>> from spit.training.options import HeadOptions
        >>> HeadOptions(generations=1).views
        1
    """

    layers: tuple[int, ...] | None = option(
        None, "Layers whose tokens the head sees, from 0 (default: six, evenly spread, the last among them)", least=0)
    generations: int = option(3, "Rounds of self-training; the first learns the cut alone", least=1)
    views: int = option(1, "Further looks at each photo, flipped and at another size, that are made to agree", least=0)
    sampled: int = option(100, "Tokens of each look that are learnt from", least=1)
    steps: int = option(300, f"Steps of a round, {BATCH} tokens each", least=1)
    rate: float = option(2e-3, "Learning rate of AdamW, cosine to 0", above=0)
    decay: float = option(0.05, "Weight decay", least=0)
    sample_seed: int = option(0, "Seed of the sampled tokens and their order", least=0)
