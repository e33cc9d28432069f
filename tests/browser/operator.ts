/** Operations of an operator in the console, and attacks. */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import type { Page } from "puppeteer-core";
import type { RunningDemo } from "./demo.ts";
import { type ConsoleBrowser, signIn, submit, textOf } from "./browser.ts";

/** The steps of an operator. */
export const OPERATOR_TESTS: Readonly<Record<string, (console: ConsoleBrowser) => Promise<void>>> = {
  async "a wrong admin key is refused, and the right one opens the overview"({ open, url, demo }) {
    await using tab = await open();
    await signIn(tab.page, { url, key: "wrong" });
    assertStringIncludes(await textOf(tab.page), "This admin key is not valid");
    await signIn(tab.page, { url, key: demo.adminKey });
    assertEquals([tab.page.url(), await headingOf(tab.page)], [url, "Overview"]);
    assertEquals(tab.faults, []);
  },

  async "the printed link signs in once, without leaving itself in the address"({ open, url, demo }) {
    await using tab = await open();
    await tab.page.goto(demo.signInLink);
    assertEquals([tab.page.url(), await headingOf(tab.page)], [url, "Overview"]);
    assertEquals(tab.faults, []);
    await using late = await open();
    await late.page.goto(demo.signInLink);
    assertEquals(await headingOf(late.page), "Sign in");
  },

  async "a key is created, used and rotated"({ open, operator, url, demo }) {
    await using tab = await open(operator);
    const { page } = tab;
    await page.goto(`${url}/keys`);
    await page.type("input[name=name]", "browser-test");
    // The second click is ignored: the page after it would not have the secret.
    await Promise.all([page.waitForNavigation(), page.click("form.fields button", { count: 2 })]);
    const first = await page.$eval("#secret", (secret) => secret.textContent ?? "");
    assertEquals(await statusWith(first, demo.origin), 200);
    await submit(page, 'main a[href*="/keys/"]');
    await page.$eval("input[name=overlap]", (input) => void ((input as HTMLInputElement).value = "0s"));
    await submit(page, 'form:has([value="rotate"]) button');
    const second = await page.$eval("#secret", (secret) => secret.textContent ?? "");
    assertEquals([await statusWith(first, demo.origin), await statusWith(second, demo.origin)], [401, 200]);
    assertEquals(tab.faults, []);
  },

  async "a refused request is found and explained"({ open, operator, url, demo }) {
    assertEquals(await askWith(demo.secrets["partner-tern"] ?? "", demo.origin), 429);
    await using tab = await open(operator);
    const { page } = tab;
    await page.goto(`${url}/requests`);
    await page.type("input[name=status]", "429");
    await page.type("input[name=key]", "partner-tern");
    await submit(page, "form.fields button");
    await submit(page, "main table tbody tr:first-child a");
    assertMatch(await textOf(page), /Refused: key "partner-tern" has a budget of [\d.]+ USD in total/);
    assertEquals(tab.faults, []);
  },

  async "the totals of a month are the sums of the ledger, on the page and in the CSV of the command line"(
    { open, operator, url, demo },
  ) {
    // The month with most of the traffic.
    const month = new Date(Date.now() - 15 * 86_400_000).toISOString().slice(0, 7);
    using db = new DatabaseSync(`${demo.folder}/data/sluice.db`, { readOnly: true });
    const read = db.prepare(
      "SELECT model, sum(cost) AS cost, count(*) AS requests FROM entries " +
        "WHERE strftime('%Y-%m', at / 1000, 'unixepoch') = ? GROUP BY model ORDER BY 2 DESC",
    );
    read.setReadBigInts(true);
    const sums = read.all(month).map(({ cost, requests }) => [usd(BigInt(String(cost))), String(requests)]);
    await using tab = await open(operator);
    const { page } = tab;
    await page.goto(`${url}/usage?by=model&month=${month}`);
    const shown = await page.$$eval(
      "main tbody tr:not(.total)",
      (rows) =>
        rows.map((row) =>
          [...row.cells].slice(1, 3).map((cell) => cell.querySelector("[title]")?.getAttribute("title") ?? "")
        ),
    );
    const exact = shown.map(([cost = "", requests = ""]) => [cost.replace(" USD", ""), requests.replaceAll(",", "")]);
    assertEquals(exact, sums);
    for (const by of ["group,model", "upstream"]) {
      const [first = "", then = ""] = by.split(",");
      const query = new URLSearchParams({ month, by: first, then, format: "csv" });
      const csv = await page.evaluate(async (path) => await (await fetch(path)).text(), `${url}/usage?${query}`);
      assertEquals(csv, await runSluice(["usage", "--month", month, "--by", by, "--csv"], demo));
    }
  },

  async "names that are markup, quotes, right-to-left or very long are text"({ open, operator, url, demo }) {
    const names = [
      '<script>globalThis.hacked = 1</script><img src=x onerror="globalThis.hacked = 1">',
      `"><svg onload=globalThis.hacked=1>'`,
      "\u202Eנתון \u0627\u0644\u0645\u0633\u062A\u062E\u062F\u0645",
      "x".repeat(200),
    ];
    for (const user of names) assertEquals(await askWith(demo.secrets["ci-review"] ?? "", demo.origin, user), 200);
    await using tab = await open(operator);
    const { page } = tab;
    await page.setViewport({ width: 380, height: 900 });
    for (const user of names) {
      for (
        const path of [
          `/requests?${new URLSearchParams({ user })}`,
          "/usage?by=user",
          `/keys/${encodeURIComponent(user)}`,
        ]
      ) {
        await page.goto(url + path);
        const { hacked, width } = await page.evaluate(() => ({
          hacked: "hacked" in globalThis,
          width: document.documentElement.scrollWidth,
        }));
        assertEquals([path, hacked, width], [path, false, 380]);
      }
      await page.goto(`${url}/requests?${new URLSearchParams({ user })}`);
      await submit(page, "main table a");
      // A control of the writing direction is not kept.
      assertStringIncludes((await textOf(page)).replaceAll(/\s+/g, " "), user.replace("\u202E", ""));
    }
    assertEquals(tab.faults, []);
  },

  async "a page of another origin can neither send forms nor show the console in a frame"({ open, operator, url }) {
    const action = `${url}/keys`;
    await using site = startSite(`
      <form method="post" action="${action}"><input name="name" value="sneaked"><input name="group" value="default">
        <input name="csrf" value=""><button>Win</button></form>
      <iframe src="${url}"></iframe>`);
    await using tab = await open(operator);
    const { page } = tab;
    await page.goto(site.url);
    const frame = page.frames().find((frame) => frame !== page.mainFrame());
    assertMatch(frame?.url() ?? "", /^chrome-error:/);
    await submit(page, "button");
    assertEquals(await headingOf(page), "Cannot do this");
    await page.goto(`${url}/keys`);
    assert(!(await textOf(page)).includes("sneaked"));
  },

  async "a session that has ended leads to the sign-in page, and nothing is changed"({ open, url, demo }) {
    await using tab = await open();
    const { page } = tab;
    await signIn(page, { url, key: demo.adminKey });
    await page.goto(`${url}/keys`);
    await page.type("input[name=name]", "too-late");
    await page.deleteCookie(...await page.cookies());
    await submit(page, "form.fields button");
    assertEquals([page.url(), await headingOf(page)], [`${url}/sign-in`, "Sign in"]);
    await signIn(page, { url, key: demo.adminKey });
    await page.goto(`${url}/keys`);
    assert(!(await textOf(page)).includes("too-late"));
    await submit(page, "header form button");
    assertEquals(page.url(), `${url}/sign-in`);
  },

  async "a viewer sees the pages without forms that change anything"({ open, url, demo }) {
    await using tab = await open();
    await signIn(tab.page, { url, key: demo.viewerKey });
    await tab.page.goto(`${url}/keys`);
    assertEquals(await tab.page.$$eval("main form[method=post]", (forms) => forms.length), 0);
    assertStringIncludes(await tab.page.$eval("header", (header) => header.innerText), "read only");
  },

  async "everything works with the keyboard alone"({ open, url, demo }) {
    await using tab = await open();
    const { page } = tab;
    await page.goto(`${url}/sign-in`);
    // The browser moves the focus to the field with the first frame, which may be later than the load.
    await page.waitForSelector("input:focus");
    await page.keyboard.type(demo.adminKey);
    await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
    assertEquals(await headingOf(page), "Overview");
    await page.keyboard.press("Tab");
    assertEquals(await focusedText(page), "Skip to the page");
    await tabTo(page, "Keys");
    await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
    await tabTo(page, "name");
    await page.keyboard.type("by-keyboard");
    await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
    assertMatch(await page.$eval("#secret", (secret) => secret.textContent ?? ""), /^sk-sluice-/);
    assertEquals(tab.faults, []);
  },

  async "everything but the streams works without JavaScript, with times in UTC"({ open, operator, url }) {
    await using tab = await open(operator);
    const { page } = tab;
    await page.setJavaScriptEnabled(false);
    await page.goto(`${url}/requests?status=200`);
    assertMatch(await textOf(page), /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/);
    await submit(page, "main table a");
    assertEquals(await headingOf(page), "Request");
    await page.goto(`${url}/keys`);
    await page.type("input[name=name]", "without-script");
    await submit(page, "form.fields button");
    assertMatch(await page.$eval("#secret", (secret) => secret.textContent ?? ""), /^sk-sluice-/);
    await page.goto(`${url}/playground?model=borealis/atlas-2-mini`);
    await page.type("[name=prompt]", "Hello");
    await submit(page, "#playground [value=send]");
    assertStringIncludes(await textOf(page), "This answer comes from a vendor that does not exist.");
    assertEquals(tab.faults, []);
  },

  async "times are the viewer's, with UTC in the title"({ open, operator, url }) {
    await using tab = await open(operator);
    await tab.page.emulateTimezone("Asia/Tokyo");
    await tab.page.goto(`${url}/requests`);
    const { iso, title, text } = await tab.page.$eval("main time", (time) => ({
      iso: time.dateTime,
      title: time.title,
      text: time.textContent ?? "",
    }));
    assertEquals(title, `${iso.slice(0, 19).replace("T", " ")} UTC`);
    const japan = new Date(Date.parse(iso) + 9 * 3_600_000);
    const hour = String(japan.getUTCHours() % 12 || 12).padStart(2, "0");
    assertStringIncludes(text, `${hour}:${iso.slice(14, 16)}`);
  },
};

function headingOf(page: Page): Promise<string> {
  return page.$eval("h1", (heading) => heading.textContent ?? "");
}

/** The text of the element with the focus, or the name of its field. */
function focusedText(page: Page): Promise<string> {
  return page.evaluate(() => {
    const { activeElement: active } = document;
    return active instanceof HTMLInputElement ? active.name : active?.textContent?.trim() ?? "";
  });
}

/** Presses Tab until an element has the focus. */
async function tabTo(page: Page, text: string): Promise<void> {
  for (let presses = 0; presses < 100; presses++) {
    await page.keyboard.press("Tab");
    if (await focusedText(page) === text) return;
  }
  throw new Error(`Cannot reach "${text}" with the keyboard`);
}

/** 1e-12 USD as the ledger's exact decimal string. */
function usd(amount: bigint): string {
  const digits = amount.toString().padStart(13, "0");
  return `${digits.slice(0, -12)}.${digits.slice(-12)}`.replace(/\.?0+$/, "");
}

/** The output of a command of the demo's gateway. */
async function runSluice(args: readonly string[], { folder }: RunningDemo): Promise<string> {
  const root = `${import.meta.dirname}/../..`;
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--no-check", "--allow-all", "--config", `${root}/deno.json`, `${root}/main.ts`, ...args],
    cwd: folder,
    env: Object.fromEntries(["ADMIN_KEY", "VIEWER_KEY", "UPSTREAM_KEY"].map((name) => [name, `${name}-of-a-command`])),
    stderr: "inherit",
  }).output();
  return new TextDecoder().decode(stdout);
}

/** Status of a list of models with a key. */
async function statusWith(key: string, origin: string): Promise<number> {
  const response = await fetch(`${origin}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  await response.body?.cancel();
  return response.status;
}

/** Status of a small request with a key. */
async function askWith(key: string, origin: string, user?: string): Promise<number> {
  const response = await fetch(`${origin}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({
      model: "borealis/atlas-2-mini",
      max_tokens: 100,
      messages: [{ role: "user", content: "Hello" }],
      ...(user !== undefined && { user }),
    }),
  });
  await response.body?.cancel();
  return response.status;
}

/** Another web site: another port is another origin, but the same site for cookies. */
function startSite(body: string): AsyncDisposable & { url: string } {
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    () => new Response(`<!doctype html><title>Elsewhere</title>${body}`, { headers: { "content-type": "text/html" } }),
  );
  return { url: `http://127.0.0.1:${server.addr.port}/`, [Symbol.asyncDispose]: () => server.shutdown() };
}
