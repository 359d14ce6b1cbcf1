"""A package eflomal that links words by their place."""

from types import ModuleType


def fake_package(forward=lambda n: [(i, i) for i in range(n)], reverse=None):
    """Returns a package whose aligner writes these links of sentences whose shorter side has n words.

    ``seen`` has what was aligned; the directions link the same where only one is given.
    """
    found = ModuleType("eflomal")
    found.seen = []

    class Aligner:
        def align(self, source, target, links_filename_fwd, links_filename_rev):
            found.seen.append(list(zip(source, target)))
            for path, links in ((links_filename_fwd, forward), (links_filename_rev, reverse or forward)):
                with open(path, "w", encoding="utf-8") as stream:
                    for words, others in zip(source, target):
                        pairs = links(min(len(words.split()), len(others.split())))
                        stream.write(" ".join(f"{i}-{j}" for i, j in pairs) + "\n")

    found.Aligner = Aligner
    return found
