/**
 * Scripts of individual pages. Everything works without them except the live list and the playground's streamed
 * answers.
 */

/**
 * `copy.js`: makes buttons copy the text of the element before them. Without access to the clipboard, they select it.
 */
const COPY = `
show();
document.addEventListener("shown", show);
document.addEventListener("click", async ({ target }) => {
  if (!target.matches("button.copy")) return;
  const of = target.previousElementSibling;
  try {
    await navigator.clipboard.writeText(of.textContent);
    target.textContent = "Copied";
    setTimeout(() => target.textContent = "Copy", 1500);
  } catch {
    getSelection().selectAllChildren(of);
  }
});
function show() {
  for (const button of document.querySelectorAll("button.copy")) button.hidden = false;
}
`;

/** `live.js`: reloads the list of requests when the stream of requests reports new ones. */
const LIVE = `
const button = document.getElementById("live");
let stream, due, isStale;
button.hidden = false;
button.addEventListener("click", () => stream === undefined ? start() : stop());
function start() {
  stream = new EventSource(button.dataset.stream);
  stream.addEventListener("request", () => due === undefined ? due = setTimeout(refresh, 250) : isStale = true);
  // The browser connects again by itself, unless it was refused.
  stream.addEventListener("error", () => stream?.readyState === EventSource.CLOSED && stop());
  button.setAttribute("aria-pressed", "true");
  due = setTimeout(refresh);
}
function stop() {
  stream?.close();
  stream = undefined;
  button.setAttribute("aria-pressed", "false");
}
async function refresh() {
  isStale = false;
  const response = await fetch(location.href).catch(() => undefined);
  // A request that ended while the page was loaded may not be on it.
  due = isStale && stream !== undefined ? setTimeout(refresh, 250) : undefined;
  if (response === undefined) return;
  if (!response.ok || response.redirected) return stop();
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const fresh = page.getElementById("requests");
  if (fresh === null || stream === undefined) return;
  const shown = new Set([...document.querySelectorAll("#requests a")].map(({ href }) => href));
  for (const link of fresh.querySelectorAll("a")) if (!shown.has(link.href)) link.closest("tr")?.classList.add("new");
  document.getElementById("requests").replaceWith(fresh);
  document.dispatchEvent(new Event("shown"));
}
`;

/** `playground.js`: sends the form, and shows the answers as they arrive and finally the panels made by the server. */
const PLAYGROUND = `
const form = document.getElementById("playground");
const results = document.getElementById("results");
let sending;
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  sending?.abort();
  const own = sending = new AbortController();
  results.replaceChildren();
  results.setAttribute("aria-busy", "true");
  try {
    const response = await fetch(form.getAttribute("action"), {
      method: "POST",
      headers: { accept: "application/x-ndjson" },
      body: new URLSearchParams(new FormData(form, event.submitter)),
      signal: own.signal,
    });
    if (response.headers.get("content-type") === "application/x-ndjson") await read(response.body);
    else replace(results, await response.text(), "main > :not(h1)");
    if (results.children.length === 0) throw new Error("status " + response.status);
  } catch (error) {
    if (own.signal.aborted) return;
    results.append("There is no answer: " + error.message);
  } finally {
    if (own === sending) {
      sending = undefined;
      results.removeAttribute("aria-busy");
    }
  }
});
async function read(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + decoder.decode(value, { stream: true })).split("\\n");
    rest = lines.pop();
    for (const line of lines) show(JSON.parse(line));
  }
}
function show({ side, text, html }) {
  while (results.children.length <= side) {
    const section = document.createElement("section");
    section.append(Object.assign(document.createElement("pre"), { className: "answer" }));
    results.append(section);
  }
  if (text !== undefined) results.children[side].querySelector("pre").append(text);
  if (html !== undefined) replace(results.children[side], html, "body > section > *");
}
function replace(place, html, selector) {
  const page = new DOMParser().parseFromString(html, "text/html");
  place.replaceChildren(...page.querySelectorAll(selector));
  document.dispatchEvent(new Event("shown"));
}
`;

/** Texts of the scripts by file name. */
export const SCRIPTS = { "copy.js": COPY, "live.js": LIVE, "playground.js": PLAYGROUND } as const;
