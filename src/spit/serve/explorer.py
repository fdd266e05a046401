"""The routes of the explorer's own page. Labels, tokens and attention travel once, as binary."""

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request, Response

from spit import __version__
from spit.answers.classify import Classify
from spit.answers.explain import Explain
from spit.attribution.methods import METHODS
from spit.predictor import at_size
from spit.segmentation.correspondence import scenes
from spit.segmentation.options import TokenCut
from spit.serve import snippets
from spit.serve.answers import (
    encode_bytes,
    read_class,
    scaled,
    segment,
    watched,
)
from spit.serve.errors import ApiError
from spit.serve.memory import release
from spit.serve.models import TOKENIZERS
from spit.serve.pictures import Picture
from spit.serve.samples import sample_names, sample_png
from spit.serve.schemas import CorrespondPictures, ExplainPicture, SegmentPicture, SnippetFields, WholeFields
from spit.serve.service import Service
from spit.serve.uploads import read, read_json, validate

TOP = 10
SLOW = ("token_rise", "lime")
MOST_JOBS = 64
BINARY = "application/octet-stream"


def explorer_routes(service: Service) -> APIRouter:
    """The page's routes."""
    router = APIRouter(prefix="/explorer", include_in_schema=False)

    def find(name: str) -> Picture:
        picture = service.pictures.get(name)
        if picture is None:
            raise ApiError("not_found", "The service does not keep this picture any more; send it again.")
        return picture

    async def ask(request: Request, work: Callable[[], Any], *pictures: Picture) -> Any:
        """The worker's answer about pictures, of which graphs do not outlive it."""

        def answer() -> Any:
            try:
                return work()
            finally:
                for picture in pictures:
                    picture.drop_gradients()
                release()

        try:
            return await service.alone(request, answer)
        finally:
            service.pictures.trim()

    @router.get("/about")
    async def about() -> dict[str, Any]:
        options, models = service.options, service.models
        return {"version": __version__, "device": models.device, "model": models.default,
                "models": models.names, "tokenizers": list(TOKENIZERS), "ready": service.ready,
                "methods": methods_of(service, None), "token": options.token is not None,
                "limits": {"bytes": options.max_bytes, "pixels": options.max_pixels, "side": options.max_side,
                           "seconds": options.time_limit}}

    @router.get("/samples")
    async def samples() -> list[dict[str, str]]:
        return [{"name": name, "url": f"/explorer/samples/{name}"} for name in sample_names()]

    @router.get("/samples/{name}")
    async def sample(name: str) -> Response:
        if name not in sample_names():
            raise ApiError("not_found", "There is no sample of this name.")
        return Response(await service.aside(lambda: sample_png(name)), media_type="image/png")

    @router.post("/pictures")
    async def add(request: Request) -> dict[str, Any]:
        with service.batcher:
            fields, files = await read(request, WholeFields, {"image": False})
            name = service.models.check(fields.model)
            side = fields.max_side and min(fields.max_side, service.options.max_side)
            settings = {**fields.model_dump(exclude_none=True), "max_side": side}

            def work(jobs: Any) -> list[Picture]:
                predictor = service.models.choose(name, fields.tokenizer, **fields.options())
                return [Picture(predictor, image, settings) for [image] in jobs]

            picture: Picture = await service.with_images(request, files["image"], work, side=side)
            return {"id": service.pictures.add(picture), **describe(picture, methods_of(service, name))}

    def serve(file: str, make: Callable[[Picture], bytes], kind: str = BINARY, worker: bool = False) -> None:
        @router.get(f"/pictures/{{id}}/{file}")
        async def answer(request: Request, id: str) -> Response:
            picture = find(id)
            if worker:
                with service.batcher:
                    data = await service.alone(request, lambda: make(picture))
            else:
                data = await service.aside(lambda: make(picture))
            service.pictures.trim()
            return Response(data, media_type=kind)

    serve("image.png", lambda picture: picture.image_png, "image/png")
    serve("labels.bin", lambda picture: picture.labels_bin)
    serve("parents.bin", lambda picture: picture.parents)
    serve("regions.bin", lambda picture: picture.regions_bin)
    serve("tokens.bin", lambda picture: picture.tokens_bin, worker=True)
    serve("tokens.npz", Picture.npz, "application/zip", worker=True)

    @router.get("/pictures/{id}/attention.bin")
    async def attention(request: Request, id: str, layer: int = -1) -> Response:
        picture = find(id)
        depth = picture.predictor.model.config.depth
        if not -depth <= layer < depth:
            raise ApiError("invalid_request", f"layer: expected a layer from 0 to {depth - 1}.")
        with service.batcher:
            data = await service.alone(request, lambda: picture.attention(layer % depth))
        service.pictures.trim()
        return Response(data, media_type=BINARY)

    @router.get("/jobs/{job}")
    async def progress(job: str) -> dict[str, int]:
        return service.jobs.get(job, {"done": 0, "total": 0})  # not begun yet, or long over

    @router.post("/pictures/{id}/explain")
    async def explain(request: Request, id: str, job: Annotated[str | None, Query(max_length=64)] = None) -> Response:
        picture = find(id)
        with service.batcher:
            asked = validate(ExplainPicture, await read_json(request))
            state = {"done": 0, "total": 1}
            if job is not None:
                while len(service.jobs) >= MOST_JOBS:
                    service.jobs.pop(next(iter(service.jobs)))
                service.jobs[job] = state
            method = watched(service.models.method(picture.predictor, asked.method, asked.samples), state)
            target = read_class(picture.predictor.class_names, asked.target)
            values = await ask(request, lambda: Explain(method, target).of(picture.prediction)[0], picture)
            state["done"] = state["total"]
        values = at_size(values, (picture.height, picture.width)).cpu().numpy()
        found, scale = scaled(values if asked.method == "lime" else picture.token_values(values))
        return Response(found.astype("<f2").tobytes(), media_type=BINARY,
                        headers={"X-Shape": ",".join(map(str, found.shape)), "X-Scale": repr(scale)})

    @router.post("/pictures/{id}/segment")
    async def segmented(request: Request, id: str) -> dict[str, Any]:
        picture = find(id)
        with service.batcher:
            asked = validate(SegmentPicture, await read_json(request))
            found = await ask(request, lambda: segment(picture.prediction, asked.question()), picture)
        mask = at_size(found.mask[0], (picture.height, picture.width)).cpu().numpy()
        return {**found.to_dict(0), "pixels": encode_bytes(np.packbits(mask)),
                "values": encode_bytes(found.values.float().cpu().numpy().astype("<f2")), "clean": asked.clean}

    @router.post("/correspond")
    async def correspond(request: Request) -> dict[str, Any]:
        with service.batcher:
            asked = validate(CorrespondPictures, await read_json(request))
            pictures = [find(asked.source), *map(find, asked.targets)]
            if len({picture.predictor.digest for picture in pictures}) > 1:
                raise ApiError("invalid_request", "Expected pictures of one model, whose tokens can be compared.")

            def work() -> dict[str, Any]:
                source, *targets = (scenes(one.prediction, TokenCut())[0].side.int().tolist() for one in pictures)
                return {"source": source, "targets": targets}

            answer: dict[str, Any] = await ask(request, work, *pictures)
            return answer

    @router.get("/pictures/{id}/snippet")
    async def snippet(id: str, fields: Annotated[SnippetFields, Query()]) -> Response:
        pictures = [find(id), *map(find, fields.others)]
        _check_snippet(service, fields, pictures[0])
        return Response(snippets.snippet(pictures, fields), media_type="text/plain; charset=utf-8")

    return router


def methods_of(service: Service, model: str | None) -> list[dict[str, Any]]:
    """The methods of a model, as the page lists them."""
    return [{"name": name, "of_class": METHODS[name].of_class, "slow": name in SLOW}
            for name in service.models.methods(model)]


def describe(picture: Picture, methods: list[dict[str, Any]]) -> dict[str, Any]:
    """The answer to a new picture."""
    config, tokenizer = picture.predictor.model.config, picture.predictor.model.tokenizer
    return {"width": picture.width, "height": picture.height, "levels": [{"regions": n} for n in picture.counts],
            "token_level": picture.token_level, "label_level": picture.label_level, "tokens": picture.tokens,
            "layers": config.depth, "heads": config.heads, "width_of_token": config.width,
            "model": picture.predictor.name, "tokenizer": config.tokenizer,
            "tokenizer_options": {name: getattr(tokenizer, name) for name in ("max_tokens", "compactness", "refine")
                                  if hasattr(tokenizer, name)},
            "classes": [one.to_dict() for one in Classify(TOP).of(picture.prediction)[0]] if config.num_classes else [],
            "methods": methods}


def _check_snippet(service: Service, asked: SnippetFields, picture: Picture) -> None:
    """Refuse what would not be code of this view: names of models, tokens, methods and regions that do not exist."""
    for name in asked.models.split(",") if asked.models else ():
        service.models.check(name)
    for level, region, _ in (map(int, edit.split(":")) for edit in asked.edits.split(",") if edit):
        if not picture.label_level <= level < len(picture.counts) or region >= picture.counts[level]:
            raise ApiError("invalid_request", "edits: expected regions of this picture.")
