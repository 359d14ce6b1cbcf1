"""Corpora of every format that ``docnmt prepare`` reads."""

import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Callable, Dict, List

from benchmarks.robustness.subjects import LINES, Subject, small_text, written
from docnmt_fairseq.corpus import readers


def _corpus(name: str, make: Callable[[Path], List[Path]], damaged: slice = slice(None)) -> Callable[[Path], Subject]:
    """A native format of corpora, in the files that ``make`` writes."""

    def subject(folder: Path) -> Subject:
        files = make(folder)
        reading = readers.Reading("en", "de")
        arguments = [str(path) for path in files]

        def read(_: Path) -> int:
            paths = readers.resolve(name, arguments, reading)
            return sum(len(document.paragraphs) for document in readers.read(name, paths, reading))

        return Subject(files[damaged], read)

    return subject


TALK = """<{set} setid="s" srclang="en"><doc docid="7"><url>http://a/?b&c</url><talkid>7</talkid><title>T</title>
<seg id="1"> A Q&A &amp; more </seg><seg id="2"> I <3 it caf&eacute;&#33; </seg></doc></{set}>"""
NEWS = """<?xml version='1.0' encoding='utf-8'?><dataset id="set"><doc origlang="en" id="one"><src lang="en"><p>
<seg id="1">a &amp; b</seg><seg id="2">c</seg></p></src><ref lang="de" translator="A"><p><seg id="1">A</seg>
<seg id="2">C</seg></p></ref></doc></dataset>"""
LINKS = """<?xml version="1.0" encoding="utf-8"?><cesAlign version="1.0"><linkGrp targType="s" fromDoc="de/1/2.xml.gz"
toDoc="en/1/2.xml.gz"><link id="1" xtargets="1;1 2" overlap="0.9"/><link xtargets="2;3"/></linkGrp></cesAlign>"""
FILM = """<?xml version="1.0"?><document id="9"><s id="1"><time id="T1S" value="00:00:01,000"/>One</s><s id="2">Two</s>
<s id="3"><w id="1">x</w></s></document>"""
TAGGED = "<url>u</url>\n<talkid>{}</talkid>\n<title>no</title>\n one\n two\n"


def _films(folder: Path) -> List[Path]:
    files = [written(folder / "de-en.xml", LINKS)]
    for side in ("en", "de"):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"OpenSubtitles/xml/{side}/1/2.xml", FILM)
        files.append(written(folder / f"{side}.zip", stream.getvalue()))
    return files


def _tagged(folder: Path) -> List[Path]:
    text = TAGGED.format(1) + TAGGED.format(2)
    return [written(folder / f"train.tags.en-de.{side}", text) for side in ("en", "de")]


def _rows(folder: Path) -> List[Path]:
    rows = "".join(f"{line}\t{line.upper()}\n" if line else "\t\n" for line in LINES)
    return [written(folder / "news.en-de.tsv", rows)]


def _gzipped(folder: Path) -> List[Path]:
    return [written(Path(f"{path}.gz"), gzip.compress(path.read_bytes(), mtime=0)) for path in small_text(folder)]


def _moses(folder: Path) -> List[Path]:
    files = [written(folder / f"x.{side}", "a\nb\nc\n") for side in ("en", "de")]
    return [*files, written(folder / "x.ids", "en/1/2.xml\tde/1/2.xml\t1\t1\n" * 2 + "en/1/3.xml\tde/1/3.xml\t1\t1\n")]


def _talks(folder: Path) -> List[Path]:
    return [
        written(folder / f"t.{side}.xml", f"<mteval>{TALK.format(set=kind)}</mteval>")
        for side, kind in (("en", "srcset"), ("de", "refset"))
    ]


def _lists() -> Dict[str, List[List[str]]]:
    """Two documents of each side, as lists of sentences."""
    text = "\n".join(LINES).strip().split("\n\n")
    return {
        side: [change(document).split("\n") for document in text] for side, change in (("en", str), ("de", str.upper))
    }


def _json_lines(folder: Path) -> List[Path]:
    rows = [{"en": source, "de": target} for source, target in zip(*_lists().values())]
    return [written(folder / "x.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))]


def _parquet(folder: Path) -> List[Path]:
    import pyarrow
    from pyarrow import parquet

    folder.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.table(_lists()), folder / "x.parquet")
    return [folder / "x.parquet"]


def _memory(folder: Path) -> List[Path]:
    unit = '<tu><tuv xml:lang="{}"><seg>a &amp; <ph x="1">b</ph></seg></tuv><tuv xml:lang="{}"><seg>A</seg></tuv></tu>'
    body = unit.format("en", "de") + unit.format("en-GB", "de-DE")
    head = '<?xml version="1.0"?><tmx version="1.4"><header srclang="en" segtype="sentence"/>'
    return [written(folder / "x.tmx", f"{head}<body>{body}</body></tmx>")]


def _marked(folder: Path) -> List[Path]:
    """A line ``<d>`` before each document."""
    text = "".join(f"<d>\n{document}\n" for document in "\n".join(LINES).strip().split("\n\n"))
    return [written(folder / f"x.{side}", made) for side, made in (("en", text), ("de", text.replace("a", "A")))]


def _post_edited(folder: Path) -> List[Path]:
    return [written(folder / f"x.{side}", "the cat\na dog\n") for side in ("src", "pe")]


def _zstandard(folder: Path) -> List[Path]:
    import pyarrow

    files = [Path(f"{path}.zst") for path in small_text(folder)]
    for path in files:
        with pyarrow.output_stream(str(path), compression="zstd") as stream:
            stream.write(path.with_suffix("").read_bytes())
    return files


CORPORA: Dict[str, Callable[[Path], Subject]] = {
    "corpus: delimited": _corpus("delimited", small_text),
    "corpus: gzipped": _corpus("delimited", _gzipped),
    "corpus: Zstandard": _corpus("delimited", _zstandard),
    "corpus: <d> lines": _corpus("d-lines", _marked),
    "corpus: WMT, post-editing": _corpus("wmt-ape", _post_edited),
    "corpus: TED, XML": _corpus("ted-xml", _talks),
    "corpus: TED, tags": _corpus("ted-tags", _tagged),
    "corpus: WMT, XML": _corpus("wmt-xml", lambda folder: [written(folder / "news.xml", NEWS)]),
    "corpus: OPUS, XML": _corpus("opus-xml", _films),
    "corpus: OPUS, Moses": _corpus("opus-moses", _moses),
    "corpus: News-Commentary": _corpus("news-commentary", _rows),
    "corpus: tables": _corpus("tsv", _rows),
    "corpus: JSON lines": _corpus("jsonl", _json_lines),
    "corpus: Parquet": _corpus("parquet", _parquet),
    "corpus: TMX": _corpus("tmx", _memory),
}
