// Loads a page again that has to be waited for. The browser's own refresh does not: where the address leads into the page
// (/mlflow/#/experiments/…), it takes that for a jump within what is there.

const waiting = document.querySelector("[data-reload-s]");
setTimeout(() => location.reload(), Number(waiting.dataset.reloadS) * 1000);
