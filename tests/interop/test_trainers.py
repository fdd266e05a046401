"""Models inside the trainers of other packages, which are tested where they are installed."""

from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import spit

pytestmark = pytest.mark.filterwarnings("ignore")  # of those packages
BUDGET = 5
IMAGES = torch.rand(8, 3, 32, 32, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(8) % 2


def tiny(training: bool = False) -> spit.SpitModel:
    torch.manual_seed(0)
    return spit.create_model("spit_tiny_16", num_classes=2, training=training, depth=2, resolution=2, position_bins=2,
                             gradient_bins=2, tokenizer_options={"levels": 2}, token_budget=BUDGET)


class Watched(nn.Module):
    """A classifier that returns its loss, and notes the mode and the tokens of each pass."""

    def __init__(self, model: spit.SpitModel) -> None:
        super().__init__()
        self.model = model
        self.passes: list[tuple[bool, int]] = []

    def forward(self, images: Tensor, labels: Tensor) -> dict[str, Tensor]:
        out = self.model(images, record=())
        self.passes.append((self.model.training, int(out.tokens.counts.max())))
        return {"loss": F.cross_entropy(out.logits, labels), "logits": out.logits}

    def check(self, before: dict[str, Tensor]) -> None:
        """Training passes keep to the budget, the others see every token, and all weights have moved."""
        assert {tokens for training, tokens in self.passes if training} == {BUDGET}
        assert all(tokens > BUDGET for training, tokens in self.passes if not training)
        moved = [name for name, tensor in self.model.state_dict().items() if not torch.equal(tensor, before[name])]
        assert moved == list(before)


def weights_of(model: spit.SpitModel) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


@pytest.mark.parametrize("training", [False, True])
def test_lightning(tmp_path: Path, training: bool) -> None:
    """Lightning leaves modules in the mode it finds: training=True is what a LightningModule needs, or it warns."""
    lightning = pytest.importorskip("lightning", minversion="2.5")

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.watched = Watched(tiny(training))

        def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
            return self.watched(*batch)["loss"]

        def validation_step(self, batch: tuple[Tensor, Tensor], index: int) -> None:
            self.watched(*batch)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters(), lr=1e-2)

    module = Module()
    before = weights_of(module.watched.model)
    batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(IMAGES, LABELS), batch_size=4)
    trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
                                default_root_dir=tmp_path)
    with nullcontext() if training else pytest.warns(UserWarning, match="in eval mode at the start of training"):
        trainer.fit(module, batches, batches)
    expected = [training] * 2 + [False] * 2  # steps of an epoch, then its validation
    assert [mode for mode, _ in module.watched.passes] == expected * 2
    if training:
        module.watched.check(before)


def test_hugging_face_trainer(tmp_path: Path) -> None:
    """The Trainer calls ``model.train()`` itself."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    watched = Watched(tiny())
    before = weights_of(watched.model)
    data = [{"images": image, "labels": label} for image, label in zip(IMAGES, LABELS, strict=True)]
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), max_steps=3, per_device_train_batch_size=4, learning_rate=1e-2, save_strategy="no",
        report_to=[], use_cpu=True, remove_unused_columns=False, disable_tqdm=True)
    trainer = transformers.Trainer(model=watched, args=arguments, train_dataset=data, eval_dataset=data)
    trainer.train()
    assert [mode for mode, _ in watched.passes] == [True] * 3
    assert trainer.evaluate()["eval_loss"] > 0
    assert not watched.passes[-1][0]
    watched.check(before)
