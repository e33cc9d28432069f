/** Scripts of single pages. Every page but the live tail and the streaming playground works without them. */

/** `copy.js`: buttons that copy the text of the element before them. Without a clipboard they select it. */
const COPY = `
for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const of = button.previousElementSibling;
    try {
      await navigator.clipboard.writeText(of.textContent);
      button.textContent = "Copied";
      setTimeout(() => button.textContent = "Copy", 1500);
    } catch {
      getSelection().selectAllChildren(of);
    }
  });
}
`;

/** `live.js`: loads the list of requests again when the stream of requests says that there are new ones. */
const LIVE = `
const button = document.getElementById("live");
let stream, due;
button.hidden = false;
button.addEventListener("click", () => stream === undefined ? start() : stop());
function start() {
  stream = new EventSource(button.dataset.stream);
  stream.addEventListener("request", () => due ??= setTimeout(refresh, 250));
  // The browser connects again by itself, unless it was refused.
  stream.addEventListener("error", () => stream?.readyState === EventSource.CLOSED && stop());
  button.setAttribute("aria-pressed", "true");
  refresh();
}
function stop() {
  stream?.close();
  stream = undefined;
  button.setAttribute("aria-pressed", "false");
}
async function refresh() {
  const response = await fetch(location.href).catch(() => undefined);
  due = undefined;
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

/** Texts of the scripts by their file names. */
export const SCRIPTS = { "copy.js": COPY, "live.js": LIVE } as const;
