// Shows an API with Swagger UI. Where the server has no login, it asks for the service's key first.
"use strict";

const { openapi, csrf } = document.body.dataset;
const form = document.getElementById("key");
let key = "";

function withCredentials(request) {
  if (key) request.headers["Authorization"] = `Bearer ${key}`;
  if (csrf) request.headers["X-CSRF-Token"] = csrf;
  return request;
}

function show(spec) {
  form.hidden = true;
  SwaggerUIBundle({
    spec,
    domNode: document.getElementById("api"),
    deepLinking: true,
    requestInterceptor: withCredentials,
    validatorUrl: null,
  });
}

async function load() {
  const response = await fetch(openapi, { headers: withCredentials({ headers: {} }).headers });
  const answer = await response.json();
  if (response.ok) {
    show(answer);
  } else {
    form.hidden = false;
    if (key) form.querySelector("[role=alert]").textContent = answer.error.message;
    form.querySelector("input").focus();
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  key = form.querySelector("input").value.trim();
  load();
});
load();
