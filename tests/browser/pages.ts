/** Every page of the console at three widths, light or dark. */
import { assert, assertEquals } from "@std/assert";
import type { Page } from "puppeteer-core";
import { violationsOf } from "./accessibility.ts";
import type { ConsoleBrowser } from "./browser.ts";

/** Pages that are loaded side by side. */
const TABS = 4;
/** Only colors depend on the scheme, and only positions on the width. */
const VIEWS = [[380, "light"], [800, "light"], [1400, "dark"]] as const;
/** Widths at which accessibility is checked, in whole and of the view: no style hides an element by width. */
const [CHECKED, CHECKED_AGAIN] = [380, 1400];

/** The rules of all pages. */
export const PAGE_TESTS: Readonly<Record<string, (console: ConsoleBrowser) => Promise<void>>> = {
  async "every page fits, loads nothing from elsewhere, and has no accessibility violation"(console) {
    const paths = await pathsOf(console);
    assert(paths.length > 10, `${paths.length} pages`);
    const left = paths.values();
    const found: string[] = [];
    await Promise.all(Array.from({ length: TABS }, async () => {
      await using tab = await console.open(console.operator);
      for (const path of left) found.push(...await faultsOf(path, tab.page), ...tab.faults.splice(0));
    }));
    await using signedOut = await console.open();
    found.push(...await faultsOf(`${console.url}/sign-in`, signedOut.page), ...signedOut.faults);
    assertEquals(found, []);
  },
};

/** Pages of the menu, and of keys and requests of every kind. */
async function pathsOf({ open, operator, url }: ConsoleBrowser): Promise<string[]> {
  await using tab = await open(operator);
  const links = async (path: string, selector: string, most: number) => {
    await tab.page.goto(url + path);
    return await tab.page.$$eval(
      selector,
      (all, most) => all.slice(0, most).map((a) => (a as HTMLAnchorElement).href),
      most,
    );
  };
  const menu = await links("", "header nav a", 100);
  const keys = await links("/keys", "main table a", 2);
  const searches = [
    "",
    "status=200&upstream=meridian&model=open/kestrel-70b",
    "reason=limit",
    "reason=budget",
    "status=503",
  ];
  const requests: string[] = [];
  for (const search of searches) requests.push(...await links(`/requests?${search}`, "main table a", 1));
  return [...new Set([...menu, ...keys, ...requests, `${url}/requests/none`])];
}

/** Problems of a page in all views. The page follows its window. */
async function faultsOf(path: string, page: Page): Promise<string[]> {
  const faults: string[] = [];
  await page.goto(path);
  for (const [width, scheme] of VIEWS) {
    await page.setViewport({ width, height: 900 });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    const shown = await page.evaluate(() => document.documentElement.scrollWidth);
    if (shown > width) faults.push(`${path} is ${shown} wide at ${width}`);
    faults.push(...(await coveredTexts(page)).map((label) => `${path}: a button covers ${label} at ${width}`));
    if (width === CHECKED || width === CHECKED_AGAIN) {
      const violations = await violationsOf(page, { ofView: width === CHECKED_AGAIN });
      faults.push(...violations.map((text) => `${path} ${scheme} ${width}: ${text}`));
    }
  }
  return faults;
}

/** Labels of texts that lie under their button to copy them. */
function coveredTexts(page: Page): Promise<string[]> {
  return page.$$eval("div.copyable", (all) =>
    all.flatMap((block) => {
      const [text, button] = [...block.children].map((child) => child.getBoundingClientRect());
      const isCovered = text !== undefined && button !== undefined && button.width > 0 && button.left < text.right &&
        button.top < text.bottom;
      return isCovered ? [block.firstElementChild?.getAttribute("aria-label") ?? ""] : [];
    }));
}
