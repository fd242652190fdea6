// The judging page: loads a batch, and leads keys, pointer and focus to the desk.

import { Desk, loadSheet } from "./judging-desk.js";
import { listenToKeys } from "./judging-keys.js";

const at = (id) => document.getElementById(id);

function listenToButtons(desk) {
  const clicks = {
    back: () => desk.go(-1),
    next: () => desk.go(1),
    undo: () => desk.undo(),
    unscored: () => desk.unscored(),
    "help-button": () => desk.help(),
    "finish-back": () => desk.go(-1),
    "first-unscored": () => desk.firstUnscored(),
    "hand-in": () => desk.handIn(),
  };
  for (const [id, action] of Object.entries(clicks)) at(id).addEventListener("click", action);
  at("strip").addEventListener("click", ({ target }) => desk.jump(target));
}

function listenToScoring(desk) {
  const scoring = at("scoring");
  scoring.addEventListener("submit", (event) => event.preventDefault());
  scoring.addEventListener("click", ({ target }) => target.matches("input[type=radio]") && desk.choose(target));
  scoring.addEventListener("focusin", ({ target }) => desk.turnTo(target));
  scoring.addEventListener("pointerover", ({ target }) => desk.pointAt(target.closest("label")?.control));
  scoring.addEventListener("pointerout", () => desk.pointAt(null));
  at("note").addEventListener("input", ({ target }) => desk.writeNote(target.value.toWellFormed()));
  at("note").addEventListener("blur", () => desk.closeNote());
}

async function start() {
  const page = at("judging");
  const { base, batch } = page.dataset;
  const sheet = await loadSheet(base);
  if (sheet.problem) {
    at("judging-trouble").textContent = `${sheet.problem} Load the page again; what you have given is kept.`;
    at("judging-trouble").hidden = false;
    return;
  }
  const desk = new Desk(base, batch, sheet);
  page.hidden = false;
  desk.open();
  listenToKeys(desk, at("help"), at("note"));
  listenToButtons(desk);
  listenToScoring(desk);
  for (const kind of ["keydown", "pointerdown", "wheel"]) {
    addEventListener(kind, () => desk.stir(), { capture: true, passive: true });
  }
  addEventListener("pageshow", ({ persisted }) => persisted && location.reload()); // it may be handed in by now
}

start();
