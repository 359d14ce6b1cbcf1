"use strict";
// Sentences are elements with buttons for words; data has the views, the context of each token of the words.
const showViews = (data) => {
  const views = data.views.filter((view) => view.heads > 0);
  const find = (id) => document.getElementById(id);
  const selects = { view: find("view"), head: find("head"), measure: find("measure") };
  const panel = find("panel");
  const sentences = [...document.querySelectorAll(".sentence")];
  const words = { source: [], target: [] }; // buttons by side
  const wordOf = { source: [], target: [] }; // button of each token, by side
  const RELEVANCE = data.relevance;
  const tokens = (word) => [...Array(Number(word.dataset.n)).keys()].map((place) => Number(word.dataset.w) + place);
  document.querySelectorAll(".w").forEach((word) => {
    words[word.dataset.side].push(word);
    tokens(word).forEach((token) => (wordOf[word.dataset.side][token] = word));
  });
  if (!views.length) return;

  let chosen = null; // word selected by click or key
  const left = {}; // by side, the selection before the mouse moved to the other side
  const view = () => views[selects.view.value];
  const heads = () => (selects.head.value === "all" ? [...Array(view().heads).keys()] : [Number(selects.head.value)]);

  const element = (tag, text, attributes = {}) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
    return made;
  };
  const fill = (select, options) => {
    const before = select.value;
    select.replaceChildren(...options.map(([value, text]) => element("option", text, { value })));
    if (options.some(([value]) => String(value) === before)) select.value = before;
  };
  const figure = (value) => (Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(2));
  const percent = (value) => `${(100 * value).toFixed(0)} %`;

  // Relevance is unbounded: sentences are coloured by its softmax over those selected by the head.
  const shares = (measure, entries) => {
    if (measure !== RELEVANCE || !entries.length) return entries;
    const highest = entries[0][1];
    const total = entries.reduce((sum, [, value]) => sum + Math.exp(value - highest), 0);
    return entries.map(([key, value]) => [key, Math.exp(value - highest) / total]);
  };
  // Entries of the tokens of a word in a table: one list per token and head.
  const rowsOf = (table, word, ofHeads) =>
    tokens(word).filter((token) => token in table).flatMap((token) => ofHeads.map((head) => table[token][head] || []));
  // Mean over tokens and heads, highest first.
  const average = (measure, table, word, keyOf = (key) => key) => {
    const sums = new Map(), rows = rowsOf(table, word, heads());
    rows.forEach((row) => shares(measure, row).forEach(([key, value]) => sums.set(keyOf(key), (sums.get(keyOf(key)) || 0) + value)));
    const mean = [...sums].map(([key, value]) => [key, value / rows.length]);
    return mean.sort((one, other) => other[1] - one[1]);
  };
  // Values of one head by sentence: mean over the tokens of a word; of relevance, over those that select the sentence.
  const valuesOf = (name, word, head) => {
    const found = new Map(), rows = rowsOf(view().sentences[name], word, [head]);
    rows.flat().forEach(([key, value]) => found.set(key, [...(found.get(key) || []), value]));
    const mean = (values) => values.reduce((sum, value) => sum + value, 0) / (name === RELEVANCE ? values.length : rows.length);
    return new Map([...found].map(([key, values]) => [key, mean(values)]));
  };

  const clear = () => {
    sentences.forEach((sentence) => {
      sentence.classList.remove("own");
      sentence.style.background = sentence.style.borderLeftColor = "";
      sentence.querySelector(".value").textContent = "";
    });
    Object.values(words).flat().forEach((word) => { word.classList.remove("chosen"); word.style.background = ""; });
  };
  const columns = (names) => {
    const row = element("tr");
    names.forEach((name) => row.append(element("th", name, { scope: "col" })));
    const head = element("thead");
    head.append(row);
    return head;
  };
  const textOf = (number, side) =>
    sentences[number].querySelector(side === "source" ? ".source" : ".translation").textContent.trim();
  const nameOf = (word) => (word.textContent ? `“${word.textContent}”` : word.title);

  const sentenceTable = (word, measure, mean) => {
    const table = element("table"), body = element("tbody");
    const one = heads().length === 1, other = Object.keys(view().sentences).filter((name) => name !== measure);
    const raw = one ? valuesOf(measure, word, heads()[0]) : null;
    const kept = heads().map((head) => valuesOf(measure, word, head));
    const names = one ? (measure === RELEVANCE ? ["R", ...other] : other) : ["heads"];
    table.append(element("caption", measure === RELEVANCE ? "Selected sentences, by relevance" : `Sentences: ${measure}`));
    table.append(columns(["sentence", "share", ...names, "text"]), body);
    mean.slice(0, 12).forEach(([number, share]) => {
      const row = element("tr"), place = element("td");
      place.append(element("a", number + 1, { href: `#s${number + 1}` }));
      row.append(place, element("td", percent(share), { class: "figure" }));
      if (one) {
        if (measure === RELEVANCE) row.append(element("td", figure(raw.get(number)), { class: "figure" }));
        other.forEach((name) => {
          const value = valuesOf(name, word, heads()[0]).get(number);
          row.append(element("td", value === undefined ? "–" : figure(value), { class: "figure" }));
        });
      } else {
        row.append(element("td", kept.flatMap((map, place) => (map.has(number) ? [heads()[place] + 1] : [])).join(", ")));
      }
      row.append(element("td", textOf(number, view().looksAt), { class: "text", dir: "auto" }));
      body.append(row);
    });
    return table;
  };
  const wordTable = (name, mean) => {
    const table = element("table"), body = element("tbody");
    table.append(element("caption", `Words: ${name}`), columns(["word", "sentence", "weight"]), body);
    mean.slice(0, 8).forEach(([word, weight]) => {
      const row = element("tr"), sentence = Number(word.closest(".sentence").dataset.s) + 1;
      row.append(element("td", word.textContent || word.title, { class: "text", dir: "auto" }), element("td", sentence), element("td", figure(weight), { class: "figure" }));
      body.append(row);
    });
    return table;
  };
  const tree = (token, title) => {
    const part = element("div");
    part.append(element("h3", title));
    if (heads().length > 1) {
      part.append(element("p", "Select one head to see its path through the tree."));
      return part;
    }
    const nodes = ((view().nodes[token] || [])[heads()[0]]) || [], list = element("ul", undefined, { class: "tree" });
    const top = nodes.length ? nodes[0][0] : 0;
    const under = (height, number) => nodes.filter(([h, j]) => h === height && (h === top || j >> 1 === number));
    const walk = (height, parent) =>
      under(height, parent).forEach(([, number, value, first, last]) => {
        const below = height ? `${first + 1}–${last + 1}` : `sentence ${first + 1}`;
        const item = element("li", `${below}: ${figure(value)}`);
        item.style.marginLeft = `${0.7 * (top - height)}rem`;
        list.append(item);
        if (height) walk(height - 1, number);
      });
    if (nodes.length) walk(top, 0);
    part.append(element("p", view().cumulative ? "Relevance summed from the root, for selected nodes:"
      : "Relevance of each selected node, by the sentences below it; R of a sentence is the sum over its path:"), list);
    return part;
  };

  const otherSide = (word) => {
    const [own, other, part] = word.dataset.side === "target"
      ? ["the translation", "the source", "encoder"] : ["the source", "the translation", "decoder"];
    return `Words of ${own} have no context of their own: the mechanism is in the ${part}. Point at a word of ${other}.`;
  };

  const show = (word) => {
    clear();
    if (!word) return;
    if (word.dataset.side !== view().side) { // a word of the other side: the next view that has something to say
      const other = views.findIndex((candidate) => candidate.side === word.dataset.side), last = left[word.dataset.side];
      if (other < 0) { panel.replaceChildren(element("h3", nameOf(word)), element("p", otherSide(word))); return; }
      left[view().side] = Object.fromEntries(Object.entries(selects).map(([name, select]) => [name, select.value]));
      selects.view.value = last ? last.view : other;
      refill();
      Object.entries(last || {}).forEach(([name, value]) => (selects[name].value = value));
    }
    const measure = selects.measure.value, own = word.closest(".sentence");
    word.classList.add("chosen");
    own.classList.add("own");
    const mean = average(measure, view().sentences[measure], word);
    mean.forEach(([place, share]) => {
      const sentence = sentences[place];
      sentence.style.background = `rgba(var(--sentence), ${(0.34 * share + 0.02).toFixed(3)})`;
      sentence.style.borderLeftColor = `rgba(var(--sentence), ${Math.min(1, share + 0.15).toFixed(3)})`;
      sentence.querySelector(".value").textContent = percent(share);
    });
    const parts = [element("h3", `${nameOf(word)}, sentence ${Number(own.dataset.s) + 1}`)];
    const gates = tokens(word).map((token) => view().share[token]).filter((gate) => gate !== undefined);
    const gate = gates.reduce((sum, value) => sum + value, 0) / gates.length;
    if (gates.length) parts.push(element("p", `The gate lets ${percent(gate)} of the context through (mean over features).`));
    parts.push(mean.length ? sentenceTable(word, measure, mean) : element("p", "This word has no context here."));
    Object.entries(view().words).forEach(([name, rows]) => {
      const weights = average(name, rows, word, (token) => wordOf[view().looksAt][token]);
      weights.forEach(([seen, weight]) => {
        seen.style.background = `rgba(var(--word), ${((0.5 * weight) / weights[0][1]).toFixed(3)})`;
      });
      if (weights.length) parts.push(wordTable(name, weights));
    });
    if (Object.keys(view().nodes).length) {
      const paths = heads().length > 1 ? tokens(word).slice(0, 1) : tokens(word), title = "Path through the tree";
      paths.forEach((token, place) =>
        parts.push(tree(token, paths.length > 1 ? `${title}, part ${place + 1} of the word` : title)));
    }
    panel.replaceChildren(...parts);
  };

  const refill = () => {
    fill(selects.measure, Object.keys(view().sentences).map((name) => [name, name]));
    fill(selects.head, [["all", "all, mean"], ...[...Array(view().heads).keys()].map((head) => [head, `head ${head + 1}`])]);
    selects.head.parentElement.hidden = view().heads < 2;
    if (view().heads < 2) selects.head.value = "all";
    selects.measure.parentElement.hidden = Object.keys(view().sentences).length < 2;
  };
  fill(selects.view, views.map((candidate, number) => [number, candidate.title]));
  selects.view.value = views.length - 1;
  refill();
  Object.values(selects).forEach((select) => select.addEventListener("change", () => { refill(); show(chosen); }));

  const choose = (word) => {
    if (chosen) chosen.tabIndex = -1;
    chosen = word;
    chosen.tabIndex = 0;
    show(chosen);
  };
  const reader = find("reader"), sides = new Set(views.map((candidate) => candidate.side));
  const ofSide = (word) => words[word.dataset.side];
  reader.addEventListener("click", (event) => { if (event.target.matches(".w")) choose(event.target); });
  reader.addEventListener("focusin", (event) => { if (event.target.matches(".w")) choose(event.target); });
  reader.addEventListener("mouseover", (event) => { if (event.target.matches(".w")) show(event.target); });
  reader.addEventListener("mouseout", (event) => { if (event.target.matches(".w")) show(chosen); });
  reader.addEventListener("keydown", (event) => {
    if (!event.target.matches(".w")) return;
    const all = ofSide(event.target), place = all.indexOf(event.target);
    const sentence = Number(event.target.closest(".sentence").dataset.s);
    const onwards = getComputedStyle(event.target).direction === "rtl" ? -1 : 1; // direction of the right arrow
    const firstOf = (number) => all.find((word) => Number(word.closest(".sentence").dataset.s) === number);
    const next = {
      ArrowRight: all[place + onwards], ArrowLeft: all[place - onwards], Home: firstOf(sentence),
      ArrowDown: firstOf(sentence + 1), ArrowUp: firstOf(sentence - 1),
    }[event.key];
    if (next) { event.preventDefault(); next.focus(); }
  });
  sides.forEach((side) => { if (words[side].length) words[side][0].tabIndex = 0; });
};
