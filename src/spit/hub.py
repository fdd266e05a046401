"""Models on the Hugging Face hub: ``from_pretrained``, ``save_pretrained`` and ``push_to_hub``, with a card.

A repository holds what :func:`spit.save_model` writes, config.json and weights named by their content, and README.md.
So a folder, a repository and ``spit.load`` all take the same files. huggingface_hub's own mixin is not used: it has
another config.json, and importing it would make the package a dependency.
"""

from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spit.errors import MissingExtra
from spit.files import write_whole
from spit.model import SpitModel
from spit.registry import load_model
from spit.weights import save

CARD = "README.md"
TEMPLATE = """---
library_name: spit
pipeline_tag: image-classification
tags:
- spit
- superpixels
- vision-transformer
{extra}---

# {name}

A Vision Transformer on {tokenizer} tokens: {depth} layers, width {width}, {heads} heads, {parameters:.1f} M parameters,
{classes}.

```python
import spit

predictor = spit.load("{source}")
predictor("photo.jpg").top(5)
```

The model sees images at {size} pixels. `config.json` has all of its options.
"""


def from_pretrained(source: str | PathLike[str], *, revision: str | None = None, **options: Any) -> SpitModel:
    """Load a model; :func:`spit.load_model` with a revision of its own.

    Args:
        source: a hub id, ``owner/name``, or anything else that :func:`spit.load_model` takes.
        revision: branch, tag or commit of a hub id.
        options: of :func:`spit.load_model`.
    """
    return load_model(source if revision is None else f"{source}@{revision}", **options)


def save_pretrained(model: SpitModel, folder: str | PathLike[str], *, card: str | None = None) -> Path:
    """Save a model into a folder, with a card, README.md.

    Args:
        card: text of the card (default: the one that is there, or :func:`model_card`).
    """
    path = save(model, folder)
    if card is not None or not (path / CARD).exists():
        write_whole(path / CARD, (card or model_card(model, path.name)).encode())
    return path


def push_to_hub(model: SpitModel, repo: str, *, card: str | None = None, private: bool | None = None,
                token: str | None = None, revision: str | None = None,
                message: str = "Upload a model with spit") -> str:
    """Upload a model and its card to the Hugging Face hub; returns the address of the commit.

    Args:
        repo: ``owner/name``, made if there is none.
        card: text of README.md (default: :func:`model_card`, unless the repository has one).
        private: whether a new repository is private (default: the organisation's).
        token: of the hub (default: that of ``hf auth login``).
        revision: branch to commit to.
        message: of the commit.

    Raises:
        MissingExtra: huggingface_hub is not installed.
    """
    try:
        from huggingface_hub import HfApi
    except ImportError as error:
        raise MissingExtra("huggingface_hub", "hub", f"uploading {repo} to the Hugging Face hub") from error
    api = HfApi(token=token)
    made = api.create_repo(repo, private=private, exist_ok=True).repo_id
    with TemporaryDirectory() as folder:
        path = save_pretrained(model, Path(folder) / "model", card=card or model_card(model, made))
        kept = [CARD] if card is None and api.file_exists(made, CARD, revision=revision) else []
        commit = api.upload_folder(repo_id=made, folder_path=path, commit_message=message, revision=revision,
                                   ignore_patterns=kept, delete_patterns="model-*.safetensors")
    return str(commit)


def model_card(model: SpitModel, name: str, license: str | None = None) -> str:
    """A card that says what a model is and how to load it; where its weights come from is yours to add.

    Args:
        name: of the repository or folder.
        license: of the weights, as the hub calls it, such as ``apache-2.0``.
    """
    config = model.config
    return TEMPLATE.format(
        name=name.rpartition("/")[2], source=name, extra=f"license: {license}\n" if license else "",
        tokenizer={"patch": "square", "voronoi": "Voronoi"}.get(config.tokenizer, config.tokenizer),
        depth=config.depth, width=config.width, heads=config.heads,
        parameters=sum(parameter.numel() for parameter in model.parameters()) / 1e6,
        classes=f"{config.num_classes:,} classes" if config.num_classes else "without a head",
        size=model.pretrained_cfg["input_size"][1])
