import torch
from hypothesis import given, settings

from docnmt_fairseq.modules.context import ContextConfig
from docnmt_fairseq.modules.sentence_attention import SentenceEncodingAttention
from tests.conftest import layouts
from tests.reference import attention as reference


@settings(max_examples=15)
@given(layouts())
def test_words_attend_to_all_sentence_encodings_of_their_document(layout):
    torch.manual_seed(0)
    mechanism = SentenceEncodingAttention(ContextConfig(embed_dim=6, heads=2, head_dim=3)).double()
    x = torch.randn(layout.words.total, 6, dtype=torch.double)
    s = mechanism.sentence_encoder(x, layout.words)
    expected = []
    for document in range(layout.sentences.rows):
        sentences = reference.sentences_of(layout, document)
        for word in (w for sentence in sentences for w in reference.words_of(layout, sentence)):
            heads = []
            for cut in (slice(0, 3), slice(3, 6)):
                keys = [mechanism.k_proj(s[j])[cut] for j in sentences]
                values = [mechanism.v_proj(s[j])[cut] for j in sentences]
                heads.append(reference.attention(mechanism.q_proj(x[word])[cut], keys, values))
            expected.append(mechanism.out_proj(torch.cat(heads)))
    torch.testing.assert_close(mechanism(x, layout), torch.stack(expected), atol=1e-9, rtol=1e-9)
