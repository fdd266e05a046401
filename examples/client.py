"""Ask `spit serve` for the classes and the mask of an image: python client.py IMAGE [ADDRESS]; needs no package."""

import base64
import json
import os
import sys
from pathlib import Path
from urllib.request import Request, urlopen

path, address = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "http://127.0.0.1:7860"
headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ.get('SPIT_TOKEN', '')}"}


def ask(route: str, **options: object) -> dict:
    body = {"image": base64.b64encode(path.read_bytes()).decode(), **options}
    with urlopen(Request(f"{address}/v1/{route}", json.dumps(body).encode(), headers)) as answer:
        return json.load(answer)


classes, found = ask("classify", top=3)["classes"], ask("segment")
print(json.dumps({"classes": [one["name"] for one in classes], "mask": found["mask"], "box": found["box"]}))
