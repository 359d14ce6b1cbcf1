"""Downloads from a server of the test's own, on this machine."""

import hashlib
import http.server
import io
import tarfile
import threading
import zipfile

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes.dataset import DatasetConfig, Download, SplitConfig, Training
from docnmt_fairseq.recipes.fetch import Source, fetch, unpack

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
    """Yields a server.

    Its ``files`` are by path; ``requests`` as (path, Range); ``ranges``: whether it can go on; ``tag``: ETag of all
    files; ``chunked``: it does not tell sizes beforehand; ``breaks_at``: bytes of an answer until it breaks off.
    """

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.close_connection = True
            served.requests.append((self.path, self.headers.get("Range")))
            content = served.files.get(self.path)
            if content is None:
                self.send_error(404)
                return
            start, tag = 0, self.headers.get("If-Range")
            if served.ranges and self.headers.get("Range") and tag in (None, served.tag):
                start = int(self.headers["Range"].split("=")[1].rstrip("-"))
            if start and start >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.end_headers()
                return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            if served.tag:
                self.send_header("ETag", served.tag)
            if served.chunked:
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                part = content[start : served.breaks_at]
                self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
                self.wfile.write(b"" if served.breaks_at else b"0\r\n\r\n")
                return
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            self.wfile.write(content[start : served.breaks_at])

        def log_message(self, *args):
            pass

    served = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    served.files, served.requests, served.ranges, served.breaks_at = {}, [], True, None
    served.tag, served.chunked = None, False
    served.url = f"http://127.0.0.1:{served.server_port}"
    thread = threading.Thread(target=served.serve_forever, daemon=True)
    thread.start()
    yield served
    served.shutdown()
    served.server_close()


@pytest.mark.parametrize("ranges", [True, False])
def test_an_interrupted_download_goes_on(server, tmp_path, ranges):
    server.files["/x"], server.breaks_at = CONTENT, 3000
    download = Download("x", [f"{server.url}/x"], md5=hashlib.md5(CONTENT).hexdigest())
    with pytest.raises(InputError, match=r"x cannot be downloaded .*broke off.*\. ADVICE"):
        fetch(download, tmp_path / "x", "ADVICE")
    assert not (tmp_path / "x").exists()
    server.breaks_at, server.ranges = None, ranges
    assert fetch(download, tmp_path / "x", "").read_bytes() == CONTENT
    assert server.requests[-1] == ("/x", "bytes=3000-")
    asked = len(server.requests)
    fetch(download, tmp_path / "x", "")
    assert len(server.requests) == asked


@pytest.mark.parametrize("chunked", [False, True], ids=["of known size", "chunked"])
@pytest.mark.parametrize("changed", [False, True], ids=["the same", "another"])
def test_a_download_goes_on_only_with_the_same_content(server, tmp_path, chunked, changed):
    server.files["/x"], server.breaks_at, server.tag, server.chunked = CONTENT, 3000, '"1"', chunked
    download = Download("x", [f"{server.url}/x"])
    with pytest.raises(InputError, match="broke off"):
        fetch(download, tmp_path / "x", "")
    assert (tmp_path / "x.partial").read_bytes() == CONTENT[:3000]
    server.breaks_at = None
    if changed:
        server.files["/x"], server.tag = CONTENT[::-1], '"2"'
    assert fetch(download, tmp_path / "x", "").read_bytes() == server.files["/x"]
    assert server.requests[-1] == ("/x", "bytes=3000-")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x", "x.sha256"]


def test_without_a_validator_the_size_must_be_the_same(server, tmp_path):
    server.files["/x"], server.breaks_at = CONTENT, 3000
    download = Download("x", [f"{server.url}/x"])
    for content in (CONTENT, CONTENT[:2000], CONTENT[::-1] + b"more"):  # longer, shorter than what is there
        server.files["/x"], server.breaks_at = CONTENT, 3000
        with pytest.raises(InputError, match="broke off"):
            fetch(download, tmp_path / "x", "")
        server.files["/x"], server.breaks_at = content, None
        assert fetch(download, tmp_path / "x", "").read_bytes() == content
        (tmp_path / "x").unlink()
        (tmp_path / "x.sha256").unlink()


def test_what_is_of_nobody_knows_what_is_not_gone_on_with(server, tmp_path):
    server.files["/x"] = CONTENT
    (tmp_path / "x.partial").write_bytes(CONTENT[::-1] + b"of another download")
    assert fetch(Download("x", [f"{server.url}/x"]), tmp_path / "x", "").read_bytes() == CONTENT


def test_a_download_killed_before_its_last_step_is_whole(server, tmp_path):
    server.files["/x"] = CONTENT
    (tmp_path / "x.partial").write_bytes(CONTENT)
    assert fetch(Download("x", [f"{server.url}/x"]), tmp_path / "x", "").read_bytes() == CONTENT


def test_the_checksum_is_recorded_and_compared_from_then_on(server, tmp_path):
    server.files["/x"] = CONTENT
    download = Download("x", [f"{server.url}/x"])
    path = fetch(download, tmp_path / "x", "")
    assert (tmp_path / "x.sha256").read_text() == f"{hashlib.sha256(CONTENT).hexdigest()}  x\n"
    path.write_bytes(CONTENT[:-1])
    with pytest.raises(InputError, match="is not what was downloaded first"):
        fetch(download, path, "")


@pytest.mark.parametrize(
    ("download", "message"),
    [({"md5": "0" * 32}, "its MD5 is not 000"), ({"holds": ["a"]}, "it is no archive")],
)
def test_another_file_than_meant_is_removed(server, tmp_path, download, message):
    server.files["/x"] = CONTENT
    with pytest.raises(InputError, match=message):
        fetch(Download("x", [f"{server.url}/x"], **download), tmp_path / "x", "")
    assert not list(tmp_path.iterdir())


def dataset(*downloads, files=("a", "b")):
    return DatasetConfig(
        "t", "s", "t", "PAGE", {"train": SplitConfig("delimited", [list(files)])}, {}, Training(), list(downloads)
    )


def test_archives_in_archives_and_the_second_address(server, tmp_path):
    inner = archive(a=b"A", b=b"B", c=b"C")
    server.files["/outer"] = archive(**{"inner.tgz": inner, "other": b""})
    outer = Download("outer.tgz", [f"{server.url}/gone", f"{server.url}/outer"], holds=["inner.tgz"])
    source = Source(dataset(outer, Download("inner.tgz", holds=["a", "b"])), tmp_path)
    assert [source.get(name).read_bytes() for name in ("a", "b")] == [b"A", b"B"]
    assert sorted(path.name for path in (tmp_path / "unpacked").iterdir()) == ["a", "b", "inner.tgz"]
    server.requests.clear()
    source.get("a")
    assert not server.requests


def test_without_a_network_the_message_says_what_to_do(tmp_path):
    outer = Download("outer.tgz", ["http://127.0.0.1:9/outer"], holds=["inner.tgz"])
    known = dataset(outer, Download("inner.tgz", holds=["a", "b"]))
    with pytest.raises(InputError, match=r"outer.tgz cannot be downloaded .*refused.* Give --raw a folder .*PAGE"):
        Source(known, tmp_path).get("a")
    (tmp_path / "raw").mkdir()
    with pytest.raises(InputError, match=r"a: not in --raw .*a or inner.tgz or outer.tgz .*it is http://127"):
        Source(known, tmp_path, tmp_path / "raw").get("a")
    with pytest.raises(InputError, match=r"--raw .*nowhere: no such folder"):
        Source(known, tmp_path, tmp_path / "nowhere")


def test_with_raw_nothing_is_downloaded(server, tmp_path):
    raw = tmp_path / "raw" / "deep"
    raw.mkdir(parents=True)
    (raw / "a").write_bytes(b"mine")
    source = Source(dataset(Download("a", [f"{server.url}/a"])), tmp_path / "out", tmp_path / "raw")
    assert source.get("a").read_bytes() == b"mine" and not server.requests


def test_files_of_another_archive_than_the_one_unpacked_before(tmp_path):
    known = dataset(Download("outer.tgz", holds=["inner.tgz"]), Download("inner.tgz", holds=["a", "b"]))
    outer = {name: archive(**{"inner.tgz": archive(a=b"a" + name, b=b"b" + name)}) for name in (b"1", b"2")}

    def got(content):
        (tmp_path / "raw").mkdir(exist_ok=True)
        for path in (tmp_path / "raw").iterdir():
            path.unlink()
        if content is not None:
            (tmp_path / "raw" / "outer.tgz").write_bytes(content)
        source = Source(known, tmp_path / "out", tmp_path / "raw")
        return [source.get(name).read_bytes() for name in ("a", "b")]

    assert got(outer[b"1"]) == [b"a1", b"b1"]
    assert got(outer[b"2"]) == [b"a2", b"b2"]
    assert got(None) == [b"a2", b"b2"]  # archives may be removed


def test_damaged_archives_and_missing_members_are_named(tmp_path):
    path = tmp_path / "x.tgz"
    path.write_bytes(archive(a=CONTENT))
    with pytest.raises(InputError, match=r"x.tgz: does not hold b"):
        unpack(path, ["a", "b"], tmp_path / "out")
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(InputError, match=r"x.tgz: cannot be unpacked"):
        unpack(path, ["a"], tmp_path / "other")
    assert not (tmp_path / "other" / "a").exists()


@pytest.mark.parametrize("field", ["flags", "method"])
@pytest.mark.sampled(1)
def test_archives_that_nobody_here_can_unpack_are_named(tmp_path, field):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a", CONTENT)
    content = bytearray(path.read_bytes())
    entry = content.index(b"PK\x01\x02")  # of the directory at the end; a password is needed, or a way of packing
    content[entry + {"flags": 8, "method": 10}[field]] = {"flags": 1, "method": 99}[field]
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"x.zip: cannot be unpacked"):
        unpack(path, ["a"], tmp_path / "out")
