// The page. Texts come from models: they are put in as text, never as markup.

const at = (id) => document.getElementById(id);

export const PHONE = matchMedia("(max-width: 760px)");

const SAVING = {
  saved: () => "saved",
  saving: () => "saving…",
  away: () => "not saved: the server does not answer, trying again",
  login: () => "not saved: your session is over. Log in again in another tab; nothing is lost",
  refused: (message) => `not saved: ${message}. Load the page again to see what stands`,
};

export class View {
  #session;
  #fieldsets;
  #marks = [];
  #read; // the step whose rubric is shown

  constructor(session) {
    this.#session = session;
    this.#fieldsets = session.steps.map((step) => at(`step-${step.name}`));
    session.items.forEach((item, index) => this.#marks.push(this.#mark(index)));
    at("strip").append(...this.#marks.map((mark) => mark.parentElement));
  }

  fieldset(index) {
    return this.#fieldsets[index];
  }

  stepOf(element) {
    return this.#fieldsets.findIndex((fieldset) => fieldset.contains(element));
  }

  markOf(element) {
    return this.#marks.indexOf(element);
  }

  /** The item or the end, all of it. */
  show() {
    const { item, items, index } = this.#session;
    at("desk").hidden = !item;
    at("finish").hidden = Boolean(item);
    if (item) {
      at("item-heading").textContent = `Item ${index + 1} of ${items.length}`;
      showText("scenario", item.scenario);
      showText("candidate", item.candidate);
      at("note").value = item.given.note;
      at("back").disabled = index === 0;
    } else {
      this.#showEnd();
    }
    this.given();
    this.#marks.forEach((mark, n) => {
      if (n === index) mark.setAttribute("aria-current", "true");
      else mark.removeAttribute("aria-current");
      mark.tabIndex = n === index ? 0 : -1;
    });
    reveal(this.#marks[Math.min(index, this.#marks.length - 1)], at("strip"));
  }

  /** What is given of the item on show, and which step is in focus. */
  given() {
    const session = this.#session;
    if (session.item) {
      session.steps.forEach((step, n) => this.#showStep(step, this.#fieldsets[n]));
      this.refreshMark(session.index);
    }
    at("undo").disabled = !session.canUndo;
    this.step();
  }

  step() {
    const { steps } = this.#session;
    const read = this.#session.step ?? this.#read ?? steps[0];
    steps.forEach((step, n) => {
      this.#fieldsets[n].classList.toggle("in-focus", n === this.#session.at);
      at(`about-${step.name}`).hidden = step !== read;
      at(`meaning-${step.name}`).classList.toggle("shown", step === read);
    });
    if (read !== this.#read) at("rubric-body").scrollTop = at("meanings").scrollTop = 0;
    this.#read = read;
    at("rubric-title").textContent = read.title;
    this.level(null);
  }

  /** Lights up the level that is chosen, and the one that is pointed at. */
  level(pointed) {
    const { item } = this.#session;
    if (!item) return;
    const chosen = this.#session.value(item, this.#read);
    for (const [part, box] of [["meaning", at("meanings")], ["about", at("rubric-body")]]) {
      for (const level of document.querySelectorAll(`#${part}-${this.#read.name} .level`)) {
        const score = Number(level.dataset.score);
        level.classList.toggle("chosen", score === chosen);
        level.classList.toggle("pointed", score === pointed);
        if (score === (pointed ?? chosen)) reveal(level, box);
      }
    }
  }

  focusHeading() {
    at(this.#session.item ? "item-heading" : "finish-heading").focus({ preventScroll: true });
    if (PHONE.matches) at("judging").scrollIntoView();
    else scrollTo({ top: 0 });
  }

  /** Puts the focus where the session is. */
  focusStep() {
    const fieldset = this.#fieldsets[this.#session.at];
    const target = fieldset?.querySelector("input:checked") ?? fieldset?.querySelector("input") ?? at("next");
    target.focus({ preventScroll: true });
    (fieldset ?? target).scrollIntoView({ block: "nearest" });
  }

  refreshMark(index) {
    const session = this.#session;
    const item = session.items[index];
    const complete = session.isComplete(item);
    const told = [`Item ${index + 1}`, complete ? "scored" : "not scored"];
    if (item.given.note) told.push("with a note");
    const mark = this.#marks[index];
    mark.classList.toggle("scored", complete);
    mark.classList.toggle("noted", Boolean(item.given.note));
    mark.setAttribute("aria-label", told.join(", "));
    mark.title = told.join(", ");
  }

  introduction(open) {
    if (open) at("rubric-fold").open = true;
    at("introduction").open = open;
    at("rubric-body").scrollTop = 0;
  }

  progress(words) {
    at("pace").textContent = words;
    at("progress").value = this.#session.done;
    at("unscored").disabled = this.#session.done === this.#session.items.length;
    if (!this.#session.item) this.#showEnd();
  }

  saving({ kind, message }) {
    at("saving").dataset.state = kind;
    at("saving").textContent = SAVING[kind](message);
  }

  announce(text) {
    at("announcement").textContent = text;
  }

  #showEnd() {
    const { items, done } = this.#session;
    const open = items.length - done;
    at("finish-heading").textContent = open
      ? `${open} of ${items.length} items ${open === 1 ? "is" : "are"} not scored yet`
      : `All ${items.length} items are scored`;
    at("finish-text").textContent = open
      ? "A batch is handed in as a whole. What you have given so far is kept."
      : "Look at any of them again, or hand the batch in. After that nothing can be changed here.";
    at("first-unscored").hidden = !open;
    at("hand-in").hidden = open > 0;
    at("hand-in").disabled = false;
  }

  handingIn(words) {
    at("finish-text").textContent = words;
    at("hand-in").disabled = true;
  }

  notHandedIn(message) {
    this.#showEnd();
    at("finish-text").textContent = `Not handed in: ${message}. Nothing is lost.`;
    this.announce(at("finish-text").textContent);
  }

  #showStep(step, fieldset) {
    const { item } = this.#session;
    const value = this.#session.value(item, step);
    for (const radio of fieldset.querySelectorAll("input")) radio.checked = Number(radio.value) === value;
    fieldset.classList.toggle("given", value !== null);
    if (step.part !== "flags") return;
    const tag = at(`checked-${step.name}`);
    const byCode = Object.hasOwn(item.checked, step.name);
    const overruled = byCode && value !== Number(item.checked[step.name]);
    tag.classList.toggle("overruled", overruled);
    tag.textContent = overruled ? "overruled" : byCode ? "checked by code" : "to be answered";
  }

  #mark(index) {
    const mark = document.createElement("button");
    mark.type = "button";
    mark.textContent = index + 1;
    const entry = document.createElement("li");
    entry.append(mark);
    return mark;
  }
}

/** Scrolls a box, and nothing around it, until the element is in sight. */
function reveal(element, box) {
  const [inner, outer] = [element.getBoundingClientRect(), box.getBoundingClientRect()];
  if (inner.top < outer.top) box.scrollTop -= outer.top - inner.top;
  else if (inner.bottom > outer.bottom) box.scrollTop += Math.min(inner.bottom - outer.bottom, inner.top - outer.top);
  if (inner.left < outer.left) box.scrollLeft -= outer.left - inner.left;
  else if (inner.right > outer.right) box.scrollLeft += inner.right - outer.right;
}

function showText(id, { text, left_out: leftOut }) {
  const box = at(id);
  box.textContent = text;
  box.scrollTop = 0;
  box.classList.toggle("nothing", !text.trim());
  if (!text.trim()) box.textContent = "(empty)";
  at(`${id}-cut`).hidden = !leftOut;
  at(`${id}-cut`).textContent = `${leftOut.toLocaleString("en")} more characters are not shown.`;
}
