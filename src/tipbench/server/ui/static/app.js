// The little that the panel's pages need beside htmx: the token, dialogs, the log's end, and what to say when the server is away.

const trouble = document.getElementById("trouble");

document.addEventListener("htmx:configRequest", (event) => {
  event.detail.headers["X-CSRF-Token"] = document.querySelector('meta[name="csrf-token"]').content;
});

// Where all pages have no room beside each other, the one that is open is in view.
document.querySelector(".bar nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });

// The server away, or an answer that nothing was made for: said once, taken back by the next answer that is fine.
function say(text) {
  if (trouble.textContent !== text) trouble.textContent = text;
  trouble.hidden = !text;
  const waits = text && document.querySelector("dialog[open] .waits"); // the line lies behind an open dialog
  if (waits) waits.textContent = text;
}
document.addEventListener("htmx:sendError", () => say("The server does not answer; trying again."));
document.addEventListener("htmx:responseError", (event) =>
  say(`That did not work: the server answered with status ${event.detail.xhr.status}. Its log may say more.`));
document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.successful) say("");
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-opens], [data-closes], [data-copies], [data-field]");
  if (!button) return;
  if (button.dataset.opens) document.getElementById(button.dataset.opens).showModal();
  else if ("closes" in button.dataset) button.closest("dialog").close();
  else if (button.dataset.copies) copy(button);
  else if (goTo(document.getElementById(button.dataset.field))) event.preventDefault();
});

// To a field that has a problem, out of whatever is folded around it.
function goTo(field) {
  if (!field) return false;
  const folded = field.closest("details");
  if (folded) folded.open = true;
  field.focus();
  return true;
}

// What was wrong with a run is old news as soon as its form is changed.
document.addEventListener("input", (event) => {
  if (event.target.closest("#run-form")) document.getElementById("run-problems").replaceChildren();
});

// The button that was pressed is out of reach while the server looks at it, and the focus with it.
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id.endsWith("-problems")) event.detail.target.querySelector(".alert")?.focus();
});

// Where the page came by plain http from elsewhere, browsers offer no clipboard: the text is selected instead.
async function copy(button) {
  const source = document.getElementById(button.dataset.copies);
  try {
    await navigator.clipboard.writeText(source.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(source);
    button.textContent = "Selected: press Ctrl+C";
  }
}

// A log stays at its end, unless somebody has scrolled up to read.
let readFrom = null;
function keepLog(log) {
  if (log) log.scrollTop = readFrom ?? log.scrollHeight;
}
document.addEventListener("htmx:beforeSwap", () => {
  const log = document.querySelector("[data-log]");
  const atEnd = !log || log.scrollHeight - log.scrollTop - log.clientHeight < 8;
  readFrom = atEnd ? null : log.scrollTop;
});
document.addEventListener("htmx:afterSwap", () => keepLog(document.querySelector("[data-log]")));
keepLog(document.querySelector("[data-log]"));

// One box at a time asks whether it is meant, and Escape takes the question back.
document.addEventListener("keydown", (event) => {
  const asking = event.key === "Escape" && document.querySelector("details.confirm[open]");
  if (!asking) return;
  asking.open = false;
  asking.querySelector("summary").focus();
});
