"""Recorder: what a forward pass through f should keep."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from torch import Tensor

from spit.backbone.attention import Heads, attention_maps
from spit.backbone.spans import Spans
from spit.options import check_choice
from spit.tokens import Tokens

NAMES = ("attention", "features")


@dataclass(frozen=True)
class Recorder:
    """What a forward pass should keep, and what it has kept.

    Attributes:
        layers: the layers to record under each name, counted from 0.
        attention: layer to its attention maps, ``softmax(q kᵀ / √d)``.
        features: layer to the tokens that leave it, before the final norm, class token included.
        observe: called by every layer with its index, spans and heads, for results that need less than all maps.
        fused: whether compiled code keeps features itself. This saves a second pass, but the result may be rounded
            differently from a pass that records nothing.

    Shape:
        attention one ``(heads, N + 1, N + 1)`` an image; features ``(Σ(N + 1), D)``.
    """

    layers: Mapping[str, Collection[int]]
    attention: dict[int, tuple[Tensor, ...]] = field(default_factory=dict)
    features: dict[int, Tokens] = field(default_factory=dict)
    observe: Callable[[int, Spans, Heads], None] | None = None
    fused: bool = False

    @staticmethod
    def of(record: "Record", depth: int) -> "Recorder":
        """The recorder that a user's ``record`` describes.

        Args:
            record: names (``"attention"``, ``"features"``) for all layers, a mapping from names to layers, such as
                ``{"attention": (-1,)}``, or a recorder, which is returned as it is.
            depth: number of layers.
        """
        if isinstance(record, Recorder):
            return record
        if isinstance(record, str) or not isinstance(record, Iterable):
            raise TypeError(f"expected record as names or a mapping from names to layers, got {record!r}; "
                            "write record=(\"attention\",) or record={\"attention\": (-1,)}")
        asked = dict(record) if isinstance(record, Mapping) else {name: range(depth) for name in record}
        for name in asked:
            check_choice("names to record", name, NAMES)
        return Recorder({name: _layers(name, layers, depth) for name, layers in asked.items()})

    def __bool__(self) -> bool:
        """Whether anything should be recorded."""
        return any(self.layers.values()) or self.observe is not None

    def wants(self, name: str, layer: int) -> bool:
        """Whether this layer should be recorded under this name."""
        return layer in self.layers.get(name, ())

    def observer(self, layer: int, spans: Spans) -> Callable[[Heads], None] | None:
        """The function that a layer calls with its heads; None if nothing is to be made of them."""
        wanted = self.wants("attention", layer)
        if self.observe is None and not wanted:
            return None

        def observe(heads: Heads) -> None:
            if wanted:
                self.attention[layer] = attention_maps(heads.query, heads.key, spans)
            if self.observe is not None:
                self.observe(layer, spans, heads)

        return observe


Record = Iterable[str] | Mapping[str, Iterable[int]] | Recorder
"""Names for every layer, a mapping from names to layers (-1 is the last), or a recorder."""


def _layers(name: str, layers: object, depth: int) -> frozenset[int]:
    wanted = list(layers) if isinstance(layers, Iterable) and not isinstance(layers, str) else None
    if wanted is None or not all(isinstance(layer, int) for layer in wanted):
        raise TypeError(f"expected layers to record {name!r} of as integers, such as (0, -1), got {layers!r}")
    for layer in wanted:
        if not -depth <= layer < depth:
            raise ValueError(f"expected layers of {name!r} from {-depth} to {depth - 1}, got {layer}")
    return frozenset(layer % depth for layer in wanted)
