// What a judge has given so far, the place in the batch, and how to take a change back. Knows nothing of the page.

const STEPS_BACK = 1000;

export class Session {
  index = 0; // of the item on show; as many as there are items: the end
  at = 0; // the step in focus; as many as there are steps: the button "Next"
  typed = ""; // digits that may be the beginning of a longer number
  #past = []; // {index, field, before}

  constructor(sheet) {
    this.items = sheet.items;
    this.steps = sheet.steps.map((step) => ({ ...step, field: `${step.part}.${step.name}` }));
    this.#bySlot = new Map(this.items.map((item, index) => [item.slot, index]));
  }

  #bySlot;

  get item() {
    return this.items[this.index];
  }

  get step() {
    return this.steps[this.at];
  }

  get done() {
    return this.items.filter((item) => this.isComplete(item)).length;
  }

  get canUndo() {
    return this.#past.length > 0;
  }

  indexOf(slot) {
    return this.#bySlot.get(slot) ?? -1;
  }

  /** What is given: a number, or null. A flag stands as code checked it until a judge overrules it. */
  value(item, step) {
    if (step.part === "scores") return item.given.scores[step.name] ?? null;
    const flag = item.given.flags[step.name] ?? item.checked[step.name];
    return flag === undefined || flag === null ? null : Number(flag);
  }

  isComplete(item) {
    return this.steps.every((step) => this.value(item, step) !== null);
  }

  /** The next item from here that lacks something, round the end; -1 when none does. */
  nextUnscored(from) {
    const order = [...this.items.keys()].map((n) => (from + n) % this.items.length);
    return order.find((n) => !this.isComplete(this.items[n])) ?? -1;
  }

  show(index) {
    this.index = Math.max(0, Math.min(index, this.items.length));
    this.typed = "";
    const open = this.item ? this.steps.findIndex((step) => this.value(this.item, step) === null) : -1;
    this.at = Math.max(0, open);
  }

  /** To the next thing that a judge has to decide; a flag that code checked is none. */
  advance() {
    this.typed = "";
    const next = this.steps.findIndex((step, n) => n > this.at && !Object.hasOwn(this.item.checked, step.name));
    this.at = next < 0 ? this.steps.length : next;
  }

  give(value) {
    const { step, item } = this;
    const flag = step.part === "flags";
    const given = !flag ? value : Boolean(value) === item.checked[step.name] ? null : Boolean(value);
    return this.change(step.field, given);
  }

  /** Changes a field of the item on show; false when it stands so already. */
  change(field, value) {
    const before = read(this.item, field);
    if (before === value) return false;
    this.write(this.index, field, value);
    this.remember(field, before);
    return true;
  }

  remember(field, before) {
    this.#past = [...this.#past, { index: this.index, field, before }].slice(-STEPS_BACK);
  }

  write(index, field, value) {
    const [part, name] = field.split(".");
    if (name) this.items[index].given[part][name] = value;
    else this.items[index].given[part] = value;
  }

  /** Takes the last change back, where it was made; what was taken back, or null. */
  undo() {
    const last = this.#past.pop();
    if (!last) return null;
    this.write(last.index, last.field, last.before);
    this.show(last.index);
    const step = this.steps.findIndex(({ field }) => field === last.field);
    if (step >= 0) this.at = step;
    return { ...last, slot: this.item.slot, step: this.steps[step] ?? null };
  }

  /** What the server has, but for fields whose changes are still on their way; whether anything differs. */
  adopt(slot, given, isWaiting) {
    const index = this.indexOf(slot);
    if (index < 0) return false;
    const fields = [...this.steps.map(({ field }) => field), "note"];
    const other = fields.filter(
      (field) => !isWaiting(slot, field) && read(this.items[index], field) !== read({ given }, field),
    );
    for (const field of other) this.write(index, field, read({ given }, field));
    return other.length > 0;
  }
}

/** A digit more: the longest number on the scale wins, so that 10 can be typed where 1 is a score as well. */
export function readDigit(values, typed, digit) {
  const text = typed + digit;
  const fitting = values.map(String).filter((value) => value.startsWith(text));
  if (!fitting.length) return { fits: false };
  const exact = fitting.includes(text);
  return { fits: true, typed: text, value: exact ? Number(text) : null, settled: exact && fitting.length === 1 };
}

function read(item, field) {
  const [part, name] = field.split(".");
  return (name ? item.given[part][name] : item.given[part]) ?? null;
}
