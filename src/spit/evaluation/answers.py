"""Answers: what a classifier says of the central square of an image."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spit.data.crops import central_square
from spit.data.images import load_image
from spit.evaluation.runner import ModelCase, Record, Runner
from spit.evaluation.samples import Sample
from spit.model import Output
from spit.predictor import Predictor

SEEDS = 5  # runs of a model whose tokens are random, as the paper does for RViT
TOP = 5


class SquareCase(ModelCase):
    """A model that sees central squares of one size, as classifiers are evaluated."""

    def read(self, sample: Sample) -> Tensor:
        return central_square(load_image(sample.image), self.predictor.size, self.predictor.model.config.eval_crop)

    def prepare(self, loaded: list[Tensor]) -> Tensor:
        """``(B, 3, size, size)`` on the device."""
        return torch.stack(loaded).to(self.predictor.device)


@dataclass(frozen=True)
class AnswerCase(SquareCase):
    """A model's five likeliest classes, its number of tokens, and its class tokens if asked for."""

    class_tokens: bool = False

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.predictor.name

    def config(self) -> dict[str, Any]:
        return {**super().config(), "class_tokens": self.class_tokens}

    @torch.inference_mode()
    def run(self, batch: Tensor, runner: Runner) -> Output:
        output: Output = self.predictor.model(batch, record=())
        return output

    def records(self, found: Output, loaded: list[Tensor]) -> list[Record]:
        classes = self.predictor.model.config.num_classes
        top = found.logits.float().topk(min(TOP, classes), dim=1).indices.tolist() if classes else [[] for _ in loaded]
        records: list[Record] = [{"top": best, "tokens": count}
                                 for best, count in zip(top, found.partition.counts.tolist(), strict=True)]
        if self.class_tokens:
            for record, token in zip(records, found.class_token.float().cpu().numpy(), strict=True):
                record["class_token"] = base64.b64encode(token.astype("<f4").tobytes()).decode()
        return records


def class_tokens(records: Sequence[Record]) -> Tensor:
    """The class tokens of records, ``(n, D)`` float32."""
    return torch.from_numpy(np.stack([np.frombuffer(base64.b64decode(record["class_token"]), "<f4")
                                      for record in records]))


def seeded(predictor: Predictor) -> list[Predictor]:
    """The predictor, or if its tokens are random the predictor with each of five seeds."""
    if predictor.model.config.tokenizer != "voronoi":
        return [predictor]
    return [predictor.with_tokenizer("voronoi", seed=seed) for seed in range(SEEDS)]
