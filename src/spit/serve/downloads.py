"""The explorer's views as files."""

import io
import json
from collections.abc import Callable

import numpy as np
from PIL import Image

from spit.drawing import draw_mask, draw_overlay, encode_labels, encode_png
from spit.drawing.pictures import as_picture
from spit.segmentation import Segmentation
from spit.serve.pictures import Picture
from spit.serve.rle import encode_mask

Ask = Callable[[], Segmentation]


def _mask(ask: Ask) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    found: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = ask().mask[0].cpu().numpy()
    return found


def _mask_png(picture: Picture, ask: Ask) -> bytes:
    return encode_png(Image.fromarray(_mask(ask).astype(np.uint8) * 255))


def _cutout_png(picture: Picture, ask: Ask) -> bytes:
    mask, pixels = _mask(ask), np.asarray(as_picture(picture.image))
    return encode_png(Image.fromarray(np.dstack([np.where(mask[:, :, None], pixels, np.uint8(0)),
                                                 mask.astype(np.uint8) * 255])))


def _overlay_png(picture: Picture, ask: Ask) -> bytes:
    return encode_png(draw_mask(picture.image, _mask(ask)))


def _tokens_png(picture: Picture, ask: Ask) -> bytes:
    return encode_png(draw_overlay(picture.image, picture.prediction.partition.to("cpu")))


def _labels_png(picture: Picture, ask: Ask) -> bytes:
    return encode_labels(picture.prediction.partition.blocks[0][0])[0]


def _tokens_npz(picture: Picture, ask: Ask) -> bytes:
    prediction, file = picture.prediction, io.BytesIO()
    np.savez_compressed(file, labels=picture.token_labels, tokens=prediction.tokens.values.cpu().numpy(),
                        class_token=prediction.class_token[0].cpu().numpy(),
                        probabilities=prediction.probabilities[0].cpu().numpy())
    return file.getvalue()


def _answer_json(picture: Picture, ask: Ask) -> bytes:
    prediction = picture.prediction
    top = prediction.top(10)[0] if picture.predictor.model.config.num_classes else []
    return json.dumps({"model": picture.predictor.name, "tokenizer": picture.predictor.model.config.tokenizer,
                       "width": picture.width, "height": picture.height, "tokens": picture.tokens,
                       "levels": picture.counts, "classes": [guess._asdict() for guess in top]}, indent=2).encode()


def _coco_json(picture: Picture, ask: Ask) -> bytes:
    mask = _mask(ask)
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    boxes = [[int(columns[0]), int(rows[0]), int(columns[-1] - columns[0] + 1), int(rows[-1] - rows[0] + 1)]
             ] if len(rows) else []
    return json.dumps({
        "images": [{"id": 1, "file_name": "image.png", "width": picture.width, "height": picture.height}],
        "categories": [{"id": 1, "name": "object"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "iscrowd": 1, "bbox": box, "area": int(mask.sum()),
                         "segmentation": encode_mask(mask)} for box in boxes]}, indent=2).encode()


FILES: dict[str, Callable[[Picture, Ask], bytes]] = {
    "image.png": lambda picture, ask: picture.image_png,
    "mask.png": _mask_png, "cutout.png": _cutout_png, "overlay.png": _overlay_png, "tokens.png": _tokens_png,
    "labels.png": _labels_png, "tokens.npz": _tokens_npz, "answer.json": _answer_json, "coco.json": _coco_json,
}
KINDS = {"png": "image/png", "npz": "application/octet-stream", "json": "application/json"}
