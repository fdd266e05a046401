"""Maps that earlier runs of ``spit explain`` wrote, and a run with other methods keeps."""

from collections.abc import Collection
from pathlib import PurePath
from typing import Any

from spit.cli.claims import Shared, key_of, made_otherwise
from spit.cli.console import shown
from spit.cli.inputs import Input
from spit.data.folders import read_about


def of_methods(key: str) -> bool:
    """Whether a setting of ``spit explain``, by its key with dots, leaves the maps of other methods as they are."""
    return key == "top" or ".methods." in key


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
            settings, names = before["settings"], {file.name for file in others}
            if key_of(item.path, settings) in (before["key"], None):
                return {part["model"]: {
                    name: {**part.get("kept", {}), **settings["models"][part["model"]]["methods"]}[name]
                    for name, file in part["maps"].items() if PurePath(file).name in names}
                    for part in before["models"]}
            made = f"from another {shown(item.path.name)}"
        except (AttributeError, KeyError, TypeError):  # the document is not as spit writes it
            made = "with unknown options"
    raise made_otherwise(others[0], made)
