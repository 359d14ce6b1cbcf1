"use strict";
// Shows the selected layer in the heat maps of sources.
(() => {
  const select = document.getElementById("source-layer");
  if (!select) return;
  const layers = JSON.parse(document.getElementById("source-shares").textContent);
  const cells = [...document.querySelectorAll(".heat td[data-w]")];
  select.addEventListener("change", () => {
    const shares = layers[select.value];
    cells.forEach((cell) => {
      const value = shares[cell.dataset.w][cell.dataset.k];
      cell.textContent = value;
      cell.style.setProperty("--share", value / 100);
    });
  });
})();
