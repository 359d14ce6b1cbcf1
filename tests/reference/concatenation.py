"""Windows of sentences ([TS] sec. 3), sentence by sentence from the text itself."""


def windows(lines, most, break_symbol, longest=10**9):
    """Returns {line number: tokens} of every sentence of a delimited text, its document's earlier ones before it.

    Args:
        lines: words of every line; ``[]`` ends a document, ``["<p>"]`` a paragraph.
        most: sentences of a window at most.
        break_symbol: word between sentences.
        longest: words of a window at most, its end counted.
    """
    result, document = {}, []
    for number, words in enumerate(lines):
        if not words:
            document = []
        if words in ([], ["<p>"]):
            continue
        document.append(words)
        for size in range(min(most, len(document)), 0, -1):
            window = []
            for sentence in document[-size:-1] if size > 1 else []:
                window += [*sentence, break_symbol]
            window += words
            if len(window) + 1 <= longest or size == 1:
                result[number] = window
                break
    return result
