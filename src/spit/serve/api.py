"""The routes of the HTTP API, below /v1."""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from fastapi import APIRouter, Request, Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from pydantic import BaseModel
from torch import Tensor

from spit import __version__
from spit.answers.classify import Classify
from spit.answers.explain import Explain
from spit.answers.question import Question
from spit.drawing import encode_labels, encode_png
from spit.drawing.pictures import as_picture
from spit.predictor import Prediction, Predictor
from spit.segmentation.correspondence import Scene, colored_share, scenes, transfer
from spit.segmentation.options import TokenCut
from spit.serve import schemas
from spit.serve.answers import (
    array_json,
    encode_bytes,
    read_class,
    scaled,
    segment,
    watched,
)
from spit.serve.documents import body, errors
from spit.serve.errors import ApiError
from spit.serve.service import Service, still_loading
from spit.serve.uploads import Upload, read

F = TypeVar("F", bound=schemas.TokenFields)
Item = tuple[Predictor, F, Sequence[Tensor]]
ONE = {"image": False}
SEVERAL = {"source": False, "targets": True}
MOST_TARGETS = 8
REFUSALS = errors("bad_request", "unauthorized", "forbidden", "upload_timeout", "image_too_large",
                  "unsupported_media_type", "invalid_image", "invalid_request", "method_unavailable", "busy",
                  "time_limit")


def api_routes(service: Service) -> APIRouter:
    """The routes that take images."""
    router = APIRouter(prefix="/v1", tags=["images"])

    def route(path: str, about: str, kind: type[F], answer: type[BaseModel],
              work: Callable[[Sequence[Any]], Sequence[Any]], *together: str, images: dict[str, bool] = ONE) -> None:
        """A route that reads a request, and answers it together with others of its kind, size and options.

        Args:
            together: the options that jobs of a batch must share beside model and tokens.
        """

        @router.post(f"/{path}", name=path, description=about, response_model=answer, responses=REFUSALS,
                     openapi_extra=body(kind, images))
        async def endpoint(request: Request) -> Any:
            with service.batcher:
                fields, files = await read(request, kind, images)
                if len(files.get("targets", ())) > MOST_TARGETS:
                    raise ApiError("invalid_request", f"targets: expected at most {MOST_TARGETS} images.")
                options = fields.options()
                name = service.models.check(fields.model)
                choose = partial(service.models.choose, name, fields.tokenizer, **options)
                predictor = choose() if service.models.loaded(name) else await service.alone(request, choose)
                side = getattr(fields, "max_side", None)
                side = None if side is None else min(side, service.options.max_side)

                def key(uploads: Sequence[Upload]) -> Hashable:
                    size = tuple((one.width * one.height).bit_length() for one in uploads)
                    shared = tuple(getattr(fields, name) for name in together)
                    return (path, name, fields.tokenizer, tuple(options.items()), side, shared, size)

                return await service.with_images(
                    request, [data for given in files.values() for data in given], work, key,
                    lambda given: (predictor, fields, given), side)

    route("tokenize", "Cut an image into tokens: the region of each pixel.",
          schemas.TokenizeFields, schemas.TokenizeAnswer, tokenize_work)
    route("classify", "Name the likeliest classes of an image, of its central square as classifiers are evaluated.",
          schemas.ClassifyFields, schemas.ClassifyAnswer, classify_work)
    route("explain", "Show which pixels a class rests on, of the central square or with crop=false of the whole image.",
          schemas.ExplainFields, schemas.ExplainAnswer, partial(explain_work, service), "method", "samples", "crop")
    route("segment", "Cut the salient object out of an image.",
          schemas.SegmentFields, schemas.SegmentAnswer, segment_work, "method", "clean", "tau", "merge")
    route("correspond", "Colour the parts of a source image, and the parts of target images that are like them.",
          schemas.CorrespondFields, schemas.CorrespondAnswer, lambda jobs: [correspond_one(*job) for job in jobs],
          images=SEVERAL)
    route("embed", "The class token of an image, and the tokens of its regions if asked for.",
          schemas.EmbedFields, schemas.EmbedAnswer, embed_work)
    return router


def status_routes(service: Service) -> APIRouter:
    """Models, health and figures."""
    router = APIRouter(tags=["service"])

    @router.get("/models", response_model=schemas.ModelsAnswer, responses=errors("unauthorized", "forbidden"))
    async def models() -> Any:
        """The models that requests may name."""
        return {"models": await service.aside(service.models.describe)}

    @router.get("/health", response_model=schemas.StatusAnswer, responses=errors("forbidden"))
    async def health() -> Any:
        """Whether the process answers; needs no token."""
        return {"status": "ok", "version": __version__}

    @router.get("/ready", response_model=schemas.StatusAnswer, responses=errors("forbidden", "busy"))
    async def ready() -> Any:
        """Whether the default model is loaded and its kernels are compiled; needs no token."""
        if not service.ready:
            raise still_loading()
        return {"status": "ready", "version": __version__}

    @router.get("/metrics", response_class=Response, responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}, "example": "spit_requests_taken 1.0\n"}},
              "description": "Figures for Prometheus"}, **errors("unauthorized", "forbidden")})
    async def metrics() -> Response:
        """Counts and times in the format of Prometheus."""
        return Response(service.metrics.text(), media_type=CONTENT_TYPE_LATEST)

    return router


def look(jobs: Sequence[Item[Any]], question: Question) -> Prediction:
    """One pass over the images of all jobs, which have one model."""
    return question.see(jobs[0][0], [image for _, _, images in jobs for image in images])


def about(prediction: Prediction, index: int) -> dict[str, Any]:
    """What every answer says of its image."""
    height, width = prediction.sizes[index]
    return {"model": prediction.predictor.name, "width": width, "height": height,
            "tokens": int(prediction.partition.counts[index]), "seen": list(prediction.images[index].shape[:0:-1])}


def tokenize_work(jobs: Sequence[Item[schemas.TokenizeFields]]) -> list[dict[str, Any]]:
    predictor = jobs[0][0]
    images = [image.to(predictor.device) for _, _, [image] in jobs]
    with torch.no_grad():
        partition = predictor.model.tokenizer(images)
    return [{"model": predictor.name, "width": image.shape[2], "height": image.shape[1],
             "seen": list(image.shape[:0:-1]), "tokens": int(partition.counts[index]),
             "labels": labels_json(partition[index].blocks[0][0])}
            for index, image in enumerate(images)]


def classify_work(jobs: Sequence[Item[schemas.ClassifyFields]]) -> list[dict[str, Any]]:
    if not jobs[0][0].model.config.num_classes:
        raise ApiError("method_unavailable", "This model knows no classes.")
    question = Classify(max(fields.top for _, fields, _ in jobs))
    prediction = look(jobs, question)
    return [{**about(prediction, index), "classes": [one.to_dict() for one in ranking[: fields.top]]}
            for index, ((_, fields, _), ranking) in enumerate(zip(jobs, question.of(prediction), strict=True))]


def explain_work(service: Service, jobs: Sequence[Item[schemas.ExplainFields]]) -> list[dict[str, Any]]:
    predictor, first, _ = jobs[0]
    method = watched(service.models.method(predictor, first.method, first.samples))
    if method.of_class and not predictor.model.config.num_classes:
        raise ApiError("method_unavailable", "This model knows no classes.")
    asked = [read_class(predictor.class_names, fields.target) for _, fields, _ in jobs]
    question = Explain(method, crop=first.crop)
    prediction = look(jobs, question)
    guessed = prediction.logits.argmax(1).tolist() if method.of_class else asked
    classes = [own if given is None else given for given, own in zip(asked, guessed, strict=True)]
    maps = question.replace(target=classes if method.of_class else None).of(prediction)
    answers = []
    for index, (label, values) in enumerate(zip(classes, maps, strict=True)):
        target = {"index": label, "name": predictor.class_names[label],
                  "probability": float(prediction.probabilities[index, label])} if method.of_class else None
        answers.append({**about(prediction, index), "method": method.name, "crop": question.crop,
                        "target": target, "map": array_json(values.cpu().numpy().astype("<f4"))})
    return answers


def segment_work(jobs: Sequence[Item[schemas.SegmentFields]]) -> list[dict[str, Any]]:
    question = jobs[0][1].question()
    prediction = look(jobs, question)
    answer = segment(prediction, question)
    return [{**about(prediction, index), **answer.to_dict(index)} for index in range(len(jobs))]


def correspond_one(predictor: Predictor, fields: schemas.CorrespondFields, images: Sequence[Tensor]) -> dict[str, Any]:
    source, *targets = scenes(predictor(list(images), crop=False), TokenCut())
    return {"model": predictor.name,
            "source": colored_json(source, source.paint(source.colors), float(source.paint(
                source.side[:, None].double()).mean())),
            "targets": [colored_json(one, transfer(source, one, fields.temperature), colored_share(
                source, one, fields.temperature)) for one in targets]}


def embed_work(jobs: Sequence[Item[schemas.EmbedFields]]) -> list[dict[str, Any]]:
    prediction = jobs[0][0]([image for _, _, [image] in jobs], crop=False)
    answers, rows = [], prediction.tokens.split()
    for index, (_, fields, _) in enumerate(jobs):
        answer = {**about(prediction, index), "embedding": prediction.class_token[index].float().tolist()}
        if fields.tokens:
            values, scale = scaled(rows[index].float().cpu().numpy())
            answer["token_values"] = array_json(values.astype("<f2"), scale)
            answer["labels"] = labels_json(prediction.partition[index].blocks[0][0])
        answers.append(answer)
    return answers


def labels_json(labels: Tensor) -> dict[str, str]:
    """A label map as a PNG in base64."""
    data, encoding = encode_labels(labels)
    return {"encoding": encoding, "png": encode_bytes(np.frombuffer(data, np.uint8))}


def colored_json(scene: Scene, colors: Tensor, share: float) -> dict[str, Any]:
    """Pseudo-colours as a PNG in base64."""
    data = encode_png(as_picture(colors.movedim(-1, 0)))
    return {"width": scene.size[1], "height": scene.size[0], "colored": share,
            "png": encode_bytes(np.frombuffer(data, np.uint8))}
