"""A search step synchronises with the device once, to read the candidates."""

from collections import Counter

import pytest

from docnmt_fairseq.search.engine import SearchEngine
from docnmt_fairseq.search.options import SearchOptions
from tests.support.architectures import ARCHITECTURES, begun
from tests.support.counted_device import counted
from tests.support.device import NEEDED, device, moved

pytestmark = NEEDED
OPTIONS = {
    "beam": {},
    "n-grams": {"no_repeat_ngram_size": 3, "unkpen": 1.0},
    "drawn": {"sampling": True, "sampling_topk": 5},
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", ["conditional, block", "rnn gru"])
def test_step_reads_once(name, options, data_bin):
    _, task, model = ARCHITECTURES[name].build(data_bin)
    task.load_dataset("test")
    dataset = task.dataset("test")
    wanted = SearchOptions(beam=3, min_len=18, max_len_b=18, **OPTIONS[options])  # all end together
    with device() as there:
        begun(model, 0.4).eval().to(there)
        sample = moved(dataset.collater([dataset[number] for number in range(len(dataset))]), there)
        engine = SearchEngine([model], task.target_dictionary, wanted)
        with counted() as count:
            found = list(engine.run(iter([sample])))
    assert {len(hypotheses[0]["tokens"]) for _, hypotheses in found} == {19}
    reads = Counter(line.split(":")[0] for _, line in count.reads)
    assert reads.pop("search/candidates.py") == 19
    assert sum(reads.values()) <= 7, reads  # of the batch, and when the cache is full
