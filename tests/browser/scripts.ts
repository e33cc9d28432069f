/** The scripts of single pages: the live tail, the streaming playground, and buttons that copy. */
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { violationsOf } from "./accessibility.ts";
import { type ConsoleBrowser, textOf } from "./browser.ts";

const [MODEL, OTHER] = ["meridian/lyra-3", "borealis/atlas-2"];

async function ask({ demo }: ConsoleBrowser): Promise<string> {
  const [key = ""] = Object.values(demo.secrets);
  const response = await fetch(`${demo.origin}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: MODEL, messages: [{ role: "user", content: "one two" }] }),
  });
  await response.body?.cancel();
  return response.headers.get("x-request-id") ?? "";
}

/** The cases of scripts. */
export const SCRIPT_TESTS: Readonly<Record<string, (console: ConsoleBrowser) => Promise<void>>> = {
  async "a request appears in the live tail, and no more after it is stopped"(console) {
    await using tab = await console.open(console.operator);
    const { page } = tab;
    await page.goto(`${console.url}/requests?model=${MODEL}`);
    await page.click("#live");
    await page.waitForFunction(`document.querySelector("#live").getAttribute("aria-pressed") === "true"`);
    const id = await ask(console);
    await page.waitForSelector(`#requests a[title="${id}"]`);
    const time = await page.$eval("#requests time", (time) => time.textContent ?? "");
    assert(!time.endsWith("UTC"), `times of new rows are those of the viewer: ${time}`);
    await page.click("#live");
    assertEquals(await page.$eval("#live", (live) => live.getAttribute("aria-pressed")), "false");
    assertEquals(tab.faults, []);
  },

  async "the playground shows an answer while it arrives, then its cost, beside another model's"(console) {
    await using tab = await console.open(console.operator);
    const { page } = tab;
    await page.goto(`${console.url}/playground?model=${MODEL}&other=${OTHER}`);
    await page.type("textarea[name=prompt]", "</section><script>alert(1)</script>");
    await page.click("#playground button[value=send]");
    await page.waitForFunction(`document.querySelectorAll("#results .cards").length === 2`);
    assertEquals(new URL(page.url()).pathname, "/admin/console/playground", "the page stays");
    const answers = await page.$$eval("#results .answer", (all) => all.map(({ textContent }) => textContent ?? ""));
    assertEquals(answers.map((answer) => answer.length > 0), [true, true]);
    assertEquals(await page.$$eval("#results h2", (all) => all.map(({ textContent }) => textContent)), [MODEL, OTHER]);
    assertStringIncludes(await textOf(page), "First token");
    assertEquals(await page.$eval("#results", (results) => results.ariaBusy), null);
    assertEquals(await page.$$eval("#results button.copy[hidden]", (all) => all.length), 0);
    assertEquals(await violationsOf(page), []);
    // Refusals by the gateway and by the console are shown in the place of the answer.
    await page.$eval("input[name=key]", (key) => void ((key as HTMLInputElement).value = "nobody"));
    await page.click("#playground button[value=send]");
    await page.waitForSelector("#results .notice.bad");
    assertStringIncludes(await textOf(page), `Cannot find key "nobody"`);
    assertEquals(tab.faults, []);
  },

  async "settings are copied as they are shown"(console) {
    await using tab = await console.open(console.operator);
    const { page } = tab;
    await console.operator.overridePermissions(console.demo.origin, ["clipboard-read", "clipboard-sanitized-write"]);
    await page.bringToFront();
    await page.goto(`${console.url}/connect?model=${MODEL}`);
    const shown = await page.$eval(`pre[aria-label="settings of Codex"]`, (pre) => pre.textContent ?? "");
    await page.click(`button[aria-label="Copy settings of Codex"]`);
    await page.waitForFunction(
      `document.querySelector('button[aria-label="Copy settings of Codex"]').textContent === "Copied"`,
    );
    assertEquals(await page.evaluate(() => navigator.clipboard.readText()), shown);
    assertEquals(tab.faults, []);
  },
};
