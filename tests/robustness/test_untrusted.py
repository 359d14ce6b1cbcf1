"""Untrusted files: nothing in them is executed, written elsewhere, fetched or expanded."""

import io
import pickle
import tarfile
import zipfile

import numpy as np
import pytest

from docnmt_fairseq.corpus import readers
from docnmt_fairseq.corpus.readers import Reading
from docnmt_fairseq.data.features import FeatureFile
from docnmt_fairseq.data.selected_context import read_similar, similar_file
from docnmt_fairseq.embedding.model import SentenceEmbedding
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes.downloads import unpack
from tests.support.reading import EN_DE


class Touching:
    """Object that creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def tar_of(path, *members):
    with tarfile.open(path, "w:gz") as archive:
        for name, content, link in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            if link:
                member.type, member.linkname, member.size = link[0], link[1], 0
            archive.addfile(member, io.BytesIO(content))


@pytest.mark.parametrize("name", ["../train.en", "/tmp/../../train.en", "..\\train.en"])
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_archives_write_into_their_folder_only(tmp_path, name, kind):
    archive, folder = tmp_path / f"x.{kind}", tmp_path / "deep" / "unpacked"
    if kind == "tar":
        tar_of(archive, (name, b"text", None))
    else:
        with zipfile.ZipFile(archive, "w") as zipped:
            zipped.writestr(name, "text")
    try:
        unpack(archive, ["train.en"], folder)
        assert (folder / "train.en").read_bytes() == b"text"
    except InputError as error:
        assert "lacks train.en" in str(error)
    assert {path.name for path in tmp_path.iterdir()} == {archive.name, "deep"}
    assert {path.name for path in (tmp_path / "deep").iterdir()} == {"unpacked"}


@pytest.mark.parametrize("link", [(tarfile.SYMTYPE, "/etc/passwd"), (tarfile.LNKTYPE, "../../secret")])
def test_links_in_archives_are_ignored(tmp_path, link):
    tar_of(tmp_path / "x.tar", ("train.en", b"", link))
    with pytest.raises(InputError):
        unpack(tmp_path / "x.tar", ["train.en"], tmp_path / "unpacked")


BOMB = "".join(f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in zip("bcdefghij", "abcdefghi"))
DECLARED = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">{}]>'
TALK = f'{DECLARED}<mteval><srcset><doc docid="1"><talkid>1</talkid>{{}}</doc></srcset></mteval>'
NEWS = f'{DECLARED}<dataset><doc id="1"><src lang="en">{{}}</src></doc></dataset>'


@pytest.mark.parametrize("kind, text", [("ted-xml", TALK), ("wmt-xml", NEWS)])
@pytest.mark.parametrize("entity", ["bomb", "file", "network", "parameter"])
def test_entities_are_neither_expanded_nor_fetched(tmp_path, kind, text, entity):
    secret = tmp_path / "secret"
    secret.write_text("SECRET")
    declared = {
        "bomb": BOMB,
        "file": f'<!ENTITY j SYSTEM "file://{secret}">',
        "network": '<!ENTITY j SYSTEM "http://127.0.0.1:9/x">',
        "parameter": f'<!ENTITY % p SYSTEM "file://{secret}"> %p; <!ENTITY j "&#37;p;">',
    }[entity]
    path = tmp_path / "x.xml"
    path.write_text(text.format(declared, '<seg id="1">one &j; two</seg>'))
    reading = Reading("en")
    try:
        documents = list(readers.read(kind, readers.resolve(kind, [str(path)], reading), reading))
    except InputError:
        return
    (((sentence,),),) = (document.paragraphs for document in documents)
    assert len(sentence[0]) < 50 and "SECRET" not in sentence[0]


def arrays(folder):
    """Readers of arrays with their files."""
    similar = similar_file(folder / "train.en-de.en")
    return {
        "features": (folder / "f.npy", lambda: FeatureFile(folder / "f.npy").rows(0)),
        "features, .npz": (folder / "f.npz", lambda: FeatureFile(folder / "f.npz").rows(0)),
        "similar": (similar, lambda: read_similar(folder, "train", ("en", "de"), range(3), 1)),
        "vectors": (folder / "model.npz", lambda: SentenceEmbedding.load(folder / "model.npz")),
    }


def saved(path, array):
    """Writes an array in the format of the file."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    if path.suffix == ".npy":
        path.write_bytes(stream.getvalue())
        return
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("values", "offsets", "settings", "words"):
            archive.writestr(f"{name}.npy", stream.getvalue())


READ = ["features", "features, .npz", "similar", "vectors"]


@pytest.mark.parametrize("name", READ)
def test_pickles_in_arrays_are_not_read(tmp_path, name):
    path, read = arrays(tmp_path)[name]
    made = tmp_path / "made"
    content = np.empty(1, dtype=object)
    content[0] = Touching(made)
    saved(path, content)
    with pytest.raises(InputError, match=path.name):
        read()
    path.write_bytes(pickle.dumps(Touching(made)))
    with pytest.raises(InputError, match=path.name):
        read()
    assert not made.exists()


@pytest.mark.parametrize("name", ["en/../../outside.xml", "en/../../corpus/en/1.xml"])
def test_alignments_do_not_leave_their_corpus(tmp_path, name):
    outside = tmp_path / "outside.xml"
    outside.write_text('<document><s id="1">SECRET</s></document>')
    corpus = tmp_path / "corpus"
    for language in ("en", "de"):
        (corpus / language).mkdir(parents=True)
        (corpus / language / "1.xml").write_text('<document><s id="1">eins</s></document>')
    links = corpus / "links.xml"

    def read(name):
        group = f'<linkGrp fromDoc="de/1.xml" toDoc="{name}"><link xtargets="1;1"/></linkGrp>'
        links.write_text(f"<cesAlign>{group}</cesAlign>")
        files = [str(links), str(corpus), str(corpus)]
        return list(readers.read("opus-xml", readers.resolve("opus-xml", files, EN_DE), EN_DE))

    assert len(read("en/1.xml")) == 1
    with pytest.raises(InputError, match=r"links\.xml:1: en/.* is not in .*corpus;"):
        read(name)
