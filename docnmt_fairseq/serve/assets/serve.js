"use strict";
// Sends a text, shows its sentences and translations as they arrive, then the viewer.
(() => {
  const find = (id) => document.getElementById(id);
  const [form, text, go, stop, alone, status, result, file, format] =
    ["form", "text", "go", "stop", "alone", "status", "result", "file", "format"].map(find);
  let running = null; // AbortController of the running request
  let shown = { request: null, translations: [], without: null, file: null }; // request: by context

  const element = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
    made.append(...children);
    return made;
  };
  const tell = (message, error = false) => {
    status.textContent = message;
    status.classList.toggle("error", error);
  };
  const counted = (number) => `${number} sentence${number === 1 ? "" : "s"}`;
  const wordsOf = (sentence) => sentence.split(/\s+/).filter(Boolean);

  // Error message of a response, also of a proxy.
  const reason = async (response) => {
    const told = await response.json().catch(() => ({}));
    return told.error || `No answer: ${response.status} ${response.statusText}`;
  };

  // Requests for the translation of a text or a file.
  const asked = (path, body) => [path, { headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ...body, stream: true }) }];
  const askedOf = (taken, context) => [`v1/files?${new URLSearchParams({ name: taken.name, format: format.value, context, stream: true })}`, { body: taken }];

  // Objects of a response, one per line.
  const objects = async function* ([path, request], signal) {
    const response = await fetch(path, { method: "POST", signal, ...request });
    if (!response.ok) throw new Error(await reason(response));
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        const found = JSON.parse(line);
        if (found.error) throw new Error(found.error);
        yield found;
      }
    }
  };

  const spans = (sentence) => wordsOf(sentence).flatMap((word) => [element("span", { class: "word" }, word), " "]);
  const row = (number, found, before) => {
    const paragraph = before && before.paragraph !== found.paragraph ? " paragraph" : "";
    return element("div", { class: `sentence${paragraph}`, "data-s": number },
      element("div", { class: "number" }, String(number + 1), element("span", { class: "value" })),
      element("p", { class: "source", lang: result.dataset.source, dir: "auto" }, found.source),
      element("p", { class: "translation", lang: result.dataset.target, dir: "auto" }, ...spans(found.translation)));
  };

  // Marks the words of two sentences that are not in their longest common subsequence.
  const difference = (one, other) => {
    const length = Array.from({ length: one.length + 1 }, () => new Uint16Array(other.length + 1));
    for (let i = one.length - 1; i >= 0; i--)
      for (let j = other.length - 1; j >= 0; j--)
        length[i][j] = one[i] === other[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
    const changed = [one.map(() => true), other.map(() => true)];
    for (let i = 0, j = 0; i < one.length && j < other.length; ) {
      if (one[i] === other[j]) changed[0][i++] = changed[1][j++] = false;
      else if (length[i + 1][j] >= length[i][j + 1]) i++;
      else j++;
    }
    return changed;
  };

  // Words of the viewer can be split differently from those of the text; their letters are the same.
  const markWords = (paragraph, words, changed) => {
    const letters = words.flatMap((word, place) => [...word].map((letter) => [letter, changed[place]]));
    const spans = [...paragraph.querySelectorAll(".word")].map((span) => [span, [...span.textContent]]);
    if (spans.flatMap(([, own]) => own).join("") !== letters.map(([letter]) => letter).join("")) return;
    let place = 0;
    spans.forEach(([span, own]) => {
      span.classList.toggle("changed", letters.slice(place, place + own.length).some(([, differs]) => differs));
      place += own.length;
    });
  };

  const compare = () => {
    result.querySelectorAll(".alone").forEach((line) => line.remove());
    result.querySelectorAll(".changed").forEach((word) => word.classList.remove("changed"));
    if (!alone.checked || !shown.without) return 0;
    const rows = [...result.querySelectorAll(".sentence")];
    return shown.without.filter((other, number) => {
      const own = shown.translations[number];
      if (!rows[number] || own === other) return false;
      const [words, others] = [wordsOf(own), wordsOf(other)], [changed, otherChanged] = difference(words, others);
      const parts = others.flatMap((word, place) => [otherChanged[place] ? element("mark", {}, word) : word, " "]);
      rows[number].append(element("p", { class: "alone" }, "without context: ", element("span", { dir: "auto" }, ...parts)));
      markWords(rows[number].querySelector(".translation"), words, changed);
      return true;
    }).length;
  };

  // Shows sentence by sentence; returns the last object.
  const showSentences = async (context, signal) => {
    result.replaceChildren();
    let before = null;
    for await (const found of objects(shown.request(context), signal)) {
      if (found.done) return found;
      result.append(row(shown.translations.length, found, before));
      shown.translations.push(found.translation);
      before = found;
      tell(`${counted(shown.translations.length)} …`);
    }
    throw new Error("The response is incomplete.");
  };

  // Copies text also where the browser has no clipboard for scripts: pages of other machines without HTTPS.
  const copy = (content) => {
    const fill = (event) => { event.clipboardData.setData("text/plain", content); event.preventDefault(); };
    document.addEventListener("copy", fill, { once: true });
    tell(document.execCommand("copy") ? "copied" : "The browser does not allow copying; use Download.");
    document.removeEventListener("copy", fill);
  };
  const linkTo = (content, name, title) => element("a", { href: URL.createObjectURL(new Blob([content])), download: name }, title);
  const offer = (content) => {
    const button = element("button", { type: "button", id: "copy" }, "Copy translation");
    button.addEventListener("click", () => copy(content));
    result.prepend(element("p", { class: "actions" }, button, linkTo(content, `translation.${result.dataset.target}.txt`, "Download")));
  };

  const translateText = (content) => async (signal) => {
    const request = (context) => asked(context === "none" ? "v1/translate" : "v1/inspect",
      context === "none" ? { text: content, context } : { text: content, viewer: true });
    shown = { request, translations: [], without: null };
    const found = await showSentences("document", signal);
    if (!found.viewer) {
      result.prepend(element("p", { class: "note" }, `Attention is not shown: ${found.not_inspected}.`));
      offer(found.text);
      return;
    }
    result.innerHTML = found.viewer; // the server escapes all text
    result.querySelectorAll(".translation:not(:has(.w))").forEach((line, number) => line.replaceChildren(...spans(shown.translations[number])));
    showViews(found.inspection);
    offer(found.text);
  };

  const translateFile = (taken) => async (signal) => {
    shown = { request: (context) => askedOf(taken, context), translations: [], without: null, file: taken };
    tell(`${taken.name} …`);
    const found = await showSentences("document", signal);
    const content = Uint8Array.from(atob(found.file), (letter) => letter.charCodeAt(0));
    result.prepend(element("p", { class: "file" }, "Translated: ", linkTo(content, taken.name, taken.name)));
  };

  const translateAlone = async (signal) => {
    const without = [];
    for await (const found of objects(shown.request("none"), signal)) {
      if (found.done) {
        shown.without = without;
        return;
      }
      without.push(found.translation);
      tell(`without context: ${counted(without.length)} …`);
    }
    throw new Error("The response is incomplete.");
  };

  const run = async (...steps) => {
    if (running) running.abort();
    const own = (running = new AbortController());
    const busy = (yes) => { go.disabled = yes; stop.disabled = !yes; result.setAttribute("aria-busy", yes); };
    busy(true);
    try {
      for (const step of steps) await step(own.signal);
      const changes = compare();
      const total = shown.translations.length, without = alone.checked && shown.without;
      tell(total ? counted(total) + (without ? `, ${changes} of them ${changes === 1 ? "differs" : "differ"} without context` : "") : "");
    } catch (error) {
      compare();
      if (own.signal.aborted) tell("stopped");
      else tell(error.message, true);
    } finally {
      if (running === own) { running = null; busy(false); }
    }
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!text.value.trim()) { tell("There is no text yet."); return; }
    run(translateText(text.value), ...(alone.checked ? [translateAlone] : []));
  });
  stop.addEventListener("click", () => running && running.abort());
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  alone.addEventListener("change", () => {
    if (running || !shown.translations.length) return;
    if (alone.checked && !shown.without) run(translateAlone);
    else run();
  });

  // Puts plain text into the field; translates files of other formats as files.
  const plain = ["txt", "text", "src", result.dataset.source.toLowerCase()];
  const take = async (taken) => {
    if (!taken) return;
    const [, ending] = taken.name.toLowerCase().match(/\.([^.]*)$/) || [];
    if (!format.value && (ending === undefined || plain.includes(ending))) {
      try {
        text.value = new TextDecoder("utf-8", { fatal: true }).decode(await taken.arrayBuffer());
      } catch {
        tell(`${taken.name}: not UTF-8; convert the file to UTF-8`, true);
        return;
      }
      form.requestSubmit();
    } else {
      run(translateFile(taken), ...(alone.checked ? [translateAlone] : []));
    }
  };
  file.addEventListener("change", () => take(file.files[0]));
  format.addEventListener("change", () => take(shown.file));
  file.addEventListener("click", () => (file.value = "")); // choosing the same file again is a change
  // Anywhere on the page: next to the field, the browser would leave the page and show what was dropped.
  const page = document.body;
  document.addEventListener("dragover", (event) => {
    const files = [...event.dataTransfer.types].includes("Files");
    if (files || event.target !== text) event.preventDefault();
    page.classList.toggle("target", files);
  });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) page.classList.remove("target"); });
  document.addEventListener("drop", (event) => {
    page.classList.remove("target");
    const files = event.dataTransfer.files.length > 0;
    if (files || event.target !== text) event.preventDefault(); // the browser puts dropped text into the field
    if (files) take(event.dataTransfer.files[0]);
  });

  fetch("v1/model").then((response) => response.json()).then((model) => {
    const facts = Object.entries({ ...model.properties, beam: model.beam });
    format.append(...model.formats.map((name) => element("option", { value: name }, name)));
    find("facts").append(...facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, String(value)))));
  });
})();
