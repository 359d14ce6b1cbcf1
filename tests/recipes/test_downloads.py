"""Downloads from a local server, and files from archives."""

import hashlib
import http.server
import io
import tarfile
import threading

import pytest

from docnmt_fairseq.corpus.step_cache import StepCache
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes.dataset import DatasetConfig, Download, SplitConfig, Training
from docnmt_fairseq.recipes.downloads import Source, fetch, unpack

CONTENT = bytes(range(256)) * 40


def archive(**members):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as packed:
        for name, content in members.items():
            info = tarfile.TarInfo(f"../top/{name}")
            info.size = len(content)
            packed.addfile(info, io.BytesIO(content))
    return stream.getvalue()


@pytest.fixture
def server():
    """Local server: ``files`` by path, ``requests`` as (path, Range), ``stops_at``: bytes per answer."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            served.requests.append((self.path, self.headers.get("Range")))
            content, start = served.files.get(self.path), 0
            if content is None:
                self.send_error(404)
                return
            if self.headers.get("Range") and served.ranges:
                start = int(self.headers["Range"].split("=")[1].rstrip("-"))
            if start and start >= len(content):
                self.send_response(416)
                self.end_headers()
                return
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            self.wfile.write(content[start : served.stops_at])

        def log_message(self, *args):
            pass

    served = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    served.files, served.requests, served.stops_at, served.ranges = {}, [], None, True
    served.url = f"http://127.0.0.1:{served.server_port}"
    threading.Thread(target=served.serve_forever, args=(0.01,), daemon=True).start()
    yield served
    served.shutdown()
    served.server_close()


@pytest.mark.parametrize("ranges", [True, False], ids=["resumed", "server without ranges"])
def test_interrupted_download_is_resumed(server, tmp_path, ranges):
    server.files["/x"], server.stops_at = CONTENT, 3000
    download = Download("x", [f"{server.url}/x"], hashlib.md5(CONTENT).hexdigest())
    with pytest.raises(InputError, match=r"x cannot be downloaded .*\. ADVICE"):
        fetch(download, tmp_path / "x", "ADVICE")
    assert (tmp_path / "x.partial").read_bytes() == CONTENT[:3000]
    server.stops_at, server.ranges = None, ranges
    path = fetch(download, tmp_path / "x", "")
    assert path.read_bytes() == CONTENT and server.requests[-1] == ("/x", "bytes=3000-")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    fetch(download, path, "")
    assert len(server.requests) == 2


@pytest.mark.parametrize("download", [{"md5": "0" * 32}, {"holds": ["a"]}], ids=["checksum", "not an archive"])
def test_unexpected_file_is_removed(server, tmp_path, download):
    server.files["/x"] = CONTENT
    with pytest.raises(InputError):
        fetch(Download("x", [f"{server.url}/x"], **download), tmp_path / "x", "")
    assert not list(tmp_path.iterdir())


def source(output, *downloads, files=("a", "b"), raw=None):
    splits = {"train": SplitConfig("delimited", [list(files)])}
    dataset = DatasetConfig("t", "s", "t", "PAGE", splits, {}, Training(), list(downloads))
    return Source(dataset, StepCache(output, output / "table.md"), raw)


def test_nested_archives_and_second_url(server, tmp_path):
    inner = archive(a=b"A", b=b"B", c=b"C")
    server.files["/outer"] = archive(**{"inner.tgz": inner, "other": b""})
    outer = Download("outer.tgz", [f"{server.url}/gone", f"{server.url}/outer"], holds=["inner.tgz"])
    known = source(tmp_path, outer, Download("inner.tgz", holds=["a", "b"]))
    assert [known.get(name).read_bytes() for name in ("a", "b")] == [b"A", b"B"]
    assert sorted(path.name for path in (tmp_path / "unpacked").iterdir()) == ["a", "b", "inner.tgz"]
    server.requests.clear()
    known.get("a")
    assert not server.requests


def test_message_says_where_missing_files_can_be_obtained(tmp_path):
    outer = Download("outer.tgz", ["http://127.0.0.1:9/outer"], holds=["inner.tgz"])
    downloads = outer, Download("inner.tgz", holds=["a", "b"])
    with pytest.raises(InputError, match=r"outer.tgz cannot be downloaded .* --raw a folder .*PAGE"):
        source(tmp_path, *downloads).get("a")
    (tmp_path / "raw").mkdir()
    with pytest.raises(InputError, match=r"a: not in --raw .*a or inner.tgz or outer.tgz .*http://127"):
        source(tmp_path, *downloads, raw=tmp_path / "raw").get("a")


def test_nothing_is_downloaded_with_raw(server, tmp_path):
    raw = tmp_path / "raw" / "deep"
    raw.mkdir(parents=True)
    (raw / "a").write_bytes(b"mine")
    known = source(tmp_path / "out", Download("a", [f"{server.url}/a"]), raw=tmp_path / "raw")
    assert known.get("a").read_bytes() == b"mine" and not server.requests


def test_changed_archive_is_extracted_again_and_a_deleted_one_is_not_needed(tmp_path):
    downloads = Download("outer.tgz", holds=["inner.tgz"]), Download("inner.tgz", holds=["a", "b"])
    outer = {name: archive(**{"inner.tgz": archive(a=b"a" + name, b=b"b" + name)}) for name in (b"1", b"2")}
    path = tmp_path / "raw" / "outer.tgz"
    path.parent.mkdir()

    def extracted(content):
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        known = source(tmp_path / "out", *downloads, raw=path.parent)
        return [known.get(name).read_bytes() for name in ("a", "b")]

    assert extracted(outer[b"1"]) == [b"a1", b"b1"]
    assert extracted(outer[b"2"]) == [b"a2", b"b2"]
    assert extracted(None) == [b"a2", b"b2"]


def test_missing_members(tmp_path):
    path = tmp_path / "x.tgz"
    path.write_bytes(archive(a=CONTENT))
    with pytest.raises(InputError, match=r"x.tgz: lacks b"):
        unpack(path, ["a", "b"], tmp_path / "out")
