"""Top-k accuracy and BLEU of the next tokens that a model has given the reference, beside loops over tokens."""

import pytest
import sacrebleu
from fairseq.logging import metrics

from docnmt_fairseq.criterions.document_label_smoothed_cross_entropy import DocumentLabelSmoothedCrossEntropy
from tests.support import toy
from tests.support.decoding import stir

OPTIONS = ["--criterion", "document_label_smoothed_cross_entropy", "--report-top-k", "10,2", "--report-forced-bleu"]


def built(data_bin):
    cfg, task, model = toy.build(data_bin, *OPTIONS)
    return stir(model), task.build_criterion(cfg.criterion), toy.batch_of(task), task


def averages(logs):
    with metrics.aggregate(new_root=True) as aggregated:
        for log in logs:  # a batch after another, as in validation
            DocumentLabelSmoothedCrossEntropy.reduce_metrics([log])
    return {name: float(value) for name, value in aggregated.get_smoothed_values().items()}


def test_accuracy_and_bleu_equal_the_reference(data_bin):
    model, criterion, _, task = built(data_bin)
    logs, hits, tokens, best, references = [], {2: 0, 10: 0}, 0, [], []
    dataset = task.dataset("test")
    for numbers in ([0, 1], [2]):
        batch = dataset.collater([dataset[number] for number in numbers])
        _, _, log = criterion(model.eval(), batch)
        logs.append(log)
        logits = model(**batch["net_input"])[0]
        for row, target in zip(logits, batch["target"]):
            found, reference = [], []
            for values, token in zip(row.tolist(), target.tolist()):
                if token == 1:
                    continue
                order = sorted(range(len(values)), key=lambda number: -values[number])
                tokens += 1
                for k in hits:
                    hits[k] += token in order[:k]
                found += [str(order[0])] if order[0] != 2 else []
                reference += [str(token)] if token != 2 else []
            best.append(" ".join(found))
            references.append(" ".join(reference))
    logged = averages(logs)
    for k, count in hits.items():
        assert logged[f"top{k}_accuracy"] == pytest.approx(100 * count / tokens, abs=0.01)
    assert 0 < logged["top2_accuracy"] < logged["top10_accuracy"]
    expected = sacrebleu.corpus_bleu(best, [references], tokenize="none", force=True).score
    assert logged["forced_bleu"] == pytest.approx(expected, abs=0.01) and expected > 0
