// Reordering by pointer (mouse, pen, finger) and by keys. Nothing moves before the pointer is released elsewhere.

import { icon } from "./icons.js";
import { h } from "./vdom.js";

/** A grip inside an `li`; `onmove(index)` gets the new place. */
export function dragHandle({ label, onmove, index }) {
  return h("button", {
    type: "button", class: "grip", "aria-label": label, title: "Drag, or press the arrow keys",
    onpointerdown: (event) => begin(event, index, onmove),
    onkeydown: (event) => {
      const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      onmove(index + step);
    },
  }, icon("grip"));
}

function begin(event, from, onmove) {
  if (event.button !== 0) return;
  event.preventDefault();
  const row = event.currentTarget.closest("li");
  const rows = [...row.parentNode.children];
  const middles = rows.map((one) => one.getBoundingClientRect()).map((box) => box.top + scrollY + box.height / 2);
  const start = event.clientY + scrollY;
  const grip = event.currentTarget;
  let place = from;
  const height = row.offsetHeight;

  const follow = (moved) => {
    const offset = moved.clientY + scrollY - start;
    const middle = middles[from] + offset;
    place = middles.filter((one, index) => index !== from && one < middle).length;
    row.style.setProperty("transform", `translateY(${offset}px)`);
    rows.forEach((one, index) => {
      if (one === row) return;
      const shift = (index > from && index <= place ? -height : 0) + (index < from && index >= place ? height : 0);
      one.style.setProperty("transform", shift ? `translateY(${shift}px)` : "none");
    });
  };
  const end = (ended) => {
    for (const type of ["pointermove", "pointerup", "pointercancel"]) grip.removeEventListener(type, type === "pointermove" ? follow : end);
    row.classList.remove("dragged");
    rows.forEach((one) => one.style.removeProperty("transform"));
    if (ended.type === "pointerup" && place !== from) onmove(place);
    grip.focus();
  };
  row.classList.add("dragged");
  grip.setPointerCapture(event.pointerId);
  grip.addEventListener("pointermove", follow);
  grip.addEventListener("pointerup", end);
  grip.addEventListener("pointercancel", end);
}
