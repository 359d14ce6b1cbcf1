"""Import rules between the parts of the package, checked in the sources, including imports inside functions."""

import ast
import graphlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Dict, Iterator, NamedTuple

import pytest

PACKAGE = Path(__file__).parents[1] / "docnmt_fairseq"
NAME = PACKAGE.name

# Upper parts may import lower ones, not the reverse; parts of one line may import each other without cycles.
ORDER = [
    {"__main__"},
    {"cli"},
    {"reproduce"},
    {"recipes"},
    {"serve"},
    {"report"},
    {"hub"},
    {"evaluation"},
    {"translate"},
    {"tasks"},
    {"criterions", "optim"},
    {"search"},
    {"models"},
    {"embedding"},
    {"data"},
    {"context", "multisource", "ca_layers", "recurrent"},
    {"checkpoints"},
    {"layers"},
    {"batch"},
    {"corpus"},
    {
        "boundaries",
        "errors",
        "fairseq_patches",
        "files",
        "native",
        "options",
        "registry",
        "the package itself",
    },
]
LEVEL = {part: number for number, parts in enumerate(reversed(ORDER)) for part in parts}

USER_DIR_MODULES = 112  # imported by --user-dir; lower it when modules are merged
PURE_PYTORCH = ("layers", "batch", "context", "multisource", "ca_layers", "recurrent")
FAIRSEQ = ("fairseq", "fairseq_cli", "omegaconf", "hydra")

# Parts besides cli/ that may import argparse, with reasons.
ARGPARSE = {
    "models": "fairseq passes ArgumentParser and Namespace to models",
    "fairseq_patches": "checkpoints of fairseq contain Namespace, which the safe loader must allow",
}


class Import(NamedTuple):
    """Import of a module."""

    file: Path
    line: int
    importer: str
    imported: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(PACKAGE.parent)}:{self.line}: imports {self.imported}"


def modules() -> Dict[str, Path]:
    """Files of all modules of the package by name."""
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


MODULES = modules()


def imports_of(module: str) -> Iterator[Import]:
    file = MODULES[module]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file}:{node.lineno}: relative imports are not supported here"
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in MODULES else str(node.module) for name in inside]
        else:
            continue
        for name in dict.fromkeys(names):
            yield Import(file, node.lineno, module, name)


IMPORTS = [one for module in MODULES for one in imports_of(module)]
INSIDE = [one for one in IMPORTS if one.imported.split(".")[0] == NAME]


def part_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "the package itself"


def lines(imports) -> str:
    return "\n".join(map(str, imports))


def test_every_part_has_a_level():
    assert {part_of(module) for module in MODULES} == set(LEVEL)


def test_the_architecture_page_lists_every_part():
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = page[page.index("## The parts") : page.index("## One batch")].splitlines()
    named = {name.rstrip("/") for row in rows if row.startswith("| `") for name in re.findall("`([^`]+)`", row)}
    assert set(LEVEL) - {"__main__", "the package itself"} <= named


@pytest.mark.parametrize("part", PURE_PYTORCH)
def test_mechanisms_do_not_import_fairseq(part):
    found = [one for one in IMPORTS if part_of(one.importer) == part and one.imported.split(".")[0] in FAIRSEQ]
    assert not found, lines(found)


@pytest.mark.parametrize("part", sorted(LEVEL))
def test_parts_import_lower_parts_only(part):
    found = [
        one for one in INSIDE if part_of(one.importer) == part and LEVEL[part_of(one.imported)] > LEVEL[part]
    ]  # fmt: skip
    assert not found, lines(found)


def test_there_are_no_import_cycles():
    graph = {module: {one.imported for one in INSIDE if one.importer == module} for module in MODULES}
    graphlib.TopologicalSorter(graph).prepare()


def test_only_cli_parses_the_command_line():
    places = {"cli", *ARGPARSE}
    found = [one for one in IMPORTS if one.imported == "argparse" and part_of(one.importer) not in places]
    assert not found, lines(found)


def test_imported_modules_exist():
    found = [one for one in INSIDE if one.imported not in MODULES]
    assert not found, lines(found)


def test_user_dir_imports_few_modules():
    code = "import sys, types, fairseq.utils; "
    code += f"fairseq.utils.import_user_module(types.SimpleNamespace(user_dir={str(PACKAGE)!r})); "
    code += f"print(*(name for name in sys.modules if name.startswith('{NAME}')))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert len(found) <= USER_DIR_MODULES, " ".join(sorted(found))
