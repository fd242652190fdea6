// How fast a judge goes: the median active time of the last items.

const LAST = 20;
const FEWEST = 3;
const PAUSE_MS = 120_000; // longer than that without a key or a touch is a pause and does not count

export class Pace {
  #times = [];
  #counted = new Set();
  #active = 0;
  #last = Date.now();

  /** The judge did something. */
  stir() {
    const now = Date.now();
    const since = now - this.#last;
    if (since <= PAUSE_MS) this.#active += since;
    this.#last = now;
  }

  /** An item has all its scores; the first time counts. */
  finish(slot) {
    if (this.#counted.has(slot)) return;
    this.#counted.add(slot);
    this.#times = [...this.#times, this.#active].slice(-LAST);
    this.#active = 0;
  }

  /** Seconds an item, or null before there is anything to tell. */
  get seconds() {
    if (this.#times.length < FEWEST) return null;
    const sorted = [...this.#times].sort((a, b) => a - b);
    const middle = sorted.length >> 1;
    const median = sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    return Math.max(1, Math.round(median / 1000));
  }

  words(done, items) {
    const told = [`${done} of ${items} scored`];
    if (this.seconds !== null && done < items) {
      told.push(`${this.seconds} s an item`, `${left(this.seconds * (items - done))} left`);
    }
    return told.join(" · ");
  }
}

function left(seconds) {
  const minutes = Math.round(seconds / 60);
  if (minutes < 1) return "less than a minute";
  if (minutes < 60) return `about ${minutes} min`;
  return `about ${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
