// What a judge can do at the desk. All items are here from the start, so a key always meets the item that is on show.

import { Outbox } from "./judging-outbox.js";
import { Pace } from "./judging-pace.js";
import { Session, readDigit } from "./judging-session.js";
import { PHONE, View } from "./judging-view.js";

const NOTE_DELAY_MS = 400;
const at = (id) => document.getElementById(id);

export class Desk {
  #base;
  #batch;
  #session;
  #view;
  #outbox;
  #pace = new Pace();
  #news = ""; // to be announced once it is saved
  #noteBefore = null;
  #opened = false;
  #handsIn = false; // as soon as everything is saved

  /** sheet: what items.json holds. */
  constructor(base, batch, sheet) {
    this.#base = base;
    this.#batch = batch;
    this.#session = new Session(sheet);
    const token = document.querySelector("meta[name=csrf-token]").content;
    this.#outbox = new Outbox(base, batch, token, {
      saved: (slot, given) => this.#saved(slot, given),
      changed: () => this.#savingChanged(),
    });
    for (const [slot, field, value] of this.#outbox.takeUp()) {
      const index = this.#session.indexOf(slot);
      if (index >= 0) this.#session.write(index, field, value);
    }
    this.#view = new View(this.#session);
    this.#session.items.forEach((item, index) => this.#view.refreshMark(index));
    this.#view.saving(this.#outbox.state);
  }

  open() {
    const kept = this.#session.indexOf(sessionStorage.getItem(this.#placeKey) ?? "");
    const unscored = this.#session.nextUnscored(0);
    if (PHONE.matches) at("rubric-fold").open = false;
    this.show([kept, unscored].find((index) => index >= 0) ?? this.#session.items.length);
    this.#tellProgress();
  }

  /** The judge did something. */
  stir() {
    this.#pace.stir();
  }

  show(index) {
    this.closeNote();
    this.#handsIn = false;
    if (this.#session.index !== index && this.#opened) this.#view.introduction(false); // read by now
    this.#opened = true;
    this.#session.show(index);
    this.#view.show();
    this.#view.focusHeading();
    sessionStorage.setItem(this.#placeKey, this.#session.item?.slot ?? "");
  }

  go(by) {
    const { index, items } = this.#session;
    if (index + by >= 0 && index + by <= items.length) this.show(index + by);
  }

  /** Goes on: past a number that could become longer, else to the next item. */
  enter() {
    if (!this.#session.item) return;
    if (this.#session.typed) this.#advance();
    else this.go(1);
  }

  type(digit) {
    const session = this.#session;
    if (!session.item) return;
    if (!session.step) {
      this.#view.announce("Enter goes to the next item.");
      return;
    }
    const { values, title } = session.step;
    const reading = readDigit(values, session.typed, digit);
    if (reading.fits) {
      session.typed = reading.typed;
      if (reading.value !== null) this.#give(reading.value);
      if (reading.settled) this.#advance();
    } else if (session.typed) {
      const whole = values.map(String).includes(session.typed); // what was typed before is a number of its own
      session.typed = "";
      if (whole) this.#advance();
      this.type(digit);
    } else {
      this.#view.announce(`${title} goes from ${Math.min(...values)} to ${Math.max(...values)}.`);
    }
  }

  nudge(by) {
    const { item, step } = this.#session;
    if (!item || !step) return;
    const [low, high] = [Math.min(...step.values), Math.max(...step.values)];
    const value = this.#session.value(item, step);
    this.#session.typed = "";
    this.#give(value === null ? (by > 0 ? low : high) : Math.max(low, Math.min(high, value + by)));
    this.#view.focusStep();
  }

  /** A score by pointer or space bar. */
  choose(radio) {
    this.#session.at = this.#view.stepOf(radio);
    this.#give(Number(radio.value));
    this.#advance();
  }

  /** The focus came to an element of the form. */
  turnTo(element) {
    const step = this.#view.stepOf(element);
    if (step < 0 || step === this.#session.at) return;
    this.#session.at = step;
    this.#session.typed = "";
    this.#view.step();
  }

  /** The pointer is over a score of the criterion in focus, or over none. */
  pointAt(radio) {
    if (!radio) this.#view.level(null);
    else if (this.#view.stepOf(radio) === this.#session.at) this.#view.level(Number(radio.value));
  }

  jump(mark) {
    const index = this.#view.markOf(mark);
    if (index >= 0) this.show(index);
  }

  firstUnscored() {
    this.show(this.#session.nextUnscored(0));
  }

  unscored() {
    const found = this.#session.nextUnscored(this.#session.index + 1);
    this.show(found < 0 ? this.#session.items.length : found);
  }

  note() {
    if (this.#session.item) at("note").focus();
  }

  leaveNote() {
    this.closeNote();
    this.#view.focusStep();
  }

  undo() {
    this.#handsIn = false;
    const undone = this.#session.undo();
    if (!undone) {
      this.#view.announce("There is nothing to undo.");
      return;
    }
    this.#outbox.put(undone.slot, undone.field, undone.before);
    this.#view.show();
    if (undone.step) this.#view.focusStep();
    else this.#view.focusHeading();
    const what = undone.step ? `${undone.step.title} ${this.#shown(undone.step)}` : "Note";
    this.#tell(`Undone. ${what}.`);
  }

  introduction() {
    this.#view.introduction(!at("introduction").open);
  }

  help() {
    at("help").showModal();
  }

  #give(value) {
    const session = this.#session;
    const { step, item } = session;
    if (session.give(value)) {
      this.#outbox.put(item.slot, step.field, item.given[step.part][step.name]);
      if (session.isComplete(item)) this.#pace.finish(item.slot);
      this.#tell(`${step.title} ${this.#shown(step)}.`);
    }
    this.#view.given();
  }

  #advance() {
    this.#session.advance();
    this.#view.step();
    this.#view.focusStep();
  }

  #shown(step) {
    const value = this.#session.value(this.#session.item, step);
    if (value === null) return "without a score";
    return step.part === "scores" ? value : value ? "yes" : "no";
  }

  #tell(what) {
    this.#news = `Item ${this.#session.index + 1} of ${this.#session.items.length}. ${what}`;
    this.#tellProgress();
  }

  #tellProgress() {
    this.#view.progress(this.#pace.words(this.#session.done, this.#session.items.length));
  }

  writeNote(text) {
    const { item, index } = this.#session;
    this.#noteBefore ??= item.given.note;
    this.#session.write(index, "note", text);
    this.#outbox.put(item.slot, "note", text, NOTE_DELAY_MS);
    this.#view.refreshMark(index);
  }

  /** What was written in one go is one step to undo. */
  closeNote() {
    const { item } = this.#session;
    if (this.#noteBefore === null || !item) return;
    if (this.#noteBefore !== item.given.note) {
      this.#session.remember("note", this.#noteBefore);
      this.#tell("Note.");
      this.#view.given();
    }
    this.#noteBefore = null;
  }

  #saved(slot, given) {
    const differs = this.#session.adopt(slot, given, (one, field) => this.#outbox.isWaiting(one, field));
    if (!differs) return;
    this.#view.refreshMark(this.#session.indexOf(slot));
    if (slot === this.#session.item?.slot) {
      this.#view.given();
      if (document.activeElement !== at("note")) at("note").value = given.note;
    }
    this.#tellProgress();
  }

  #savingChanged() {
    const { state } = this.#outbox;
    this.#view.saving(state);
    if (state.kind === "saving") return;
    const told = state.kind === "saved" ? "Saved." : `${at("saving").textContent}.`;
    this.#view.announce(`${this.#news} ${told}`.trim());
    this.#news = "";
    if (state.kind === "saved" && this.#handsIn) this.handIn();
  }

  get #placeKey() {
    return `tipbench-judging/${this.#batch}`;
  }

  async handIn() {
    this.#handsIn = this.#outbox.size > 0;
    if (this.#handsIn) {
      this.#view.handingIn("It is handed in as soon as everything is saved.");
      return;
    }
    this.#view.handingIn("Handing in…");
    const { done, message, first } = await this.#outbox.handIn();
    if (done) {
      location.assign(`${this.#base}/report`);
      return;
    }
    if (first) await this.#lookAgain();
    this.#view.notHandedIn(message);
  }

  /** The server lacks a score that this page shows, since another device took it back: its word counts. */
  async #lookAgain() {
    const sheet = await loadSheet(this.#base);
    for (const { slot, given } of sheet.items ?? []) this.#saved(slot, given);
  }
}

/** What items.json holds, or {problem}. */
export async function loadSheet(base) {
  const response = await fetch(`${base}/items.json`, { cache: "no-store" }).catch(() => null);
  if (!response) return { problem: "The server does not answer." };
  if (!response.ok) return { problem: `The items can't be read: the server answered ${response.status}.` };
  return response.json();
}
