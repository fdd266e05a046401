"""Maps that earlier runs of ``spit explain`` wrote, and a run with other methods keeps."""

from collections.abc import Collection, Mapping
from os.path import realpath
from pathlib import PurePath
from typing import Any

from spit.cli.claims import Shared, made_otherwise
from spit.cli.console import shown
from spit.cli.inputs import Input
from spit.data.folders import read_about


def of_methods(key: str) -> bool:
    """Whether a setting of ``spit explain``, by its key with dots, leaves the maps of other methods as they are."""
    return ".methods." in key


def kept_maps(shared: Shared, item: Input, ends: Collection[str]) -> dict[str, dict[str, Any]]:
    """The configuration of each map of an earlier run that this run keeps, by model and method.

    Args:
        ends: of the names of the maps that this run writes.

    Raises:
        ValueError: the earlier run was on another image, by another version, or with other options than methods, so
            that its maps would be removed.
    """
    others = [file for file in item.left_by_earlier(shared.about, map(item.name, ends))
              if file.suffix == ".npy" and file.is_file()]
    if not others:
        return {}
    before = read_about(item.folder / item.name(shared.about))
    made = shared.changed(before, apart=False)
    if not made:
        try:
            models, names = before["settings"]["models"], {file.name for file in others}
            if shared.content(item) in (before["content"], None):
                return {part["model"]: {name: models[part["model"]]["methods"][name]
                                        for name, file in part["maps"].items() if PurePath(file).name in names}
                        for part in before["models"]}
            same = realpath(before["image"]) == realpath(item.path)
            made = f"from {shown(before['image'])}{', which has changed since' if same else ''}"
        except (AttributeError, KeyError, TypeError):  # the document is not as spit writes it
            made = "with unknown options"
    raise made_otherwise(others[0], made)


def with_kept(settings: Mapping[str, Any], kept: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Settings of a run, to which those of maps that it keeps are added."""
    return {**settings, "models": {name: {**own, "methods": {**own["methods"], **kept.get(name, {})}}
                                   for name, own in settings["models"].items()}}
