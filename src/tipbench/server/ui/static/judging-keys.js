// Which key does what.

const DIGITS = /^[0-9-]$/;

export function listenToKeys(desk, dialog, note) {
  document.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const action = actionOf(event, desk, dialog, note);
    if (!action) return;
    event.preventDefault();
    action();
  });
}

function actionOf(event, desk, dialog, note) {
  if (dialog.open) return inDialog(event, dialog);
  return event.target === note ? inNote(event, desk) : anywhere(event, desk);
}

function inDialog(event, dialog) {
  return event.key === "?" ? () => dialog.close() : null;
}

function inNote(event, desk) {
  if (event.key === "Escape") return () => desk.leaveNote();
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) return () => desk.go(1);
  return null;
}

function anywhere(event, desk) {
  const { key } = event;
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && key.toLowerCase() === "z") {
    return () => desk.undo();
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  if (DIGITS.test(key)) return () => event.repeat || desk.type(key); // a key held down is one score
  switch (key) {
    case "Enter":
      return pressesSomething(event.target) ? null : () => event.repeat || desk.enter();
    case "ArrowRight":
      return () => desk.go(1);
    case "ArrowLeft":
    case "Backspace":
      return () => desk.go(-1);
    case "ArrowUp":
      return scrolls(event.target) ? null : () => desk.nudge(1);
    case "ArrowDown":
      return scrolls(event.target) ? null : () => desk.nudge(-1);
    case "f":
      return () => desk.unscored();
    case "n":
      return () => desk.note();
    case "u":
      return () => desk.undo();
    case "r":
      return () => desk.introduction();
    case "?":
      return () => desk.help();
    default:
      return null;
  }
}

/** Where Enter has a meaning of its own. */
function pressesSomething(target) {
  return target.id !== "next" && target.closest("button, a, summary") !== null;
}

/** A box of text that has the focus is scrolled by the arrows. */
function scrolls(target) {
  return target.closest(".written, .rubric-body") !== null && !target.closest("fieldset");
}
