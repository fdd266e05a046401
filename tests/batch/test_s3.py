"""An object store: listed, read and rejected as a folder is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from batch.conftest import picture
from batch.test_sources import FILES, read, shard, table
from spit.batch.options import Cluster, Work
from spit.batch.run import Corpus, run_batch
from spit.errors import ImageError

pytest.importorskip("boto3")
server = pytest.importorskip("moto.server")
pytestmark = pytest.mark.filterwarnings("ignore")  # of botocore


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The query that leads to a store with the bucket ``corpus``."""
    import boto3

    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", aws_access_key_id="user",
                          aws_secret_access_key="secret", region_name="us-east-1")
    client.create_bucket(Bucket="corpus")
    folder = tmp_path_factory.mktemp("s3")
    files = {**{f"photos/a/{name}": data for name, data in FILES.items()}, "photos/broken.png": picture(9)[:60],
             "shards/s-000.tar": shard(folder / "s.tar").read_bytes(),
             "t/t.parquet": table(folder / "t.parquet").read_bytes()}
    for key, data in files.items():
        client.put_object(Bucket="corpus", Key=key, Body=data)
    yield f"?endpoint_override={host}:{port}&scheme=http&region=us-east-1"
    running.stop()


def test_listing_and_reading(store: str) -> None:
    start = "s3://user:secret@corpus"
    assert list(read(f"{start}/photos{store}")) == [*(f"a/{name}" for name in FILES), "broken.png"]
    assert list(read(f"{start}/photos/a/*.png{store}").values()) == list(FILES.values())
    assert list(read(f"{start}/shards/s-{{000..000}}.tar{store}").values()) == list(FILES.values())
    assert list(read(f"{start}/t/t.parquet{store}").values()) == list(FILES.values())
    with pytest.raises(ImageError, match="got none") as caught:
        read(f"{start}/nothing{store}")
    assert "secret" not in str(caught.value)


def test_a_run(store: str, tiny: Path, tmp_path: Path) -> None:
    corpus = Corpus((f"s3://user:secret@corpus/photos{store}",), Work("embed"), str(tiny), 32)
    found = run_batch(corpus, tmp_path / "out", Cluster(workers=0), "cpu")
    assert (found.rows, found.rejects) == (3, 1)
    assert "secret" not in (tmp_path / "out/run.json").read_text()
