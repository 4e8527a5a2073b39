"use strict";
(() => {
  const form = document.querySelector(".filter");
  const search = form.querySelector("input[type=search]");
  const boxes = [...form.querySelectorAll("input[type=checkbox]")];
  const shown = form.querySelector("output");
  const rows = [...document.querySelectorAll("tr[data-state]")].map((row) => ({
    row, state: row.dataset.state, text: row.textContent.toLowerCase(), card: row.dataset.n,
  }));
  const cards = [...document.querySelectorAll(".host")];
  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const states = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    const used = new Set();
    let count = 0;
    for (const { row, state, text, card } of rows) {
      const on = states.has(state) && words.every((word) => text.includes(word));
      row.hidden = !on;
      if (on) used.add("d" + card);
      count += on;
    }
    for (const card of cards) card.hidden = !used.has(card.id);
    shown.textContent = `${count} of ${rows.length}`;
  };
  const open = () => {
    const target = /^#h\d+$/.test(location.hash) && document.getElementById(location.hash.slice(1));
    if (target) target.closest("details").open = true;
  };
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", open);
  form.hidden = false;
  apply();
  open();
})();
